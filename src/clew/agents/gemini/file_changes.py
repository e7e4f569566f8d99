"""What a session of Gemini CLI proves about files: the diffs its tools display, what they read, and its checkpoints.

A display holds a file whole before and after. `replace` shows lines that end in "\\n" whatever the file's do,
`write_file` shows what it found as it was. A checkpoint is a commit in a repository beside the sessions, made before a
tool ran.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from clew.agents.base import SourceFile
from clew.agents.edits import rewriting, writing
from clew.agents.file_evidence import (
    ABSENT,
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
from clew.agents.gemini.checkpoints import PATH_ARGUMENTS, Checkpoints
from clew.agents.gemini.records import message_record
from clew.agents.read_only_commands import is_read_only_command
from clew.model.json import JSON
from clew.model.unit import Unit

_HARMLESS = frozenset(
    "read_file glob search_file_content grep_search list_directory read_many_files web_fetch google_web_search "
    "write_todos update_topic ask_user enter_plan_mode exit_plan_mode activate_skill get_internal_docs complete_task "
    "list_background_processes read_background_output".split()
)
_CHANGES = ("write_file", "replace", "edit")
_CUT = ("IMPORTANT: The file content has been truncated", "[File content truncated")


class Call(NamedTuple):
    """A call of a tool that waits for its result."""

    name: str
    input: dict[str, JSON]
    at: int
    """The index of its message."""
    display: JSON


def file_changes(source: SourceFile, units: Iterator[Unit]) -> Iterator[Event]:
    """Everything a session proves, in its order."""
    reader = _Reader(Checkpoints(source.path))
    for unit in units:
        if unit.is_message:
            yield from reader.message(unit)
        elif unit.value["kind"] == "progress":
            reader.earlier_version(unit)


class _Reader:
    def __init__(self, checkpoints: Checkpoints) -> None:
        self._calls: dict[str, Call] = {}
        self._checkpoints = checkpoints
        self._earlier_displays: dict[str, tuple[JSON, bool]] = {}
        """By call: what an earlier version of its message displays, and whether it failed. A later one may lack it."""
        self._done: set[str] = set()

    def earlier_version(self, unit: Unit) -> None:
        uuid = unit.value.get("message_uuid")
        for call_id, call in _native_calls(unit.native, uuid):
            if "resultDisplay" in call:
                failed = call.get("status") in ("error", "cancelled")
                self._earlier_displays[call_id] = call["resultDisplay"], failed

    def message(self, unit: Unit) -> Iterator[Event]:
        message = unit.value
        calls: dict[str, Mapping[str, JSON]] | None = None
        for block in message["content"]:
            if block["type"] == "tool_use":
                calls = dict(_native_calls(unit.native, message.get("uuid"))) if calls is None else calls
                display = calls.get(block["tool_id"], {}).get("resultDisplay")
                yield from self._called(block, message["index"], display)
            elif block["type"] == "tool_result":
                yield from self._returned(block, message["index"])

    def _called(self, block: dict[str, JSON], index: int, display: JSON) -> Iterator[Event]:
        call = tool_call(block)
        if call is None or call[0] in self._done:
            return
        key, name, given = call
        self._calls[key] = Call(name, given, index, display)
        yield from self._checkpoints.before(name, given, index)
        command = given.get("command")
        reads = name == "run_shell_command" and isinstance(command, str) and is_read_only_command(command)
        if name not in _HARMLESS and name not in _CHANGES and not reads:
            yield writer_started(key, index, name, command)

    def _returned(self, block: dict[str, JSON], index: int) -> Iterator[Event]:
        key = block.get("tool_id")
        call = self._calls.pop(key, None) if isinstance(key, str) else None
        if call is None:
            return
        assert isinstance(key, str)
        self._done.add(key)
        if call.input.get("is_background") is not True and "Background PIDs:" not in str(block.get("output")):
            yield WriterFinished(key, index)
        display, failed = self._earlier_displays.pop(key, (None, False))
        if call.display is not None:
            display = call.display
        named = first_text(call.input, *PATH_ARGUMENTS)
        if named is None or failed or block.get("is_error") is True:
            return
        path = absolute(named, None)
        if call.name == "read_file":
            yield from _read(path, call, block, index)
        elif call.name in _CHANGES:
            yield _changed(path, call, display if isinstance(display, dict) else {}, index)


def _native_calls(native: Mapping[str, JSON], uuid: JSON) -> Iterator[tuple[str, Mapping[str, JSON]]]:
    """The calls that a message lists, each with the id that events give it."""
    calls = message_record(native, uuid).get("toolCalls")
    for position, call in enumerate(calls if isinstance(calls, list) else ()):
        if isinstance(call, dict):
            yield call["id"] if isinstance(call.get("id"), str) else f"{uuid}:{position}", call


def _read(path: str, call: Call, block: dict[str, JSON], done: int) -> Iterator[FileChange]:
    output = block.get("output")
    state: KnownContent | None = None
    asked = {"offset", "limit", "start_line", "end_line"} & call.input.keys()
    if isinstance(output, str) and not asked and not output.lstrip().startswith(_CUT):
        is_other = output.startswith(("Cannot display content", "Binary content", "<tool_output_masked>"))
        state = None if is_other or "Output too large" in output[:40] else as_text(output)
    yield FileChange(path, "read", call.at, done, "read", state, state)


def _changed(path: str, call: Call, display: dict[str, JSON], done: int) -> FileChange:
    old, new = display.get("originalContent"), display.get("newContent")
    is_new = display.get("isNewFile") is True
    if not isinstance(new, str):
        content = call.input.get("content")
        edit = writing(content) if call.name == "write_file" and isinstance(content, str) else None
        return FileChange(path, "change", call.at, done, "record", edit=edit)
    if is_new:
        return FileChange(path, "create", call.at, done, "record", ABSENT, as_bytes(new))
    # What begins with a mark may be of another encoding.
    is_raw = call.name == "write_file" and isinstance(old, str) and not old.startswith("\ufeff")
    before = as_bytes(old) if is_raw else as_text(old)
    edit = writing(new) if call.name == "write_file" else rewriting(new)
    return FileChange(path, "change", call.at, done, "record", before, edit=edit)
