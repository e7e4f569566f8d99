"""What a session of Sage Agent proves about files: its tools' calls, and its snapshots with copies and digests.

A snapshot of the program tells of each file what it was before its message, whole or by a copy, and the digest of what
it was after. That there is no content from before does not prove that there was no file: it may have been no text.
What clew's own store recorded tells more, and goes by way of `watched`.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from clew.agents.backups import is_behind_link, read_inside
from clew.agents.base import SourceFile, Unit
from clew.agents.file_evidence import (
    ABSENT,
    Event,
    FileChange,
    FileContent,
    NoExternalRestore,
    State,
    WriterFinished,
    WriterStarted,
    absolute,
    as_bytes,
)
from clew.agents.sage_agent.concurrent_messages import ConcurrentRunIndex
from clew.agents.sage_agent.concurrent_tools import together
from clew.agents.sage_agent.locate import BACKUPS, session_id
from clew.agents.sage_agent.observed_runs import Begin, Watching, fully_observed_paths, runs_of, touch_of
from clew.agents.sage_agent.records import BRANCH, ERASED
from clew.agents.sage_agent.snapshots import ACTIONS, Entry, Snapshots, digest_from, own_part
from clew.agents.tool_file_changes import ToolFileChanges
from clew.analysis.messages import metadata_of
from clew.errors import SourceUnreadable
from clew.io.blobs import digest_in, read_blob
from clew.model.json import JSON

_PUT_BACK = ("undo", "redo")
_MOVES = (*_PUT_BACK, "switch")
_ERASED = "a tool of a message that was erased"
_NOWHERE = "-"


def file_changes(source: SourceFile, units: Iterator[Unit]) -> Iterator[Event]:
    """Everything a session proves, in its order."""
    with Snapshots(source) as snapshots:
        reader = _Reader(source, snapshots)
        yield from reader.unread(None)
        for unit in units:
            if unit.is_message:
                yield from reader.message(unit)
            elif unit.part == 0 and unit.value.get("kind") == "snapshot":
                yield from reader.inline(unit.value)
            elif unit.value.get("type") == BRANCH:
                yield from reader.moved(unit)
            elif unit.value.get("type") == ERASED:
                yield from reader.erased(unit)
        yield from reader.end()


class _Reader:
    def __init__(self, source: SourceFile, snapshots: Snapshots) -> None:
        self.index = 0
        self._work = ToolFileChanges(exact=True)
        self._snapshots, self._watching = snapshots, Watching(ConcurrentRunIndex(snapshots))
        own = source.path.parent / BACKUPS
        of_all = source.path.parents[1].parent / BACKUPS / session_id(source)
        self._folders = [folder for folder in (own, of_all) if not is_behind_link(folder, source.path)]
        self._folder: str | None = None
        self._open: dict[str, Entry] = {}
        """Files of the message that is being answered: what its snapshot says of them."""
        self._begun = self._answered = 0
        """The message with a snapshot, and the last result of its calls."""
        self._results: list[FileChange] = []
        self._uuids: dict[str, int] = {}
        self._last: JSON = None
        self._goal: JSON = _NOWHERE
        """The message that the conversation was moved to since the last one."""
        self._until: dict[str, str | None] = {}
        """What is going on that no record tells of: its key, and the message whose turn it ends with."""

    def message(self, unit: Unit) -> Iterator[Event]:
        """A message: what was over when it was written, what its results tell, and what its calls begin."""
        message = unit.value
        blocks = message["content"]
        results = [block for block in blocks if block["type"] == "tool_result"]
        if not results:
            yield from self._settled(message["index"])
            yield from self.finish(message["index"], message.get("parent_uuid") == self._last)
        self.index = message["index"]
        if message.get("parent_uuid") in (self._last, self._goal):
            yield NoExternalRestore(self.index)
        self._last, self._goal = message.get("uuid"), _NOWHERE
        self._folder = metadata_of(message).get("cwd") or self._folder
        yield from self._returned(results)
        yield from self._watching.reached(self.index, unit, not results)
        yield from self._called(message.get("uuid"), [block for block in blocks if block["type"] == "tool_use"])

    def _returned(self, results: list[dict[str, JSON]]) -> Iterator[Event]:
        for block in results:
            self._answered = self.index
            self._watching.answered(block.get("tool_id"))
            for event in self._work.returned(block, self.index):
                if not isinstance(event, FileChange):
                    yield event
                elif not self._watching.take(event):
                    self._results.append(event)

    def _called(self, uuid: JSON, calls: list[dict[str, JSON]]) -> Iterator[Event]:
        events = [event for block in calls for event in self._work.called(block, self.index, self._folder)]
        if not isinstance(uuid, str):
            yield from events
            return
        self._uuids[uuid] = self.index
        yield from self._begin(self._of(uuid), self.index)
        records = list(self._snapshots.taken(uuid))
        runs = runs_of(records)
        unrest = sum(isinstance(event, WriterStarted) for event in events)
        if runs:
            named = Counter(path for block in calls if (path := self._work.named(block, self._folder)) is not None)
            files = fully_observed_paths(self._snapshots, runs, unrest, named)
            events = [
                event._replace(observed_paths=files) if isinstance(event, WriterStarted) else event for event in events
            ]
            waiting = {str(block.get("tool_id")) for block in calls}
            yield from self._watching.begin(Begin(self.index, uuid, waiting, unrest, files), together(records))
        yield from events
        yield from self.unread(uuid)

    def _of(self, uuid: str) -> dict[str, Entry]:
        """The files of a message's snapshots, what was before from the first and what was after from the last."""
        files: dict[str, Entry] = {}
        for record in self._snapshots.records(uuid):
            for path, entry in _files(record).items() if own_part(record) is None else ():
                first = files.get(path, {})
                before = {name: first[name] for name in _BEFORE if name in first}
                files[path] = {**entry, **before}
        return files

    def inline(self, record: dict[str, JSON]) -> Iterator[Event]:
        """A snapshot among the messages, behind the one it belongs to."""
        snapshot = record.get("snapshot")
        files = snapshot.get("files") if isinstance(snapshot, dict) else None
        index = self._uuids.get(str(record.get("message_uuid")))
        if isinstance(files, dict) and index is not None:
            yield from self._begin({path: entry for path, entry in files.items() if isinstance(entry, dict)}, index)

    def moved(self, unit: Unit) -> Iterator[Event]:
        """The conversation went elsewhere, and files with it, as the snapshot of that record tells."""
        action, uuid = unit.native.get("action"), unit.native.get("uuid")
        if action in _MOVES:
            self._goal = unit.value.get("message_uuid")
        if action in _PUT_BACK and isinstance(uuid, str):
            yield from self._watching.reached(self.index + 1, unit, True)
            for taken in self._snapshots.taken(uuid):
                yield from self._watching.looked([taken], self.index)
                for path, told in taken.files.items():
                    yield touch_of(path, told._replace(action=action), self.index, self.index + 1)
            yield from self.unread(uuid)

    def erased(self, unit: Unit) -> Iterator[Event]:
        """A message that is no more: what its tools did is not known."""
        record = unit.value
        if record.get("parent_uuid") in (self._last, self._goal):
            self._last, self._goal = record.get("uuid"), _NOWHERE
        if unit.native.get("was") in ("assistant", "tool_result"):
            yield from self._unsettled(f"erased {self._last}", _ERASED, None)

    def unread(self, uuid: str | None) -> Iterator[Event]:
        """Snapshots behind those of this message that cannot be read; they may tell of any file."""
        for number, gap in enumerate(self._snapshots.gaps):
            if gap.last == uuid:
                yield from self._unsettled(f"unread {number}", gap.what, gap.following or _NOWHERE)

    def _unsettled(self, key: str, what: str, until: str | None) -> Iterator[Event]:
        self._until[key] = until
        yield WriterStarted(key, self.index, what)

    def _settled(self, index: int) -> Iterator[Event]:
        """A prompt or reply: the turn before it is over."""
        for key, until in list(self._until.items()):
            if until is None or until in self._uuids:
                del self._until[key]
                yield WriterFinished(key, index)

    def end(self) -> Iterator[Event]:
        """The end of the session."""
        yield from self._watching.finish(self.index)
        yield from self.finish(self.index + 1)

    def _begin(self, files: dict[str, Entry], index: int) -> Iterator[Event]:
        """What files were before the message, from the snapshot that belongs to it."""
        for name, entry in files.items():
            path = absolute(name, self._folder)
            known = self._open.get(path)
            # What was before comes from the first note about a file, what was after from the last.
            self._open[path] = entry if known is None else {**entry, "known": True}
            if known is None:
                self._begun = index
                state, note = self._before(entry)
                yield FileChange(path, "snapshot", index, index, "backup", state, state, note=note)

    def finish(self, index: int, is_next: bool = True) -> Iterator[Event]:
        """The message is answered: what its tools did, checked against what its snapshot says.

        Without an answer, what they left is seen by the message that follows it, but not by one elsewhere.
        """
        is_seen = is_next or self._answered > 0
        done = self._answered or index
        last = {touch.path: number for number, touch in enumerate(self._results)}
        for number, touch in enumerate(self._results):
            entry = self._open.pop(touch.path, None) if last[touch.path] == number else None
            yield touch if entry is None else self._checked(touch, entry)
            if entry is not None and is_seen:
                yield from self._left(touch.path, entry, done)
        for path, entry in self._open.items():
            action = ACTIONS.get(str(entry.get("state")))
            if action is not None:
                yield self._checked(FileChange(path, action, self._begun, done, "backup"), entry)
            if is_seen:
                yield from self._left(path, entry, done)
        self._answered = 0
        self._open.clear()
        self._results.clear()

    def _checked(self, touch: FileChange, entry: Entry) -> FileChange:
        """What was done, with the copy of what it left, or else its digest."""
        state, digest = self._after(entry)
        return touch._replace(digest=digest) if state is None else touch._replace(how="backup", after=state)

    def _left(self, path: str, entry: Entry, done: int) -> Iterator[FileChange]:
        """What the snapshot saw when all was done: whatever ran meanwhile, this is what it left."""
        state, digest = self._after(entry)
        if state is not None or digest is not None:
            yield FileChange(path, "snapshot", done, done, "backup", state, state, digest=digest)

    def _after(self, entry: Entry) -> tuple[State | None, str | None]:
        """What a message left, where a copy of it was kept; else its digest."""
        digest = digest_from(entry.get("content_hash"))
        if entry.get("state") == "deleted":
            return ABSENT, None
        kept = (_kept(folder, digest) for folder in self._folders) if digest is not None else ()
        body = next((body for body in kept if body is not None), None)
        return (FileContent(body, True), None) if body is not None else (None, digest)

    def _before(self, entry: Entry) -> tuple[State | None, str | None]:
        """The content from before a message, if it has the digest that the record names."""
        text, backup, digest = (
            entry.get("original_content"),
            entry.get("backup"),
            digest_from(entry.get("original_hash")),
        )
        state: State | None = as_bytes(text) if isinstance(text, str) else None
        if isinstance(backup, str) and state is None:
            name = re.split(r"[\\/]", backup)[-1]
            bodies = (_copy(folder, name) for folder in self._folders)
            state = next((FileContent(body, True) for body in bodies if body is not None), None)
            if state is None:
                return None, "the copy of it is gone"
        if isinstance(state, FileContent) and digest is not None and hashlib.sha256(state.body).hexdigest() != digest:
            return None, "the copy of it does not have the digest that the record names"
        return state, None if state is not None else "no content from before is recorded"


def _copy(folder: Path, name: str) -> bytes | None:
    """A copy: of clew's own store by its digest, of the program as it lies there."""
    digest = digest_in(name)
    return read_inside(folder, name) if digest is None else _kept(folder, digest)


def _kept(folder: Path, digest: str) -> bytes | None:
    try:
        return read_blob(folder, digest)
    except SourceUnreadable:
        return None


_BEFORE = ("original_content", "original_hash", "backup")


def _files(record: dict[str, JSON]) -> dict[str, Entry]:
    """The two maps of a snapshot as one, in the words of the unified document."""
    snapshot = record.get("snapshot")
    tracked, backups = (snapshot.get(name) for name in _MAPS) if isinstance(snapshot, dict) else (None, None)
    files: dict[str, Entry] = {}
    for found, names in ((tracked, _TRACKED), (backups, _COPIED)):
        for path, entry in found.items() if isinstance(found, dict) else ():
            if isinstance(entry, dict):
                words = {word: entry[name] for name, word in names.items() if name in entry}
                files.setdefault(path, {}).update(words)
    return files


_MAPS = ("trackedFiles", "fileBackups")
_TRACKED = {"originalContent": "original_content", "contentHash": "content_hash", "state": "state", "size": "size"}
_COPIED = {"backupPath": "backup", "originalHash": "original_hash"}
