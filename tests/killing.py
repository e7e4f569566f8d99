"""A process that is killed at a moment of the test's choosing, so that nothing of what would clean up runs."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable
from typing import Any


def killed_at(at: int, work: Callable[[], object], calls: Iterable[tuple[object, str]]) -> bool:
    """Do the work in a child that is killed at its n-th call of these; False if there is no such call.

    Each is named by the module or object that has it, and its name there.
    """
    child = os.fork()
    if child == 0:
        try:
            _arm(at, calls)
            work()
            os._exit(0)
        finally:
            os._exit(1)
    ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert ended in (0, -signal.SIGKILL)
    return ended != 0


def _arm(at: int, calls: Iterable[tuple[object, str]]) -> None:
    count = 0

    def deadly(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*words: Any, **more: Any) -> Any:
            nonlocal count
            count += 1
            if count == at:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*words, **more)

        return call

    for owner, name in calls:
        setattr(owner, name, deadly(getattr(owner, name)))
