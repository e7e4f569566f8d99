"""What a session of Gemini CLI proves about files: the diffs its tools display, what they read, and its checkpoints.

A checkpoint is a commit in a repository beside the sessions, made before a tool ran.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from clew.agents.base import SourceFile
from clew.agents.displayed_diffs import DisplayedFileChanges
from clew.agents.file_evidence import Event, FileChange, tool_call
from clew.agents.gemini.checkpoints import PATH_ARGUMENTS, Checkpoints
from clew.agents.gemini.records import message_record
from clew.agents.tool_file_changes import ToolCall
from clew.model.json import JSON, object_at
from clew.model.unit import Unit


def file_changes(source: SourceFile, units: Iterator[Unit]) -> Iterator[Event]:
    """Everything a session proves, in its order."""
    return _GeminiFileChanges(Checkpoints(source.path)).events(units)


class _GeminiFileChanges(DisplayedFileChanges):
    edits = ("replace", "edit")
    read_only_tools = frozenset(
        "glob search_file_content grep_search list_directory read_many_files web_fetch google_web_search "
        "write_todos update_topic ask_user enter_plan_mode exit_plan_mode activate_skill get_internal_docs "
        "complete_task list_background_processes read_background_output".split()
    )
    path_arguments = PATH_ARGUMENTS
    not_content = (
        "IMPORTANT: The file content has been truncated",
        "[File content truncated",
        "Cannot display content",
        "Binary content",
        "<tool_output_masked>",
    )

    def __init__(self, checkpoints: Checkpoints) -> None:
        super().__init__()
        self._checkpoints = checkpoints
        self._displays: dict[str, JSON] = {}
        """By call: what is displayed for it. Only an earlier version of its message may have it."""
        self._failed: set[str] = set()
        """Calls that failed by an earlier version of their message."""
        self._done: set[str] = set()
        """Calls with a result, which later versions of their messages repeat."""

    def record(self, unit: Unit) -> Iterator[Event]:
        for call_id, call in _native_calls(unit) if unit.value["kind"] == "progress" else ():
            # An earlier version of a message.
            if "resultDisplay" in call:
                self._displays[call_id] = call["resultDisplay"]
                if call.get("status") in ("error", "cancelled"):
                    self._failed.add(call_id)
        return iter(())

    def message(self, unit: Unit) -> Iterator[Event]:
        if any(block["type"] == "tool_use" for block in unit.value["content"]):
            for call_id, call in _native_calls(unit):
                if call.get("resultDisplay") is not None and call_id not in self._done:
                    self._displays[call_id] = call["resultDisplay"]
        yield from super().message(unit)

    def on_call(self, block: dict[str, JSON]) -> Iterator[Event]:
        call = tool_call(block)
        if call is not None and call[0] not in self._done:
            yield from self._checkpoints.before(call[1], call[2], self.index)
            yield from super().on_call(block)

    def on_result(self, block: dict[str, JSON], native: Mapping[str, JSON]) -> Iterator[Event]:
        if block.get("tool_id") in self.calls:
            self._done.add(block["tool_id"])
        yield from super().on_result(block, native)

    def result_details(self, native: Mapping[str, JSON], call_id: str) -> Mapping[str, JSON]:
        return object_at(self._displays.pop(call_id, None))

    def keeps_running(self, call: ToolCall) -> bool:
        return call.input.get("is_background") is True or "Background PIDs:" in str(call.output)

    def changes(self, call: ToolCall) -> Iterator[FileChange]:
        return super().changes(call) if call.id not in self._failed else iter(())

    def read(self, call: ToolCall) -> FileChange:
        return call.read(None) if "Output too large" in call.output_text[:40] else super().read(call)

    def is_new_file(self, call: ToolCall) -> bool:
        return call.result_details.get("isNewFile") is True


def _native_calls(unit: Unit) -> Iterator[tuple[str, Mapping[str, JSON]]]:
    """The calls that the record of a message lists, each with the id that events give it."""
    uuid = unit.value.get("uuid" if unit.is_message else "message_uuid")
    calls = message_record(unit.native, uuid).get("toolCalls")
    for position, call in enumerate(calls if isinstance(calls, list) else ()):
        if isinstance(call, dict):
            yield call["id"] if isinstance(call.get("id"), str) else f"{uuid}:{position}", call
