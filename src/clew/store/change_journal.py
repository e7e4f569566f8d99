"""Journals of changes to many files, so that changes which a crash interrupted are rolled back.

`undo`, `redo` and `restore` write a journal before they change the first file and delete it after the last one. A
journal lies in clew's own data folder, never in the session's: a session may come from a repository or from another
machine, and a journal says which files to write and delete.

Undo journals are in a folder per session. They are read and written under the lock of the session's log, and the
contents to restore are blobs of the session. Restore journals share one folder and one lock; the contents to restore
are the copies that a restore makes of the files it replaces.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from clew.errors import ClewError, PathRefused, SourceUnreadable
from clew.host import data_dir
from clew.io.blobs import digest_of
from clew.io.file_lock import LOCK_WAIT_SECONDS, acquire_lock
from clew.io.filesystem import SYSTEM, System, make_folder, open_log, replace_file
from clew.io.safe_write import Change, Within
from clew.store.apply_changes import (
    apply_all,
    blocking_path,
    folders_of,
    is_there,
    remove_empty,
    state_among,
)
from clew.store.file_state import NO_FILE, FileState

UNDO_FOLDER = "undo"
"""In clew's data folder: one folder per session with the journals of its unfinished undos."""
RESTORE_FOLDER = "restoring"
"""In clew's data folder: the journals of unfinished restores."""
UNREADABLE = "*.pending.unreadable"
"""Journals that `doctor --fix` set aside because they cannot be read."""
_UNDO_PATTERN = "undo-*.pending"
_LOCK, _SUFFIX = "lock", ".pending"


class Journal(msgspec.Struct, array_like=True):
    """Changes that are about to be made below a folder."""

    id: str
    """Of an undo: the uuid of its record. Of a restore: the folder with the copies of the replaced files."""
    root: str
    files: dict[bytes, tuple[FileState, FileState]]
    """By path: the state before, and the state to be."""
    created_folders: list[bytes] = []
    """Folders that were not there before, each after those above it."""
    identity: tuple[int, int] = (0, 0)
    """Device and inode of the root. A path is not enough: another folder, or a link, can be in its place by now."""


def identity_of(root: Path) -> tuple[int, int]:
    """Return device and inode of a folder."""
    found = root.stat()
    return found.st_dev, found.st_ino


def missing_folders(root: Path, paths: Iterable[str]) -> list[bytes]:
    """Return the folders that must be created for paths, each after those above it."""
    return [os.fsencode(folder) for folder in folders_of(paths) if not is_there(root / folder)]


def write_journal(system: System, path: Path, journal: Journal) -> None:
    """Write a journal durably."""
    make_folder(system, path.parent)
    replace_file(system, path, msgspec.msgpack.encode(journal))


def read_journals(paths: Iterable[Path]) -> Iterator[tuple[Path, Journal]]:
    """Read journals; one that was deleted meanwhile is left out."""
    for path in paths:
        try:
            yield path, msgspec.msgpack.decode(path.read_bytes(), type=Journal)
        except FileNotFoundError:
            continue
        except (OSError, msgspec.MsgspecError) as error:
            raise SourceUnreadable(f"{path}: {error}; `clew doctor --fix` moves it away") from error


def roll_back(journal: Journal, content: Callable[[str, FileState], bytes | None]) -> list[str]:
    """Restore the files of a journal that are as they were to be; return their paths. Other files are not changed.

    Raises PathRefused if the root is not the folder that the files were in.
    """
    root, paths = Path(journal.root), [os.fsdecode(name) for name in journal.files]
    if identity_of(root) != journal.identity:
        raise PathRefused(f"{root} was replaced by another folder")
    own_paths = set(paths)
    changes: list[Change] = []
    with Within(root, apart=True, own=True) as within:
        within.clear(paths)
        for path in paths:
            before, wanted = journal.files[os.fsencode(path)]
            try:
                now, _ = state_among(within, path, own_paths)
            except PathRefused:
                continue  # something else was put there, or on the path to it
            if wanted.same_as(now) and not before.same_as(now):
                body = content(path, before) if before.digest else None
                changes.append(Change(path, body, before.mode, link=before.link, over=now.link))
    written = {change.path for change in changes if not change.is_removal}
    removed = {change.path for change in changes if change.is_removal}
    # What was put in the place of a file meanwhile stays.
    changes = [one for one in changes if one.is_removal or blocking_path(root, one.path, written, removed) is None]
    apply_all(root, changes)
    for folder in reversed(journal.created_folders):
        remove_empty(root, os.fsdecode(folder).split("/"))
    return [change.path for change in changes]


def undo_folder(session: Path) -> Path:
    """Return the folder for the undo journals of the session in a folder."""
    return data_dir() / UNDO_FOLDER / digest_of(os.fsencode(session.resolve()))[:32]


def undo_journal(session: Path, uuid: str) -> Path:
    """Return the path for the journal of an undo; its record's uuid is in the name."""
    return undo_folder(session) / _UNDO_PATTERN.replace("*", uuid)


def undo_journals(session: Path) -> list[Path]:
    """Return the journals of a session's undos that are running, or were interrupted."""
    return sorted(undo_folder(session).glob(_UNDO_PATTERN))


def digests_in_undo_journals(session: Path) -> set[str]:
    """Return the digests of the contents that are needed to roll back interrupted undos."""
    pairs = [pair for _, journal in read_journals(undo_journals(session)) for pair in journal.files.values()]
    return {state.digest for pair in pairs for state in pair if state.digest}


@contextmanager
def restore_lock(data_folder: Path, system: System = SYSTEM, wait: float = LOCK_WAIT_SECONDS) -> Iterator[None]:
    """Let one restore run at a time: a journal that is found under the lock belongs to an interrupted one."""
    make_folder(system, data_folder / RESTORE_FOLDER)
    descriptor = open_log(system, data_folder / RESTORE_FOLDER / _LOCK)
    try:
        acquire_lock(system, descriptor, data_folder / RESTORE_FOLDER / _LOCK, wait)
        yield
    finally:
        system.close(descriptor)  # which releases the lock


def restore_journals(data_folder: Path) -> list[Path]:
    """Return the journals of restores that are running, or were interrupted."""
    return sorted((data_folder / RESTORE_FOLDER).glob(f"*{_SUFFIX}"))


def roll_back_interrupted_restores(data_folder: Path, system: System = SYSTEM) -> list[str]:
    """Roll back interrupted restores; return the files. Without a journal it does not wait for the lock."""
    if not restore_journals(data_folder):
        return []
    with restore_lock(data_folder, system):
        return [name for path in restore_journals(data_folder) for name in _roll_back_restore(path, system)]


def _roll_back_restore(path: Path, system: System) -> list[str]:
    restored: list[str] = []
    for _, journal in read_journals([path]):
        copies = Path(journal.id)

        def content(name: str, before: FileState, copies: Path = copies) -> bytes:
            with Within(copies) as within:
                body = within.read(name)
            if body is None or digest_of(body) != before.digest:
                raise SourceUnreadable(f"{copies}: the copy of {name!r} is missing or was changed")
            return body

        try:
            if Path(journal.root).is_dir():
                restored += [f"{journal.root}/{name}" for name in roll_back(journal, content)]
        except (OSError, ClewError) as error:
            words = f"a restore into {journal.root} was interrupted, and cannot be rolled back: {error}"
            raise SourceUnreadable(f"{words}; remove {path} to leave the files as they are") from error
        with suppress(FileNotFoundError):
            system.unlink(path)
    return restored


@contextmanager
def journaled_restore(
    data_folder: Path, copies: Path, folder: Path, changes: Sequence[Change], system: System = SYSTEM
) -> Iterator[None]:
    """Keep a journal of changes below a folder while they are made; `copies` has the files that are replaced.

    The caller holds `restore_lock`.
    """
    files = {}
    with Within(folder) as within:
        for change in changes:
            body = within.read(change.path)
            before = FileState(digest_of(body), within.mode(change.path)) if body is not None else NO_FILE
            wanted = FileState(digest_of(change.body)) if change.body is not None else NO_FILE
            files[os.fsencode(change.path)] = (before, wanted)
    created = missing_folders(folder, (change.path for change in changes if change.body is not None))
    journal = Journal(str(copies.absolute()), str(folder.resolve()), files, created, identity_of(folder))
    path = data_folder / RESTORE_FOLDER / f"{secrets.token_hex(8)}{_SUFFIX}"
    write_journal(system, path, journal)
    try:
        yield
    except BaseException:
        # The changes were rolled back already, unless even that failed; then the next command tries again.
        with suppress(OSError, ClewError):
            _roll_back_restore(path, system)
        raise
    system.unlink(path)
