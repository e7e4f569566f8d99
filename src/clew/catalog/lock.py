"""One sync at a time: the system's own lock on a file beside the catalog, so that a dead process leaves none behind."""

from __future__ import annotations

import os
import time

from clew.datadir import private_folder
from clew.errors import Busy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

WAIT = 10.0
"""Seconds that another sync is waited for."""
_PAUSE = 0.02


class locked:
    """Holds the lock of a catalog; Busy where another process holds it for too long.

    Workers share it: should we be killed, the next sync waits for them.
    """

    def __init__(self, folder: Path | str, wait: float = WAIT) -> None:
        self._folder, self._wait = str(folder), wait
        self._descriptor = -1

    def __enter__(self) -> None:
        private_folder(self._folder)
        flags = os.O_CREAT | os.O_RDWR | getattr(os, "O_CLOEXEC", 0)
        self._descriptor = os.open(f"{self._folder}/lock", flags, 0o600)
        deadline = time.monotonic() + self._wait
        while not _take(self._descriptor):
            if time.monotonic() >= deadline:
                os.close(self._descriptor)
                raise Busy(f"{self._folder}: another sync is at work")
            time.sleep(_PAUSE)

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)


def _take(descriptor: int) -> bool:
    try:
        if os.name == "nt":
            from importlib import import_module

            import_module("msvcrt").locking(descriptor, 2, 1)
        else:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
