"""What requests used, put into messages that are made already: only a later line tells it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from clew.agents.codex.made import Usage, add_usage
from clew.agents.codex.requests import Spent


class Slot(Spent):
    """The place for the usage of the last message of the model, which waits for it."""

    def __init__(self) -> None:
        super().__init__()
        self.is_lost = False
        """True when something was used for a message that was not the last."""
        self.index = 0
        """Of the message; 0 where there is none."""
        self._message: Any = None
        self._counts: Sequence[int | None] = ()

    def open(self, index: int, message: Any) -> None:
        """A message was made."""
        self.index, self._message = index, message
        self._counts = ()

    def add(self, index: int, counts: Sequence[int | None]) -> None:
        if index != self.index:
            self.is_lost = True
            return
        if self._counts:
            pairs = zip(counts, self._counts, strict=True)
            counts = [old if new is None else new + (old or 0) for new, old in pairs]
        self._counts = counts
        add_usage(self._message, Usage(*counts))

    def at(self, index: int) -> dict[str, int] | None:
        """Nothing is known of a message while it is made."""
        return None
