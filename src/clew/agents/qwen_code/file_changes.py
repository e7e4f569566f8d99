"""What a session of Qwen Code proves about files: the diffs its tools display, what they read, and its backups.

A backup is a copy that the client makes of a file before it changes it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from clew.agents.backups import is_link, read_inside
from clew.agents.base import SourceFile, Unit
from clew.agents.displayed_diffs import FileCall, changed_file, read_file
from clew.agents.file_evidence import (
    ABSENT,
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
from clew.agents.qwen_code import locate
from clew.analysis.messages import metadata_of
from clew.model.json import JSON

_CHANGES = ("write_file", "edit", "notebook_edit")
_HARMLESS = frozenset(
    "read_file zoom_image display_image glob grep_search list_directory lsp web_fetch web_search todo_write "
    "task_create task_update task_list ask_user_question enter_plan_mode exit_plan_mode tool_search skill "
    "read_mcp_resource list_agents get_goal update_goal cron_create cron_list cron_delete loop_wakeup "
    "structured_output".split()
)
_PATHS = ("file_path", "absolute_path", "notebook_path", "path")
_NEW_FILE = "Successfully created and wrote to new file"
_NOT_CONTENT = ("Showing lines", "Cannot display content", "Cannot read file", "File size exceeds", "File not found")
"""How outputs of `read_file` begin that are not the content of a file."""
_FINISHED_CALL = re.compile(r"<tool-use-id>([^<]+)</tool-use-id>")


def file_changes(source: SourceFile, units: Iterator[Unit]) -> Iterator[Event]:
    """Everything a session proves, in its order."""
    reader = _Reader(source.path)
    for unit in units:
        if unit.is_message:
            yield from reader.message(unit.value, unit.native)
        elif unit.value["kind"] == "snapshot":
            yield from reader.snapshot(unit.native)


class _Reader:
    def __init__(self, path: Path) -> None:
        self._index = 0
        self._folder: str | None = None
        self._calls: dict[str, FileCall] = {}
        self._backups = next(locate.copies(path), None)
        self._known_backups: set[tuple[JSON, ...]] = set()
        """Snapshots repeat the backups of files that did not change."""

    def message(self, message: dict[str, JSON], native: Mapping[str, JSON]) -> Iterator[Event]:
        self._index = message["index"]
        self._folder = metadata_of(message).get("cwd") or self._folder
        result = native.get("toolCallResult")
        display = result.get("resultDisplay") if isinstance(result, dict) else None
        for block in message["content"]:
            if block["type"] == "tool_use":
                yield from self._called(block)
            elif block["type"] == "tool_result":
                yield from self._returned(block, display if isinstance(display, dict) else {})
            elif block["type"] == "text" and native.get("subtype") == "notification":
                # What ran in the background has ended.
                for key in _FINISHED_CALL.findall(block["text"]):
                    yield WriterFinished(key, self._index)

    def snapshot(self, native: Mapping[str, JSON]) -> Iterator[FileChange]:
        """The backups that a record names for the first time."""
        payload = native.get("systemPayload")
        snapshots = payload.get("snapshots") if isinstance(payload, dict) else None
        for snapshot in snapshots if isinstance(snapshots, list) else ():
            files = snapshot.get("trackedFileBackups") if isinstance(snapshot, dict) else None
            for name, entry in files.items() if isinstance(files, dict) else ():
                if not isinstance(entry, dict) or entry.get("failed") is True:
                    continue
                backup = entry.get("backupFileName", "")
                key = name, str(backup), str(entry.get("version")), str(entry.get("backupTime"))
                if key not in self._known_backups:
                    self._known_backups.add(key)
                    yield self._backup(absolute(name, self._folder), backup)

    def _backup(self, path: str, backup: JSON) -> FileChange:
        state: KnownContent | None = ABSENT if backup is None else None
        if isinstance(backup, str) and self._backups is not None and not is_link(self._backups):
            body = read_inside(self._backups, backup)
            state = FileContent(body, True) if body is not None else None
        note = None if state is not None else "the copy of it is missing"
        return FileChange(path, "snapshot", self._index, self._index, "backup", state, state, note=note)

    def _called(self, block: dict[str, JSON]) -> Iterator[Event]:
        call = tool_call(block)
        if call is None:
            return
        key, name, given = call
        self._calls[key] = FileCall(name, given, self._index)
        if self._calls[key].can_change_anything((*_HARMLESS, *_CHANGES)):
            yield writer_started(key, self._index, name, given.get("command"))

    def _returned(self, block: dict[str, JSON], display: dict[str, JSON]) -> Iterator[Event]:
        key = block.get("tool_id")
        call = self._calls.pop(key, None) if isinstance(key, str) else None
        if call is None:
            return
        assert isinstance(key, str)
        if call.input.get("is_background") is not True and display.get("executionMode") != "background":
            yield WriterFinished(key, self._index)
        named = first_text(call.input, *_PATHS)
        if named is None or block.get("is_error") is True:
            return
        path, output = absolute(named, self._folder), block.get("output")
        if call.name == "read_file":
            yield read_file(path, call, output, self._index, _NOT_CONTENT)
        elif call.name in _CHANGES:
            is_new = isinstance(output, str) and output.startswith(_NEW_FILE)
            yield changed_file(path, call, display, self._index, is_new=is_new, replaces_exactly=True)
