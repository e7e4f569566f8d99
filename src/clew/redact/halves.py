"""Known values of which only the beginning stands at the end of a text, as somebody cut it there."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable

SHORTEST = 6
_LONGEST, _MOST_TRIED = 512, 64


class Halves:
    """The beginnings of values."""

    def __init__(self) -> None:
        self._sorted: list[str] = []
        self._beginnings: set[str] = set()
        self._longest = 0

    def add(self, values: list[str]) -> None:
        """Know more values."""
        # Already sorted but for the new ones, which is quick.
        self._sorted = sorted(self._sorted + values)
        self._beginnings.update(value[:SHORTEST] for value in values)
        self._longest = min(_LONGEST, max(self._longest, *map(len, values)))

    def find(self, text: str) -> tuple[int, int, str] | None:
        """From where to where in a text the beginning of a value stands, and the value; the longest such part."""
        end = len(text.rstrip(".… "))
        first = max(0, end - self._longest)
        for start in self._candidates(text[first:end]):
            half = text[first + start : end]
            number = bisect_left(self._sorted, half)
            if number < len(self._sorted) and self._sorted[number].startswith(half):
                return first + start, end, self._sorted[number]
        return None

    def _candidates(self, tail: str) -> Iterable[int]:
        """Where something begins that may be a value; where there are too many such places, the last ones."""
        found = {tail[start : start + SHORTEST]: start for start in range(len(tail) - SHORTEST + 1)}
        if self._beginnings.isdisjoint(found):
            return ()
        places = [
            start for start in range(len(tail) - SHORTEST + 1) if tail[start : start + SHORTEST] in self._beginnings
        ]
        return places[-_MOST_TRIED:]
