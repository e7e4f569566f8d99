"""Lets one process write a catalog at a time, by an OS lock on a file in its folder; it ends with the process."""

from __future__ import annotations

import os
import time
from pathlib import Path

from clew.datadir import private_folder
from clew.errors import Busy

LOCK_WAIT_SECONDS = 10.0
_RETRY_SECONDS = 0.02


class locked:
    """Holds the lock of a catalog; raises Busy where another process holds it for too long.

    Forked workers share it: should the parent be killed, the next sync waits for them.
    """

    def __init__(self, folder: Path | str, wait: float = LOCK_WAIT_SECONDS) -> None:
        self._folder, self._wait = str(folder), wait
        self._descriptor = -1

    def __enter__(self) -> None:
        private_folder(self._folder)
        flags = os.O_CREAT | os.O_RDWR | getattr(os, "O_CLOEXEC", 0)
        self._descriptor = os.open(f"{self._folder}/lock", flags, 0o600)
        deadline = time.monotonic() + self._wait
        while not _try_lock(self._descriptor):
            if time.monotonic() >= deadline:
                os.close(self._descriptor)
                raise Busy(f"{self._folder}: another sync is running")
            time.sleep(_RETRY_SECONDS)

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)


def _try_lock(descriptor: int) -> bool:
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
