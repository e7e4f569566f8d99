"""Searching bytes with re2: linear in their length, whatever the expression and the text."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple


class Hit(NamedTuple):
    """A value in the bytes of a text."""

    start: int
    end: int
    rule: str
    confidence: float


Find = Callable[[bytes, int, int], tuple[int, int]]
Look = Callable[[bytes, int, int, "Fuel"], tuple[tuple[Hit, ...], int]]
_MEMORY = 64 << 20


def compile_bytes(pattern: str, *, memory: int = _MEMORY, case: bool = True) -> Any:
    """An expression over bytes, without groups. Raises `re2.error`."""
    import re2

    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.max_mem = memory
    options.never_capture = True
    options.log_errors = False
    options.case_sensitive = case
    return re2.compile(pattern.encode("latin-1", "replace"), options)


def finder(signs: Iterable[str]) -> Find:
    """A function that finds the first of the expressions in some bytes from a place on; (-1, -1) if there is none."""
    import re2

    compiled = compile_bytes("|".join(f"(?:{sign})" for sign in signs))
    # The match object that the Python face of re2 builds costs more than the search itself in a short text.
    inner, anchor = getattr(compiled, "_regexp", None), getattr(re2, "_Anchor", None)
    if inner is None or anchor is None:
        return lambda text, start, end: found.span() if (found := compiled.search(text, start, end)) else (-1, -1)
    match, unanchored = inner.Match, anchor.UNANCHORED
    return lambda text, start, end: match(unanchored, text, start, end)[0]


def plain_finder(sign: str) -> Find:
    """The same for one expression that begins with a letter or two, and repeats long after it.

    Read backwards, as re2 does to find where a match begins, it would have a new state at nearly every byte.
    """
    search = re.compile(sign.encode("latin-1")).search
    return lambda text, start, end: found.span() if (found := search(text, start, end)) else (-1, -1)


BORDER = b"\n\0\n"
"""Stands between texts that are searched together: no value goes over it."""
# What a closer look costs, in bytes of text, and how many looks may be saved up.
LOOK, _SAVED = 3072, 700
ESCAPE = 64
"""What taking off an escape costs, in bytes of text."""
_ESCAPES = 50_000 * ESCAPE
_STEP, _LONGEST_STEP, _GAP = 512, 4096, 1024


class Fuel:
    """What closer looks may still cost. Every byte that a search goes past brings some, up to a limit.

    So the time for any text, or any number of texts that share one, is linear in their length.
    """

    __slots__ = (
        "_most", "_price", "crowds", "escapes", "left", "most_crowds", "numbers", "sifting", "spent", "stripped",
    )  # fmt: skip

    def __init__(self, price: int = LOOK, saved: int = _SAVED) -> None:
        self._price, self._most = price, price * saved
        self.left = self._most
        self.spent = 0
        self.escapes = _ESCAPES
        """The same for taking off escapes."""
        self.numbers: Fuel | None = None
        """That for looks at numbers and names, of which a text may be full: secrets are looked for all the same."""
        self.sifting: Fuel | None = None
        """That for looks at the numbers in JSON text, which tell whether it must be read."""
        self.crowds = self.stripped = 0
        """How many crowds were hidden, and what taking off escapes has cost."""
        self.most_crowds = sys.maxsize
        """With so many, nothing more is looked for: all is hidden then."""

    @property
    def is_given_up(self) -> bool:
        """There were too many crowds."""
        return self.crowds >= self.most_crowds

    def earn(self, size: int) -> None:
        """A search went past so many bytes."""
        left, escapes = self.left + size, self.escapes + size
        self.left = left if left < self._most else self._most
        self.escapes = escapes if escapes < _ESCAPES else _ESCAPES

    def for_numbers(self) -> Fuel:
        """The fuel for personal numbers and what names the machine."""
        if self.numbers is None:
            self.numbers = Fuel()
        return self.numbers

    def for_sifting(self) -> Fuel:
        """The fuel for numbers in the JSON text of records."""
        if self.sifting is None:
            self.sifting = Fuel()
        return self.sifting

    @property
    def looks(self) -> int:
        """For how many looks there is enough left."""
        return max(0, self.left // self._price)

    def earn_for(self, size: int) -> None:
        """So many bytes are at hand: what they bring may be spent on them, however many they are."""
        self.left = min(self._most, self.left) + size

    def covers(self, looks: int) -> bool:
        """True where there is enough left for so many looks."""
        return self._price * looks <= self.left

    def strip(self, cost: int) -> bool:
        """Pay for taking off escapes, if there is enough left."""
        if cost > self.escapes:
            return False
        self.escapes -= cost
        self.stripped += cost
        return True

    def forfeit(self, looks: int) -> None:
        """So many looks will not be had, or all that are left."""
        self.left -= self._price * min(looks, self.looks)

    def owe(self, looks: int) -> None:
        """Something had to be done that is worth so many looks: what comes next pays for it, up to a limit."""
        self.left = max(self.left - self._price * looks, min(self.left, -self._most))

    def spend(self, looks: int = 1) -> None:
        """Something was looked at that is worth so many looks."""
        self.left -= self._price * looks
        self.spent += looks


def walk(find: Find, text: bytes, look: Look, fuel: Fuel, *, wary: bool = True) -> list[Hit]:
    """What a closer look at each sign finds. Where there is no fuel left, signs crowd, and the crowd is hidden whole.

    The signs of numbers are not so sure: without `wary`, a crowd is hidden only if most looks found something.
    """
    found: list[Hit] = []
    place = last = looks = 0
    length = len(text)
    while True:
        start, end = find(text, place, length)
        if start < 0:
            fuel.earn(length - last)
            return found
        fuel.earn(start - last)
        last = start
        if fuel.left <= 0:
            if fuel.is_given_up:
                return found
            crowd = crowd_at(find, text, start, end)
            if wary or len(found) * 2 > looks:
                found.append(crowd)
                fuel.crowds += 1
            place = crowd.end
            continue
        looks += 1
        hits, place = look(text, start, end, fuel)
        found += hits
        fuel.spend(len(hits) or 1)
        if place <= start:
            place = start + 1


def crowd_at(find: Find, text: bytes, start: int, end: int) -> Hit:
    """From one sign to the last that is near another, within one of the texts. In a long one, steps are long."""
    border = text.find(0, start)
    length = len(text) if border < 0 else border
    last, step = min(end, length), _STEP
    while last + step < length:
        begin, end = find(text, last + step, min(length, last + step + _GAP))
        if begin < 0:
            return Hit(start, last + step, "crowded", 0.3)
        last, step = end, min(2 * step, _LONGEST_STEP)
    return Hit(start, length, "crowded", 0.3)


def each(find: Find, text: bytes) -> Iterator[tuple[int, int]]:
    """All that a finder finds, one after the other."""
    place, length = 0, len(text)
    while True:
        start, end = find(text, place, length)
        if start < 0:
            return
        yield start, end
        place = max(end, start + 1)
