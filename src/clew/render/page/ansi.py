"""Colours of a terminal as spans; every other escape sequence is spelled out like all that is invisible."""

from __future__ import annotations

import re

from clew.render.text_safety import escape

MARK = "\x1b"
"""Where this is not, there are no colours."""
_STYLE = re.compile(r"\x1b\[([0-9;:]{0,40})m")
_LIMIT = 5_000
"""So many changes of colour are followed in one text; behind them it is plain."""
_ON = {1: "ab", 2: "ad", 3: "ai", 4: "au", 7: "av", 9: "as"}
_OFF = {22: ("ab", "ad"), 23: ("ai",), 24: ("au",), 27: ("av",), 29: ("as",)}


def coloured(value: str) -> str:
    """HTML of what a program printed."""
    pieces: list[str] = []
    style = _Style()
    at = 0
    for number, match in enumerate(_STYLE.finditer(value)):
        pieces.append(style.wrap(value[at : match.start()]))
        at = match.end()
        style.obey(match[1])
        if number == _LIMIT:
            style.obey("0")
            rest = _STYLE.sub("", value[at:])
            return "".join(pieces) + escape(rest)
    return "".join(pieces) + style.wrap(value[at:])


class _Style:
    """How the next characters look."""

    def __init__(self) -> None:
        self._marks: dict[str, None] = {}
        self._front = self._back = ""

    def wrap(self, value: str) -> str:
        names = " ".join(name for name in (*self._marks, self._front, self._back) if name)
        if not value or not names:
            return escape(value)
        return f'<span class="{names}">{escape(value)}</span>'

    def obey(self, codes: str) -> None:
        numbers = [int(code) if code else 0 for code in re.split("[;:]", codes)]
        at = 0
        while at < len(numbers):
            at += self._one(numbers[at:])

    def _one(self, numbers: list[int]) -> int:
        """Take in the first code; returns how many numbers it has."""
        code = numbers[0]
        if code == 0:
            self.__init__()  # type: ignore[misc]
        elif code in _ON:
            self._marks[_ON[code]] = None
        elif code in _OFF:
            for name in _OFF[code]:
                self._marks.pop(name, None)
        elif code in (38, 48):
            colour, taken = _extended(numbers[1:])
            self._paint(code == 38, colour)
            return 1 + taken
        elif code in (39, 49):
            self._paint(code == 39, None)
        elif 30 <= code <= 37 or 40 <= code <= 47:
            self._paint(code < 40, code % 10)
        elif 90 <= code <= 97 or 100 <= code <= 107:
            self._paint(code < 100, code % 10 + 8)
        return 1

    def _paint(self, is_front: bool, colour: int | None) -> None:
        if is_front:
            self._front = "" if colour is None else f"f{colour}"
        else:
            self._back = "" if colour is None else f"b{colour}"


def _extended(numbers: list[int]) -> tuple[int | None, int]:
    """The nearest of the sixteen colours, and how many numbers tell it."""
    if numbers[:1] == [5] and len(numbers) > 1:
        return _of_palette(numbers[1]), 2
    if numbers[:1] == [2] and len(numbers) > 3:
        return _nearest(numbers[1], numbers[2], numbers[3]), 4
    return None, len(numbers)


def _of_palette(number: int) -> int | None:
    if number < 16:
        return number
    if number >= 232:
        return _nearest(*[8 + (number - 232) * 10] * 3)
    number -= 16
    return _nearest(*(51 * (number // place % 6) for place in (36, 6, 1)))


def _nearest(red: int, green: int, blue: int) -> int:
    """One bit for each part, and one for how bright it is."""
    top = max(red, green, blue)
    colour = sum(bit for part, bit in ((red, 1), (green, 2), (blue, 4)) if part * 2 > top and part > 40)
    return colour + (8 if top > 200 and colour not in (0, 7) else 0)
