"""Texts inside texts: \\u escapes, percent escapes, control sequences of terminals and base64 are taken off; what is
found below is hidden above."""

from __future__ import annotations

import base64
import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import NamedTuple

from clew.redact.searching import BORDER, Find, Hit, ends_of, finder, in_one_string
from clew.redact.values import is_printable, unbase64

Look = Callable[[bytes, list[int]], list[Hit]]
"""Finds what some strings hold that are joined with borders, and end at these places."""

# Each choice begins with a letter of its own, which is quick to search for; a run of backslashes is read once.
_ESCAPE = re.compile(rb"(\\(?:/|(?<!\\\\)\\*+u00[2-7][0-9A-Fa-f])|%[2-7][0-9A-Fa-f])")
_AROUND = 1024
SIGNS = (r"\\u00[2-7][0-9A-Fa-f]", r"\\/", r"%(?:3[DdAa]|2[Bb6]|22|40|7[Bb])")
# ESC as a byte, in the spellings of programs and of JSON at any depth, and as terminals and editors show it.
_ESC = rb"(?:\x1b|(?<!\\)\\++(?:u001[bB]|x1[bB]|033|[eE])|\^\[|\xe2\x90\x9b)"
_CSI = rb"(?:" + _ESC + rb"\[|\xc2\x9b|(?<!\\)\\++(?:u009[bB]|x9[bB]|233))"
_STRING_END = rb"(?:\x07|\xc2\x9c|" + _ESC + rb"\\++|\\++(?:a|x07|u0007|007))"
_CONTROL = re.compile(
    rb"%b[0-?]{0,64}[ -/]{0,4}[@-~]" % _CSI
    # A title or a link, of which the text is searched as it stands too.
    + rb"|(?:%b\]|\xc2\x9d)[0-9]{1,4};[^\x00-\x1f\\^\x9b\x9d]{0,2048}%b" % (_ESC, _STRING_END)
    + rb"|%b[()*+][0-9A-Z]|\x1b[78=>cDEHMNOZ]" % _ESC
    # What is left where the ESC was dropped.
    + rb"|\[[0-9]{1,3}(?:;[0-9]{1,3}){0,8}m"
)
CONTROL_SIGNS = (
    r"\x1b|\xc2[\x9b\x9d]|\\u00(?:1[bB]|9[bBdD])|\\(?:x1[bB]|033|[eE])[\[\]()]|\\(?:x9[bB]|233)[0-9]"
    r"|(?:\^\[|\xe2\x90\x9b)[\[\]]|\[[0-9]{1,3}[;m]",
)
"""What begins a control sequence of a terminal, in a text and in JSON text."""
_WORDS = (
    b"PASSWORD password SECRET secret TOKEN= token Token API_KEY api_key apiKey API-KEY _KEY= ACCESS_KEY Bearer"
    b" PRIVATE+KEY AKIA"
).split()
_RUN = re.compile(rb"[A-Za-z0-9+/_-]+={0,2}")
_ALPHABET = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_"
_PIECE = 512
_MOST_ESCAPES = 10_000
# So long a stretch is taken at once.
_LONGEST_REGION = 1 << 14
_LONGEST = 1 << 16


def base64_signs() -> list[str]:
    """How words that go before secrets look in base64, at each of the three places they can have in a group."""
    signs = set()
    for word in _WORDS:
        raw = word.replace(b"+", b" ")
        for shift in range(3):
            encoded = base64.b64encode(b"\0" * shift + raw)
            signs.add(encoded[(0, 2, 3)[shift] : (len(raw) + shift) // 3 * 4].decode())
    return [re.escape(sign) for sign in sorted(signs) if len(sign) >= 5]


def read_base64(text: bytes, place: int, look: Callable[[bytes], list[Hit]]) -> tuple[tuple[Hit, ...], int]:
    """The run of base64 around a sign, as one secret if the text inside holds one."""
    start = _start_of_run(text, place)
    match = _RUN.match(text, start, start + 2 * _LONGEST)
    if match is None or match.end() - start < 16:
        return (), place + 5
    run = match[0].rstrip(b"=")
    inside = unbase64(run[: len(run) - len(run) % 4] if len(run) % 4 == 1 else run)
    if inside is None or not is_printable(inside) or not look(inside):
        return (), match.end()
    return (Hit(start, match.end(), "base64_secret", 0.9),), match.end()


def _start_of_run(text: bytes, place: int) -> int:
    """How far the base64 reaches back, looked at piece by piece: most of it is short."""
    start, lowest = place, max(0, place - _LONGEST)
    while start > lowest:
        piece = text[max(lowest, start - _PIECE) : start]
        length = len(piece) - len(piece.rstrip(_ALPHABET))
        start -= length
        if length < len(piece):
            break
    return start


def layered_hits(text: bytes, ends: Sequence[int] | None, look: Look) -> list[Hit]:
    """What is found under the escapes of some strings, at its places in the text that they are joined to."""
    if not (b"\\u00" in text or b"\\/" in text or b"%" in text):
        return []
    return _hits_below(text, ends, look, _regions(text, _telling()), _strip)


def hits_without_controls(text: bytes, ends: Sequence[int] | None, look: Look) -> list[Hit]:
    """What is found in some strings without the control sequences of terminals, at its places in the text.

    They are made white space, since a word may end at one, and are left out, since one may be within a word.
    """
    regions = _regions(text, _find_controls())
    regions = [(start, end) for start, end in regions if _CONTROL.search(text, start, end)]
    return [hit for strip in (_blank, _leave_out) for hit in _hits_below(text, ends, look, regions, strip)]


def _hits_below(
    text: bytes, ends: Sequence[int] | None, look: Look, regions: list[tuple[int, int]], strip: Strip
) -> list[Hit]:
    if not regions:
        return []
    stripped = [strip(text[start:end]) for start, end in regions]
    begins = list(accumulate((len(layer.plain) + len(BORDER) for layer in stripped), initial=0))
    # The stretches of one string are counted as one string.
    plain_ends = ends_of([layer.plain for layer in stripped])
    last = [end for end, ((one, _), (other, _)) in zip(plain_ends, pairwise(regions), strict=False)
            if not in_one_string(text, one, other, ends)]  # fmt: skip

    def origin(place: int, is_end: bool) -> int:
        number = min(bisect_right(begins, place - is_end), len(regions)) - 1
        layer = stripped[number]
        inner = min(place - begins[number], len(layer.plain))
        return regions[number][0] + (layer.end(inner) if is_end else layer.start(inner))

    hits = look(BORDER.join(layer.plain for layer in stripped), [*last, plain_ends[-1]])
    placed = (Hit(origin(hit.start, False), origin(hit.end, True), hit.rule, hit.confidence) for hit in hits)
    return [hit for hit in placed if hit.start < hit.end]


def _regions(text: bytes, find: Find) -> list[tuple[int, int]]:
    """The stretches around escapes: only there can something be hidden by one."""
    regions: list[tuple[int, int]] = []
    place, length = 0, len(text)
    while True:
        first, last = find(text, place, length)
        if first < 0:
            return regions
        start, end = _within_text(text, first, last)
        if regions and start <= regions[-1][1] and end - regions[-1][0] <= _LONGEST_REGION:
            regions[-1] = (regions[-1][0], end)
        else:
            regions.append((start, end))
        # The next sign is looked for near the end of the stretch, which it then makes longer.
        place = max(last, end - (_AROUND // 2 if end - last == _AROUND else 0))


def _within_text(text: bytes, first: int, last: int) -> tuple[int, int]:
    """What lies around a sign, within one of the texts."""
    start, end = max(0, first - _AROUND), min(len(text), last + _AROUND)
    border = text.find(0, last, end)
    return max(start, text.rfind(0, start, first) + 1), end if border < 0 else border


@lru_cache(maxsize=1)
def _telling() -> Find:
    return finder(SIGNS)


@lru_cache(maxsize=1)
def _find_controls() -> Find:
    return finder(CONTROL_SIGNS)


class _Plain(dict[bytes, bytes]):
    """What escapes stand for."""

    def __missing__(self, escape: bytes) -> bytes:
        plain = b"/" if escape == b"\\/" else bytes([int(escape[-2:], 16)])
        if len(self) < _MOST_ESCAPES:
            self[escape] = plain
        return plain


_PLAIN = _Plain()
_with_escape = (1).__add__


class _Layer(NamedTuple):
    """A text without escapes, and where a value in it begins and ends in the text with them."""

    plain: bytes
    start: Callable[[int], int]
    end: Callable[[int], int]


Strip = Callable[[bytes], _Layer]


def _strip(text: bytes) -> _Layer:
    """The text without escapes."""
    pieces = _ESCAPE.split(text)
    escapes = pieces[1::2]
    # Where each escape, which is one byte then, ends in the plain text, and how many bytes all escapes to it had.
    ends = list(accumulate(map(_with_escape, map(len, pieces[:-1:2]))))
    within = list(accumulate(map(len, escapes)))
    pieces[1::2] = map(_PLAIN.__getitem__, escapes)

    def origin(place: int) -> int:
        passed = bisect_right(ends, place)
        return place + (within[passed - 1] - passed if passed else 0)

    return _Layer(b"".join(pieces), origin, origin)


def _blank(text: bytes) -> _Layer:
    """The text with white space for control sequences."""
    return _Layer(_CONTROL.sub(lambda match: b" " * len(match[0]), text), int, int)


def _leave_out(text: bytes) -> _Layer:
    """The text without control sequences."""
    spans = [match.span() for match in _CONTROL.finditer(text)]
    begins = [0, *[end for _, end in spans]]
    pieces = [text[begin:end] for begin, end in zip(begins, [*[start for start, _ in spans], len(text)], strict=True)]
    places = list(accumulate(map(len, pieces[:-1]), initial=0))

    def origin(place: int) -> int:
        number = bisect_right(places, place) - 1
        return begins[number] + place - places[number]

    # The sequence behind a value does not belong to it.
    return _Layer(b"".join(pieces), origin, lambda place: origin(place - 1) + 1)
