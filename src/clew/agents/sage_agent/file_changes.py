"""What a session of Sage Agent proves about files: its tools' calls, and its snapshots with copies and digests.

A snapshot of the program has for each file the content before its message, as text or as a copy, and the digest of the
content after it. That there is no content from before does not prove that there was no file: it may have been binary.
The snapshots of clew's own store prove more, see `observed_runs`.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from msgspec import UNSET, to_builtins

from clew.agents.backups import is_behind_link, read_inside
from clew.agents.base import SourceFile, Unit
from clew.agents.file_evidence import (
    ABSENT,
    RESTORATIONS,
    Event,
    FileChange,
    FileContent,
    KnownContent,
    NoExternalRestore,
    WriterFinished,
    WriterStarted,
    absolute,
    as_bytes,
)
from clew.agents.sage_agent.events import tracked_files
from clew.agents.sage_agent.locate import backup_folders
from clew.agents.sage_agent.observed_runs import (
    ObservedRuns,
    PendingMessage,
    change_of,
    fully_observed_paths,
    merge_parallel_runs,
    pair_observations,
)
from clew.agents.sage_agent.records import BRANCH, ERASED, LogRecord
from clew.agents.sage_agent.snapshots import ACTIONS, Entry, Snapshots, digest_from, read_copy
from clew.agents.tool_file_changes import CommonToolFileChanges
from clew.io.blobs import digest_in
from clew.io.typed_records import decode_value
from clew.model.json import JSON

_MOVES = (*RESTORATIONS, "switch")
_ERASED_TOOL = "a tool of a message that was erased"
_NOWHERE = "-"
_BEFORE_KEYS = ("original_content", "original_hash", "backup")


def file_changes(source: SourceFile, units: Iterator[Unit]) -> Iterator[Event]:
    """Everything a session proves, in its order."""
    with Snapshots(source) as snapshots:
        yield from _SageFileChanges(source, snapshots).events(units)


class _SageFileChanges(CommonToolFileChanges):
    def __init__(self, source: SourceFile, snapshots: Snapshots) -> None:
        super().__init__()
        self._snapshots, self._observed = snapshots, ObservedRuns(snapshots)
        folders = backup_folders(source)
        self._backup_folders = [folder for folder in folders if not is_behind_link(folder, source.path)]
        self._tracked: dict[str, Entry] = {}
        """The files in the snapshot of the message that is being answered."""
        self._snapshot_index = self._answer_index = 0
        """The message with a snapshot, and the last message with results of its calls."""
        self._changes: list[FileChange] = []
        """The changes made by these calls."""
        self._uuids: dict[str, int] = {}
        """The messages and restores so far, with the index of the message that each is or follows."""
        self._last: JSON = None
        self._goal: JSON = _NOWHERE
        """The message that the conversation was moved to since the last one."""
        self._unknown_writers: dict[str, str | None] = {}
        """Writers without a record: their key, and the message whose turn they end with; None for the next turn."""

    def events(self, units: Iterator[Unit]) -> Iterator[Event]:
        yield from self._start_gaps(None)
        yield from super().events(units)

    def record(self, unit: Unit) -> Iterator[Event]:
        if unit.part == 0 and unit.value.get("kind") == "snapshot":
            yield from self._inline_snapshot(unit.value)
        elif unit.value.get("type") == BRANCH:
            yield from self._branch(unit)
        elif unit.value.get("type") == ERASED:
            yield from self._erased(unit)

    def message(self, unit: Unit) -> Iterator[Event]:
        """A message: the end of what was over by then, the changes in its results, and the start of its calls."""
        message = unit.value
        blocks = message["content"]
        results = [block for block in blocks if block["type"] == "tool_result"]
        if not results:
            # A prompt or reply: the turn before it is over.
            for key, until in list(self._unknown_writers.items()):
                if until is None or until in self._uuids:
                    del self._unknown_writers[key]
                    yield WriterFinished(key, message["index"])
            yield from self._finish_turn(message["index"], message.get("parent_uuid") == self._last)
        self.index = message["index"]
        if message.get("parent_uuid") in (self._last, self._goal):
            yield NoExternalRestore(self.index)
        self._last, self._goal = message.get("uuid"), _NOWHERE
        for block in results:
            self._answer_index = self.index
            self._observed.answer(block.get("tool_id"))
            for event in self.on_result(block, unit.native):
                if not isinstance(event, FileChange):
                    yield event
                elif not self._observed.add(event):
                    self._changes.append(event)
        yield from self._observed.reach(self.index, unit, not results)
        yield from self._called(message.get("uuid"), [block for block in blocks if block["type"] == "tool_use"])

    def _called(self, uuid: JSON, calls: list[dict[str, JSON]]) -> Iterator[Event]:
        events = [event for block in calls for event in self.on_call(block)]
        if not isinstance(uuid, str):
            yield from events
            return
        self._uuids[uuid] = self.index
        yield from self._begin(self._foreign_snapshot(uuid), self.index)
        observations = [self._snapshots.load(one) for one in self._snapshots.observations.get(uuid, ())]
        if observations:
            writer_calls = sum(isinstance(event, WriterStarted) for event in events)
            made = (self.calls.get(str(block.get("tool_id"))) for block in calls)
            named = Counter(call.path for call in made if call is not None and call.path)
            files = fully_observed_paths(self._snapshots, pair_observations(observations), writer_calls, named)
            events = [
                event._replace(observed_paths=files) if isinstance(event, WriterStarted) else event for event in events
            ]
            waiting, runs = {str(block.get("tool_id")) for block in calls}, merge_parallel_runs(observations)
            message = PendingMessage(self.index, uuid, waiting, writer_calls, runs, files)
            yield from self._observed.begin(message)
        yield from events
        yield from self._start_gaps(uuid)

    def _foreign_snapshot(self, uuid: str) -> dict[str, Entry]:
        """The files in the snapshots of a message: the state before from the first, the state after from the last."""
        files: dict[str, Entry] = {}
        for record in self._snapshots.foreign_records(uuid):
            found = tracked_files(decode_value(record, LogRecord).snapshot)
            for path, file in found.items() if found is not UNSET else ():
                entry = to_builtins(file)
                first = files.get(path, entry)
                after = {key: value for key, value in entry.items() if key not in _BEFORE_KEYS}
                files[path] = {**after, **{key: first[key] for key in _BEFORE_KEYS if key in first}}
        return files

    def _inline_snapshot(self, record: dict[str, JSON]) -> Iterator[Event]:
        """A snapshot among the messages, after the one it belongs to."""
        snapshot = record.get("snapshot")
        files = snapshot.get("files") if isinstance(snapshot, dict) else None
        index = self._uuids.get(str(record.get("message_uuid")))
        if isinstance(files, dict) and index is not None:
            yield from self._begin(files, index)

    def _branch(self, unit: Unit) -> Iterator[Event]:
        """The conversation moved to another message; an undo or redo has a snapshot of the files it restored."""
        action, uuid = unit.native.get("action"), unit.native.get("uuid")
        if action in _MOVES:
            self._goal = unit.value.get("message_uuid")
        if action in RESTORATIONS and isinstance(uuid, str):
            self._uuids[uuid] = self.index
            yield from self._observed.reach(self.index + 1, unit, True)
            for observation in self._snapshots.observations.get(uuid, ()):
                loaded = self._snapshots.load(observation)
                yield from self._observed.observe([loaded], self.index)
                for path, file in loaded.files.items():
                    yield change_of(path, file._replace(action=action), self.index, self.index + 1)
            yield from self._start_gaps(uuid)

    def _erased(self, unit: Unit) -> Iterator[Event]:
        """An erased message: what its tools did is not known."""
        record = unit.value
        if record.get("parent_uuid") in (self._last, self._goal):
            self._last, self._goal = record.get("uuid"), _NOWHERE
        if unit.native.get("was") in ("assistant", "tool_result"):
            # Its uuid may be missing, or that of another record.
            yield self._start_unknown_writer(f"erased at {unit.start}", _ERASED_TOOL, None)

    def _start_gaps(self, uuid: str | None) -> Iterator[Event]:
        """Snapshots after those of this message that cannot be read; they may have been of any file."""
        for number, gap in enumerate(self._snapshots.gaps):
            if gap.last == uuid:
                yield self._start_unknown_writer(f"unread {number}", gap.what, gap.following or _NOWHERE)

    def _start_unknown_writer(self, key: str, what: str, until: str | None) -> WriterStarted:
        self._unknown_writers[key] = until
        return WriterStarted(key, self.index, what)

    def on_end(self) -> Iterator[Event]:
        """The end of the session."""
        yield from self._observed.finish(self.index)
        yield from self._finish_turn(self.index + 1)

    def _begin(self, files: dict[str, Entry], index: int) -> Iterator[Event]:
        """The state of files before a message, from its first snapshot of each."""
        for name, entry in files.items():
            path = absolute(name, self.folder)
            is_first = path not in self._tracked
            self._tracked[path] = entry
            if is_first:
                self._snapshot_index = index
                state, note = self._before(entry)
                yield FileChange(path, "snapshot", index, index, "backup", state, state, note=note)

    def _finish_turn(self, index: int, is_next: bool = True) -> Iterator[Event]:
        """The message is answered: what its tools did, checked against its last snapshot of each file.

        Without an answer, the message that follows it sees what they left, but not one on another branch.
        """
        done = self._answer_index or index
        seen = done if is_next or self._answer_index > 0 else None
        last = {change.path: number for number, change in enumerate(self._changes)}
        for number, change in enumerate(self._changes):
            entry = self._tracked.pop(change.path, None) if last[change.path] == number else None
            if entry is None:
                yield change
            else:
                yield from self._checked(change.path, change, entry, seen)
        for path, entry in self._tracked.items():
            action = ACTIONS.get(str(entry.get("state")))
            made = FileChange(path, action, self._snapshot_index, done, "backup") if action is not None else None
            yield from self._checked(path, made, entry, seen)
        self._answer_index = 0
        self._tracked.clear()
        self._changes.clear()

    def _checked(self, path: str, change: FileChange | None, entry: Entry, seen: int | None) -> Iterator[FileChange]:
        """A change with the copy or digest that the snapshot has of its result, and at message `seen` the file itself.

        Whatever else ran meanwhile, the snapshot shows what was there at the end.
        """
        digest = digest_from(entry.get("content_hash"))
        state: KnownContent | None = None
        if entry.get("state") == "deleted":
            state, digest = ABSENT, None
        elif digest is not None:
            copies = (read_copy(folder, digest).content for folder in self._backup_folders)
            state = next((copy for copy in copies if copy is not None), None)
            digest = digest if state is None else None
        if change is not None:
            yield change._replace(digest=digest) if state is None else change._replace(how="backup", after=state)
        if seen is not None and (state is not None or digest is not None):
            yield FileChange(path, "snapshot", seen, seen, "backup", state, state, digest=digest)

    def _before(self, entry: Entry) -> tuple[KnownContent | None, str | None]:
        """The content from before a message, if it has the digest that the record names; else why there is none."""
        text, backup = entry.get("original_content"), entry.get("backup")
        digest = digest_from(entry.get("original_hash"))
        state: KnownContent | None = as_bytes(text) if isinstance(text, str) else None
        if isinstance(backup, str) and state is None:
            name = re.split(r"[\\/]", backup)[-1]
            copies = (_read_backup(folder, name) for folder in self._backup_folders)
            state = next((copy for copy in copies if copy is not None), None)
            if state is None:
                return None, "the copy of it is missing"
        if isinstance(state, FileContent) and digest is not None and hashlib.sha256(state.body).hexdigest() != digest:
            return None, "the copy of it does not have the digest that the record names"
        return state, None if state is not None else "no content from before is recorded"


def _read_backup(folder: Path, name: str) -> KnownContent | None:
    """A copy: one of clew's own store has its digest for a name, one of the program any."""
    digest = digest_in(name)
    if digest is not None:
        return read_copy(folder, digest).content
    body = read_inside(folder, name)
    return FileContent(body, True) if body is not None else None
