"""Locks that are kept between the appends of a burst, and let go a moment after its last.

To take and let go of a lock costs as much as to write a record. Who appends without a pause therefore keeps it, looks
every ten milliseconds whether somebody waits for it, and one thread of the process lets go of what nobody used of late.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from clew.io.filesystem import LOCK, SHARED, UNLOCK, System

CAN_KEEP = sys.platform != "win32" and getattr(sys, "_is_gil_enabled", lambda: True)()
"""Who waits says so by a lock on the folder, which Windows does not have; and threads must see things in one order."""
UNUSED = 0.004
"""Seconds between two looks of the thread; what was not used from one to the next is let go."""

_PATIENCE = 50
"""Looks with nothing to do after which the thread waits to be asked, as to be woken costs who asks."""


class Kept(Protocol):
    """What is kept: a log with its lock."""

    def ease(self) -> bool:
        """Let go of the lock if it was not used since the last call; True when it is kept no longer."""

    def fail(self, error: Exception) -> None:
        """Remember that it could not be let go, and tell who uses it next."""


class _Keeper:
    """The locks that this process keeps, and the thread that lets go of them."""

    def __init__(self) -> None:
        self._kept: set[Kept] = set()
        self._asked = threading.Event()
        self._thread: threading.Thread | None = None
        self._sleeps = True

    def add(self, log: Kept) -> None:
        """Watch over a lock; raises RuntimeError where no thread can be had."""
        if self._thread is None:
            thread = threading.Thread(target=self._watch, name="clew-store-locks", daemon=True)
            thread.start()
            self._thread = thread
        self._kept.add(log)
        if self._sleeps:
            self._asked.set()

    def _watch(self) -> None:
        while True:
            self._sleeps = True
            if not self._kept:  # who added to them just now has seen no need to ask
                self._asked.wait()
            self._sleeps = False
            self._asked.clear()
            idle = 0
            while idle < _PATIENCE:
                time.sleep(UNUSED)
                idle = 0 if self._kept else idle + 1
                for log in list(self._kept):
                    # Out first: who keeps it again right behind the look must find it out, and put it in.
                    self._kept.discard(log)
                    if not _eased(log):
                        self._kept.add(log)


def _eased(log: Kept) -> bool:
    """Let go of a lock that is due. Whatever goes wrong: the thread lives on for the others, and tries again."""
    try:
        return log.ease()
    except Exception as error:
        log.fail(error)
        return False


_keeper = _Keeper()


def keep(log: Kept) -> bool:
    """Have the lock of a log let go when it is not used for a moment; False where it cannot be kept."""
    try:
        _keeper.add(log)
    except RuntimeError:  # no more threads, or the interpreter is about to end
        return False
    return True


def _after_fork() -> None:
    global _keeper
    _keeper = _Keeper()  # threads do not come along


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class Sign:
    """Says that somebody waits for the lock of a log, as long as it is up: a shared lock on the log's folder."""

    def __init__(self, system: System, log: Path) -> None:
        self._system, self._folder = system, log.parent
        self._descriptor = -1
        self._is_up = False

    def put_up(self) -> None:
        """Put it up, where that can be done."""
        if CAN_KEEP and not self._is_up:
            with suppress(OSError):
                self._system.lock(self._opened(), SHARED)
                self._is_up = True

    def is_seen(self) -> bool:
        """True when somebody else has put one up, or when that cannot be told."""
        try:
            self._system.lock(self._opened(), LOCK)
            self._system.lock(self._descriptor, UNLOCK)
        except OSError:
            self.take_down()
            return True
        return False

    def _opened(self) -> int:
        if self._descriptor < 0:
            self._descriptor = self._system.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        return self._descriptor

    def take_down(self) -> None:
        """Take it down, if it is up, and close the folder."""
        descriptor, self._descriptor, self._is_up = self._descriptor, -1, False
        if descriptor >= 0:
            with suppress(OSError):
                self._system.close(descriptor)
