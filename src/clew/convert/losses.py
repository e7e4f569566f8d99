"""What a target cannot hold, each kind once with how often it occurs."""

from __future__ import annotations

import msgspec


class Loss(msgspec.Struct, frozen=True):
    """Something the target cannot hold."""

    message: int | None
    """Index of the message in the session, the first of several; None: it concerns the whole."""
    what: str
    """In words; what is lost several times begins with how often."""
    why: str


class Losses:
    """Collects losses; equal ones are counted."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], tuple[int | None, int]] = {}
        """For what is lost, and why, the first message and how often."""

    def add(self, message: int | None, what: str, why: str) -> None:
        """One more."""
        first, times = self._found.get((what, why), (message, 0))
        self._found[what, why] = first, times + 1

    def listed(self) -> list[Loss]:
        """The losses, in the order in which they were met."""
        return [
            Loss(message, what if times == 1 else f"{times} x {what}", why)
            for (what, why), (message, times) in self._found.items()
        ]
