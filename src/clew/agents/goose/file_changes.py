"""What a session of Goose proves about files: what its tools were given, and what they answered.

`write` writes the characters that it is given, and says whether the file is new. `edit` replaces one text that occurs
once. Until 2026 one tool, `text_editor`, did both and showed files. Names of tools had the extension before them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from clew.agents.base import SourceFile
from clew.agents.edits import Replacement, replacing, writing
from clew.agents.file_evidence import (
    ABSENT,
    Edit,
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
from clew.model.unit import Unit

_EXTENSION = "developer__"
_OLD_EDITOR = "text_editor"
_WITHOUT_CHANGES = frozenset("tree read_image load load_skill analyze todo_write todo__todo_write".split())


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
            for block in unit.value["content"]:
                if block["type"] == "tool_use":
                    yield from reader.called(block, unit.value["index"])
                elif block["type"] == "tool_result":
                    yield from reader.returned(block, unit.value["index"])
        elif unit.value.get("type") == "sessions":
            row = unit.native.get("row")
            reader.folder = first_text(row, "working_dir") if isinstance(row, dict) else None


class _Reader:
    def __init__(self) -> None:
        self.folder: str | None = None
        self._calls: dict[str, _Call] = {}

    def called(self, block: dict[str, JSON], index: int) -> Iterator[Event]:
        """A tool was called."""
        call = tool_call(block)
        if call is None:
            return
        key, name, given = call
        name = name.removeprefix(_EXTENSION)
        self._calls[key] = _Call(name, given, index)
        if _can_change_any_file(name, given):
            yield writer_started(key, index, name, given.get("command"))

    def returned(self, block: dict[str, JSON], index: int) -> Iterator[Event]:
        """A result came."""
        key = block.get("tool_id")
        call = self._calls.pop(key, None) if isinstance(key, str) else None
        if call is None:
            return
        if _can_change_any_file(call.name, call.input):
            yield WriterFinished(str(key), index)
        named = first_text(call.input, "path")
        if named is None or block.get("is_error") is True:
            return
        path = absolute(named, self.folder)
        content = _written_content(call)
        if content is not None:
            output = block.get("output")
            is_new = isinstance(output, str) and output.startswith("Created ")
            action, before = ("create", ABSENT) if is_new else ("change", None)
            edit = writing(content, verbatim=call.name == "write")
            yield FileChange(path, action, call.at, index, "record", before, edit=edit)  # type: ignore[arg-type]
        elif call.name == "edit" or call.input.get("command") == "str_replace":
            yield FileChange(path, "change", call.at, index, "edit", edit=_replacement(call.input))
        elif call.name == _OLD_EDITOR:
            action = "read" if call.input.get("command") == "view" else "change"
            yield FileChange(path, action, call.at, index, "read" if action == "read" else "record")  # type: ignore[arg-type]


def _written_content(call: _Call) -> str | None:
    """The content that a call writes to a file; None for any other call."""
    if call.name == "write":
        return first_text(call.input, "content")
    if call.name == _OLD_EDITOR and call.input.get("command") == "write":
        return first_text(call.input, "file_text")
    return None


def _replacement(given: Mapping[str, JSON]) -> Edit | None:
    old, new = first_text(given, "before", "old_str"), first_text(given, "after", "new_str")
    return replacing([Replacement(old, new)]) if old and new is not None else None


def _can_change_any_file(name: str, given: Mapping[str, JSON]) -> bool:
    if name == "shell":
        command = given.get("command")
        return not (isinstance(command, str) and is_read_only_command(command))
    return name not in ("write", "edit", _OLD_EDITOR) and name not in _WITHOUT_CHANGES
