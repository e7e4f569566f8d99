"""What a session of Qwen Code proves about files: the diffs its tools display, what they read, and its backups.

A backup is a copy that the client makes of a file before it changes it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from clew.agents.backups import read_copy
from clew.agents.base import SourceFile, Unit
from clew.agents.displayed_diffs import DisplayedFileChanges
from clew.agents.file_evidence import ABSENT, Event, WriterFinished, absolute, snapshot
from clew.agents.qwen_code import locate
from clew.agents.tool_file_changes import ToolCall
from clew.model.json import JSON, object_at

_NEW_FILE = "Successfully created and wrote to new file"
_FINISHED_CALL = re.compile(r"<tool-use-id>([^<]+)</tool-use-id>")


def file_changes(source: SourceFile, units: Iterator[Unit]) -> Iterator[Event]:
    """Everything a session proves, in its order."""
    return _QwenFileChanges(next(locate.copies(source.path), None)).events(units)


class _QwenFileChanges(DisplayedFileChanges):
    edits = ("edit", "notebook_edit")
    read_only_tools = frozenset(
        "zoom_image display_image glob grep_search list_directory lsp web_fetch web_search todo_write "
        "task_create task_update task_list ask_user_question enter_plan_mode exit_plan_mode tool_search skill "
        "read_mcp_resource list_agents get_goal update_goal cron_create cron_list cron_delete loop_wakeup "
        "structured_output".split()
    )
    path_arguments = ("file_path", "absolute_path", "notebook_path", "path")
    not_content = ("Showing lines", "Cannot display content", "Cannot read file", "File size exceeds", "File not found")
    edits_as_asked = True

    def __init__(self, backups: Path | None) -> None:
        super().__init__()
        self._backups = backups
        self._known_backups: set[tuple[str, ...]] = set()
        """Snapshots repeat the backups of files that did not change."""

    def message(self, unit: Unit) -> Iterator[Event]:
        yield from super().message(unit)
        if unit.native.get("subtype") == "notification":
            # What ran in the background has ended.
            for block in unit.value["content"]:
                for key in _FINISHED_CALL.findall(block["text"]) if block["type"] == "text" else ():
                    yield WriterFinished(key, self.index)

    def record(self, unit: Unit) -> Iterator[Event]:
        """The backups that a record names for the first time."""
        payload = object_at(unit.native, "systemPayload") if unit.value["kind"] == "snapshot" else {}
        snapshots = payload.get("snapshots")
        for one in snapshots if isinstance(snapshots, list) else ():
            for name, entry in object_at(one, "trackedFileBackups").items():
                if not isinstance(entry, dict) or entry.get("failed") is True:
                    continue
                backup = entry.get("backupFileName", "")
                key = name, str(backup), str(entry.get("version")), str(entry.get("backupTime"))
                if key not in self._known_backups:
                    self._known_backups.add(key)
                    content = ABSENT if backup is None else read_copy(self._backups, backup)
                    yield snapshot(absolute(name, self.folder), self.index, content)

    def result_details(self, native: Mapping[str, JSON], call_id: str) -> Mapping[str, JSON]:
        return object_at(native, "toolCallResult", "resultDisplay")

    def keeps_running(self, call: ToolCall) -> bool:
        return call.input.get("is_background") is True or call.result_details.get("executionMode") == "background"

    def is_new_file(self, call: ToolCall) -> bool:
        return call.output_text.startswith(_NEW_FILE)
