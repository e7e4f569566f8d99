"""What calls of Gemini CLI and of agents that descend from it prove about files.

Their tools display a file whole before and after a change. Tools for edits show lines that end in "\\n" whatever the
file's do; `write_file` shows what it found as it was.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import NamedTuple

from clew.agents.edits import Replacement, replacing, rewriting, writing
from clew.agents.file_evidence import ABSENT, Edit, FileChange, as_bytes, as_text
from clew.agents.read_only_commands import is_read_only_command
from clew.model.json import JSON

WRITE = "write_file"
_SHELL = "run_shell_command"


class FileCall(NamedTuple):
    """A call of a tool that waits for its result."""

    name: str
    input: dict[str, JSON]
    at: int
    """The index of its message."""

    def can_change_anything(self, harmless: Container[str]) -> bool:
        """True unless the tool is harmless, or the command only reads."""
        command = self.input.get("command")
        only_reads = self.name == _SHELL and isinstance(command, str) and is_read_only_command(command)
        return self.name not in harmless and not only_reads


def read_file(path: str, call: FileCall, output: JSON, done: int, not_content: tuple[str, ...]) -> FileChange:
    """A file as a tool read it; `not_content`: how outputs begin that are not the whole of a file."""
    is_whole = not {"offset", "limit", "pages", "start_line", "end_line"} & call.input.keys()
    is_content = isinstance(output, str) and not output.lstrip().startswith(not_content)
    state = as_text(output) if is_whole and is_content else None
    return FileChange(path, "read", call.at, done, "read", state, state)


def changed_file(
    path: str, call: FileCall, display: Mapping[str, JSON], done: int, *, is_new: bool, replaces_exactly: bool = False
) -> FileChange:
    """A file as a tool changed it. `replaces_exactly`: an edit that is not displayed did what its arguments say."""
    # Of a long file the beginning and the end are displayed.
    old = None if display.get("originalContentTruncated") is True else display.get("originalContent")
    new = None if display.get("newContentTruncated") is True else display.get("newContent")
    content = new if isinstance(new, str) else call.input.get("content") if call.name == WRITE else None
    if is_new and isinstance(content, str):
        return FileChange(path, "create", call.at, done, "record", ABSENT, as_bytes(content))
    # What begins with a mark may be of another encoding.
    is_raw = call.name == WRITE and isinstance(old, str) and not old.startswith("\ufeff")
    before = as_bytes(old) if is_raw else as_text(old)
    if isinstance(content, str):
        edit: Edit | None = writing(content) if call.name == WRITE else rewriting(content)
        return FileChange(path, "change", call.at, done, "record", before, edit=edit)
    edit = _replacement(call.input) if replaces_exactly else None
    return FileChange(path, "change", call.at, done, "edit" if edit is not None else "record", before, edit=edit)


def _replacement(given: Mapping[str, JSON]) -> Edit | None:
    old, new = given.get("old_string"), given.get("new_string")
    if not isinstance(old, str) or not isinstance(new, str):
        return None
    return replacing([Replacement(old, new, given.get("replace_all") is True)])
