"""Searching bytes with re2: linear in their length, whatever the expression and the text."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple


class Hit(NamedTuple):
    """A value in the bytes of a text."""

    start: int
    end: int
    rule: str
    confidence: float


Find = Callable[[bytes, int, int], tuple[int, int]]
Look = Callable[[bytes, int, int], tuple[tuple[Hit, ...], int]]
"""Checks a candidate in some bytes, from where to where: what it confirms, and where to go on."""
LimitedLook = Callable[[bytes, int, int, "Checks"], tuple[tuple[Hit, ...], int]]
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
TOO_MANY = "too_many_candidates"
"""The rule of what was masked without being checked."""
FREE_CHECKS, BYTES_PER_CHECK = 2_000, 64
"""So many candidates of every string are checked, and one more for each so many bytes of it."""


class Checks:
    """How many candidates of one string may still be checked."""

    __slots__ = ("left",)

    def __init__(self, size: int) -> None:
        self.left = FREE_CHECKS + size // BYTES_PER_CHECK


def walk(find: Find, text: bytes, look: Look) -> list[Hit]:
    """What a precise check confirms at each candidate. A check must read no more than a bounded window."""
    found: list[Hit] = []
    place, length = 0, len(text)
    while True:
        start, end = find(text, place, length)
        if start < 0:
            return found
        hits, place = look(text, start, end)
        found += hits
        if place <= start:
            place = start + 1


def walk_limited(
    find: Find, text: bytes, look: LimitedLook, ends: Sequence[int] | None = None, checks: Checks | None = None
) -> list[Hit]:
    """The same for checks that are slow. Beyond the limit for a string, the rest of it is taken for a secret.

    `text` is some strings with borders between them, which end at `ends`, or, without, at each border; `checks` is
    given where the text is part of a string whose candidates are counted already.
    """
    found: list[Hit] = []
    place = stop = 0
    length = len(text)
    counted = checks or Checks(0)
    while True:
        start, end = find(text, place, length)
        if start < 0:
            return found
        if start >= stop:
            begin, stop = _string_around(text, start, ends)
            counted = checks or Checks(stop - begin)
            stop = max(stop, start + 1)
        if counted.left <= 0:
            found.append(Hit(start, stop, TOO_MANY, 0.3))
            place = stop
            continue
        counted.left -= 1
        hits, place = look(text, start, end, counted)
        found += hits
        if place <= start:
            place = start + 1


def _string_around(text: bytes, place: int, ends: Sequence[int] | None) -> tuple[int, int]:
    """From where to where the string goes that a place is in."""
    if ends is None:
        before, border = text.rfind(0, 0, place), text.find(0, place)
        begin = before + 2 if before >= 0 else 0
        return begin, len(text) if border < 0 else border - 1
    number = min(bisect_right(ends, place), len(ends) - 1)
    return ends[number - 1] + len(BORDER) if number else 0, ends[number]


def in_one_string(text: bytes, place: int, other: int, ends: Sequence[int] | None) -> bool:
    """True where two places, one behind the other, are in the same string."""
    if ends is None:
        return text.find(0, place, other) < 0
    return bisect_right(ends, place) == bisect_right(ends, other)


def ends_of(pieces: Iterable[bytes]) -> list[int]:
    """Where each of some strings ends when they are joined with borders."""
    ends, place = [], -len(BORDER)
    for piece in pieces:
        place += len(BORDER) + len(piece)
        ends.append(place)
    return ends


def each(find: Find, text: bytes) -> Iterator[tuple[int, int]]:
    """All that a finder finds, one after the other."""
    place, length = 0, len(text)
    while True:
        start, end = find(text, place, length)
        if start < 0:
            return
        yield start, end
        place = max(end, start + 1)
