"""Ends the process on a signal in such a way that what it began is cleaned up."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn


@contextmanager
def exit_on_signal() -> Iterator[None]:
    """Turn SIGTERM and SIGHUP into SystemExit, where the system has them and nothing else handles them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    signals = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    ours = [number for number in signals if signal.getsignal(number) is signal.SIG_DFL]
    for number in ours:
        signal.signal(number, _exit)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)


def _exit(number: int, _frame: FrameType | None) -> NoReturn:
    # A second signal must not interrupt the cleaning up.
    signal.signal(number, signal.SIG_IGN)
    raise SystemExit(128 + number)
