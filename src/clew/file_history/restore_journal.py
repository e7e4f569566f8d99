"""A journal of running restores in clew's data folder, so that an interrupted one can be rolled back."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from clew.errors import ClewError, SourceUnreadable
from clew.io.blobs import digest_of
from clew.io.file_lock import LOCK_WAIT_SECONDS, acquire_lock
from clew.io.filesystem import SYSTEM, System, make_folder, open_log
from clew.io.safe_write import Change, Within
from clew.store.pending import Pending, announce, announced, identity_of, put_as_it_was
from clew.store.snapshots import NO_FILE, FileState

FOLDER = "restoring"
"""In clew's own folder: one file for each restore that is going on."""
_LOCK, _SUFFIX = "lock", ".pending"


@contextmanager
def restore_lock(data_folder: Path, system: System = SYSTEM, wait: float = LOCK_WAIT_SECONDS) -> Iterator[None]:
    """Let one restore run at a time: a journal that is found under the lock belongs to an interrupted one."""
    make_folder(system, data_folder / FOLDER)
    descriptor = open_log(system, data_folder / FOLDER / _LOCK)
    try:
        acquire_lock(system, descriptor, data_folder / FOLDER / _LOCK, wait)
        yield
    finally:
        system.close(descriptor)  # which lets go of the lock


def journals(data_folder: Path) -> list[Path]:
    """The journals of restores that are running, or were interrupted."""
    return sorted((data_folder / FOLDER).glob(f"*{_SUFFIX}"))


def roll_back_interrupted(data_folder: Path, system: System = SYSTEM) -> list[str]:
    """Roll back interrupted restores; returns the files. Without a journal it does not wait for the lock."""
    if not journals(data_folder):
        return []
    with restore_lock(data_folder, system):
        return roll_back(data_folder, system)


def roll_back(data_folder: Path, system: System = SYSTEM) -> list[str]:
    """Roll back interrupted restores; the caller holds restore_lock."""
    return [name for path in journals(data_folder) for name in _roll_back_one(path, system)]


def _roll_back_one(path: Path, system: System) -> Iterator[str]:
    for _, found in announced([path]):
        try:
            if Path(found.root).is_dir():
                yield from (f"{found.root}/{name}" for name in put_as_it_was(found, _Copies(Path(found.mark))))
        except (OSError, ClewError) as error:
            words = f"a restore into {found.root} was cut off, and cannot be rolled back: {error}"
            raise SourceUnreadable(f"{words}; remove {path} to leave the files as they are") from error
        with suppress(FileNotFoundError):
            system.unlink(path)


@contextmanager
def journalled(
    data_folder: Path, rescue: Path, folder: Path, changes: Sequence[Change], system: System = SYSTEM
) -> Iterator[None]:
    """Keep a journal of changes below a folder while they are made; `rescue` has copies of the files as they were."""
    path = data_folder / FOLDER / f"{secrets.token_hex(8)}{_SUFFIX}"
    announce(system, path, _pending(rescue, folder, changes))
    try:
        yield
    except BaseException:
        # Everything is as it was by now, unless even that failed; then the next one tries again.
        with suppress(OSError, ClewError):
            list(_roll_back_one(path, system))
        raise
    system.unlink(path)


def _pending(rescue: Path, folder: Path, changes: Sequence[Change]) -> Pending:
    files = {}
    with Within(folder) as within:
        for change in changes:
            there = within.read(change.path)
            before = FileState(digest_of(there), within.mode(change.path)) if there is not None else NO_FILE
            wanted = FileState(digest_of(change.body)) if change.body is not None else NO_FILE
            files[os.fsencode(change.path)] = (before, wanted)
    missing = list(_missing(folder, changes))
    return Pending(str(rescue.absolute()), str(folder.resolve()), files, missing, identity_of(folder))


def _missing(folder: Path, changes: Sequence[Change]) -> Iterator[bytes]:
    """The folders that will be made, each behind those above it."""
    seen: set[str] = set()
    for change in changes:
        parts = change.path.split("/")
        for end in range(1, len(parts)):
            inner = "/".join(parts[:end])
            if inner not in seen and change.body is not None and not (folder / inner).exists():
                yield os.fsencode(inner)
            seen.add(inner)


class _Copies:
    """What was replaced, below the folder that a restore keeps it in."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __call__(self, path: str, before: FileState) -> bytes:
        with Within(self._folder) as copies:
            body = copies.read(path)
        if body is None or digest_of(body) != before.digest:
            raise SourceUnreadable(f"{self._folder}: the copy of {path!r} is gone, or is not what was there")
        return body
