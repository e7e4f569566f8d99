"""The catalog kept fresh while the app runs: by processes of their own, so that pages need not wait for them."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

_SETTLE_MS = 400
"""What is written within so short a time is brought in at once."""
_PAUSE_MS = 1_000
_ANYHOW = 60.0
"""Seconds after which a look is taken though nothing was reported: some file systems report nothing."""
_WAIT = 5.0
BUSY = 5
"""Another sync is at work: its work is ours too."""

State = Literal["off", "working", "fresh", "failed"]


class Syncing:
    """Runs `clew sync` now, and again whenever something below the roots changes."""

    def __init__(self, options: Sequence[str], roots: Sequence[Path] = ()) -> None:
        self.options, self._roots = list(options), [root for root in roots if root.is_dir()]
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._running: subprocess.Popen[bytes] | None = None
        self.state: State = "off"

    def start(self) -> None:
        """Begin, in a thread of its own."""
        self.state = "working"
        self._thread = threading.Thread(target=self._run, name="clew-sync", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End, and let nothing go on behind us: a sync can be ended at any time."""
        self._stop.set()
        running = self._running
        if running is not None:
            running.terminate()
        if self._thread is not None:
            self._thread.join(_WAIT)

    def _run(self) -> None:
        self._sync()
        looked = 0.0
        for changes in self._changes():
            # The first look is for what was written before anybody watched.
            if changes or time.monotonic() - looked > _ANYHOW:
                looked = time.monotonic()
                self._sync()
            if self._stop.is_set():
                return

    def _changes(self) -> Iterator[object]:
        """Something whenever files have changed, and nothing every now and then; what changes meanwhile is not lost."""
        if not self._roots:
            while not self._stop.wait(_PAUSE_MS / 1000):
                yield None
            return
        from watchfiles import watch

        yield from watch(
            *self._roots,
            stop_event=self._stop,
            debounce=_SETTLE_MS,
            rust_timeout=_PAUSE_MS,
            yield_on_timeout=True,
            raise_interrupt=False,
            ignore_permission_denied=True,
        )

    def _sync(self) -> None:
        command = [sys.executable, "-c", "from clew.cli.start import run; run()", *self.options, "sync"]
        self._running = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        code = self._running.wait()
        self._running = None
        self.state = "fresh" if code in (0, BUSY) else "failed"
