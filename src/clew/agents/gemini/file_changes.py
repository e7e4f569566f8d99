"""What a session of Gemini CLI proves about files: the diffs its tools display, what they read, and its checkpoints.

A checkpoint is a commit in a repository beside the sessions, made before a tool ran.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from clew.agents.base import SourceFile
from clew.agents.displayed_diffs import FileCall, changed_file, read_file
from clew.agents.file_evidence import Event, WriterFinished, absolute, first_text, tool_call, writer_started
from clew.agents.gemini.checkpoints import PATH_ARGUMENTS, Checkpoints
from clew.agents.gemini.records import message_record
from clew.model.json import JSON
from clew.model.unit import Unit

_HARMLESS = frozenset(
    "read_file glob search_file_content grep_search list_directory read_many_files web_fetch google_web_search "
    "write_todos update_topic ask_user enter_plan_mode exit_plan_mode activate_skill get_internal_docs complete_task "
    "list_background_processes read_background_output".split()
)
_CHANGES = ("write_file", "replace", "edit")
_NOT_CONTENT = (
    "IMPORTANT: The file content has been truncated",
    "[File content truncated",
    "Cannot display content",
    "Binary content",
    "<tool_output_masked>",
)
"""How outputs of `read_file` begin that are not the content of a file."""
_TOO_LARGE = "Output too large"


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
        self._calls: dict[str, tuple[FileCall, JSON]] = {}
        """By id, with what is displayed for them."""
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
        made = FileCall(name, given, index)
        self._calls[key] = made, display
        yield from self._checkpoints.before(name, given, index)
        if made.can_change_anything((*_HARMLESS, *_CHANGES)):
            yield writer_started(key, index, name, given.get("command"))

    def _returned(self, block: dict[str, JSON], index: int) -> Iterator[Event]:
        key = block.get("tool_id")
        made = self._calls.pop(key, None) if isinstance(key, str) else None
        if made is None:
            return
        assert isinstance(key, str)
        call, later_display = made
        self._done.add(key)
        if call.input.get("is_background") is not True and "Background PIDs:" not in str(block.get("output")):
            yield WriterFinished(key, index)
        display, failed = self._earlier_displays.pop(key, (None, False))
        display = later_display if later_display is not None else display
        named = first_text(call.input, *PATH_ARGUMENTS)
        if named is None or failed or block.get("is_error") is True:
            return
        path = absolute(named, None)
        if call.name == "read_file":
            output = block.get("output")
            is_too_large = isinstance(output, str) and _TOO_LARGE in output[:40]
            yield read_file(path, call, None if is_too_large else output, index, _NOT_CONTENT)
        elif call.name in _CHANGES:
            display = display if isinstance(display, dict) else {}
            yield changed_file(path, call, display, index, is_new=display.get("isNewFile") is True)


def _native_calls(native: Mapping[str, JSON], uuid: JSON) -> Iterator[tuple[str, Mapping[str, JSON]]]:
    """The calls that a message lists, each with the id that events give it."""
    calls = message_record(native, uuid).get("toolCalls")
    for position, call in enumerate(calls if isinstance(calls, list) else ()):
        if isinstance(call, dict):
            yield call["id"] if isinstance(call.get("id"), str) else f"{uuid}:{position}", call
