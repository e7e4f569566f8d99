"""What a session of Pi proves about files: what its tools were given, and what they answered.

`write` writes the characters that it is given, and `read` shows those of the file. `edit` works on lines that end in
"\\n" and writes them as the file had them; its result holds a patch.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from clew.agents.base import SourceFile, Unit
from clew.agents.edits import Replacement, parse_hunks, patching, writing
from clew.agents.file_evidence import (
    Event,
    FileChange,
    WriterFinished,
    WriterStarted,
    absolute,
    as_bytes,
    tool_call,
    writer_started,
)
from clew.agents.pi.records import HEADER
from clew.agents.read_only_commands import is_read_only_command
from clew.analysis.titles import short_command
from clew.model.json import JSON

_SHELLS = ("bash", "powershell")
_IMAGE_NOTE = "Read image file ["
"""How the answer of `read` begins for a picture, which may stand in it without the picture."""
_WITHOUT_CHANGES = frozenset(("read", "grep", "find", "ls"))


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
        elif unit.value.get("type") == HEADER:
            cwd = unit.native.get("cwd")
            reader.folder = cwd if isinstance(cwd, str) else None


class _Reader:
    def __init__(self) -> None:
        self.folder: str | None = None
        self._calls: dict[str, _Call] = {}

    def message(self, unit: Unit) -> Iterator[Event]:
        index, native = unit.value["index"], unit.native.get("message")
        details = native.get("details") if isinstance(native, dict) else None
        for block in unit.value["content"]:
            if block["type"] == "tool_use":
                yield from self._called(block, index)
            elif block["type"] == "tool_result":
                yield from self._returned(block, index, details if isinstance(details, dict) else {})
        if isinstance(native, dict) and native.get("role") == "bashExecution":
            yield from _command_of_person(native.get("command"), index)

    def _called(self, block: dict[str, JSON], index: int) -> Iterator[Event]:
        call = tool_call(block)
        if call is None:
            return
        key, name, given = call
        self._calls[key] = _Call(name, given, index)
        if _can_change_any_file(name, given):
            yield writer_started(key, index, name, given.get("command"))

    def _returned(self, block: dict[str, JSON], index: int, details: dict[str, JSON]) -> Iterator[Event]:
        key = block.get("tool_id")
        call = self._calls.pop(key, None) if isinstance(key, str) else None
        if call is None:
            return
        if _can_change_any_file(call.name, call.input):
            yield WriterFinished(str(key), index)
        named = call.input.get("path")
        if not isinstance(named, str) or block.get("is_error") is True:
            return
        path = absolute(named.removeprefix("@"), self.folder)
        if call.name == "read":
            yield _read(path, call, index, block.get("output"), details)
        elif call.name == "write":
            content = call.input.get("content")
            edit = writing(content, verbatim=True) if isinstance(content, str) else None
            yield FileChange(path, "change", call.at, index, "record", edit=edit)
        elif call.name == "edit":
            patch = details.get("patch")
            hunks = (parse_hunks(patch) if isinstance(patch, str) else None) or []
            edit = patching(hunks, _replacements(call.input))
            yield FileChange(path, "change", call.at, index, "edit", edit=edit)


def _can_change_any_file(name: str, given: dict[str, JSON]) -> bool:
    if name in _SHELLS:
        command = given.get("command")
        return not (isinstance(command, str) and is_read_only_command(command))
    return name not in ("write", "edit") and name not in _WITHOUT_CHANGES


def _command_of_person(command: JSON, index: int) -> Iterator[Event]:
    """A command that the person ran: when its entry is written, it is over."""
    if isinstance(command, str) and not is_read_only_command(command):
        key = f"message {index}"
        yield WriterStarted(key, index - 1, f"`{short_command(command)}`")
        yield WriterFinished(key, index)


def _read(path: str, call: _Call, done: int, output: JSON, details: dict[str, JSON]) -> FileChange:
    """What a reading shows: all of the file, unless a part was asked for or it was cut."""
    is_whole = not {"offset", "limit"} & call.input.keys() and "truncation" not in details
    is_image = isinstance(output, str) and output.startswith(_IMAGE_NOTE)
    content = as_bytes(output) if is_whole and not is_image else None
    note = None if content is not None else "what was read of it is not all, or not text"
    return FileChange(path, "read", call.at, done, "read", content, content, note=note)


def _replacements(given: dict[str, JSON]) -> list[Replacement]:
    """The texts that an edit replaces; a call of an older client holds one."""
    edits = given.get("edits")
    found = [
        (edit.get("oldText"), edit.get("newText"))
        for edit in (edits if isinstance(edits, list) else [given])
        if isinstance(edit, dict)
    ]
    return [Replacement(old, new) for old, new in found if isinstance(old, str) and old and isinstance(new, str)]
