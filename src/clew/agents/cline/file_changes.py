"""What a session of Cline proves about files: what its editor created, replaced and inserted, and what tools read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from clew.agents.base import SourceFile
from clew.agents.cline import locate
from clew.agents.cline.events import environment_folder, session_folder
from clew.agents.edits import Replacement, plain, replacing, with_line_endings_of
from clew.agents.file_evidence import (
    ABSENT,
    Edit,
    Event,
    FileChange,
    KnownContent,
    WriterFinished,
    absolute,
    as_bytes,
    as_text,
    first_text,
    tool_call,
    writer_started,
)
from clew.agents.read_only_commands import is_read_only_command
from clew.model.json import JSON
from clew.model.unit import Unit

_COMMANDS = ("run_commands", "execute_command")
_READS = ("read_files", "read_file")
_EDITS = ("editor", "write_to_file", "replace_in_file", "apply_diff", "insert_content", "search_and_replace")
_HARMLESS = frozenset(
    "search_codebase fetch_web_content ask_question skills submit_and_exit list_files search_files codebase_search "
    "list_code_definition_names attempt_completion ask_followup_question plan_mode_respond update_todo_list web_fetch "
    "web_search fetch_instructions switch_mode access_mcp_resource load_mcp_documentation".split()
)
_SAVED = re.compile(r"<final_file_content path=\"[^\"]*\">\n(.*)\n</final_file_content>", re.DOTALL)
"""The file as an editor saved it, which may have formatted it."""


class Call(NamedTuple):
    """A call that waits for its result."""

    name: str
    input: dict[str, JSON]
    message: int
    """The index of its message."""


def file_changes(source: SourceFile, units: Iterator[Unit]) -> Iterator[Event]:
    """Everything a session proves, in its order."""
    reader = _Reader(session_folder(source), is_task=locate.is_task(source.path))
    for unit in units:
        if unit.is_message:
            yield from reader.message(unit.value)


class _Reader:
    def __init__(self, folder: str | None, *, is_task: bool) -> None:
        self._folder, self._is_task = folder, is_task
        self._calls: dict[str, Call] = {}

    def message(self, message: dict[str, JSON]) -> Iterator[Event]:
        for block in message["content"]:
            match block["type"]:
                case "tool_use":
                    yield from self._called(block, message["index"])
                case "tool_result":
                    yield from self._returned(block, message["index"])
                case "text" if self._is_task and self._folder is None and message["role"] == "user":
                    self._folder = environment_folder(block["text"])

    def _called(self, block: dict[str, JSON], index: int) -> Iterator[Event]:
        found = tool_call(block)
        if found is None:
            return
        key, name, given = found
        self._calls[key] = Call(name, given, index)
        if _can_change_anything(name, given):
            commands = _commands(given)
            yield writer_started(key, index, name, " && ".join(commands) if commands else None)

    def _returned(self, block: dict[str, JSON], index: int) -> Iterator[Event]:
        key = block.get("tool_id")
        call = self._calls.pop(key, None) if isinstance(key, str) else None
        if call is None:
            return
        assert isinstance(key, str)
        if _can_change_anything(call.name, call.input):
            yield WriterFinished(key, index)
        if block.get("is_error") is True:
            return
        if call.name in _READS:
            for read in _read_paths(call.input):
                yield FileChange(absolute(read, self._folder), "read", call.message, index, "read")
        elif call.name in _EDITS and (path := first_text(call.input, "path", "file_path")) is not None:
            output = block.get("output")
            yield _change(absolute(path, self._folder), call, index, output if isinstance(output, str) else "")


def _change(path: str, call: Call, done: int, output: str) -> FileChange:
    new = first_text(call.input, "new_text")
    if call.name != "editor" or new is None:
        saved = _SAVED.search(output)
        after = as_text(saved[1]) if saved else None
        return FileChange(path, "change", call.message, done, "record" if after else "edit", after=after)
    line, old = call.input.get("insert_line"), call.input.get("old_text")
    if isinstance(line, int):
        return FileChange(path, "change", call.message, done, "edit", edit=_inserting(line, new))
    if output.startswith("File created"):
        return FileChange(path, "create", call.message, done, "record", before=ABSENT, after=as_bytes(new))
    edit = replacing([Replacement(old, new)]) if isinstance(old, str) else None
    return FileChange(path, "change", call.message, done, "edit", edit=edit)


def _inserting(line: int, new: str) -> Edit:
    """The edit that inserts text before a line; the first line has the number 1."""

    def edit(base: KnownContent | None) -> KnownContent | None:
        text = plain(base)
        lines = text.split("\n") if text is not None else []
        if not 1 <= line <= len(lines) + 1:
            return None
        lines[line - 1 : line - 1] = new.replace("\r\n", "\n").split("\n")
        return with_line_endings_of("\n".join(lines), base)

    return edit


def _can_change_anything(name: str, given: dict[str, JSON]) -> bool:
    if name in _COMMANDS:
        commands = _commands(given)
        return not commands or not all(map(is_read_only_command, commands))
    return name not in _EDITS and name not in _READS and name not in _HARMLESS


def _commands(given: dict[str, JSON]) -> list[str]:
    """The commands of a call; none where one of them is no text."""
    found = given.get("commands", given.get("command"))
    commands: list[JSON] = found if isinstance(found, list) else [found]
    return commands if all(isinstance(command, str) for command in commands) else []


def _read_paths(given: dict[str, JSON]) -> Iterator[str]:
    files = given.get("files", given.get("path"))
    for file in files if isinstance(files, list) else [files]:
        path = first_text(file, "path", "file_path", "filePath") if isinstance(file, dict) else file
        if isinstance(path, str):
            yield path
