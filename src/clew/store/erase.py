"""Erasing: the one thing that changes bytes that are there, and only when it is asked for.

A record is overwritten in its place by one of the same length that says only where it stood, so that the tree holds
together and no other byte moves. A session goes with all its files, each overwritten first.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from clew.agents.sage_agent.locate import find_backup
from clew.errors import PathRefused, SourceUnreadable, UnknownReference
from clew.io.blobs import digest_in, name_of
from clew.io.codec import dumps, loads
from clew.io.filesystem import SYSTEM, System, open_regular, sync_folder, write_all
from clew.model.json import JSON
from clew.store import metadata
from clew.store.blobs import Blobs
from clew.store.layout import BACKUPS, MESSAGES, METADATA, RESCUE, SCANS, SNAPSHOTS, refuse_links
from clew.store.lock import WAIT, locked
from clew.store.log import QUARANTINE, record_in
from clew.store.snapshots import spelled
from clew.store.traces import (
    Private,
    fitted,
    found_digests,
    private_to,
    without_files,
    without_found,
)
from clew.store.tree import peek, whole_lines
from clew.store.wire import BRANCH, ERASED, SNAPSHOT
from clew.store.workspace import decode_index

_KEPT = ("uuid", "parentUuid", "timestamp", "sessionId", "isSidechain", "branchId", "branchParentUuid", "metadata")
_NEEDED = ("uuid", "parentUuid")
_BLOCK = 1 << 20

Span = tuple[int, bytes]
"""Where a line begins, and the line."""
Copies = dict[tuple[int, int], Path]
"""Regular files in a session's backup folder, by device and inode."""


class Erased(NamedTuple):
    """What was erased, and where copies may be that could not be reached."""

    records: int
    files: int
    copies: list[str]


def erase_record(folder: Path, uuid: str, system: System = SYSTEM, wait: float = WAIT) -> Erased:
    """Erase a message of a session: its words, its snapshots and the backups that only they name."""
    refuse_erasing(folder, whole=False)
    with locked(system, folder / MESSAGES, wait) as log:
        spans = [(start, line) for start, line in _lines(folder / MESSAGES) if _is(line, uuid)]
        if not spans:
            raise UnknownReference(f"session {folder.name}: no record has the uuid {uuid!r}")
        # Out of the metadata first: what is no more in the log is not found there again, were this cut off.
        elsewhere = list(_other_names(folder / METADATA))
        was_known = _forget(folder, [loads(line) for _, line in spans], system)
        for start, line in spans:
            _overwrite(system, log, start, tombstone(line))
        marks, repeated = _clear_others(folder, spans, log, system)
        snapshots, files, named = _erase_snapshots(folder, uuid, marks, system, wait)
        if was_known:
            metadata.write(system, folder, metadata.from_log(folder))
        copies = [str(folder / name) for name in (QUARANTINE, RESCUE) if (folder / name).exists()]
        return Erased(len(spans) + snapshots, files, [*repeated, *named, *copies, *(elsewhere if was_known else ())])


def erase_session(folder: Path, system: System = SYSTEM, wait: float = WAIT) -> Erased:
    """Erase a whole session with every file in its folder."""
    refuse_erasing(folder, whole=True)
    records = erased = 0
    copies: list[str] = []
    with locked(system, folder / MESSAGES, wait):
        records = sum(chunk.count(b"\n") for chunk in whole_lines(folder / MESSAGES))
        for place, names, files in os.walk(folder, topdown=False, followlinks=False):
            for name in files:
                erased += 1
                copies += _erase_file(system, Path(place) / name)
            for name in names:
                inner = Path(place) / name
                if inner.is_symlink():
                    copies += _erase_file(system, inner)
                else:
                    system.rmdir(inner)
        system.rmdir(folder)
    sync_folder(system, folder.parent)
    return Erased(records, erased, copies)


def refuse_erasing(folder: Path, *, whole: bool) -> None:
    """Refuse to erase a session, or a message of it, whose folder or log is a link or no file; nothing is changed."""
    refuse_links(folder)
    for name in (MESSAGES,) if whole else (MESSAGES, SNAPSHOTS):
        path = folder / name
        found = _status(path)
        if found is not None and not stat.S_ISREG(found.st_mode):
            raise PathRefused(f"{path}: is {_kind(found)}, not a regular file; nothing was erased")


def _kind(found: os.stat_result) -> str:
    return (
        "a link" if stat.S_ISLNK(found.st_mode) else "a folder" if stat.S_ISDIR(found.st_mode) else "a device or pipe"
    )


def _status(path: Path) -> os.stat_result | None:
    """What lies at a path, links not followed; None where there is nothing, or where there can be no such path."""
    try:
        return path.lstat()
    except (OSError, ValueError):
        return None


def _erase_file(system: System, path: Path) -> Iterator[str]:
    yield from _blanked(system, path)
    system.unlink(path)


def _blanked(system: System, path: Path) -> Iterator[str]:
    """Overwrite a file and empty it; gives what cannot be reached so."""
    if path.is_symlink():
        yield from _other_names(path)
    elif path.is_file():
        descriptor = open_regular(system, path, os.O_RDWR)
        try:
            found = system.fstat(descriptor)
            if found.st_nlink > 1:
                yield from _other_names(path)
            else:
                _blank(system, descriptor, found.st_size)
                # A process that has it open sees by its length that it is gone.
                system.truncate(descriptor, 0)
        finally:
            system.close(descriptor)


def _other_names(path: Path) -> Iterator[str]:
    """Where the bytes of a file stay when its own name is removed or given to another file."""
    found = _status(path)
    if found is not None and stat.S_ISLNK(found.st_mode):
        yield f"{path} led to {path.readlink()}, which was left alone"
    elif found is not None and stat.S_ISREG(found.st_mode) and found.st_nlink > 1:
        yield f"{path} has {found.st_nlink - 1} more names (hard links), which hold its bytes"


def tombstone(line: bytes) -> bytes:
    """A record of the same length that says only where the erased one stood."""
    record = loads(line)
    if record.get("type") == SNAPSHOT:
        return _empty_snapshot(record, len(line))
    head = {"type": ERASED, "was": record.get("was") or record.get("type", "")}
    own = record.get("metadata")
    place = {name: record[name] for name in _KEPT if name in record}
    if isinstance(own, dict):
        place["metadata"] = {name: own[name] for name in ("clew",) if name in own}
    for kept in (place, {name: place[name] for name in _NEEDED if name in place}):
        full = _padded({**head, **kept}, len(line))
        if len(full) == len(line):
            return full
    return b" " * len(line)


def _empty_snapshot(record: dict[str, JSON], length: int) -> bytes:
    """The same with no files; of one that has hardly any room only that it was there."""
    names = ("type", "messageId", "timestamp", "isSnapshotUpdate")
    kept: dict[str, JSON] = {name: record[name] for name in names if name in record}
    bare: list[JSON] = [{"trackedFiles": {}, "fileBackups": {}}, {}]
    for maps in bare:
        full = _padded({**kept, "snapshot": maps}, length)
        if len(full) == length:
            return full
    return b" " * length


def _padded(record: dict[str, JSON], length: int) -> bytes:
    bare = dumps({**record, "erased": ""})
    return dumps({**record, "erased": " " * (length - len(bare))}) if len(bare) <= length else bare


def _is(line: bytes, uuid: str) -> bool:
    found = peek(line)
    return found is not None and found.uuid == uuid and found.type != ERASED


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    start = 0
    for chunk in whole_lines(path):
        for line in chunk.split(b"\n")[:-1]:
            yield start, line
            start += len(line) + 1


def _overwrite(system: System, descriptor: int, start: int, content: bytes) -> None:
    """Write over bytes of the file, durably."""
    system.seek(descriptor, start, os.SEEK_SET)
    write_all(system, descriptor, content)
    system.sync(descriptor)


def _blank(system: System, descriptor: int, size: int) -> None:
    system.seek(descriptor, 0, os.SEEK_SET)
    for start in range(0, size, _BLOCK):
        write_all(system, descriptor, b"\0" * min(_BLOCK, size - start))
    system.sync(descriptor)


def _clear_others(folder: Path, spans: list[Span], log: int, system: System) -> tuple[set[str], list[str]]:
    """Take the task list out of records that only repeat it; returns the undo marks, and where it could not be."""
    first = spans[0][0]
    lists = [todos for _, line in spans if (todos := (record_in(line) or {}).get("todos"))]
    marks: set[str] = set()
    repeating: list[tuple[int, bytes, dict[str, JSON]]] = []
    for start, line in _lines(folder / MESSAGES):
        record = record_in(line) or {}
        if record.get("type") == BRANCH:
            marks.add(str(record.get("uuid")))
        if record.get("todos") in lists:
            if start < first:
                lists = [todos for todos in lists if todos != record["todos"]]  # it was there before
                continue
            repeating.append((start, line, record))
    stays: list[str] = []
    for start, line, record in repeating:
        full = fitted({name: value for name, value in record.items() if name != "todos"}, len(line))
        if full is None:
            stays.append(f"the task list in {record.get('uuid')}")
        else:
            _overwrite(system, log, start, full)
    return marks, stays


def _erase_snapshots(
    folder: Path, uuid: str, marks: set[str], system: System, wait: float
) -> tuple[int, int, list[str]]:
    """Erase them, and what undo marks and later looks tell of them; returns records, files, and what stays."""
    if not (folder / SNAPSHOTS).exists():
        return 0, 0, []
    with locked(system, folder / SNAPSHOTS, wait) as log:
        records = [(start, line, record_in(line) or {}) for start, line in _lines(folder / SNAPSHOTS)]
        mine = [record for _, _, record in records if _message(record) == uuid]
        others = [record for _, _, record in records if _message(record) not in {uuid, *marks}]
        private = private_to(mine, others)
        copies = _copies(folder)
        stays = list(dict.fromkeys(place for record in mine for place in _out_of_reach(folder, record, copies)))
        stays += [f"line {number} of {folder / SNAPSHOTS}, which cannot be read" for number in _unreadable(records)]
        gone: set[Path] = set()
        kept: set[Path] = set()
        for start, line, record in records:
            full = tombstone(line) if _message(record) == uuid else _without(record, private, marks, len(line))
            (gone if full is not None else kept).update(_backups(folder, record, copies))
            if full is not None:
                _overwrite(system, log, start, full)
                kept.update(_backups(folder, record_in(full) or {}, copies))
        digests = {digest for path in gone - kept if (digest := digest_in(path.name)) is not None}
        for path in sorted(gone - kept):
            stays += _erase_file(system, path)
        stays += _erase_scans(folder, private._replace(digests=digests), system)
        return len(mine), len(gone - kept), stays


def _message(record: dict[str, JSON]) -> str | None:
    """The message that a snapshot belongs to; None where it names none."""
    message = record.get("messageId")
    return message if isinstance(message, str) else None


def _without(record: dict[str, JSON], private: Private, marks: set[str], length: int) -> bytes | None:
    """A record of another without what is private, in the same length; None where there is nothing of it."""
    if _message(record) in marks:
        left = without_files(record, private)
        if left is None:
            return None
        full = _padded(left, length)
        return full if len(full) == length else _empty_snapshot(record, length)
    left = without_found(record, private)
    return fitted(left, length) if left is not None else None


def _erase_scans(folder: Path, private: Private, system: System) -> Iterator[str]:
    """Erase workspace indexes that name such files or contents; the next scan reads every file again."""
    scans = Blobs(folder / SCANS, system)
    for digest in sorted(scans.all()):
        try:
            index = decode_index(scans.get(digest))
            is_private = any(spelled(path) in private.names for path in index)
            is_private |= any(entry.digest in private.digests for entry in index.values())
        except SourceUnreadable:
            is_private = True
        if is_private:
            yield from _erase_file(system, scans.folder / name_of(digest))


def _copies(folder: Path) -> Copies:
    """The regular files in the session's backup folder; links are left out, and so is a folder that is one itself.

    Only these may be removed: what a snapshot names is input, and can be any path. They are compared by identity, as
    names that differ in case or spelling may be the same file.
    """
    backups, found = folder / BACKUPS, Copies()
    if backups.is_symlink():
        return found
    with suppress(FileNotFoundError, NotADirectoryError):
        for path in sorted(backups.iterdir()):
            status = _status(path)
            if status is not None and stat.S_ISREG(status.st_mode):
                found[status.st_dev, status.st_ino] = path
    return found


def _copy_at(path: Path, copies: Copies) -> Path | None:
    found = _status(path)
    return copies.get((found.st_dev, found.st_ino)) if found is not None else None


def _backups(folder: Path, record: dict[str, JSON], copies: Copies) -> Iterator[Path]:
    """The copies in the session's backup folder that a snapshot names."""
    for name in _names(record):
        found = _copy_at(folder / BACKUPS / name, copies)
        if found is not None:
            yield found


def _out_of_reach(folder: Path, record: dict[str, JSON], copies: Copies) -> Iterator[str]:
    """What a snapshot names as a copy, and is none in the session's backup folder."""
    places = [folder / BACKUPS / name for name in _names(record)]
    places += [found for path in _paths(record) if (found := find_backup(folder, path, None)) is not None]
    for place in places:
        status = _status(place)
        if status is not None and not stat.S_ISDIR(status.st_mode) and _copy_at(place, copies) is None:
            yield f"{place}, named by a snapshot, which is not a regular file in {folder / BACKUPS}"


def _names(record: dict[str, JSON]) -> Iterator[str]:
    """The file names that a snapshot's copies have in the backup folder."""
    snapshot = record.get("snapshot")
    tracked = snapshot.get("trackedFiles") if isinstance(snapshot, dict) else None
    hashes = [file.get("contentHash") for file in _objects(tracked)]
    for digest in (*hashes, *found_digests(record)):
        if isinstance(digest, str) and digest_in(name_of(digest)):
            yield name_of(digest)
    yield from (re.split(r"[\\/]", path)[-1] for path in _paths(record))


def _paths(record: dict[str, JSON]) -> Iterator[str]:
    """The paths that a snapshot gives for its copies."""
    snapshot = record.get("snapshot")
    files = snapshot.get("fileBackups") if isinstance(snapshot, dict) else None
    for file in _objects(files):
        named = file.get("backupPath")
        if isinstance(named, str):
            yield named


def _unreadable(records: list[tuple[int, bytes, dict[str, JSON]]]) -> Iterator[int]:
    """The numbers of lines that are no record, and so may be about any message."""
    for number, (_, line, record) in enumerate(records, 1):
        if line.strip() and not record and record_in(line) is None:
            yield number


def _objects(value: JSON) -> list[dict[str, JSON]]:
    return [one for one in value.values() if isinstance(one, dict)] if isinstance(value, dict) else []


def _forget(folder: Path, said: list[dict[str, JSON]], system: System) -> bool:
    """Take the words out of the metadata, to be made from the log when it has them no more; False: they had none."""
    words = metadata.known(folder)
    gone = {metadata.shortened(text) for record in said for text in _texts(record)}
    left = {name: text for name, text in words.items() if not (isinstance(text, str) and _short(text) in gone)}
    if left == words:
        return False
    metadata.write(system, folder, left)
    return True


def _short(text: str) -> str:
    return metadata.shortened(re.sub(r"…$", "", text))


def _texts(record: dict[str, JSON]) -> Iterator[str]:
    inner = record.get("message")
    content = inner.get("content") if isinstance(inner, dict) else None
    if isinstance(content, str) and content:
        yield content
