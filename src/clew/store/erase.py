"""Erases messages and whole sessions, only when the user asks for it.

To erase a message, the logs of its session are written anew without it and take the place of the old files under their
locks: a crash leaves the old log or the new one. A record without content stays in the message's place, so that the
messages that follow keep their parent. It is as long as the old one: snapshots refer to positions in the log.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from clew.agents.sage_agent.locate import find_backup
from clew.agents.sage_agent.records import message_text
from clew.errors import PathRefused, UnknownReference
from clew.io.blobs import digest_in, name_of
from clew.io.codec import dumps
from clew.io.file_lock import LOCK_WAIT_SECONDS, acquire_lock, locked
from clew.io.filesystem import SYSTEM, System, discard, open_new, open_regular, replace_file, sync_folder, write_all
from clew.model.json import JSON
from clew.store import session_metadata
from clew.store.blobs import Blobs
from clew.store.conversation_tree import whole_lines
from clew.store.layout import BACKUPS, MESSAGES, METADATA, RESCUE, SNAPSHOTS, refuse_links
from clew.store.log import QUARANTINE, incomplete_last_line, record_in
from clew.store.records import BRANCH, ERASED, SNAPSHOT
from clew.store.sightings import ALL, places_of, read_look, spelled_look
from clew.store.snapshots import spelled

_KEPT_KEYS = ("uuid", "parentUuid", "timestamp", "sessionId", "isSidechain", "branchId", "branchParentUuid")
_LINK_KEYS = ("uuid", "parentUuid")
_SNAPSHOT_KEYS = ("type", "messageId", "timestamp", "isSnapshotUpdate")
_COPY_ERASED = "the copy of it was erased"
_BLOCK_BYTES = 1 << 20

Object = dict[str, JSON]
BackupFiles = dict[tuple[int, int], Path]
"""The regular files in a session's backup folder, by device and inode."""


class Erased(NamedTuple):
    """How much was erased, and where copies are that could not be reached."""

    records: int
    files: int
    copies: list[str]


def erase_record(folder: Path, uuid: str, system: System = SYSTEM, wait: float = LOCK_WAIT_SECONDS) -> Erased:
    """Erase a message of a session: its text, its snapshots and the backups that only they name."""
    refuse_erasing(folder, whole=False)
    log = folder / MESSAGES
    with locked(system, log, wait) as descriptor:
        erased, todos, undo_marks = _examine_log(log, uuid)
        if not erased:
            raise UnknownReference(f"session {folder.name}: no record has the uuid {uuid!r}")
        copies = list(_other_names(log))
        other_metadata = list(_other_names(folder / METADATA))
        # The message itself comes last: after a crash it is still there, and can be erased again with the rest.
        was_in_metadata = _remove_from_metadata(folder, erased, system)
        snapshots = _erase_snapshots(folder, uuid, undo_marks, system, wait)

        def replacement(record: Object, length: int) -> bytes | None:
            if _is_message(record, uuid):
                return _tombstone(record, length)
            return _without_todos(record, length) if record.get("todos") in todos else None

        with _rewritten(system, log, descriptor, replacement):
            if was_in_metadata:
                session_metadata.write(system, folder, session_metadata.rebuild(folder))
                copies += other_metadata
        copies += snapshots.copies
        copies += [str(folder / name) for name in (QUARANTINE, RESCUE) if (folder / name).exists()]
        return Erased(len(erased) + snapshots.records, snapshots.files, copies)


def _examine_log(log: Path, uuid: str) -> tuple[list[Object], list[JSON], set[str]]:
    """Find a message in a log. Returns its records, the task lists that it brought up, and the ids of branch records.

    Every message repeats the task list, so those after it hold the list too.
    """
    erased: list[Object] = []
    earlier_todos: list[JSON] = []
    branch_records: set[str] = set()
    for line in _lines(log):
        record = record_in(line) or {}
        if record.get("type") == BRANCH:
            branch_records.add(str(record.get("uuid")))
        if _is_message(record, uuid):
            erased.append(record)
        elif not erased and (todos := record.get("todos")) and todos not in earlier_todos:
            earlier_todos.append(todos)
    todos = [todos for record in erased if (todos := record.get("todos")) and todos not in earlier_todos]
    return erased, todos, branch_records


def _is_message(record: Object, uuid: str) -> bool:
    return record.get("uuid") == uuid and record.get("type") != ERASED


def erase_session(folder: Path, system: System = SYSTEM, wait: float = LOCK_WAIT_SECONDS) -> Erased:
    """Erase a whole session with every file in its folder."""
    refuse_erasing(folder, whole=True)
    files = 0
    copies: list[str] = []
    with locked(system, folder / MESSAGES, wait):
        records = sum(chunk.count(b"\n") for chunk in whole_lines(folder / MESSAGES))
        for place, folder_names, file_names in os.walk(folder, topdown=False, followlinks=False):
            for name in file_names:
                files += 1
                copies += _erase_file(system, Path(place) / name)
            for name in folder_names:
                inner = Path(place) / name
                if inner.is_symlink():
                    copies += _erase_file(system, inner)
                else:
                    system.rmdir(inner)
        system.rmdir(folder)
    sync_folder(system, folder.parent)
    return Erased(records, files, copies)


def refuse_erasing(folder: Path, *, whole: bool) -> None:
    """Refuse to erase a session, or a message of it, whose folder or log is a link or no regular file."""
    refuse_links(folder)
    for name in (MESSAGES,) if whole else (MESSAGES, SNAPSHOTS):
        path = folder / name
        status = _status(path)
        if status is not None and not stat.S_ISREG(status.st_mode):
            kinds = {stat.S_IFLNK: "a link", stat.S_IFDIR: "a folder"}
            kind = kinds.get(stat.S_IFMT(status.st_mode), "a device or pipe")
            raise PathRefused(f"{path}: is {kind}, not a regular file; nothing was erased")


# Rewriting a log


@contextmanager
def _rewritten(
    system: System, log: Path, old: int, replacement: Callable[[Object, int], bytes | None]
) -> Iterator[None]:
    """Put a changed copy in the place of a log, which is open as `old` and locked; the body holds the copy's lock.

    `replacement` gets each record and the length of its line, and returns another line, or None to keep it.
    """
    temporary = log.with_name(f".{log.name}.{os.urandom(6).hex()}.tmp")
    descriptor = open_new(system, temporary)
    try:
        try:
            # Before the file is in its place: nobody may append to it until everything is erased.
            acquire_lock(system, descriptor, temporary)
            for line in _lines(log):
                record = record_in(line)
                changed = replacement(record, len(line)) if record is not None else None
                write_all(system, descriptor, (line if changed is None else changed) + b"\n")
            write_all(system, descriptor, incomplete_last_line(system, old, system.fstat(old).st_size))
            system.sync(descriptor)
            system.replace(temporary, log)
        except BaseException:
            discard(system, temporary)
            raise
        sync_folder(system, log.parent)
        yield
    finally:
        system.close(descriptor)


def _lines(path: Path) -> Iterator[bytes]:
    for chunk in whole_lines(path):
        yield from chunk.split(b"\n")[:-1]


def _tombstone(record: Object, length: int) -> bytes:
    """The line that takes the place of an erased message: its ids and links, without its content."""
    kept = {name: record[name] for name in _KEPT_KEYS if name in record}
    if "clew" in (own := _object(record, "metadata")):
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
    own = _object(record, "metadata")
    missing = length - len(dumps({**record, "metadata": {**own, "erased": ""}}))
    if missing >= 0:
        return dumps({**record, "metadata": {**own, "erased": " " * missing}})
    line = dumps(record)
    return line[:-1] + b" " * (length - len(line)) + b"}"


def _without_todos(record: Object, length: int) -> bytes:
    return _padded_metadata({name: value for name, value in record.items() if name != "todos"}, length)


# Snapshots


class _OnlyInErased(NamedTuple):
    """The file names and content digests that only the snapshots of the erased message name."""

    names: set[str]
    digests: set[str]

    def covers(self, record: Object, name: str) -> bool:
        """True where a record has about a file what only the erased message brought up."""
        return name in self.names or not self.digests.isdisjoint(_file_digests(record, name))


def _erase_snapshots(folder: Path, uuid: str, undo_marks: set[str], system: System, wait: float) -> Erased:
    """Erase the snapshots of a message, and what undo records and later workspace scans repeat of them."""
    log = folder / SNAPSHOTS
    if not log.exists():
        return Erased(0, 0, [])
    with locked(system, log, wait) as descriptor:
        lines = list(_lines(log))
        records = [record_in(line) or {} for line in lines]
        mine = [record for record in records if record.get("messageId") == uuid]
        others = [record for record in records if not _is_for(record, {uuid, *undo_marks})]
        only = _only_in(mine, others)
        backup_files = _backup_files(folder)
        copies = [*_other_names(log), *_out_of_reach(folder, mine, backup_files)]
        copies += [
            f"line {number} of {log}, which cannot be read"
            for number, line in enumerate(lines, 1)
            if line.strip() and record_in(line) is None
        ]
        gone: set[Path] = set()
        kept: set[Path] = set()
        for record, line in zip(records, lines, strict=True):
            changed = _snapshot_without(record, uuid, undo_marks, only, len(line))
            (kept if changed is None else gone).update(_named_backups(folder, record, backup_files))
            if changed is not None:
                kept.update(_named_backups(folder, record_in(changed) or {}, backup_files))
        digests = {digest for path in gone - kept if (digest := digest_in(path.name)) is not None}
        Blobs(folder / BACKUPS, system).free(digests)
        for path in sorted(gone - kept):
            copies += _erase_file(system, path)
        copies += _erase_from_scans(folder, mine, only._replace(digests=digests), system)

        def replacement(record: Object, length: int) -> bytes | None:
            return _snapshot_without(record, uuid, undo_marks, only, length)

        with _rewritten(system, log, descriptor, replacement):
            return Erased(len(mine), len(gone - kept), copies)


def _is_for(record: Object, messages: set[str]) -> bool:
    message = record.get("messageId")
    return isinstance(message, str) and message in messages


def _only_in(erased: Iterable[Object], others: Iterable[Object]) -> _OnlyInErased:
    """Names and digests in the records of a message that no record of another message has."""
    names: set[str] = set()
    digests: set[str] = set()
    for record in erased:
        for name in _file_names(record):
            names.add(name)
            digests |= _file_digests(record, name)
    for record in others:
        for name in _file_names(record):
            names.discard(name)
            digests -= _file_digests(record, name)
    return _OnlyInErased(names, digests)


def _snapshot_without(
    record: Object, uuid: str, undo_marks: set[str], only: _OnlyInErased, length: int
) -> bytes | None:
    """The line that takes the place of a snapshot; None where it has nothing of the erased message."""
    if record.get("messageId") == uuid:
        if record.get("type") != SNAPSHOT:
            return _tombstone(record, length)
        kept = {name: record[name] for name in _SNAPSHOT_KEYS if name in record}
        line = _padded({**kept, "snapshot": {"trackedFiles": {}, "fileBackups": {}}}, length)
        return line if len(line) <= length else _padded({**kept, "snapshot": {}}, length)
    metadata, own = _object(record, "metadata"), _object(record, "metadata", "clew")
    if _is_for(record, undo_marks):
        hidden = {name for name in _file_names(record) if only.covers(record, name)}
        if not hidden:
            return None
        snapshot = {key: _less(files, hidden) for key, files in _object(record, "snapshot").items()}
        own = {**own, "files": _less(own.get("files"), hidden)}
        return _padded({**record, "snapshot": snapshot, "metadata": {**metadata, "clew": own}}, length)
    found = _object(own, "found")
    left = {name: _without_digests(file, only) for name, file in found.items() if name not in only.names}
    if left == found:
        return None
    return _padded_metadata({**record, "metadata": {**metadata, "clew": {**own, "found": left}}}, length)


def _without_digests(file: JSON, only: _OnlyInErased) -> JSON:
    """The states of a file in a workspace scan, without the digests of erased contents."""
    if not isinstance(file, dict):
        return file
    gone: JSON = {"hash": "", "missing": _COPY_ERASED}
    return {key: gone if _object(state).get("hash") in only.digests else state for key, state in file.items()}


def _erase_from_scans(folder: Path, mine: list[Object], only: _OnlyInErased, system: System) -> Iterator[str]:
    """Remove names and digests from the stored workspace scans; yields which scans name files that still exist."""
    workspaces = {root for record in mine if isinstance(root := _object(record, "metadata", "clew").get("root"), str)}
    roots = {place: root for root in workspaces for place in places_of(folder, root)}
    created = {
        name
        for record in mine
        for name, file in _object(record, "snapshot", "trackedFiles").items()
        if _object(file).get("state") == "created"
    }
    for place in sorted(folder.glob(ALL)):
        scan, root = read_look(place), roots.get(place)
        files = scan.named if scan is not None else {}
        named = {path for path in files if root is not None and spelled(path) in only.names}
        existing = {path for path in named if os.path.lexists(f"{root}/{path}")}
        left = {
            path: seen if seen.digest not in only.digests else replace(seen, digest="", missing=_COPY_ERASED)
            for path, seen in files.items()
            if path not in named - existing
        }
        if scan is not None and left != files:
            yield from _other_names(place)
            replace_file(system, place, spelled_look(replace(scan, named=left)))
        if not created.isdisjoint(spelled(path) for path in existing):
            yield f"{place} names files that are still in {root}"


def _file_names(record: Object) -> set[str]:
    maps = (("snapshot", "trackedFiles"), ("snapshot", "fileBackups"), ("metadata", "clew", "files"))
    return {name for keys in maps for name in _object(record, *keys)}


def _file_digests(record: Object, name: str) -> set[str]:
    tracked = _object(record, "snapshot", "trackedFiles", name).get("contentHash")
    backup = _object(record, "snapshot", "fileBackups", name).get("originalHash")
    return {digest for digest in (tracked, backup) if isinstance(digest, str) and digest}


def _less(files: JSON, names: set[str]) -> JSON:
    return {name: file for name, file in files.items() if name not in names} if isinstance(files, dict) else files


def _object(value: JSON, *keys: str) -> Object:
    """An object inside a record; empty where there is none."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


# Backup files


def _backup_files(folder: Path) -> BackupFiles:
    """The regular files in the session's backup folder, without links.

    Only these may be removed: a snapshot is input, and can name any path. They are compared by identity, as names that
    differ in case may be one file.
    """
    backups, files = folder / BACKUPS, BackupFiles()
    if backups.is_symlink():
        return files
    with suppress(FileNotFoundError, NotADirectoryError):
        for path in sorted(backups.iterdir()):
            status = _status(path)
            if status is not None and stat.S_ISREG(status.st_mode):
                files[status.st_dev, status.st_ino] = path
    return files


def _find_backup_file(path: Path, backup_files: BackupFiles) -> Path | None:
    status = _status(path)
    return backup_files.get((status.st_dev, status.st_ino)) if status is not None else None


def _named_backups(folder: Path, record: Object, backup_files: BackupFiles) -> Iterator[Path]:
    """The files of the backup folder that a snapshot names."""
    for name in _backup_names(record):
        path = _find_backup_file(folder / BACKUPS / name, backup_files)
        if path is not None:
            yield path


def _out_of_reach(folder: Path, records: Iterable[Object], backup_files: BackupFiles) -> list[str]:
    """What snapshots name as a backup, and is no regular file in the backup folder."""
    found: dict[str, None] = {}
    for record in records:
        places = [folder / BACKUPS / name for name in _backup_names(record)]
        places += [path for name in _backup_paths(record) if (path := find_backup(folder, name, None)) is not None]
        for place in places:
            status = _status(place)
            is_file = status is not None and not stat.S_ISDIR(status.st_mode)
            if is_file and _find_backup_file(place, backup_files) is None:
                found[f"{place}, named by a snapshot, which is not a regular file in {folder / BACKUPS}"] = None
    return list(found)


def _backup_names(record: Object) -> Iterator[str]:
    """The file names of a snapshot's backups in the backup folder."""
    digests = [_object(file).get("contentHash") for file in _object(record, "snapshot", "trackedFiles").values()]
    for file in _object(record, "metadata", "clew", "found").values():
        digests += [_object(file, side).get("hash") for side in ("before", "now")]
    for digest in digests:
        if isinstance(digest, str) and digest_in(name_of(digest)):
            yield name_of(digest)
    yield from (re.split(r"[\\/]", path)[-1] for path in _backup_paths(record))


def _backup_paths(record: Object) -> Iterator[str]:
    for file in _object(record, "snapshot", "fileBackups").values():
        path = _object(file).get("backupPath")
        if isinstance(path, str):
            yield path


# Files


def _erase_file(system: System, path: Path) -> Iterator[str]:
    """Overwrite a file and remove it; yields the other names that keep its bytes."""
    others = list(_other_names(path))
    if not others and path.is_file():
        descriptor = open_regular(system, path, os.O_RDWR)
        try:
            size = system.fstat(descriptor).st_size
            for start in range(0, size, _BLOCK_BYTES):
                write_all(system, descriptor, b"\0" * min(_BLOCK_BYTES, size - start))
            system.sync(descriptor)
            # A process that has the file open reads nothing from now on.
            system.truncate(descriptor, 0)
        finally:
            system.close(descriptor)
    system.unlink(path)
    yield from others


def _other_names(path: Path) -> Iterator[str]:
    """Where the bytes of a file stay when this name of it is removed or given to another file."""
    status = _status(path)
    if status is not None and stat.S_ISLNK(status.st_mode):
        yield f"{path} led to {path.readlink()}, which was left alone"
    elif status is not None and stat.S_ISREG(status.st_mode) and status.st_nlink > 1:
        yield f"{path} has {status.st_nlink - 1} more names (hard links), which hold its bytes"


def _status(path: Path) -> os.stat_result | None:
    """The status of a path, links not followed; None where nothing is there, or the path is not possible."""
    try:
        return path.lstat()
    except (OSError, ValueError):
        return None


# Metadata


def _remove_from_metadata(folder: Path, erased: list[Object], system: System) -> bool:
    """Remove the prompts of erased messages from metadata.json; False where it has none of them."""
    known = session_metadata.read(folder)
    prompts = {session_metadata.shortened(text) for record in erased if (text := message_text(record))}
    left = {name: value for name, value in known.items() if not (isinstance(value, str) and _short(value) in prompts)}
    if left == known:
        return False
    session_metadata.write(system, folder, left)
    return True


def _short(text: str) -> str:
    return session_metadata.shortened(text.removesuffix("…"))
