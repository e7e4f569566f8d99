"""What requests used, put into messages that are made already: only a later line tells it."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from clew.agents.codex.requests import Spent
from clew.io.codec import dumps


class _Usage(msgspec.Struct, omit_defaults=True, gc=False):
    """The counts in the order in which requests have them."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_creation_tokens: int | None = None
    cache_read_tokens: int | None = None
    reasoning_tokens: int | None = None


class Slot(Spent):
    """The place for the usage of the last message of the model, in the pieces that messages are made of.

    Metadata is the last member of a message, and usage the last of those, so it is a piece of its own.
    """

    def __init__(self) -> None:
        super().__init__()
        self.is_lost = False
        """True when something was used for a message that was not the last."""
        self.pieces: list[bytes] = []
        self.begin = 0
        """The first piece of the message that may still change."""
        self._index = self._at = 0
        self._is_first = False
        self._counts: Sequence[int | None] = ()

    def open(self, index: int, begin: int, at: int, is_first: bool) -> None:
        """A message was made from the piece `begin` on; `is_first`: it has no metadata so far."""
        self._index, self.begin, self._at, self._is_first = index, begin, at, is_first
        self._counts = ()

    def add(self, index: int, counts: Sequence[int | None]) -> None:
        if index != self._index:
            self.is_lost = True
            return
        if self._counts:
            pairs = zip(counts, self._counts, strict=True)
            counts = [old if new is None else new + (old or 0) for new, old in pairs]
        self._counts = counts
        usage = b',"token_usage":' + dumps(_Usage(*counts))
        self.pieces[self._at] = b',"metadata":{' + usage[1:] + b"}" if self._is_first else usage

    def at(self, index: int) -> dict[str, int] | None:
        """Nothing is known of a message while it is made."""
        return None

    def first_open(self) -> int | None:
        """The first piece that may still change; None where there is none."""
        return self.begin if self._index else None

    def shift(self) -> None:
        """All pieces before those of the message were taken away."""
        self._at -= self.begin
        self.begin = 0
