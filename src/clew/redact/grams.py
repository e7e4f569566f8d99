"""Many strings, searched for at once by four of their bytes: quick in any text, and for any number of them.

An automaton would get new states at nearly every byte of a text without order. Here every fourth place of a text is
looked at, as a number, and each string is known by four windows, one of which must lie at such a place.
"""

from __future__ import annotations

import re
import sys
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import compress

from clew.redact.searching import Fuel

Span = tuple[int, int]
_WIDTH = 4
# From the bytes of four windows, as one number, to each of them.
_SHIFTS = (0, 8, 16, 24) if sys.byteorder == "little" else (24, 16, 8, 0)
_WINDOW = (1 << 8 * _WIDTH) - 1
# The number of a string stands above so many bits, a place in it below.
_NUMBER = 40
_PLACE = (1 << _NUMBER) - 1
SHORTEST = 2 * _WIDTH - 1
"""A shorter string may lie between two of the places."""
# What comparing some strings costs, in bytes of text; how often that may be done.
_PRICE, _SAVED = 96, 2000
# So many windows are told apart at once; after so many more, those that are worn are given up.
_BLOCK, _PART = 256, 1024
# So often a window may stand where no string does, and so many others are tried in its place.
_WORN, _TRIED = 32, 8
# What it costs to give a string other windows.
_MOVE = 12
# Windows that are nearer to each other than so much are one crowd.
_NEAR = 1024
_LONGEST_WORD = 256
_BEFORE, _REST = re.compile(rb"[\s\"'\\\0]"), re.compile(rb"[^\s\"'\\\0]*")
_BORDER = re.compile(rb"[\n\0]")
# So many characters of seven that words and times have few of are enough.
_RARE = 4
_COMMON = b"abcdefghijklmnopqrstuvwxyz 0123456789-:\\"


class Grams:
    """Strings, ready to be searched for. Where their windows crowd, all of the crowd is taken for them."""

    def __init__(self) -> None:
        self._forms: list[bytes] = []
        self._firsts: list[int] = []
        """Where the windows of each string begin."""
        self._windows: set[int] = set()
        self._around: dict[int, int] = {}
        """By window: the number of the first string that has it, and where, as one number: thousands cost little."""
        self._more: dict[int, list[int]] = {}
        """The same for further strings with that window."""
        self._missed: defaultdict[int, int] = defaultdict(int)
        """How often a window stood where no string did."""
        self._fuel = Fuel(_PRICE, _SAVED)

    def add(self, forms: Iterable[bytes]) -> None:
        """Search for more strings."""
        for form in forms:
            first = _rarest(form)
            if self._is_worn(form, first):
                first = self._fresh(form, first)
            self._forms.append(form)
            self._firsts.append(first)
            self._enter(len(self._forms) - 1, first)

    def _enter(self, number: int, first: int) -> None:
        """Know a string by the windows that begin at some place of it."""
        first_with, more = self._around.setdefault, self._more
        own = (number << _NUMBER) + first
        windows = _windows_of(self._forms[number], first)
        self._windows.update(windows)
        for window in windows:
            if first_with(window, own) != own:
                more.setdefault(window, []).append(own)
            own += 1

    def _leave(self, number: int, first: int) -> None:
        """Know it by these no longer."""
        own = (number << _NUMBER) + first
        for window in _windows_of(self._forms[number], first):
            others = self._more.get(window, [])
            if self._around[window] != own:
                others.remove(own)
            elif others:
                self._around[window] = others.pop(0)
            else:
                del self._around[window]
                self._windows.discard(window)
            own += 1

    @property
    def compared(self) -> int:
        """What comparing has cost so far."""
        return self._fuel.spent

    def spans(self, text: bytes) -> list[Span]:
        """Where the strings stand, in order, and joined where they overlap."""
        self._fuel.earn(len(text))
        if len(text) < SHORTEST:
            return []
        windows = memoryview(text)[: len(text) // _WIDTH * _WIDTH].cast("I")
        spans: list[Span] = []
        crowd: list[int] = []
        for start in range(0, len(windows), _PART):
            if places := self._places(windows, start, min(len(windows), start + _PART)):
                worn: list[int] = []
                done = 0 if crowd else self._compare(text, windows, places, spans, worn)
                crowd += places[done:]
                for number in self._moved(worn) if worn else ():
                    spans += _over(text, self._forms[number], (start + _PART) * _WIDTH)
        if crowd:
            spans += _crowds(text, crowd)
        return merged(spans)

    def _compare(self, text: bytes, windows: memoryview, places: list[int], spans: list[Span], worn: list[int]) -> int:
        """Add the strings that stand around some places, of which as many are tried as can be paid for: how many.

        A window that was there for nothing too often is worn.
        """
        done, spent, most = 0, 0, self._fuel.left // _PRICE + 1
        forms, around, more, missed, stands = self._forms, self._around, self._more, self._missed, text.startswith
        for place in places:
            if spent >= most:
                break
            done += 1
            spent += 1
            before, window = len(spans), windows[place // _WIDTH]
            each = around[window]
            form, first = forms[each >> _NUMBER], place - (each & _PLACE)
            if first >= 0 and stands(form, first):
                spans.append((first, first + len(form)))
            if (others := more.get(window)) is not None:
                spent += (1 + len(others)) // 4
                spans += self._standing(others, text, place)
            if len(spans) == before:
                missed[window] += 1
                if missed[window] == _WORN:
                    worn.append(window)
        self._fuel.spend(spent)
        return done

    def _standing(self, others: Iterable[int], text: bytes, place: int) -> Iterator[Span]:
        """Those of some strings that stand around a place."""
        for each in others:
            form, first = self._forms[each >> _NUMBER], place - (each & _PLACE)
            if first >= 0 and text.startswith(form, first):
                yield first, first + len(form)

    def _moved(self, worn: Iterable[int]) -> set[int]:
        """The strings that are known by other windows from here on."""
        numbers = {
            each >> _NUMBER
            for window in worn
            if window in self._around
            for each in (self._around[window], *self._more.get(window, ()))
        }
        return {number for number in sorted(numbers) if self._move(number)}

    def _move(self, number: int) -> bool:
        """Know a string by other windows, if there are better ones."""
        self._fuel.spend(_MOVE)
        old = self._firsts[number]
        first = self._fresh(self._forms[number], old)
        if first == old:
            return False
        self._leave(number, old)
        self._firsts[number] = first
        self._enter(number, first)
        return True

    def _fresh(self, form: bytes, old: int) -> int:
        """Where windows of a string begin none of which is worn; the old place if it has no such."""
        last = len(form) - SHORTEST
        tried = range(0, last + 1, last // _TRIED + 1)
        return next((first for first in tried if not self._is_worn(form, first)), old)

    def _is_worn(self, form: bytes, first: int) -> bool:
        missed = self._missed
        return bool(missed) and any(missed.get(window, 0) >= _WORN for window in _windows_of(form, first))

    def _places(self, windows: memoryview, start: int, stop: int) -> list[int]:
        """Where a window stands, from one place to another. Most blocks have none, which is quickly told."""
        shared_with, places = self._windows.intersection, list[int]()
        for first in range(start, stop, _BLOCK):
            block = windows[first : first + _BLOCK]
            if shared := shared_with(block):
                at = range(first * _WIDTH, (first + _BLOCK) * _WIDTH, _WIDTH)
                places += compress(at, map(shared.__contains__, block.tolist()))
        return places


class Found:
    """Where something stands in a text, which is searched once however often it is asked for."""

    def __init__(self, search: Callable[[bytes], list[Span]]) -> None:
        self._search = search
        self._text: bytes | None = None
        self._spans: list[Span] = []

    def forget(self) -> None:
        """What was found is no longer all."""
        self._text = None

    def within(self, text: bytes) -> list[Span]:
        """All that stands in a text."""
        if self._text != text:
            self._text, self._spans = text, self._search(text)
        return self._spans

    def first(self, text: bytes, start: int, end: int) -> Span:
        """The first at or behind `start`, or what is left of one before; (-1, -1) if there is none."""
        spans = self.within(text)
        number = bisect_left(spans, (start, 0))
        if number and spans[number - 1][1] > start:
            return start, min(end, spans[number - 1][1])
        return spans[number] if number < len(spans) and spans[number][1] <= end else (-1, -1)


def merged(spans: Iterable[Span]) -> list[Span]:
    """In order, and joined where they overlap."""
    joined: list[Span] = []
    for start, end in sorted(spans):
        if joined and start < joined[-1][1]:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        else:
            joined.append((start, end))
    return joined


def _windows_of(form: bytes, first: int) -> list[int]:
    bits = int.from_bytes(form[first : first + SHORTEST], sys.byteorder)
    return [bits >> shift & _WINDOW for shift in _SHIFTS]


def _over(text: bytes, form: bytes, border: int) -> Iterator[Span]:
    """Where a string stands over a border: its windows of old may lie behind it, and its new ones before."""
    stop = border + len(form) - 1
    place = text.find(form, max(0, border - len(form) + 1), stop)
    while place >= 0:
        yield place, place + len(form)
        place = text.find(form, place + 1, stop)


def _rarest(form: bytes) -> int:
    """Where four windows begin that are least like words; the first place that is rare enough will do."""
    last, best, most = len(form) - SHORTEST, 0, -1
    if last < 2:
        return 0
    for place in (last // 2, 0, last):
        rare = len(form[place : place + SHORTEST].translate(None, _COMMON))
        if rare >= _RARE:
            return place
        if rare > most:
            best, most = place, rare
    return best


def _crowds(text: bytes, places: Sequence[int]) -> Iterator[Span]:
    """From one window to the last that is near another, within one line."""
    first = last = places[0]
    border = _border(text, first)
    for place in places[1:]:
        if place - last > _NEAR or place > border:
            yield _word_around(text, first, last + _WIDTH)
            first = place
            border = border if place <= border else _border(text, place)
        last = place
    yield _word_around(text, first, last + _WIDTH)


def _border(text: bytes, place: int) -> int:
    found = _BORDER.search(text, place)
    return len(text) if found is None else found.start()


def _word_around(text: bytes, first: int, last: int) -> Span:
    before = text[max(0, first - _LONGEST_WORD) : first]
    behind = _REST.match(text, last, last + _LONGEST_WORD)
    return first - len(_BEFORE.split(before)[-1]), behind.end() if behind else last
