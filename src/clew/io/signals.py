"""Ends the process on a signal in such a way that what it began is cleaned up."""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_SECONDS_TO_CLEAN_UP = 2.0


@contextmanager
def exit_on_signal() -> Iterator[None]:
    """Turn SIGTERM and SIGHUP into SystemExit, where the system has them and nothing else handles them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    exited_at = -math.inf

    def leave(number: int, _frame: FrameType | None) -> None:
        nonlocal exited_at
        now = time.monotonic()
        # The second signal of a closed terminal must not interrupt the cleaning up. A later one ends a process that
        # went on: a library in C can discard the exception.
        if now - exited_at >= _SECONDS_TO_CLEAN_UP:
            exited_at = now
            raise SystemExit(128 + number)

    signals = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    ours = [number for number in signals if signal.getsignal(number) is signal.SIG_DFL]
    for number in ours:
        signal.signal(number, leave)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)
