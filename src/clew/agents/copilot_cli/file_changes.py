"""What a session of GitHub Copilot CLI proves about files: its tools' calls, and the copies made for a rewind.

For each prompt the client keeps a copy of every file as it was before the prompt changed it, and the SHA-256 of what
the file was at the end.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from clew.agents.backups import is_link, read_inside
from clew.agents.base import SourceFile
from clew.agents.copilot_cli import locate
from clew.agents.edits import Replacement, replacing
from clew.agents.file_evidence import (
    ABSENT,
    Event,
    FileChange,
    FileContent,
    KnownContent,
    WriterFinished,
    absolute,
    as_bytes,
    as_text,
    first_text,
    tool_call,
    writer_started,
)
from clew.agents.patches import patch_changes
from clew.agents.read_only_commands import is_read_only_command
from clew.io.codec import NOT_JSON, loads
from clew.model.json import JSON
from clew.model.unit import Unit

_CHANGES = ("create", "edit", "apply_patch")
_HARMLESS = frozenset(
    "view glob grep sql session_store_sql read_bash list_bash read_agent list_agents skill web_fetch web_search "
    "ask_user fetch_copilot_cli_documentation report_intent exit_plan_mode lsp".split()
)
_FINISHED = re.compile(r"<shellId: (\S+) completed with exit code -?\d+>")
_STARTED = re.compile(r"shellId: ([^\s,>]+)")
_MAX_VIEW_BYTES = 20 << 10
"""The client cuts files that are longer than this."""
_MAX_INDEX_BYTES = 64 << 20


class Call(NamedTuple):
    """A call of a tool that waits for its result."""

    name: str
    input: dict[str, JSON]
    at: int
    """The index of its message."""
    folder: str | None


def file_changes(source: SourceFile, units: Iterator[Unit]) -> Iterator[Event]:
    """Everything a session proves, in its order."""
    reader = _Reader(Snapshots(source.path))
    for unit in units:
        if unit.is_message:
            yield from reader.message(unit.value)
        else:
            reader.record(unit)
    yield from reader.finish()


class _Reader:
    def __init__(self, snapshots: Snapshots) -> None:
        self._calls: dict[str, Call] = {}
        self._shells: dict[str, str] = {}
        """By the id of a shell that still runs: the call that started it."""
        self._snapshots = snapshots
        self._folder: str | None = None
        self._index = 0
        self._prompt: str | None = None

    def record(self, unit: Unit) -> None:
        """Note the folder that the client runs in."""
        data = unit.native.get("data")
        context = data.get("context") if isinstance(data, dict) else None
        folder = context.get("cwd") if isinstance(context, dict) else None
        if isinstance(folder, str):
            self._folder = folder

    def message(self, message: dict[str, JSON]) -> Iterator[Event]:
        uuid = message.get("uuid")
        if self._snapshots.has(uuid):
            yield from self._end_of_prompt()
            self._prompt = uuid
        self._index = message["index"]
        if self._prompt == uuid:
            yield from self._snapshots.before(uuid, self._index)
        for block in message["content"]:
            if block["type"] == "tool_use":
                yield from self._called(block)
            elif block["type"] == "tool_result":
                yield from self._returned(block)

    def finish(self) -> Iterator[Event]:
        yield from self._end_of_prompt()

    def _end_of_prompt(self) -> Iterator[Event]:
        if self._prompt is not None:
            yield from self._snapshots.behind(self._prompt, self._index)

    def _called(self, block: dict[str, JSON]) -> Iterator[Event]:
        call = tool_call(block)
        if call is None:
            return
        key, name, given = call
        self._calls[key] = Call(name, given, self._index, self._folder)
        command = given.get("command")
        reads = name == "bash" and isinstance(command, str) and is_read_only_command(command)
        if name not in _HARMLESS and name not in _CHANGES and not reads:
            yield writer_started(key, self._index, name, command)

    def _returned(self, block: dict[str, JSON]) -> Iterator[Event]:
        key = block.get("tool_id")
        call = self._calls.pop(key, None) if isinstance(key, str) else None
        if call is None:
            return
        assert isinstance(key, str)
        output = block.get("output")
        text = output if isinstance(output, str) else ""
        yield from self._finished(key, call, text)
        if block.get("is_error") is True:
            return
        patch, named = first_text(call.input, "input"), first_text(call.input, "path")
        if call.name == "apply_patch" and patch is not None:
            yield from patch_changes(patch, call.folder, call.at, self._index)
        if named is None:
            return
        path = absolute(named, call.folder)
        if call.name == "view":
            yield _viewed(path, call, text, self._index)
        elif call.name == "create":
            content = as_bytes(call.input.get("file_text"))
            yield FileChange(path, "create", call.at, self._index, "record", ABSENT, content)
        elif call.name == "edit":
            old, new = first_text(call.input, "old_str"), first_text(call.input, "new_str")
            edit = replacing([Replacement(old, new or "")]) if old else None
            yield FileChange(path, "change", call.at, self._index, "edit", edit=edit)

    def _finished(self, key: str, call: Call, output: str) -> Iterator[WriterFinished]:
        """The writers that are over by now. A shell can outlive its call: a later result says when it ended."""
        for shell in _FINISHED.findall(output):
            if shell in self._shells:
                yield WriterFinished(self._shells.pop(shell), self._index)
        if call.name == "bash" and not _FINISHED.search(output) and (started := _STARTED.search(output)):
            self._shells[started[1]] = key
        elif call.name not in _HARMLESS and (call.name, call.input.get("mode")) != ("task", "background"):
            yield WriterFinished(key, self._index)


def _viewed(path: str, call: Call, output: str, done: int) -> FileChange:
    """What `view` shows: all of a file, unless a range was asked for or it is long."""
    state: KnownContent | None = None
    is_whole = "view_range" not in call.input and len(output.encode("utf-8", "replace")) < _MAX_VIEW_BYTES
    if is_whole and output:
        state = as_text(output)
    return FileChange(path, "read", call.at, done, "read", state, state)


class Snapshots:
    """What the client noted of files for each prompt, by the id of the prompt's event."""

    def __init__(self, path: Path) -> None:
        self._folder = path.parent / locate.SNAPSHOTS
        self._prompts = _read_index(self._folder) if locate.is_in_own_folder(path) else {}

    def has(self, uuid: JSON) -> bool:
        return isinstance(uuid, str) and uuid in self._prompts

    def before(self, uuid: JSON, index: int) -> Iterator[FileChange]:
        """The files as they were when the prompt was given."""
        for file in self._prompts.get(uuid, ()):
            image = file.get("preimage")
            if not isinstance(image, dict):
                continue
            state = ABSENT if image.get("kind") == "absent" else self._copy(image.get("backupFile"))
            note = None if state is not None else "the copy of it is missing"
            yield FileChange(absolute(file["path"], None), "snapshot", index, index, "backup", state, state, note=note)

    def behind(self, uuid: str, index: int) -> Iterator[FileChange]:
        """The files as they were when all was done that the prompt asked for."""
        for file in self._prompts[uuid]:
            image, path = file.get("postimage"), absolute(file["path"], None)
            if not isinstance(image, dict):
                continue
            if image.get("kind") == "absent":
                yield FileChange(path, "snapshot", index, index, "backup", ABSENT, ABSENT)
            elif isinstance(digest := image.get("contentHash"), str):
                yield FileChange(path, "snapshot", index, index, "backup", digest=digest, found=digest)

    def _copy(self, name: JSON) -> KnownContent | None:
        folder = self._folder / "backups"
        if not isinstance(name, str) or is_link(folder):
            return None
        body = read_inside(folder, name)
        return None if body is None else FileContent(body, True)


def _read_index(folder: Path) -> dict[str, list[dict[str, JSON]]]:
    text = None if is_link(folder) else read_inside(folder, "index.json", _MAX_INDEX_BYTES)
    try:
        index = loads(text) if text is not None else None
    except NOT_JSON:
        index = None
    snapshots = index.get("snapshots") if isinstance(index, dict) else None
    found: dict[str, list[dict[str, JSON]]] = {}
    for snapshot in snapshots if isinstance(snapshots, list) else ():
        if isinstance(snapshot, dict) and isinstance(snapshot.get("eventId"), str):
            files = snapshot.get("files")
            entries = files.values() if isinstance(files, dict) else ()
            found[snapshot["eventId"]] = [
                file for file in entries if isinstance(file, dict) and isinstance(file.get("path"), str)
            ]
    return found
