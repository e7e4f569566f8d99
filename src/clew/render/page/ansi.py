"""Terminal colours as HTML spans. All other escape sequences are shown like any invisible character."""

from __future__ import annotations

import re

from clew.render.text_safety import escape

ESCAPE_CHAR = "\x1b"
"""A text without it has no colours."""
STYLE_SEQUENCE = re.compile(r"\x1b\[([0-9;:]{0,40})m")
MAXSTYLE_SEQUENCE_CHANGES = 5_000
"""The rest of a text with more is not coloured."""
ATTRIBUTES_ON = {1: "ab", 2: "ad", 3: "ai", 4: "au", 7: "av", 9: "as"}
ATTRIBUTES_OFF = {22: ("ab", "ad"), 23: ("ai",), 24: ("au",), 27: ("av",), 29: ("as",)}


def ansi_to_html(value: str) -> str:
    """The HTML of a program's output."""
    pieces: list[str] = []
    style = _Style()
    at = 0
    for number, match in enumerate(STYLE_SEQUENCE.finditer(value)):
        pieces.append(style.wrap(value[at : match.start()]))
        at = match.end()
        style.apply(match[1])
        if number == MAXSTYLE_SEQUENCE_CHANGES:
            style.apply("0")
            rest = STYLE_SEQUENCE.sub("", value[at:])
            return "".join(pieces) + escape(rest)
    return "".join(pieces) + style.wrap(value[at:])


class _Style:
    """The current colours and attributes."""

    def __init__(self) -> None:
        self._marks: dict[str, None] = {}
        self._front = self._back = ""

    def wrap(self, value: str) -> str:
        names = " ".join(name for name in (*self._marks, self._front, self._back) if name)
        if not value or not names:
            return escape(value)
        return f'<span class="{names}">{escape(value)}</span>'

    def apply(self, codes: str) -> None:
        numbers = [int(code) if code else 0 for code in re.split("[;:]", codes)]
        at = 0
        while at < len(numbers):
            at += self._apply_code(numbers[at:])

    def _apply_code(self, numbers: list[int]) -> int:
        """Apply the first code; return how many numbers it takes."""
        code = numbers[0]
        if code == 0:
            self.__init__()  # type: ignore[misc]
        elif code in ATTRIBUTES_ON:
            self._marks[ATTRIBUTES_ON[code]] = None
        elif code in ATTRIBUTES_OFF:
            for name in ATTRIBUTES_OFF[code]:
                self._marks.pop(name, None)
        elif code in (38, 48):
            colour, taken = _extended(numbers[1:])
            self._set_colour(code == 38, colour)
            return 1 + taken
        elif code in (39, 49):
            self._set_colour(code == 39, None)
        elif 30 <= code <= 37 or 40 <= code <= 47:
            self._set_colour(code < 40, code % 10)
        elif 90 <= code <= 97 or 100 <= code <= 107:
            self._set_colour(code < 100, code % 10 + 8)
        return 1

    def _set_colour(self, is_front: bool, colour: int | None) -> None:
        if is_front:
            self._front = "" if colour is None else f"f{colour}"
        else:
            self._back = "" if colour is None else f"b{colour}"


def _extended(numbers: list[int]) -> tuple[int | None, int]:
    """The nearest of the sixteen colours, and how many numbers the code takes."""
    if numbers[:1] == [5] and len(numbers) > 1:
        return _palette_colour(numbers[1]), 2
    if numbers[:1] == [2] and len(numbers) > 3:
        return _nearest_colour(numbers[1], numbers[2], numbers[3]), 4
    return None, len(numbers)


def _palette_colour(number: int) -> int | None:
    if number < 16:
        return number
    if number >= 232:
        return _nearest_colour(*[8 + (number - 232) * 10] * 3)
    number -= 16
    return _nearest_colour(*(51 * (number // place % 6) for place in (36, 6, 1)))


def _nearest_colour(red: int, green: int, blue: int) -> int:
    """One bit for each of red, green and blue, and one for bright colours."""
    top = max(red, green, blue)
    colour = sum(bit for part, bit in ((red, 1), (green, 2), (blue, 4)) if part * 2 > top and part > 40)
    return colour + (8 if top > 200 and colour not in (0, 7) else 0)
