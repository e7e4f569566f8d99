"""A process that is killed at a moment of the test's choosing, so that nothing of what would clean up runs."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable
from typing import Any

from tests import children


def killed_at(at: int, work: Callable[[], object], calls: Iterable[tuple[object, str]]) -> bool:
    """Do the work in a child that is killed at its n-th call of these; False if there is no such call.

    Each is named by the module or object that has it, and its name there.
    """
    reached, told = os.pipe()

    def armed() -> None:
        _arm(at, calls, told)
        work()

    code = children.done(armed)
    os.close(told)
    with open(reached, "rb") as handle:
        was_reached = handle.read() != b""
    # A child that took too long is killed as well, but not at that call.
    assert code == (-signal.SIGKILL if was_reached else 0), f"ended with {code}"
    return was_reached


def _arm(at: int, calls: Iterable[tuple[object, str]], told: int) -> None:
    count = 0

    def deadly(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*words: Any, **more: Any) -> Any:
            nonlocal count
            count += 1
            if count == at:
                os.write(told, b"x")
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*words, **more)

        return call

    for owner, name in calls:
        setattr(owner, name, deadly(getattr(owner, name)))
