"""Erases messages and whole sessions, only when the user asks for it.

To erase a message, the logs of its session are rewritten without it and take the place of the old files under their
locks: a crash leaves the old log or the new one. A record without content stays in the message's place, so that the
messages that follow keep their parent. It is as long as the old one: snapshots refer to positions in the log.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from clew.agents.sage_agent.erasure import (
    ErasedMessage,
    ErasedSnapshots,
    Object,
    backup_names,
    backup_paths,
)
from clew.agents.sage_agent.locate import find_backup
from clew.agents.sage_agent.records import message_text
from clew.errors import PathRefused, SourceUnreadable, UnknownReference
from clew.io.blobs import digest_in, name_of
from clew.io.file_lock import acquire_lock, locked
from clew.io.filesystem import SYSTEM, System, add_file_name, discard, open_new, open_regular, sync_folder, write_all
from clew.io.paths import escape_invalid_utf8
from clew.store import session_metadata
from clew.store.blobs import Blobs
from clew.store.layout import BACKUPS, MESSAGES, METADATA, RESCUE, SCANS, SNAPSHOTS, refuse_links
from clew.store.log import QUARANTINE, complete_lines, incomplete_last_line, record_in
from clew.store.workspace import decode_index

_BLOCK_BYTES = 1 << 20

BackupFiles = dict[tuple[int, int], Path]
"""The regular files in a session's backup folder, by device and inode."""


class Erased(NamedTuple):
    """How much was erased, and where copies are that could not be reached."""

    records: int
    files: int
    copies: list[str]


def erase_record(folder: Path, uuid: str, system: System = SYSTEM) -> Erased:
    """Erase a message of a session: its text, its snapshots and the backups that only they name."""
    refuse_erasing(folder, whole=False)
    log = folder / MESSAGES
    with locked(system, log) as descriptor:
        message = _find_message(folder, uuid)
        copies = list(_other_names(log))
        other_metadata = list(_other_names(folder / METADATA))
        # The message itself comes last: after a crash it is still there, and can be erased again with the rest.
        was_in_metadata = _remove_from_metadata(folder, message.records, system)
        snapshots = _erase_snapshots(folder, message, system)
        with _rewritten(system, log, descriptor, message.replacement):
            if was_in_metadata:
                session_metadata.write(system, folder, session_metadata.rebuild(folder))
                copies += other_metadata
        copies += snapshots.copies
        copies += [str(folder / name) for name in (QUARANTINE, RESCUE) if (folder / name).exists()]
        return Erased(len(message.records) + snapshots.records, snapshots.files, copies)


def erase_session(folder: Path, system: System = SYSTEM) -> Erased:
    """Erase a whole session with every file in its folder."""
    refuse_erasing(folder, whole=True)
    files = 0
    copies: list[str] = []
    with locked(system, folder / MESSAGES):
        records = sum(1 for _ in complete_lines(folder / MESSAGES))
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


def preview_erasing(folder: Path, uuids: Sequence[str]) -> Erased:
    """Count what erasing these messages one after the other, or without one the whole session, would erase."""
    if not uuids:
        files = sum(len(names) for _, _, names in os.walk(folder, followlinks=False))
        return Erased(sum(1 for _ in complete_lines(folder / MESSAGES)), files, [])
    records = 0
    log = folder / SNAPSHOTS
    lines = list(complete_lines(log)) if log.exists() else []
    files_erased: set[Path] = set()
    for uuid in uuids:
        message = _find_message(folder, uuid)
        snapshots = _plan_snapshots(folder, message, lines)
        records += len(message.records) + len(snapshots.erased.records)
        files_erased |= snapshots.files
        lines = snapshots.new_lines
    return Erased(records, len(files_erased), [])


def _find_message(folder: Path, uuid: str) -> ErasedMessage:
    message = ErasedMessage(uuid)
    for line in complete_lines(folder / MESSAGES):
        message.examine(record_in(line) or {})
    if not message.records:
        raise UnknownReference(f"session {folder.name}: no record has the uuid {uuid!r}")
    return message


def refuse_erasing(folder: Path, *, whole: bool) -> None:
    """Refuse to erase a session, or a message of it, whose folder or log is a link or not a regular file."""
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
            # Before the file is in its place: no process may append to it until everything is erased.
            acquire_lock(system, descriptor, temporary)
            for line in complete_lines(log):
                record = record_in(line)
                changed = replacement(record, len(line)) if record is not None else None
                write_all(system, descriptor, (line if changed is None else changed) + b"\n")
            write_all(system, descriptor, incomplete_last_line(system, old, system.fstat(old).st_size))
            system.sync(descriptor)
            system.replace(temporary, log)
        except BaseException:
            add_file_name(log)
            discard(system, temporary)
            raise
        sync_folder(system, log.parent)
        yield
    finally:
        system.close(descriptor)


# Snapshots


def _erase_snapshots(folder: Path, message: ErasedMessage, system: System) -> Erased:
    """Erase the snapshots of a message, and what undo records and later workspace scans repeat of them."""
    log = folder / SNAPSHOTS
    if not log.exists():
        return Erased(0, 0, [])
    with locked(system, log) as descriptor:
        lines = list(complete_lines(log))
        erased, _, files = _plan_snapshots(folder, message, lines)
        copies = [*_other_names(log), *_out_of_reach(folder, erased.records, _backup_files(folder))]
        copies += [
            f"line {number} of {log}, which cannot be read"
            for number, line in enumerate(lines, 1)
            if line.strip() and record_in(line) is None
        ]
        digests = {digest for path in files if (digest := digest_in(path.name)) is not None}
        for path in sorted(files):
            copies += _erase_file(system, path)
        copies += _erase_scans(folder, erased, digests, system)
        with _rewritten(system, log, descriptor, erased.replacement):
            return Erased(len(erased.records), len(files), copies)


class _SnapshotPlan(NamedTuple):
    """What erasing a message does to the snapshots of its session."""

    erased: ErasedSnapshots
    new_lines: list[bytes]
    """The lines of the snapshot log afterwards."""
    files: set[Path]
    """The backups that no snapshot names afterwards."""


def _plan_snapshots(folder: Path, message: ErasedMessage, lines: Sequence[bytes]) -> _SnapshotPlan:
    records = [record_in(line) or {} for line in lines]
    erased = ErasedSnapshots(message, records)
    backup_files = _backup_files(folder)
    new_lines: list[bytes] = []
    gone: set[Path] = set()
    kept: set[Path] = set()
    for record, line in zip(records, lines, strict=True):
        changed = erased.replacement(record, len(line))
        new_lines.append(line if changed is None else changed)
        (kept if changed is None else gone).update(_named_backups(folder, record, backup_files))
        if changed is not None:
            kept.update(_named_backups(folder, record_in(changed) or {}, backup_files))
    return _SnapshotPlan(erased, new_lines, gone - kept)


def _erase_scans(folder: Path, erased: ErasedSnapshots, digests: set[str], system: System) -> Iterator[str]:
    """Erase workspace indexes that name erased files or contents; the next scan hashes every file again."""
    scans = Blobs(folder / SCANS, system)
    for digest in sorted(scans.all()):
        try:
            index = decode_index(scans.get(digest))
            is_erased = any(escape_invalid_utf8(path) in erased.names for path in index)
            is_erased |= any(entry.digest in digests for entry in index.values())
        except SourceUnreadable:
            is_erased = True
        if is_erased:
            yield from _erase_file(system, scans.folder / name_of(digest))


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
    for name in backup_names(record):
        path = _find_backup_file(folder / BACKUPS / name, backup_files)
        if path is not None:
            yield path


def _out_of_reach(folder: Path, records: Iterable[Object], backup_files: BackupFiles) -> list[str]:
    """What snapshots name as a backup, and is not a regular file in the backup folder."""
    found: dict[str, None] = {}
    for record in records:
        places = [folder / BACKUPS / name for name in backup_names(record)]
        places += [path for name in backup_paths(record) if (path := find_backup(folder, name, None)) is not None]
        for place in places:
            status = _status(place)
            is_file = status is not None and not stat.S_ISDIR(status.st_mode)
            if is_file and _find_backup_file(place, backup_files) is None:
                found[f"{place}, named by a snapshot, which is not a regular file in {folder / BACKUPS}"] = None
    return list(found)


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
        except OSError:
            add_file_name(path)
            raise
        finally:
            system.close(descriptor)
    system.unlink(path)
    yield from others


def _other_names(path: Path) -> Iterator[str]:
    """Where the bytes of a file stay when this name of it is removed or given to another file."""
    status = _status(path)
    if status is not None and stat.S_ISLNK(status.st_mode):
        yield f"{path} led to {path.readlink()}, which was not changed"
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
