"""What a session of OpenCode proves about files: what its tools were given, and what they answered.

`write` says whether there was a file before. `edit` holds the patch that it made, in lines that end in "\\n"; the
client may format a file after a tool wrote it, and the patch shows it formatted. `read` shows the characters of a file,
each line behind its number, and holds them once more without the numbers. `apply_patch` names the files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from clew.agents.base import SourceFile
from clew.agents.edits import Replacement, parse_hunks, patching, writing
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
from clew.agents.opencode.records import data_of
from clew.agents.read_only_commands import is_read_only_command
from clew.model.json import JSON
from clew.model.unit import Unit

_WITHOUT_CHANGES = frozenset(
    "read glob grep list webfetch websearch codesearch todowrite todoread skill question lsp invalid".split()
)
_EDITS = ("edit", "multiedit")
_PATCHES = ("apply_patch", "patch")


class _Call(NamedTuple):
    """A call of a tool that waits for its result."""

    name: str
    input: dict[str, JSON]
    at: int
    """The index of its message."""


def file_changes(_source: SourceFile, units: Iterator[Unit]) -> Iterator[Event]:
    """Everything a session proves, in its order."""
    reader = _Reader()
    for unit in units:
        if unit.is_message:
            yield from reader.message(unit)
        elif unit.value.get("type") in ("session", "session_v2"):
            row = unit.native.get("row")
            reader.folder = first_text(row, "directory") if isinstance(row, dict) else None


class _Reader:
    def __init__(self) -> None:
        self.folder: str | None = None
        self._calls: dict[str, _Call] = {}

    def message(self, unit: Unit) -> Iterator[Event]:
        message = unit.value
        for block in message["content"]:
            if block["type"] == "tool_use":
                yield from self._called(block, message["index"])
            elif block["type"] == "tool_result":
                yield from self._returned(block, message["index"], unit.native)

    def _called(self, block: dict[str, JSON], index: int) -> Iterator[Event]:
        call = tool_call(block)
        if call is None:
            return
        key, name, given = call
        self._calls[key] = _Call(name, given, index)
        if _can_change_anything(name, given):
            yield writer_started(key, index, name, given.get("command"))

    def _returned(self, block: dict[str, JSON], index: int, native: Mapping[str, JSON]) -> Iterator[Event]:
        key = block.get("tool_id")
        call = self._calls.pop(key, None) if isinstance(key, str) else None
        if call is None:
            return
        assert isinstance(key, str)
        if _can_change_anything(call.name, call.input):
            yield WriterFinished(key, index)
        if block.get("is_error") is True:
            return
        details = _details(native, key)
        if call.name in _PATCHES:
            yield from self._patched(call, details, index)
            return
        named = first_text(call.input, "filePath", "path")
        if named is None:
            return
        path = absolute(named, self.folder)
        if call.name == "read":
            yield _read(path, call, index)
        elif call.name == "write":
            yield _written(path, call, details, index)
        elif call.name in _EDITS:
            yield _edited(path, call, details, index)

    def _patched(self, call: _Call, details: Mapping[str, JSON], done: int) -> Iterator[Event]:
        files = details.get("files")
        for file in files if isinstance(files, list) else ():
            named = first_text(file, "movePath", "filePath") if isinstance(file, dict) else None
            if named is not None:
                action = {"add": "create", "delete": "delete"}.get(str(file.get("type")), "change")
                after = ABSENT if action == "delete" else None
                path = absolute(named, self.folder)
                yield FileChange(path, action, call.at, done, "record", after=after)  # type: ignore[arg-type]


def _can_change_anything(name: str, given: Mapping[str, JSON]) -> bool:
    if name == "bash":
        command = given.get("command")
        return not (isinstance(command, str) and is_read_only_command(command))
    return name not in (*_EDITS, *_PATCHES, "write") and name not in _WITHOUT_CHANGES


def _details(native: Mapping[str, JSON], call: str) -> Mapping[str, JSON]:
    """What a tool tells of a call apart from its output: in a part, in the log of events, or in a message."""
    data = data_of(native)
    part = data.get("part")
    parts = data.get("content")
    candidates = [data, part, *(parts if isinstance(parts, list) else ())]
    for candidate in candidates:
        if isinstance(candidate, dict) and call in (candidate.get("callID"), candidate.get("id")):
            state = candidate.get("state")
            state = state if isinstance(state, dict) else {}
            found = state.get("metadata", state.get("structured"))
            return found if isinstance(found, dict) else {}
    return {}


def _read(path: str, call: _Call, done: int) -> FileChange:
    """That a tool read a file. Its content is not known: the output does not show whether it ends with a line feed."""
    return FileChange(path, "read", call.at, done, "read")


def _written(path: str, call: _Call, details: Mapping[str, JSON], done: int) -> FileChange:
    content, is_new = call.input.get("content"), details.get("exists") is False
    edit = writing(content, verbatim=True) if isinstance(content, str) else None
    before = ABSENT if is_new else None
    return FileChange(path, "create" if is_new else "change", call.at, done, "record", before, edit=edit)


def _edited(path: str, call: _Call, details: Mapping[str, JSON], done: int) -> FileChange:
    given = call.input.get("edits") if call.name == "multiedit" else [call.input]
    replacements = [
        Replacement(one["oldString"], one["newString"], one.get("replaceAll") is True)
        for one in (given if isinstance(given, list) else ())
        if isinstance(one, dict) and isinstance(one.get("oldString"), str) and isinstance(one.get("newString"), str)
    ]
    diff = details.get("diff")
    hunks = parse_hunks(diff) if isinstance(diff, str) else None
    return FileChange(path, "change", call.at, done, "edit", edit=patching(hunks or [], replacements))
