"""What a chat of Cursor proves about files: what its tools were given. No result holds the content of a file.

A person may reject an edit later, which no record tells.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from clew.agents.base import SourceFile
from clew.agents.cursor.events import read_events
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
from clew.analysis.facts import collect_facts
from clew.model.json import JSON
from clew.model.unit import Unit

_SHELL = "run_terminal_cmd"
_CHANGES = frozenset("edit_file search_replace write apply_patch delete_file".split())
_WITHOUT_CHANGES = frozenset(
    "read_file grep grep_search glob_file_search file_search list_dir codebase_search read_lints todo_write web_search "
    "fetch_rules fetch_pull_request".split()
)
_NO_CONTENT = "the call does not hold the content"


class _Call(NamedTuple):
    """A call of a tool that waits for its result."""

    name: str
    input: dict[str, JSON]
    at: int
    """The index of its message."""


def file_changes(source: SourceFile, units: Iterator[Unit]) -> Iterator[Event]:
    """Everything a chat proves, in its order."""
    folder = collect_facts(read_events(source)).cwd
    calls: dict[str, _Call] = {}
    for unit in units:
        for block in unit.value["content"] if unit.is_message else ():
            index = unit.value["index"]
            if block["type"] == "tool_use" and (call := tool_call(block)) is not None:
                key, name, given = call
                calls[key] = _Call(name, given, index)
                if _can_change_any_file(name, given):
                    yield writer_started(key, index, name, given.get("command"))
            elif block["type"] == "tool_result" and block.get("tool_id") in calls:
                made = calls.pop(block["tool_id"])
                if _can_change_any_file(made.name, made.input):
                    yield WriterFinished(block["tool_id"], index)
                if block.get("is_error") is not True:
                    yield from _change(made, index, folder)


def _change(call: _Call, done: int, folder: str | None) -> Iterator[FileChange]:
    named = first_text(call.input, "file_path", "target_file", "path")
    if named is None:
        return
    path = absolute(named, folder)
    match call.name:
        case "read_file":
            yield FileChange(path, "read", call.at, done, "read")
        case "delete_file":
            yield FileChange(path, "delete", call.at, done, "record", after=ABSENT)
        case "write":
            content = first_text(call.input, "contents", "content")
            edit = writing(content) if content is not None else None
            yield FileChange(path, "change", call.at, done, "record", edit=edit)
        case "search_replace":
            old, new = first_text(call.input, "old_string"), first_text(call.input, "new_string")
            every = call.input.get("replace_all") is True
            edit = replacing([Replacement(old, new, every)]) if old and new is not None else None
            yield FileChange(path, "change", call.at, done, "edit", edit=edit)
        case "edit_file" | "apply_patch":
            yield FileChange(path, "change", call.at, done, "record", note=_NO_CONTENT)


def _can_change_any_file(name: str, given: Mapping[str, JSON]) -> bool:
    if name == _SHELL:
        command = given.get("command")
        return not (isinstance(command, str) and is_read_only_command(command))
    return name not in _CHANGES and name not in _WITHOUT_CHANGES
