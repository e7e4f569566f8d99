"""What a session of Sage Agent proves about files: its tools' calls, and its snapshots with copies and digests.

A snapshot tells of each file what it was before its message, whole or by a copy, and the digest of what it was after.
That there is no content from before does not prove that there was no file: it may have been no text.
"""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from clew.agents.backups import read_inside
from clew.agents.base import SourceFile, Unit
from clew.agents.evidence import ABSENT, Action, Event, State, Touch, Whole, absolute, as_bytes
from clew.agents.sage_agent.locate import BACKUPS, SNAPSHOTS, session_id
from clew.agents.sage_agent.tables import BRANCH
from clew.agents.simple_tools import Work
from clew.derive.native import metadata_of, native_rest
from clew.errors import SourceUnreadable
from clew.io.blobs import digest_in, read_blob
from clew.io.compress import open_source
from clew.io.records import read_records
from clew.model.json import JSON

_DIGEST = re.compile(r"[0-9a-f]{64}", re.IGNORECASE)
_ACTIONS: dict[str, Action] = {"created": "create", "modified": "change", "deleted": "delete"}

Entry = dict[str, JSON]


def evidence(source: SourceFile, units: Iterator[Unit]) -> Iterator[Event]:
    """Everything a session proves, in its order."""
    with _Snapshots(source) as snapshots:
        reader = _Reader(source, snapshots)
        for unit in units:
            if unit.is_message:
                yield from reader.message(unit.value)
            elif unit.part == 0 and unit.value.get("kind") == "snapshot":
                yield from reader.inline(unit.value)
            elif unit.value.get("type") == BRANCH:
                reader.moved(unit.value)
        yield from reader.finish(reader.index + 1)


class _Reader:
    def __init__(self, source: SourceFile, snapshots: _Snapshots) -> None:
        self.index = 0
        self._work = Work(exact=True)
        self._snapshots = snapshots
        self._folders = (source.path.parent / BACKUPS, source.path.parents[1].parent / BACKUPS / session_id(source))
        self._folder: str | None = None
        self._open: dict[str, Entry] = {}
        """Files of the message that is being answered: what its snapshot says of them."""
        self._begun = self._answered = 0
        """The message with a snapshot, and the last result of its calls."""
        self._results: list[Touch] = []
        self._uuids: dict[str, int] = {}
        self._last: str | None = None
        self._moved: dict[str, Entry] = {}
        """Files that went back or on since the last message."""

    def message(self, message: dict[str, JSON]) -> Iterator[Event]:
        is_result = any(block["type"] == "tool_result" for block in message["content"])
        if not is_result:
            yield from self.finish(message["index"], message.get("parent_uuid") == self._last)
        self.index = message["index"]
        for path, entry in self._moved.items():
            yield from self._left(path, entry, self.index)
        self._moved.clear()
        self._folder = metadata_of(message).get("cwd") or self._folder
        uuid = message.get("uuid")
        if isinstance(uuid, str):
            self._uuids[uuid], self._last = self.index, uuid
            yield from self._begin(self._snapshots.of(uuid), self.index)
        for block in message["content"]:
            if block["type"] == "tool_use":
                yield from self._work.called(block, self.index, self._folder)
            elif block["type"] == "tool_result":
                self._answered = self.index
                for event in self._work.returned(block, self.index):
                    if isinstance(event, Touch):
                        self._results.append(event)
                    else:
                        yield event

    def inline(self, record: dict[str, JSON]) -> Iterator[Event]:
        """A snapshot among the messages, behind the one it belongs to."""
        snapshot = record.get("snapshot")
        files = snapshot.get("files") if isinstance(snapshot, dict) else None
        index = self._uuids.get(str(record.get("message_uuid")))
        if isinstance(files, dict) and index is not None:
            yield from self._begin({path: entry for path, entry in files.items() if isinstance(entry, dict)}, index)

    def moved(self, record: dict[str, JSON]) -> None:
        """The conversation went elsewhere, and files with it, as the snapshot of that record tells."""
        uuid = native_rest(record).get("uuid")
        if isinstance(uuid, str):
            self._moved.update(self._snapshots.of(uuid))

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
                yield Touch(path, "snapshot", index, index, "backup", state, state, note=note)

    def finish(self, index: int, is_next: bool = True) -> Iterator[Event]:
        """The message is answered: what its tools did, checked against what its snapshot says.

        Without an answer, what they left is seen by the message that follows it, but not by one elsewhere.
        """
        is_seen = is_next or self._answered > 0
        done = self._answered or index
        last = {touch.path: number for number, touch in enumerate(self._results)}
        for number, touch in enumerate(self._results):
            entry = self._open.pop(touch.path, None) if last[touch.path] == number else None
            yield touch if entry is None else touch._replace(digest=_digest(entry.get("content_hash")))
            if entry is not None and is_seen:
                yield from self._left(touch.path, entry, done)
        for path, entry in self._open.items():
            action = _ACTIONS.get(str(entry.get("state")))
            if action is not None:
                after = ABSENT if action == "delete" else None
                digest = _digest(entry.get("content_hash"))
                yield Touch(path, action, self._begun, done, "backup", after=after, digest=digest)
            if is_seen and not entry.get("open"):
                yield from self._left(path, entry, done)
        self._answered = 0
        self._open.clear()
        self._results.clear()

    def _left(self, path: str, entry: Entry, done: int) -> Iterator[Touch]:
        """What the snapshot saw when all was done: whatever ran meanwhile, this is what it left."""
        digest = _digest(entry.get("content_hash"))
        gone = entry.get("state") == "deleted" or (entry.get("state") == "unchanged" and entry.get("existed") is False)
        state: State | None = ABSENT if gone else None
        if state is None and digest is not None:
            body = _kept(self._folders[0], digest)
            state = Whole(body, True) if body is not None else None
        if state is not None or digest is not None:
            yield Touch(path, "snapshot", done, done, "backup", state, state, digest=digest if state is None else None)

    def _before(self, entry: Entry) -> tuple[State | None, str | None]:
        """The content from before a message, if it has the digest that the record names."""
        if entry.get("existed") is False:
            return ABSENT, None
        text, backup, digest = entry.get("original_content"), entry.get("backup"), _digest(entry.get("original_hash"))
        state: State | None = as_bytes(text) if isinstance(text, str) else None
        if isinstance(backup, str) and state is None:
            name = re.split(r"[\\/]", backup)[-1]
            bodies = (_copy(folder, name) for folder in self._folders if not folder.is_symlink())
            state = next((Whole(body, True) for body in bodies if body is not None), None)
            if state is None:
                return None, "the copy of it is gone"
        if isinstance(state, Whole) and digest is not None and hashlib.sha256(state.body).hexdigest() != digest:
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


def _digest(value: JSON) -> str | None:
    return value.lower() if isinstance(value, str) and _DIGEST.fullmatch(value) else None


class _Snapshots:
    """The snapshots beside the messages: where each one is, read when its message comes."""

    def __init__(self, source: SourceFile) -> None:
        self._path: Path | None = source.path.parent / SNAPSHOTS if SNAPSHOTS in source.parts else None
        self._places: dict[str, list[tuple[int, int]]] = {}
        self._stream: BinaryIO | None = None

    def __enter__(self) -> _Snapshots:
        if self._path is not None:
            with open_source(self._path) as stream:
                for record in read_records(stream):
                    uuid = record.value.get("messageId") if record.value is not None else None
                    if isinstance(uuid, str):
                        self._places.setdefault(uuid, []).append((record.start, record.stop))
            self._stream = self._path.open("rb")
        return self

    def __exit__(self, *_: object) -> None:
        if self._stream is not None:
            self._stream.close()

    def of(self, uuid: str) -> dict[str, Entry]:
        """The files of a message's snapshots, what was before from the first and what was after from the last."""
        files: dict[str, Entry] = {}
        for start, stop in self._places.get(uuid, ()):
            assert self._stream is not None
            self._stream.seek(start)
            for record in read_records(io.BytesIO(self._stream.read(stop - start))):
                for path, entry in _files(record.value or {}).items():
                    first = files.get(path, {})
                    before = {name: first[name] for name in _BEFORE if name in first}
                    files[path] = {**entry, **before}
        return files


_BEFORE = ("original_content", "original_hash", "backup", "existed")


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
    return _placed(record, files)


def _placed(record: dict[str, JSON], files: dict[str, Entry]) -> dict[str, Entry]:
    """With what clew's own store adds: the folder that paths are relative to, and whether there was a file.

    A record that is open was made before the tool ran, and tells nothing of what it left.
    """
    metadata = record.get("metadata")
    own = metadata.get("clew") if isinstance(metadata, dict) else None
    root = own.get("root") if isinstance(own, dict) else None
    if not isinstance(own, dict) or not isinstance(root, str):
        return files
    facts = own.get("files")
    for path, entry in files.items():
        fact = facts.get(path) if isinstance(facts, dict) else None
        if isinstance(fact, dict) and isinstance(fact.get("existed"), bool):
            entry["existed"] = fact["existed"]
        entry["open"] = own.get("open") is True
    return {absolute(path, root): entry for path, entry in files.items()}


_MAPS = ("trackedFiles", "fileBackups")
_TRACKED = {"originalContent": "original_content", "contentHash": "content_hash", "state": "state", "size": "size"}
_COPIED = {"backupPath": "backup", "originalHash": "original_hash"}
