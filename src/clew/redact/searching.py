"""Searching bytes with re2: linear in their length, whatever the expression and the text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple


class Hit(NamedTuple):
    """A value in the bytes of a text."""

    start: int
    end: int
    rule: str
    confidence: float


Find = Callable[[bytes, int, int], tuple[int, int]]
Look = Callable[[bytes, int, int], tuple[tuple[Hit, ...], int]]
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


# How many looks a text is worth: some, and more the longer it is.
_FUEL, _BYTES_PER_LOOK = 1000, 1000
_STEP, _GAP = 512, 1024
# From so many looks on, and with no more bytes than that between them, signs are dense.
_FEW, _DENSE = 12, 256
# So many behind a crowd.
_AGAIN = 50
Apart = Callable[[], list[Find]]


def walk(find: Find, text: bytes, look: Look, *, wary: bool = True, apart: Apart = list) -> list[Hit]:
    """What a closer look at each sign finds. A crowd of signs is passed by, and hidden whole: no text has so many.

    The signs of numbers are not so sure: without `wary`, a crowd is hidden only if most looks found something. Where
    signs are dense, those that `apart` gives search one after the other: one automaton for all of them would get a new
    state at nearly every byte.
    """
    fuel = _FUEL + len(text) // _BYTES_PER_LOOK
    found, place = _walk(find, text, look, 0, fuel, wary=wary, stops=apart is not list)
    if place < len(text):
        finds = apart()
        for each in finds:
            found += _walk(each, text, look, place, fuel, wary=wary)[0]
    return found


def _walk(
    find: Find, text: bytes, look: Look, place: int, fuel: int, *, wary: bool, stops: bool = False
) -> tuple[list[Hit], int]:
    """The same for one finder, and how far it came: to the end, unless it `stops` where signs are dense."""
    found: list[Hit] = []
    looks, length = 0, len(text)
    while True:
        start, end = find(text, place, length)
        if start < 0:
            return found, length
        if fuel <= 0:
            crowd = _crowd(find, text, start, end)
            if wary or len(found) * 2 > looks:
                found.append(crowd)
            place, fuel = crowd.end, _AGAIN
            continue
        looks += 1
        hits, place = look(text, start, end)
        found += hits
        fuel -= len(hits) or 1
        place = max(place, start + 1)
        if stops and looks >= _FEW and place < looks * _DENSE:
            return found, place


def _crowd(find: Find, text: bytes, start: int, end: int) -> Hit:
    length, last = len(text), end
    while True:
        begin, end = find(text, min(length, last + _STEP), length)
        if begin < 0 or begin > last + _GAP:
            return Hit(start, min(length, last + _STEP), "crowded", 0.3)
        last = end


def each(find: Find, text: bytes) -> Iterator[tuple[int, int]]:
    """All that a finder finds, one after the other."""
    place, length = 0, len(text)
    while True:
        start, end = find(text, place, length)
        if start < 0:
            return
        yield start, end
        place = max(end, start + 1)
