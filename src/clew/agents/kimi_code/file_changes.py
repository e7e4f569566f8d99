"""What a session of Kimi Code proves about files: its calls, and the copies in `file-history`.

The client copies a file before it changes it first, and again when the turn ends. A reading shows numbered lines, and
not whether the last of them ends: it proves no content.
"""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from clew.agents.backups import is_behind_link, read_inside
from clew.agents.base import SourceFile, Unit
from clew.agents.edits import Replacement, plain, replacing, with_line_endings_of, writing
from clew.agents.file_evidence import (
    ABSENT,
    Edit,
    Event,
    FileChange,
    FileContent,
    KnownContent,
    WriterFinished,
    absolute,
    first_text,
    tool_call,
    writer_started,
)
from clew.agents.kimi_code import locate
from clew.agents.read_only_commands import is_read_only_command
from clew.model.json import JSON

_SHELL, _READ, _WRITE, _EDIT = "Bash", "Read", "Write", "Edit"
_HARMLESS = frozenset(
    "Read ReadMediaFile Write Edit Glob Grep TodoList FetchURL WebSearch AskUserQuestion EnterPlanMode ExitPlanMode "
    "CreateGoal GetGoal UpdateGoal SetGoalBudget CronCreate CronDelete CronList TaskList TaskOutput WaitFor NotifyUser "
    "Skill".split()
)
"""Tools that change no file, or only the one that they name."""


class _Call(NamedTuple):
    """A call of a tool that waits for its result."""

    name: str
    input: dict[str, JSON]
    at: int
    """The index of its message."""


def file_changes(source: SourceFile, units: Iterator[Unit]) -> Iterator[Event]:
    """Everything a session proves, in its order."""
    reader = _Reader(source.path)
    for unit in units:
        if unit.is_message:
            yield from reader.message(unit.value)
        else:
            yield from reader.record(unit.value, unit.native)
    yield from reader.interrupted()


class _Reader:
    def __init__(self, path: Path) -> None:
        self._index = 0
        self._folder: str | None = None
        """Where the session works: the paths of copies are relative to it."""
        self._calls: dict[str, _Call] = {}
        history = locate.agent_folder(path) / locate.FILE_HISTORY
        self._history = None if is_behind_link(history, path) else history

    def record(self, record: Mapping[str, JSON], native: Mapping[str, JSON]) -> Iterator[Event]:
        self._folder = self._folder or _folder_of(native)
        if record.get("type") == "file_history.tracked":
            yield from self._copy(native.get("path"), native.get("entry"))
        elif record.get("type") == "file_history.checkpoint":
            entries = native.get("entries")
            for name, entry in entries.items() if isinstance(entries, dict) else ():
                yield from self._copy(name, entry)

    def message(self, message: dict[str, JSON]) -> Iterator[Event]:
        is_answer = any(block["type"] == "tool_result" for block in message["content"])
        if message["role"] == "user" and not is_answer:
            yield from self.interrupted()
        self._index = message["index"]
        for block in message["content"]:
            if block["type"] == "tool_use":
                yield from self._called(block)
            elif block["type"] == "tool_result":
                yield from self._returned(block)

    def interrupted(self) -> Iterator[Event]:
        """What calls without a result may have changed."""
        for call in self._calls.values():
            path = first_text(call.input, "path")
            if call.name in (_WRITE, _EDIT) and path is not None:
                note = "the result of the call is missing"
                yield FileChange(absolute(path, self._folder), "change", call.at, self._index, "record", note=note)
        self._calls.clear()

    def _copy(self, name: JSON, entry: JSON) -> Iterator[FileChange]:
        """A file as it was at this place; a copy without a name says that there was none."""
        if not isinstance(name, str) or not isinstance(entry, dict):
            return
        key = entry.get("key", "")
        state: KnownContent | None = ABSENT if key is None else None
        if isinstance(key, str) and self._history is not None:
            body = read_inside(self._history, key.removeprefix(f"{locate.FILE_HISTORY}/"))
            state = FileContent(body, True) if body is not None else None
        note = None if state is not None else "the copy of it is missing"
        path = absolute(name, self._folder)
        yield FileChange(path, "snapshot", self._index, self._index, "backup", state, state, note=note)

    def _called(self, block: dict[str, JSON]) -> Iterator[Event]:
        call = tool_call(block)
        if call is not None:
            key, name, given = call
            self._calls[key] = _Call(name, given, self._index)
            if _can_change_anything(name, given):
                yield writer_started(key, self._index, name, given.get("command"))

    def _returned(self, block: dict[str, JSON]) -> Iterator[Event]:
        key = block.get("tool_id")
        call = self._calls.pop(key, None) if isinstance(key, str) else None
        if call is None:
            return
        assert isinstance(key, str)
        # What runs in the background goes on behind its result.
        if call.input.get("run_in_background") is not True:
            yield WriterFinished(key, self._index)
        path = first_text(call.input, "path")
        if path is None or block.get("is_error") is True:
            return
        path = absolute(path, self._folder)
        if call.name == _READ:
            yield FileChange(path, "read", call.at, self._index, "read")
        elif call.name == _WRITE:
            yield FileChange(path, "change", call.at, self._index, "record", edit=_written(call.input))
        elif call.name == _EDIT:
            yield FileChange(path, "change", call.at, self._index, "edit", edit=_replaced(call.input))


def _folder_of(native: Mapping[str, JSON]) -> str | None:
    """The folder that a record names: `state.json`, or the one that begins a journal."""
    environment = native.get("environmentDisclosure")
    places = (native, environment if isinstance(environment, dict) else {})
    return next((text for place in places if (text := first_text(place, "cwd", "workDir"))), None)


def _can_change_anything(name: str, given: Mapping[str, JSON]) -> bool:
    command = given.get("command")
    only_reads = name == _SHELL and isinstance(command, str) and is_read_only_command(command)
    return name not in _HARMLESS and not only_reads


def _written(given: Mapping[str, JSON]) -> Edit | None:
    content = first_text(given, "content")
    if content is None:
        return None
    return _appending(content) if given.get("mode") == "append" else writing(content, verbatim=True)


def _appending(text: str) -> Edit:
    def edit(base: KnownContent | None) -> KnownContent | None:
        before = "" if base is ABSENT else plain(base)
        if before is None:
            return None
        return writing(text)(base) if base is ABSENT else with_line_endings_of(before + text, base)

    return edit


def _replaced(given: Mapping[str, JSON]) -> Edit | None:
    old, new = first_text(given, "old_string"), first_text(given, "new_string")
    if old is None or new is None:
        return None
    replace = replacing([Replacement(old, new, given.get("replace_all") is True)])

    def edit(base: KnownContent | None) -> KnownContent | None:
        done = replace(base)
        # The client does not write the byte order mark that it read.
        return done._replace(body=done.body.removeprefix(BOM_UTF8)) if isinstance(done, FileContent) else done

    return edit
