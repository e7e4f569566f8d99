"""Work in a process of its own that shares everything up to now: to be killed, or to stand in for somebody else."""

from __future__ import annotations

import os
import signal
import time
import traceback
from collections.abc import Callable

LONGEST = 120.0
"""Seconds. A fork of a process with threads may wait for what nobody gives back; it is not waited for in turn."""


def begun(work: Callable[[], object]) -> int:
    """Begin some work in a fork; returns its process id. Whatever happens there, it never comes back into the tests."""
    if child := os.fork():
        return child
    code = 1
    try:
        work()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def ended(child: int, within: float = LONGEST) -> int:
    """The exit code of a fork, or minus the number of the signal that ended it; what takes too long is killed."""
    latest = time.monotonic() + within
    while True:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > latest:
            os.kill(child, signal.SIGKILL)
        time.sleep(0.001)


def done(work: Callable[[], object]) -> int:
    """Do some work in a fork; returns its exit code."""
    return ended(begun(work))
