"""Known values, however many: found by one word of each, and in what base64, hex and escapes hold.

To search for every spelling of a value costs more with each value; to take off what encodes a text costs the same for
any number. Where something encoded holds a value, all of it is hidden.
"""

from __future__ import annotations

import re
from binascii import a2b_base64
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache

from clew.redact.searching import Find, finder

Span = tuple[int, int]
_WORD = re.compile(rb"[A-Za-z0-9_]{4,}")
_LETTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_"
_BASE64 = re.compile(rb"[A-Za-z0-9+/_-]{11,}={0,2}")
_STANDARD = bytes(
    b"A+/"[(b"-_".find(char)) + 1] if char in b"-_" or char not in _LETTERS else char for char in range(256)
)
_TO_WORDS = bytes(char if char == 0x5F or (chr(char).isalnum() and char < 128) else 0x20 for char in range(256))
_HEX_LENGTH = 16
_HEX = re.compile(rb"[0-9A-Fa-f]{16,}")
_ESCAPED = re.compile(rb"(?:\\{1,8}u00[0-9A-Fa-f]{2}){8,}")
_CODE = re.compile(rb"u00(..)")
# Values that share a word are compared one length after the other; of more lengths, all around the word is hidden.
_MOST_LENGTHS = 8
_LONGEST = 2048
_BORDERS = re.compile(rb"[\s\"\0]")


@lru_cache(maxsize=1)
def _hex_finder() -> Find:
    return finder([f"[0-9a-f]{{{_HEX_LENGTH}}}", f"[0-9A-F]{{{_HEX_LENGTH}}}"])


def find_hex(text: bytes, start: int, end: int) -> Span:
    """Where so much hex stands that it may hold a value."""
    return _hex_finder()(text, start, end)


def find_escape(text: bytes, start: int, end: int) -> Span:
    """Where a letter stands as an escape of JSON."""
    first = text.find(b"\\u00", start, end)
    return first, first + 4


class Further:
    """Values, by one word of each spelling that is made of their own characters."""

    def __init__(self) -> None:
        self._words: dict[bytes, dict[Span, set[bytes]]] = {}
        """By the longest word: where it stands in the spelling, how long that is, and all for which that is so."""
        self._text = b""
        self._spans: list[Span] = []

    def __bool__(self) -> bool:
        return bool(self._words)

    def add(self, forms: Iterable[bytes]) -> None:
        """Search for more spellings."""
        for form in forms:
            word = max(_WORD.finditer(form), key=lambda match: match.end() - match.start(), default=None)
            if word is not None:
                self._words.setdefault(word[0], {}).setdefault((word.start(), len(form)), set()).add(form)
        self._text = b""

    def find(self, text: bytes, start: int, end: int) -> Span:
        """The first place of a value at or behind `start`; (-1, -1) if there is none. A text is searched once."""
        if self._text is not text:
            self._text, self._spans = text, _merged({*self._plain(text), *self._encoded(text)})
        number = bisect_left(self._spans, (start, 0))
        return self._spans[number] if number < len(self._spans) and self._spans[number][1] <= end else (-1, -1)

    def _shared(self, text: bytes) -> set[bytes]:
        return self._words.keys() & set(text.translate(_TO_WORDS).split())

    def _plain(self, text: bytes) -> Iterator[Span]:
        """Where values stand as they are, around a word that is one of theirs."""
        shared = self._shared(text)
        last = 0
        for word in _WORD.finditer(text) if shared else ():
            if word[0] in shared and word.start() >= last:
                span = self._around(text, word)
                if span is not None:
                    yield span
                    last = span[1]

    def _around(self, text: bytes, word: re.Match[bytes]) -> Span | None:
        lengths = self._words[word[0]]
        if len(lengths) > _MOST_LENGTHS:
            before = text[max(0, word.start() - _LONGEST) : word.start()]
            border = _BORDERS.search(text, word.end(), word.end() + _LONGEST)
            end = min(len(text), word.end() + _LONGEST) if border is None else border.start()
            return word.start() - len(_BORDERS.split(before)[-1]), end
        for (place, length), forms in lengths.items():
            first = word.start() - place
            if first >= 0 and text[first : first + length] in forms:
                return first, first + length
        return None

    def _encoded(self, text: bytes) -> Iterator[Span]:
        """What holds a value encoded."""
        yield from self._in_base64(text)
        for sign, pattern, decoded in _DECODERS:
            for match in pattern.finditer(text) if sign(text, 0, len(text))[0] >= 0 else ():
                if any(True for plain in decoded(match[0]) for _ in self._plain(plain)):
                    yield match.span()

    def _in_base64(self, text: bytes) -> Iterator[Span]:
        """The whole text is taken for base64, from each of the four places at which a group may begin.

        What is none becomes bytes of no meaning, and between two runs there is always one that no word has.
        """
        letters = text.translate(_STANDARD)
        for first in range(4):
            decoded = a2b_base64(letters[first : first + (len(letters) - first) // 4 * 4] + b"AAAA")
            for start, _ in self._plain(decoded):
                place = first + start // 3 * 4
                match = _BASE64.match(text, place - len(_run_before(text, place)))
                if match is not None:
                    yield match.span()


def _merged(spans: Iterable[Span]) -> list[Span]:
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and start < merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return merged


def _run_before(text: bytes, place: int) -> bytes:
    """What goes before a place of the same alphabet, as far as it matters."""
    before = text[max(0, place - _LONGEST) : place]
    return before[len(before.rstrip(_LETTERS)) :]


def _from_hex(run: bytes) -> list[bytes]:
    return [bytes.fromhex(run[first : first + (len(run) - first) // 2 * 2].decode()) for first in range(2)]


def _from_escapes(run: bytes) -> list[bytes]:
    return [bytes.fromhex(b"".join(_CODE.findall(run)).decode())]


_DECODERS: tuple[tuple[Find, re.Pattern[bytes], Callable[[bytes], list[bytes]]], ...] = (
    (find_hex, _HEX, _from_hex),
    (find_escape, _ESCAPED, _from_escapes),
)
