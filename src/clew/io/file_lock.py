"""Advisory locks on files. The system releases the lock of a process that dies, so none is left behind."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from copy import copy
from pathlib import Path

from clew.errors import Busy, SourceUnreadable
from clew.io.filesystem import LOCK, UNLOCK, System, open_regular

LOCK_WAIT_SECONDS = 10.0
_FIRST_PAUSE_SECONDS = 0.0001
_LONGEST_PAUSE_SECONDS = 0.001
_NO_LOCKS = {errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL}
"""Errors of file systems that have no locks."""


class CannotLock(SourceUnreadable):
    """The file system has no locks, as some network and synced folders."""


def acquire_lock(system: System, descriptor: int, path: Path, wait: float = LOCK_WAIT_SECONDS) -> None:
    """Lock an open file. Raises Busy after `wait` seconds, CannotLock where the file system has no locks."""
    deadline, pause = 0.0, _FIRST_PAUSE_SECONDS
    while True:
        try:
            system.lock(descriptor, LOCK)
            return
        except (BlockingIOError, InterruptedError):
            now = time.monotonic()
            deadline = deadline or now + wait
            if now >= deadline:
                holder = lock_holder(path) or "another process"
                raise Busy(f"{path}: {holder} holds the lock, for more than {wait:g} s") from None
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise
            raise CannotLock(
                f"{path}: this file system has no locks; "
                "where you are sure that one process at a time writes, open the store with alone=True"
            ) from error
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)


@contextmanager
def locked(system: System, path: Path, wait: float = LOCK_WAIT_SECONDS) -> Iterator[int]:
    """Open a file for reading and writing, and hold its lock."""
    while True:
        descriptor = open_regular(system, path, os.O_RDWR)
        try:
            acquire_lock(system, descriptor, path, wait)
            if not is_at_path(path, system.fstat(descriptor)):
                continue  # another file took its place while this one was waited for
            try:
                yield descriptor
            finally:
                # Closing releases the lock too.
                with suppress(OSError):
                    system.lock(descriptor, UNLOCK)
            return
        finally:
            system.close(descriptor)


def is_at_path(path: Path, opened: os.stat_result) -> bool:
    """True when a path still names the file that was opened, and not another one or none."""
    try:
        named = os.stat(path)  # noqa: PTH116 - quicker, and asked for every append
    except FileNotFoundError:
        return False
    return (opened.st_dev, opened.st_ino) == (named.st_dev, named.st_ino)


def ignore_missing_locks(system: System) -> System:
    """Return a copy of the system whose `lock` does nothing on file systems without locks."""

    def lock(descriptor: int, how: int) -> None:
        try:
            system.lock(descriptor, how)
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise

    changed = copy(system)
    changed.lock = lock
    return changed


def lock_holder(path: Path) -> str | None:
    """Name the live process that holds the lock of a file, if the system shows it."""
    try:
        inode = path.stat().st_ino
        locks = Path("/proc/locks").read_text()
    except OSError:
        return None
    for line in locks.splitlines():
        words = line.split()
        # 1: FLOCK  ADVISORY  WRITE 4242 fe:00:131 0 EOF; a waiting process has "->" after the number.
        if len(words) >= 6 and words[1] == "FLOCK" and words[5].rpartition(":")[2] == str(inode):
            return _describe_process(int(words[4]))
    return None


def _describe_process(process: int) -> str | None:
    if process <= 0:
        return None
    with suppress(OSError):
        command = Path(f"/proc/{process}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
        return f"process {process} ({command[:80]})" if command else f"process {process}"
    return f"process {process}"
