"""Tools for files and commands under the names that small agents give them, and what a call of one proves."""

from __future__ import annotations

from collections.abc import Iterator

from clew.agents.edits import Replacement, replacing, writing
from clew.agents.file_evidence import (
    ABSENT,
    Event,
    FileChange,
    WriterFinished,
    absolute,
    first_text,
    tool_call,
    writer_started,
)
from clew.agents.read_only_commands import is_read_only_command
from clew.model.json import JSON

_WRITES = ("write", "write_file", "create_file")
_EDITS = ("edit", "edit_file", "str_replace", "replace")
_READS = ("read", "read_file", "view", "view_file")
_DELETES = ("delete_file", "remove_file")
_SHELLS = ("bash", "shell", "run_shell", "run_command", "run_shell_command")
_BY_COMMAND = "str_replace_based_edit_tool"
_COMMANDS = {"create": "write", "str_replace": "edit", "view": "read"}
_HARMLESS = frozenset(
    "glob grep ls list list_files list_directory search search_files code_search find_files todo_write todowrite "
    "todo_read web_fetch web_search webfetch websearch git_status git_log git_diff git_branch git_blame "
    "sequential_thinking sequentialthinking task_done ask_user askuserquestion lsp todo".split()
)
_PATHS = ("file_path", "path", "filename", "file")


class ToolFileChanges:
    """Calls and their results, as they come. `exact`: files are written as they are given, byte for byte."""

    def __init__(self, exact: bool) -> None:
        self._exact = exact
        self._calls: dict[str, tuple[str, dict[str, JSON], int, str | None]] = {}

    def called(self, block: dict[str, JSON], index: int, folder: str | None) -> Iterator[Event]:
        """A call was made."""
        call = tool_call(block)
        if call is None:
            return
        key, name, given = call
        name = name.lower()
        if name == _BY_COMMAND:
            name = _COMMANDS.get(str(given.get("command")), name)
        self._calls[key] = name, given, index, folder
        if _can_change_anything(name, given):
            yield writer_started(key, index, name, given.get("command"))

    def named(self, block: dict[str, JSON], folder: str | None) -> str | None:
        """The file that a call names; None where it names none."""
        given = block.get("input")
        path = first_text(given, *_PATHS) if isinstance(given, dict) else None
        return absolute(path, folder) if path is not None else None

    def returned(self, block: dict[str, JSON], index: int) -> Iterator[Event]:
        """A result came."""
        key = block.get("tool_id")
        call = self._calls.pop(key, None) if isinstance(key, str) else None
        if call is None:
            return
        assert isinstance(key, str)
        name, given, at, folder = call
        if _can_change_anything(name, given):
            yield WriterFinished(key, index)
        path = first_text(given, *_PATHS)
        if path is not None and block.get("is_error") is not True:
            yield from self._touches(name, given, absolute(path, folder), at, index)

    def _touches(self, name: str, given: dict[str, JSON], path: str, at: int, done: int) -> Iterator[FileChange]:
        if name in _READS:
            yield FileChange(path, "read", at, done, "read")
        elif name in _DELETES:
            yield FileChange(path, "delete", at, done, "record", after=ABSENT)
        elif name in _WRITES:
            text = first_text(given, "content", "file_text", "text")
            edit = writing(text, verbatim=self._exact) if text is not None else None
            yield FileChange(path, "change", at, done, "record", edit=edit)
        elif name in _EDITS:
            old = first_text(given, "old_string", "old_str", "old")
            new = first_text(given, "new_string", "new_str", "new")
            edit = None
            if old is not None and new is not None:
                edit = replacing([Replacement(old, new, given.get("replace_all") is True)])
            yield FileChange(path, "change", at, done, "edit", edit=edit)


def _can_change_anything(name: str, given: dict[str, JSON]) -> bool:
    if name in _SHELLS:
        command = given.get("command", given.get("cmd"))
        return not (isinstance(command, str) and is_read_only_command(command))
    return name not in (*_WRITES, *_EDITS, *_READS, *_DELETES) and name not in _HARMLESS
