"""The lock of a log: the system's own, on the file itself, so that a dead process leaves none behind."""

from __future__ import annotations

import errno
import math
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from copy import copy
from pathlib import Path

from clew.errors import Busy, SourceUnreadable
from clew.io.filesystem import LOCK, UNLOCK, System, open_regular
from clew.store.keeping import Sign

WAIT = 10.0
"""Seconds that a lock is waited for."""
_FIRST_PAUSE = 0.0002
LONGEST_PAUSE = 0.002
"""Seconds between two looks of who waits."""
_NO_LOCKS = {errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL}


class CannotLock(SourceUnreadable):
    """The file system of the store has no locks, as some network and synced folders."""


class Lock:
    """Held while bytes are appended or mended; waits for a live holder, and names it when it waited too long."""

    def __init__(self, system: System, path: Path, wait: float = WAIT) -> None:
        self._system, self._path, self._wait = system, path, wait
        self.waited = -math.inf
        """When it was last waited for, on the clock that never goes back."""

    def take(self, descriptor: int) -> None:
        """Take the lock. Raises Busy after the time limit, CannotLock where there are no locks."""
        try:
            self._system.lock(descriptor, LOCK)
        except OSError as error:
            self.wait(descriptor, error)

    def wait(self, descriptor: int, error: OSError) -> None:
        """Go on where taking the lock failed: wait for a live holder, and tell what else is wrong."""
        if isinstance(error, BlockingIOError | InterruptedError):
            self._await(descriptor)
        elif error.errno not in _NO_LOCKS:
            raise error
        else:
            raise CannotLock(
                f"{self._path}: this file system has no locks; "
                "where you are sure that one process at a time writes, open the store with alone=True"
            ) from error

    def _await(self, descriptor: int) -> None:
        self.waited = time.monotonic()
        deadline, pause, sign = self.waited + self._wait, _FIRST_PAUSE, Sign(self._system, self._path)
        try:
            while True:
                with suppress(BlockingIOError, InterruptedError):
                    self._system.lock(descriptor, LOCK)
                    return
                if time.monotonic() >= deadline:
                    holder = holder_of(self._path) or "another process"
                    raise Busy(f"{self._path}: {holder} holds the lock, for more than {self._wait:g} s")
                sign.put_up()
                time.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)
        finally:
            sign.take_down()


def going_alone(system: System) -> System:
    """The same system, to which it does not matter that a file system has no locks; where it has, they count."""

    def lock(descriptor: int, how: int) -> None:
        try:
            system.lock(descriptor, how)
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise

    alone = copy(system)
    alone.lock = lock
    return alone


@contextmanager
def locked(system: System, path: Path, wait: float = WAIT) -> Iterator[int]:
    """The file opened for reading and writing, and locked."""
    descriptor = open_regular(system, path, os.O_RDWR)
    try:
        Lock(system, path, wait).take(descriptor)
        try:
            yield descriptor
        finally:
            # Closing lets go of it too.
            with suppress(OSError):
                system.lock(descriptor, UNLOCK)
    finally:
        system.close(descriptor)


def holder_of(path: Path) -> str | None:
    """The live process that holds the lock of a file, where the system tells."""
    try:
        inode = path.stat().st_ino
        locks = Path("/proc/locks").read_text()
    except OSError:
        return None
    for line in locks.splitlines():
        words = line.split()
        # 1: FLOCK  ADVISORY  WRITE 4242 fe:00:131 0 EOF; a waiter has "->" behind the number.
        if len(words) >= 6 and words[1] == "FLOCK" and words[5].rpartition(":")[2] == str(inode):
            return _named(int(words[4]))
    return None


def _named(process: int) -> str | None:
    if process <= 0:
        return None
    with suppress(OSError):
        words = Path(f"/proc/{process}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
        return f"process {process} ({words[:80]})" if words else f"process {process}"
    return f"process {process}"
