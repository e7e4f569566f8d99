"""What a session of GitHub Copilot CLI proves about files: its tools' calls, and the copies made for a rewind.

For each prompt the client keeps a copy of every file as it was before the prompt changed it, and the SHA-256 of what
the file was at the end.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from clew.agents.backups import is_link, read_copy, read_inside
from clew.agents.base import SourceFile
from clew.agents.copilot_cli import locate
from clew.agents.edits import Replacement
from clew.agents.file_evidence import (
    ABSENT,
    Event,
    FileChange,
    KnownContent,
    WriterFinished,
    absolute,
    as_text,
    first_text,
    snapshot,
)
from clew.agents.patches import patch_changes
from clew.agents.tool_file_changes import ToolCall, ToolFileChanges
from clew.agents.tools import is_shell_tool
from clew.io.codec import NOT_JSON, loads
from clew.model.json import JSON, object_at
from clew.model.unit import Unit

_FINISHED = re.compile(r"<shellId: (\S+) completed with exit code -?\d+>")
_STARTED = re.compile(r"shellId: ([^\s,>]+)")
_MAX_VIEW_BYTES = 20 << 10
"""The client cuts files that are longer than this."""
_MAX_INDEX_BYTES = 64 << 20
"""A longer index of snapshots is not read: file changes then come from calls alone."""


def file_changes(source: SourceFile, units: Iterator[Unit]) -> Iterator[Event]:
    """Everything a session proves, in its order."""
    return _CopilotFileChanges(source.path).events(units)


class _CopilotFileChanges(ToolFileChanges):
    reads, writes, edits = ("view",), ("create",), ("edit", "apply_patch")
    read_only_tools = frozenset(
        "glob grep sql session_store_sql read_bash list_bash read_agent list_agents skill web_fetch web_search "
        "ask_user fetch_copilot_cli_documentation report_intent exit_plan_mode lsp".split()
    )
    content_arguments, old_arguments, new_arguments = ("file_text",), ("old_str",), ("new_str",)

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._shells: dict[str, str] = {}
        """By the id of a shell that still runs: the call that started it."""
        self._snapshots = path.parent / locate.SNAPSHOTS
        self._prompts = _read_index(self._snapshots) if locate.is_in_own_folder(path) else {}
        self._prompt: JSON = None
        """The last prompt with snapshots."""

    def folder_of(self, unit: Unit) -> str | None:
        return first_text(object_at(unit.native, "data", "context"), "cwd") if not unit.is_message else None

    def message(self, unit: Unit) -> Iterator[Event]:
        uuid = unit.value.get("uuid")
        if uuid in self._prompts:
            yield from self._states_after_prompt()
            self._prompt = uuid
            for path, file in self._prompts[uuid]:
                if image := object_at(file, "preimage"):
                    copy = read_copy(self._snapshots / "backups", image.get("backupFile"))
                    yield snapshot(path, unit.value["index"], ABSENT if image.get("kind") == "absent" else copy)
        yield from super().message(unit)

    def on_end(self) -> Iterator[Event]:
        yield from self._states_after_prompt()
        yield from super().on_end()

    def _states_after_prompt(self) -> Iterator[Event]:
        """The files as they were at the end of the last prompt with snapshots."""
        for path, file in self._prompts.get(self._prompt, ()):
            image = object_at(file, "postimage")
            digest = image.get("contentHash")
            if image.get("kind") == "absent":
                yield snapshot(path, self.index, ABSENT)
            elif isinstance(digest, str):
                yield FileChange(path, "snapshot", self.index, self.index, "backup", digest=digest, found=digest)

    def ended_writers(self, call: ToolCall) -> Iterator[Event]:
        """A shell can outlive its call: a later result says when it ended."""
        ended, started = _FINISHED.findall(call.output_text), _STARTED.search(call.output_text)
        for shell in ended:
            if shell in self._shells:
                yield WriterFinished(self._shells.pop(shell), self.index)
        if is_shell_tool(call.name) and started is not None and not ended:
            self._shells[started[1]] = call.id
        elif (call.name, call.input.get("mode")) != ("task", "background"):
            yield from super().ended_writers(call)

    def changes(self, call: ToolCall) -> Iterator[FileChange]:
        patch = call.text("input") if call.name == "apply_patch" else None
        return (
            super().changes(call)
            if patch is None
            else patch_changes(patch, call.folder, call.call_index, call.result_index)
        )

    def read(self, call: ToolCall) -> FileChange:
        """What `view` shows: all of a file, unless a range was asked for or it is long."""
        is_whole = "view_range" not in call.input and len(call.output_text.encode("utf-8", "replace")) < _MAX_VIEW_BYTES
        return call.read(as_text(call.output) if is_whole and call.output else None)

    def replacements(self, call: ToolCall) -> list[Replacement]:
        # A call without a new text deletes the old one.
        return super().replacements(call._replace(input={"new_str": "", **call.input}))

    def content_before(self, call: ToolCall) -> KnownContent | None:
        return ABSENT if call.name in self.writes else None


def _read_index(folder: Path) -> dict[JSON, list[tuple[str, JSON]]]:
    """By the id of a prompt: the paths of files, and what was noted of each."""
    text = None if is_link(folder) else read_inside(folder, "index.json", _MAX_INDEX_BYTES)
    try:
        snapshots = object_at(loads(text or b"{}")).get("snapshots")
    except NOT_JSON:
        snapshots = None
    prompts: dict[JSON, list[tuple[str, JSON]]] = {}
    for prompt in snapshots if isinstance(snapshots, list) else ():
        event = object_at(prompt).get("eventId")
        if isinstance(event, str):
            files = object_at(prompt, "files").values()
            paths = [(first_text(object_at(file), "path"), file) for file in files]
            prompts[event] = [(absolute(path, None), file) for path, file in paths if path is not None]
    return prompts
