"""What calls of Gemini CLI and of agents that descend from it prove about files.

Their tools display a file whole before and after a change. Tools for edits show lines that end in "\\n" whatever the
file's do; `write_file` shows what it found as it was.
"""

from __future__ import annotations

from typing import ClassVar

from clew.agents.edits import rewriting, writing
from clew.agents.file_evidence import ABSENT, Edit, FileChange, KnownContent, as_bytes, as_text
from clew.agents.tool_file_changes import ToolCall, ToolFileChanges

_PARTIAL_READ_ARGUMENTS = ("offset", "limit", "pages", "start_line", "end_line")
"""Arguments of a reading that ask for less than the whole file."""


class DisplayedFileChanges(ToolFileChanges):
    """Reads sessions where the details of a result are what the client displayed for it."""

    reads, writes = ("read_file",), ("write_file",)
    not_content: ClassVar[tuple[str, ...]] = ()
    """How outputs of `read_file` begin that are not the whole of a file."""
    edits_as_asked: ClassVar[bool] = False
    """True where an edit that is not displayed did what its arguments say."""

    def read(self, call: ToolCall) -> FileChange:
        is_whole = not any(name in call.input for name in _PARTIAL_READ_ARGUMENTS)
        is_content = not call.output_text.lstrip().startswith(self.not_content)
        return call.read(as_text(call.output) if is_whole and is_content else None)

    def change_by_write(self, call: ToolCall) -> FileChange:
        shown = _displayed(call, "newContent")
        return super().change_by_write(
            call._replace(input={**call.input, "content": shown}) if shown is not None else call
        )

    def edit_by_writing(self, call: ToolCall, content: str) -> Edit:
        return writing(content)

    def content_before(self, call: ToolCall) -> KnownContent | None:
        if self.is_new_file(call):
            return ABSENT
        old = _displayed(call, "originalContent")
        # What begins with a byte order mark may be of another encoding.
        is_raw = call.name in self.writes and old is not None and not old.startswith("\ufeff")
        return as_bytes(old) if is_raw else as_text(old)

    def is_new_file(self, call: ToolCall) -> bool:
        """True where the result says that there was no such file."""
        return False

    def change_by_edit(self, call: ToolCall) -> FileChange:
        before, shown = self.content_before(call), _displayed(call, "newContent")
        if shown is not None and before is ABSENT:
            return call.change("create", "record", before, as_bytes(shown))
        if shown is not None:
            return call.change("change", "record", before, edit=rewriting(shown))
        return super().change_by_edit(call) if self.edits_as_asked else call.change("change", "record", before)


def _displayed(call: ToolCall, name: str) -> str | None:
    """The file before or after a change; None where it is not displayed, or too long to be displayed whole."""
    text = None if call.result_details.get(f"{name}Truncated") is True else call.result_details.get(name)
    return text if isinstance(text, str) else None
