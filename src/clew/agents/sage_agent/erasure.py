"""Removes a message from the records of a session: pure functions over native records."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from clew.agents.sage_agent.records import BRANCH, ERASED, SNAPSHOT
from clew.io.blobs import digest_in, name_of
from clew.io.codec import dumps
from clew.model.json import JSON, object_at

COPY_ERASED = "the copy of it was erased"
_KEPT_KEYS = ("uuid", "parentUuid", "timestamp", "sessionId", "isSidechain", "branchId", "branchParentUuid")
_LINK_KEYS = ("uuid", "parentUuid")
_SNAPSHOT_KEYS = ("type", "messageId", "timestamp", "isSnapshotUpdate")

Object = dict[str, JSON]


class ErasedMessage:
    """A message that is being erased, found in the records of a log in their order."""

    def __init__(self, uuid: str) -> None:
        self.uuid = uuid
        self.records: list[Object] = []
        self.branch_records: set[str] = set()
        """The ids of branch records: the snapshot of an undo belongs to one of them."""
        self._earlier_todos: list[JSON] = []

    def examine(self, record: Object) -> None:
        """Note what is needed of the next record of the log."""
        if record.get("type") == BRANCH:
            self.branch_records.add(str(record.get("uuid")))
        if self._is_record(record):
            self.records.append(record)
        elif not self.records and (todos := record.get("todos")) and todos not in self._earlier_todos:
            self._earlier_todos.append(todos)

    def replacement(self, record: Object, length: int) -> bytes | None:
        """The line that takes the place of a record of the log; None where the record stays.

        Each message repeats the task list, so a list that the erased message brought up is in later ones too.
        """
        if self._is_record(record):
            return _tombstone(record, length)
        todos = record.get("todos")
        if not todos or todos in self._earlier_todos or all(todos != one.get("todos") for one in self.records):
            return None
        return _padded_metadata({name: value for name, value in record.items() if name != "todos"}, length)

    def _is_record(self, record: Object) -> bool:
        return record.get("uuid") == self.uuid and record.get("type") != ERASED


class ErasedSnapshots:
    """The snapshots of a message that is being erased, and what only they name."""

    def __init__(self, message: ErasedMessage, records: Iterable[Object]) -> None:
        self._message = message
        self.records: list[Object] = []
        self.names: set[str] = set()
        """The files that only these snapshots name."""
        self.digests: set[str] = set()
        """The contents that only these snapshots name."""
        others: list[Object] = []
        for record in records:
            if record.get("messageId") == message.uuid:
                self.records.append(record)
            elif not self._is_undo(record):
                others.append(record)
        for record in self.records:
            for name in _file_names(record):
                self.names.add(name)
                self.digests |= _file_digests(record, name)
        for record in others:
            for name in _file_names(record):
                self.names.discard(name)
                self.digests -= _file_digests(record, name)

    def created(self) -> set[str]:
        """The files that did not exist before the message."""
        tracked = (object_at(record, "snapshot", "trackedFiles") for record in self.records)
        return {name for files in tracked for name, file in files.items() if object_at(file).get("state") == "created"}

    def replacement(self, record: Object, length: int) -> bytes | None:
        """The line that takes the place of a snapshot; None where it has nothing of the erased message."""
        if record.get("messageId") == self._message.uuid:
            return _empty_snapshot(record, length)
        return self._without_files(record, length) if self._is_undo(record) else self._without_found(record, length)

    def _is_undo(self, record: Object) -> bool:
        message = record.get("messageId")
        return isinstance(message, str) and message in self._message.branch_records

    def _without_files(self, record: Object, length: int) -> bytes | None:
        """The record of an undo, without the files that only the erased message names."""
        hidden = {
            name
            for name in _file_names(record)
            if name in self.names or not self.digests.isdisjoint(_file_digests(record, name))
        }
        if not hidden:
            return None
        metadata, own = object_at(record, "metadata"), object_at(record, "metadata", "clew")
        snapshot = {key: _less(files, hidden) for key, files in object_at(record, "snapshot").items()}
        own = {**own, "files": _less(own.get("files"), hidden)}
        return _padded({**record, "snapshot": snapshot, "metadata": {**metadata, "clew": own}}, length)

    def _without_found(self, record: Object, length: int) -> bytes | None:
        """A workspace scan, without the files and contents that only the erased message names."""
        metadata, own = object_at(record, "metadata"), object_at(record, "metadata", "clew")
        found = object_at(own, "found")
        left = {name: self._without_digests(file) for name, file in found.items() if name not in self.names}
        if left == found:
            return None
        return _padded_metadata({**record, "metadata": {**metadata, "clew": {**own, "found": left}}}, length)

    def _without_digests(self, file: JSON) -> JSON:
        if not isinstance(file, dict):
            return file
        gone: JSON = {"hash": "", "missing": COPY_ERASED}
        return {key: gone if object_at(state).get("hash") in self.digests else state for key, state in file.items()}


def _tombstone(record: Object, length: int) -> bytes:
    """The line that takes the place of an erased message: its ids and links, without its content."""
    kept = {name: record[name] for name in _KEPT_KEYS if name in record}
    if "clew" in (own := object_at(record, "metadata")):
        kept["metadata"] = {"clew": own["clew"]}
    head = {"type": ERASED, "was": record.get("type", "")}
    line = _padded({**head, **kept}, length)
    if len(line) <= length:
        return line
    return _padded({**head, **{name: kept[name] for name in _LINK_KEYS if name in kept}}, length)


def _padded(record: Object, length: int) -> bytes:
    """Encode a record with as many spaces as make it as long as the line that it replaces."""
    missing = length - len(dumps({**record, "erased": ""}))
    return dumps({**record, "erased": " " * max(0, missing)})


def _padded_metadata(record: Object, length: int) -> bytes:
    """Encode a record that is not erased, with the spaces in its metadata."""
    own = object_at(record, "metadata")
    missing = length - len(dumps({**record, "metadata": {**own, "erased": ""}}))
    if missing >= 0:
        return dumps({**record, "metadata": {**own, "erased": " " * missing}})
    line = dumps(record)
    return line[:-1] + b" " * (length - len(line)) + b"}"


def _empty_snapshot(record: Object, length: int) -> bytes:
    """The line that takes the place of an erased snapshot: it names no files."""
    if record.get("type") != SNAPSHOT:
        return _tombstone(record, length)
    kept = {name: record[name] for name in _SNAPSHOT_KEYS if name in record}
    line = _padded({**kept, "snapshot": {"trackedFiles": {}, "fileBackups": {}}}, length)
    return line if len(line) <= length else _padded({**kept, "snapshot": {}}, length)


def backup_names(record: Object) -> Iterator[str]:
    """The file names of a snapshot's backups in the backup folder."""
    digests = [object_at(file).get("contentHash") for file in object_at(record, "snapshot", "trackedFiles").values()]
    for file in object_at(record, "metadata", "clew", "found").values():
        digests += [object_at(file, side).get("hash") for side in ("before", "now")]
    for digest in digests:
        if isinstance(digest, str) and digest_in(name_of(digest)):
            yield name_of(digest)
    yield from (re.split(r"[\\/]", path)[-1] for path in backup_paths(record))


def backup_paths(record: Object) -> Iterator[str]:
    for file in object_at(record, "snapshot", "fileBackups").values():
        path = object_at(file).get("backupPath")
        if isinstance(path, str):
            yield path


def _file_names(record: Object) -> set[str]:
    maps = (("snapshot", "trackedFiles"), ("snapshot", "fileBackups"), ("metadata", "clew", "files"))
    return {name for keys in maps for name in object_at(record, *keys)}


def _file_digests(record: Object, name: str) -> set[str]:
    tracked = object_at(record, "snapshot", "trackedFiles", name).get("contentHash")
    backup = object_at(record, "snapshot", "fileBackups", name).get("originalHash")
    return {digest for digest in (tracked, backup) if isinstance(digest, str) and digest}


def _less(files: JSON, names: set[str]) -> JSON:
    return {name: file for name, file in files.items() if name not in names} if isinstance(files, dict) else files
