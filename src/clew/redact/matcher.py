"""Searches bytes with re2, and checks candidates one by one. Linear in the length of any text."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple


class Match(NamedTuple):
    """A value that a rule found in bytes: its offsets, the id of the rule, and how sure it is."""

    start: int
    end: int
    rule: str
    confidence: float


Find = Callable[[bytes, int, int], tuple[int, int]]
"""Finds the first candidate in bytes between two offsets; (-1, -1) if there is none."""
Check = Callable[[bytes, int, int], tuple[tuple[Match, ...], int]]
"""Checks the candidate between two offsets. Returns the matches, and the offset to search on from."""
LimitedCheck = Callable[[bytes, int, int, "CheckLimit"], tuple[tuple[Match, ...], int]]
_MEMORY_BYTES = 64 << 20
LARGE_MEMORY_BYTES = 160 << 20
"""For the patterns of context: with less, ordinary code fills the cache of states and is searched five times slower."""

_WINDOW_BYTES, _MAX_CANDIDATE_BYTES = 128 << 10, 32 << 10


def compile_bytes(
    pattern: str, *, memory: int = _MEMORY_BYTES, case: bool = True, encoding: Literal["LATIN1", "UTF8"] = "LATIN1"
) -> Any:
    """Compile an expression over bytes, without groups; in UTF8, it matches characters. Raises `re2.error`."""
    import re2

    options = re2.Options()
    options.encoding = getattr(re2.Options.Encoding, encoding)
    options.max_mem = memory
    options.never_capture = True
    options.log_errors = False
    options.case_sensitive = case
    return re2.compile(pattern.encode("utf-8" if encoding == "UTF8" else "latin-1", "replace"), options)


def compile_finder(patterns: Iterable[str], memory: int = _MEMORY_BYTES) -> Find:
    """Compile expressions into a function that finds the first match of any of them, of up to `_MAX_CANDIDATE_BYTES`.

    re2 reads on while a longer match is possible, in some texts to their end. So it searches windows that overlap:
    else the time for many matches in one text would grow with the square of its length.
    """
    search = compile_bytes("|".join(f"(?:{pattern})" for pattern in patterns), memory=memory).search

    def find(text: bytes, start: int, end: int) -> tuple[int, int]:
        while end - start > _WINDOW_BYTES:
            # A match that begins behind `limit` may be cut off by the end of the window.
            limit = start + _WINDOW_BYTES - _MAX_CANDIDATE_BYTES
            if (found := search(text, start, start + _WINDOW_BYTES)) and found.start() <= limit:
                return found.span()  # type: ignore[no-any-return]
            start = limit
        return found.span() if (found := search(text, start, end)) else (-1, -1)

    return find


def compile_plain_finder(pattern: str) -> Find:
    """Compile one expression with `re`, for one that begins with a letter or two and has long repetitions.

    re2 matches backwards to find where a match begins; such an expression then has a new state at nearly every byte.
    """
    search = re.compile(pattern.encode("latin-1")).search
    return lambda text, start, end: found.span() if (found := search(text, start, end)) else (-1, -1)


TEXT_SEPARATOR = b"\n\0\n"
"""Separates strings that are searched together: no match crosses it."""
TOO_MANY_CANDIDATES = "too_many_candidates"
"""The rule of text that was masked without being checked."""
FREE_CHECKS, BYTES_PER_CHECK = 2_000, 64
"""This many candidates of a string are checked, plus one for each `BYTES_PER_CHECK` bytes of the string."""


class CheckLimit:
    """Counts how many candidates of one string may still be checked."""

    __slots__ = ("left",)

    def __init__(self, size: int) -> None:
        self.left = FREE_CHECKS + size // BYTES_PER_CHECK


def find_matches(find: Find, text: bytes, check: Check) -> list[Match]:
    """Return what `check` confirms at the candidates in a text. It must read no more than a bounded window."""
    found: list[Match] = []
    place, length = 0, len(text)
    while True:
        start, end = find(text, place, length)
        if start < 0:
            return found
        hits, place = check(text, start, end)
        found += hits
        if place <= start:
            place = start + 1


def find_limited_matches(
    find: Find, text: bytes, check: LimitedCheck, ends: Sequence[int] | None = None, checks: CheckLimit | None = None
) -> list[Match]:
    """Return what a slow check confirms. Beyond the limit for a string, the rest of that string is one match.

    `text` is strings joined with separators. They end at `ends`, or without it at each separator. `checks` is given
    if the text is part of a string whose candidates are counted already.
    """
    found: list[Match] = []
    place = stop = 0
    length = len(text)
    counted = checks or CheckLimit(0)
    while True:
        start, end = find(text, place, length)
        if start < 0:
            return found
        if start >= stop:
            begin, stop = _string_around(text, start, ends)
            counted = checks or CheckLimit(stop - begin)
            stop = max(stop, start + 1)
        if counted.left <= 0:
            found.append(Match(start, stop, TOO_MANY_CANDIDATES, 0.3))
            place = stop
            continue
        counted.left -= 1
        hits, place = check(text, start, end, counted)
        found += hits
        if place <= start:
            place = start + 1


def _string_around(text: bytes, place: int, ends: Sequence[int] | None) -> tuple[int, int]:
    """Return start and end of the string that an offset is in."""
    if ends is None:
        before, border = text.rfind(0, 0, place), text.find(0, place)
        begin = before + 2 if before >= 0 else 0
        return begin, len(text) if border < 0 else border - 1
    number = min(bisect_right(ends, place), len(ends) - 1)
    return ends[number - 1] + len(TEXT_SEPARATOR) if number else 0, ends[number]


def in_one_string(text: bytes, place: int, other: int, ends: Sequence[int] | None) -> bool:
    """Tell whether two ascending offsets are in the same string."""
    if ends is None:
        return text.find(0, place, other) < 0
    return bisect_right(ends, place) == bisect_right(ends, other)


def ends_of(pieces: Iterable[bytes]) -> list[int]:
    """Return where each of some strings ends when they are joined with separators."""
    ends, place = [], -len(TEXT_SEPARATOR)
    for piece in pieces:
        place += len(TEXT_SEPARATOR) + len(piece)
        ends.append(place)
    return ends


def all_spans(find: Find, text: bytes) -> Iterator[tuple[int, int]]:
    """Yield all matches of a finder, one after the other."""
    place, length = 0, len(text)
    while True:
        start, end = find(text, place, length)
        if start < 0:
            return
        yield start, end
        place = max(end, start + 1)
