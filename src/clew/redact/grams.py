"""Many byte strings, searched for at once: the time is linear in the text, whatever the text and the strings.

Only some places of a text are looked at, each as a number of four bytes, and each string is known by the numbers at its
beginning, one of which must lie at such a place. Most places are told to hold none by operations on sets. Where one
does, the longest string that begins there is found by bisection.
"""

from __future__ import annotations

import sys
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable
from itertools import compress

Span = tuple[int, int]
_WIDTH = 4
# So many windows are told apart at once.
_BLOCK = 256


class Grams:
    """Strings of at least `shortest` bytes, ready to be searched for."""

    def __init__(self, shortest: int) -> None:
        # Windows at so many first places of each string are known: one lies at a place that is a multiple of so much.
        self._step = _WIDTH if shortest >= 2 * _WIDTH - 1 else 2
        assert shortest >= _WIDTH + self._step - 1
        self._forms: list[bytes] = []
        """Sorted."""
        self._parents: list[int] = []
        """By string: the longest other one that it begins with; itself where there is none."""
        self._jumps: list[int] = []
        """By string: one of those that its parent begins with, farther away."""
        self._is_sorted = True
        self._longest = 0
        self._offsets: dict[int, set[int]] = {}
        """By window: where it stands in strings."""
        self._windows: set[int] = set()

    def __bool__(self) -> bool:
        return bool(self._forms)

    def add(self, forms: Iterable[bytes]) -> None:
        """Search for more strings."""
        for form in forms:
            self._forms.append(form)
            self._is_sorted = False
            self._longest = max(self._longest, len(form))
            for offset in range(self._step):
                window = int.from_bytes(form[offset : offset + _WIDTH], sys.byteorder)
                self._offsets.setdefault(window, set()).add(offset)
                self._windows.add(window)

    def spans(self, text: bytes, is_apart: Callable[[bytes, int, int], bool] | None = None) -> list[Span]:
        """Where the strings stand, in order, and joined where they overlap; only those that are apart, if it is said.

        Of several that begin at the same place, the longest counts.
        """
        if not self._forms or len(text) < _WIDTH:
            return []
        if not self._is_sorted:
            self._sort()
        spans = []
        for place, window in self._places(text):
            for offset in self._offsets[window]:
                start = place - offset
                end = self._end_at(text, start) if start >= 0 else 0
                if end and (is_apart is None or is_apart(text, start, end)):
                    spans.append((start, end))
        return merged(spans)

    def _places(self, text: bytes) -> Iterable[tuple[int, int]]:
        """Where windows stand, and which. Most blocks of a text have none, which is quickly told."""
        shared_with = self._windows.intersection
        for shift in range(0, _WIDTH, self._step):
            count = (len(text) - shift) // _WIDTH
            windows = memoryview(text)[shift : shift + count * _WIDTH].cast("I")
            for first in range(0, count, _BLOCK):
                block = windows[first : first + _BLOCK]
                if shared := shared_with(block):
                    own = block.tolist()
                    for number in compress(range(len(own)), map(shared.__contains__, own)):
                        yield shift + (first + number) * _WIDTH, own[number]

    def _end_at(self, text: bytes, start: int) -> int:
        """Where the longest string ends that begins at a place; 0 where there is none."""
        forms, stands = self._forms, text.startswith
        # All strings that the text goes on with are this one, or begin it.
        number = bisect_right(forms, text[start : start + self._longest]) - 1
        if number < 0:
            return 0
        while not stands(forms[number], start):
            jump, parent = self._jumps[number], self._parents[number]
            if parent == number:
                return 0
            number = parent if stands(forms[jump], start) else jump
        return start + len(forms[number])

    def _sort(self) -> None:
        """Sort the strings, and find which of them begin with which others."""
        forms = self._forms = sorted(set(self._forms))
        parents, jumps, depths = [], [], []
        above: list[int] = []
        for number, form in enumerate(forms):
            while above and not form.startswith(forms[above[-1]]):
                above.pop()
            parent = above[-1] if above else number
            parents.append(parent)
            if parent == number:
                jumps.append(number)
                depths.append(0)
            else:
                # As far as the two jumps before together, where these are equally far: any is reached in few jumps.
                jump = jumps[parent]
                is_even = depths[parent] - depths[jump] == depths[jump] - depths[jumps[jump]]
                jumps.append(jumps[jump] if is_even else parent)
                depths.append(depths[parent] + 1)
            above.append(number)
        self._parents, self._jumps, self._is_sorted = parents, jumps, True


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
