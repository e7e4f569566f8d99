"""What calls of Gemini CLI and of agents that descend from it prove about files.

Their tools display a file whole before and after a change. Tools for edits show lines that end in "\\n" whatever the
file's do; `write_file` shows what it found as it was.
"""

from __future__ import annotations

from typing import ClassVar

from clew.agents.edits import rewriting, writing
from clew.agents.file_evidence import ABSENT, FileChange, FileContent, as_bytes, as_text
from clew.agents.tool_file_changes import ToolCall, ToolFileChanges

_PARTS = ("offset", "limit", "pages", "start_line", "end_line")
"""Arguments of a reading that ask for less than the whole file."""


class DisplayedFileChanges(ToolFileChanges):
    """Reads sessions where the details of a result are what the client displayed for it."""

    shells = ("run_shell_command",)
    reads, writes = ("read_file",), ("write_file",)
    not_content: ClassVar[tuple[str, ...]] = ()
    """How outputs of `read_file` begin that are not the whole of a file."""
    edits_as_asked: ClassVar[bool] = False
    """True where an edit that is not displayed did what its arguments say."""

    def read(self, call: ToolCall) -> FileChange:
        is_whole = not any(name in call.input for name in _PARTS)
        is_content = not call.output_text.lstrip().startswith(self.not_content)
        return call.read(as_text(call.output) if is_whole and is_content else None)

    def written(self, call: ToolCall) -> FileChange:
        old, new = _displayed(call)
        content = new if new is not None else call.text("content")
        if content is None:
            return call.change("change", "record", _found(old))
        if self.is_new_file(call):
            return call.change("create", "record", ABSENT, as_bytes(content))
        return call.change("change", "record", _found(old), edit=writing(content))

    def edited(self, call: ToolCall) -> FileChange:
        old, new = _displayed(call)
        if new is not None and self.is_new_file(call):
            return call.change("create", "record", ABSENT, as_bytes(new))
        if new is not None:
            return call.change("change", "record", as_text(old), edit=rewriting(new))
        asked = super().edited(call) if self.edits_as_asked else call.change("change", "record")
        return asked._replace(before=as_text(old))


def _displayed(call: ToolCall) -> tuple[str | None, str | None]:
    """The file before and after a change; None where it is not displayed, or too long to be displayed whole."""
    old = None if call.details.get("originalContentTruncated") is True else call.details.get("originalContent")
    new = None if call.details.get("newContentTruncated") is True else call.details.get("newContent")
    return old if isinstance(old, str) else None, new if isinstance(new, str) else None


def _found(old: str | None) -> FileContent | None:
    """What `write_file` found. What begins with a byte order mark may be of another encoding."""
    return as_text(old) if old is not None and old.startswith("\ufeff") else as_bytes(old)
