"""Decodes texts inside texts: escapes, HTML entities, control sequences of terminals, base64.

What is found in a decoded text is masked at its place in the text as it was written.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import NamedTuple

from clew.redact.lazy_pattern import lazy_compile
from clew.redact.matcher import TEXT_SEPARATOR, Find, Match, compile_finder, ends_of, in_one_string
from clew.redact.value_checks import is_printable, unbase64

Search = Callable[[bytes, list[int]], list[Match]]
"""Finds matches in strings that are joined with separators and end at the given offsets."""

_CONTINUATION_BYTES = bytes(range(0x80, 0xC0))
_LINE_ESCAPES = {b"n": b"\n\n", b"r": b"\r\r", b"t": b"\t\t"}
_UNICODE_ESCAPE = lazy_compile(rb"\\u[0-9A-Fa-f]{4}")


def to_bytes(text: str) -> bytes:
    """Encode a text in UTF-8; lone surrogates pass."""
    return text.encode("utf-8", "surrogatepass")


def blank_line_escapes(text: bytes) -> bytes:
    """Replace `\\n`, `\\r` and `\\t` by two control characters each, so that a value behind one begins a word.

    Offsets stay. Escaped quotes stay too: a reader of values takes the backslashes for part of the quote.
    """
    for letter, control in _LINE_ESCAPES.items():
        text = text.replace(b"\\" + letter, control)
    return text


def blank_json_escapes(record: bytes) -> bytes:
    """Replace the escapes of JSON text by white space, but for those of signs. Offsets stay."""
    plain = blank_line_escapes(record).replace(b"\\b", b"  ").replace(b"\\f", b"  ")
    return _UNICODE_ESCAPE.sub(b" " * 6, plain) if b"\\u" in plain else plain


def to_character_offsets(text: bytes, offsets: list[int]) -> list[int]:
    """Turn ascending offsets in UTF-8 into offsets in characters."""
    characters, last, out = 0, 0, []
    for offset in offsets:
        characters += len(text[last:offset].translate(None, _CONTINUATION_BYTES))
        last = offset
        out.append(characters)
    return out


# Each choice begins with a letter of its own, which is quick to search for; a run of backslashes is read once.
_ESCAPE = lazy_compile(
    rb"(\\(?:/|(?<!\\\\)\\*+u00[2-7][0-9A-Fa-f])|%(?:25){0,4}(?:[2-7][0-9A-Fa-f]|0[9AaDd])"
    rb"|&(?:quot|apos|amp|lt|gt|equals|lowbar|#0{0,4}[0-9]{2,3}|#[xX]0{0,4}[0-9A-Fa-f]{2});)"
)
_AROUND = 1024
# Of percent escapes, those within or beside values. Letters and digits are escaped only to hide something.
SIGNS = (
    r"\\u00[2-7][0-9A-Fa-f]",
    r"\\/",
    r"%(?:25)*(?:0[9AaDd]|3[DdAaBbCcEe]|2[Bb6-9CcDdEe]|22|40|7[BbEe]|5[Ff]|3[0-9]|[46][1-9A-Fa-f]|[57][0-9Aa])",
    # A space between the groups of a number, and a slash before the folder of homes.
    r"[0-9]%(?:25)*20[0-9]",
    r"%(?:25)*2[Ff](?:home|Users)%",
    r"&(?:quot|apos|equals|lowbar|#[0-9xX])",
    r"&lt;/?[A-Za-z:]*(?i:passw|secret|token|key|pwd|credential)",
)
# ESC as a byte, in the spellings of programs and of JSON at any depth, and as terminals and editors show it.
_ESC = rb"(?:\x1b|(?<!\\)\\++(?:u001[bB]|x1[bB]|033|[eE])|\^\[|\xe2\x90\x9b)"
_CSI = rb"(?:" + _ESC + rb"\[|\xc2\x9b|(?<!\\)\\++(?:u009[bB]|x9[bB]|233))"
_STRING_END = rb"(?:\x07|\xc2\x9c|" + _ESC + rb"\\++|\\++(?:a|x07|u0007|007))"
_CONTROL = lazy_compile(
    rb"%b[0-?]{0,64}[ -/]{0,4}[@-~]" % _CSI
    # A title or a link; its text is also searched as it is.
    + rb"|(?:%b\]|\xc2\x9d)[0-9]{1,4};[^\x00-\x1f\\^\x9b\x9d]{0,2048}%b" % (_ESC, _STRING_END)
    + rb"|%b[()*+][0-9A-Z]|\x1b[78=>cDEHMNOZ]" % _ESC
    # The rest of a sequence whose ESC was dropped.
    + rb"|\[[0-9]{1,3}(?:;[0-9]{1,3}){0,8}m"
)
CONTROL_SIGNS = (
    r"\x1b|\xc2[\x9b\x9d]|\\u00(?:1[bB]|9[bBdD])|\\(?:x1[bB]|033|[eE])[\[\]()]|\\(?:x9[bB]|233)[0-9]"
    r"|(?:\^\[|\xe2\x90\x9b)[\[\]]|\[[0-9]{1,3}[;m]",
)
"""Beginnings of control sequences of terminals, in plain text and in JSON text."""
_WORDS = (
    b"PASSWORD password Password SECRET secret Secret TOKEN= token Token API_KEY api_key apiKey API-KEY _KEY="
    b" ACCESS_KEY Bearer PRIVATE+KEY"
).split()
# Beginnings of tokens that are searched for in base64.
_BEGINNINGS = (
    b"ghp_ gho_ ghu_ ghs_ ghr_ github_pat_ glpat- glrt- xoxb- xoxp- xoxa- xapp- sk- sk_live_ rk_live_ whsec_ AKIA ASIA"
    b" AIza npm_ pypi- hf_ gsk_ xai- r8_ hvs. dop_v1_ shpat_ nvapi- dckr_pat_ ATATT SG. eyJhbG eyJ0eX"
).split()
_RUN = lazy_compile(rb"[A-Za-z0-9+/_-]+={0,2}")
_ALPHABET = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_"
_BACKWARD_STEP_BYTES = 512
_MAX_CACHED_ESCAPES = 10_000
# Lines of base64, in characters: no program writes longer or shorter ones, but for the last.
_MIN_LINE_CHARS, _MAX_LINE_CHARS = 16, 256
_MAX_INDENT_CHARS, _MAX_LINE_END_CHARS = 12, 4
_NEXT_LINE = lazy_compile(rb"[\r\n]{1,4}[ \t]{0,12}([A-Za-z0-9+/_-]{1,256}={0,2})(?=[ \t]{0,12}(?:[\r\n\0]|\Z))")
_STANDARD = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_MAX_CHAR_CHOICES = 16
# Longest region in bytes; longer ones are searched in parts.
_MAX_REGION_BYTES = 1 << 14
_MAX_WORD_BYTES = 256
_MAX_BASE64_BYTES = 1 << 16


@lru_cache(maxsize=1)
def base64_signs() -> list[str]:
    """Return patterns of the base64 of words before secrets and of tokens, at each of the three offsets in a group."""
    words = [word.replace(b"+", b" ") for word in (*_WORDS, *_BEGINNINGS)]
    return sorted({_in_base64(word, shift) for word in words for shift in range(3)})


def _in_base64(word: bytes, shift: int) -> str:
    """Return the pattern of a word in base64 that `shift` bytes precede.

    A character that the neighbours of the word determine too has all its choices, unless there are many.
    """
    pattern = ""
    bits = 8 * len(word)
    padding = -(8 * shift + bits) % 6
    value, known = int.from_bytes(word, "big") << padding, ((1 << bits) - 1) << padding
    for offset in range(8 * shift + bits + padding - 6, -1, -6):
        char, mask = value >> offset & 63, known >> offset & 63
        fits = [char] if mask == 63 else [number for number in range(64) if number & mask == char]
        if len(fits) <= _MAX_CHAR_CHOICES:
            chars = "".join({62: "+-", 63: "/_"}.get(number, chr(_STANDARD[number])) for number in fits)
            pattern += chars if len(chars) == 1 else "[" + re.escape(chars) + "]"
    return pattern


def read_base64(text: bytes, place: int, search: Callable[[bytes], list[Match]]) -> tuple[tuple[Match, ...], int]:
    """Return the base64 around a candidate, of one line or several, as one match if the decoded text has a secret."""
    start = _start_of_run(text, place)
    match = _RUN.match(text, start, start + 2 * _MAX_BASE64_BYTES)
    if match is None:
        return (), place + 5
    line, block = (start, match.end()), _lines_around(text, start, match.end())
    for begin, end in (line,) if block == line else (block, line):
        if end - begin >= _MIN_LINE_CHARS and _holds_secret(text[begin:end], search):
            return (Match(begin, end, "base64_secret", 0.9),), end
    # In a shorter run, the candidate is not base64: the next one may begin within it.
    return (), match.end() if match.end() - start >= _MIN_LINE_CHARS else place + 5


def _holds_secret(encoded: bytes, search: Callable[[bytes], list[Match]]) -> bool:
    run = encoded.translate(None, b" \t\r\n").rstrip(b"=")
    inside = unbase64(run[: len(run) - len(run) % 4] if len(run) % 4 == 1 else run)
    return inside is not None and is_printable(inside) and bool(search(inside))


def _lines_around(text: bytes, start: int, end: int) -> tuple[int, int]:
    """Return the span of base64 that is broken into lines of one length, given one of its lines."""
    width, lowest, highest = 0, start - _MAX_BASE64_BYTES, end + _MAX_BASE64_BYTES
    first = start
    while first > lowest and (found := _line_before(text, first)):
        if found[1] < end - start or width not in (0, found[1]):
            break
        first, width = found
    last, length = end, end - start
    width = width or length
    while last < highest and length == width >= _MIN_LINE_CHARS and (following := _NEXT_LINE.match(text, last)):
        length = len(following[1])
        if length > width:
            break
        last = following.end()
    return first, last


def _line_before(text: bytes, start: int) -> tuple[int, int] | None:
    """Return start and length of the base64 at the end of the line before this one."""
    window = text[max(0, start - _MAX_LINE_CHARS - 1 - _MAX_INDENT_CHARS - _MAX_LINE_END_CHARS) : start]
    bare = window.rstrip(b" \t")
    line = bare.rstrip(b"\r\n")
    length = len(line) - len(line.rstrip(_ALPHABET))
    if not 0 < len(bare) - len(line) <= _MAX_LINE_END_CHARS or not _MIN_LINE_CHARS <= length <= _MAX_LINE_CHARS:
        return None
    return start - len(window) + len(line) - length, length


def _start_of_run(text: bytes, place: int) -> int:
    """Return where a run of base64 begins. It is read in pieces, since most runs are short."""
    start, lowest = place, max(0, place - _MAX_BASE64_BYTES)
    while start > lowest:
        piece = text[max(lowest, start - _BACKWARD_STEP_BYTES) : start]
        length = len(piece) - len(piece.rstrip(_ALPHABET))
        start -= length
        if length < len(piece):
            break
    return start


def find_below_escapes(text: bytes, ends: Sequence[int] | None, search: Search) -> list[Match]:
    """Search strings without their escapes; return matches at their places in the text with escapes."""
    if not (b"\\u00" in text or b"\\/" in text or b"%" in text or b"&" in text):
        return []
    return _find_in_decoded(text, ends, search, _regions(text, _find_escapes()), _strip)


def find_without_controls(text: bytes, ends: Sequence[int] | None, search: Search) -> list[Match]:
    """Search strings without the control sequences of terminals; return matches at their places in the text.

    Searched twice: with white space for each sequence, since a word may end there, and without, since one may be
    within a word.
    """
    regions = _regions(text, _find_controls())
    regions = [(start, end) for start, end in regions if _CONTROL.search(text, start, end)]
    return [hit for strip in (_blank, _leave_out) for hit in _find_in_decoded(text, ends, search, regions, strip)]


def _find_in_decoded(
    text: bytes, ends: Sequence[int] | None, search: Search, regions: list[tuple[int, int]], strip: Strip
) -> list[Match]:
    if not regions:
        return []
    stripped = [strip(text[start:end]) for start, end in regions]
    begins = list(accumulate((len(layer.plain) + len(TEXT_SEPARATOR) for layer in stripped), initial=0))
    # All regions of one string share its limit of checks.
    plain_ends = ends_of([layer.plain for layer in stripped])
    last = [end for end, ((one, _), (other, _)) in zip(plain_ends, pairwise(regions), strict=False)
            if not in_one_string(text, one, other, ends)]  # fmt: skip

    def origin(place: int, is_end: bool) -> int:
        number = min(bisect_right(begins, place - is_end), len(regions)) - 1
        layer = stripped[number]
        inner = min(place - begins[number], len(layer.plain))
        return regions[number][0] + (layer.end(inner) if is_end else layer.start(inner))

    hits = search(TEXT_SEPARATOR.join(layer.plain for layer in stripped), [*last, plain_ends[-1]])
    placed = (Match(origin(hit.start, False), origin(hit.end, True), hit.rule, hit.confidence) for hit in hits)
    return [hit for hit in placed if hit.start < hit.end]


def _regions(text: bytes, find: Find) -> list[tuple[int, int]]:
    """Return the regions around escapes: only there can an escape hide a value."""
    regions: list[tuple[int, int]] = []
    place, length = 0, len(text)
    while True:
        first, last = find(text, place, length)
        if first < 0:
            return regions
        start, end = _within_text(text, first, last)
        if regions and start <= regions[-1][1] and end - regions[-1][0] <= _MAX_REGION_BYTES:
            regions[-1] = (regions[-1][0], end)
        else:
            regions.append((start, end))
        # The next escape may be near the end of the region, which it extends.
        place = max(last, end - (_AROUND // 2 if end - last >= _AROUND else 0))


def _within_text(text: bytes, first: int, last: int) -> tuple[int, int]:
    """Return the bytes around an escape, within one of the joined strings, without half a word at either end."""
    start, end = max(0, first - _AROUND), min(len(text), last + _AROUND)
    before, after = text[max(0, start - _MAX_WORD_BYTES) : start], text[end : end + _MAX_WORD_BYTES]
    if before and not before[-1:].isspace():
        start -= len(before.split()[-1])
    if after and not after[:1].isspace():
        end += len(after.split(None, 1)[0])
    border = text.find(0, last, end)
    return max(start, text.rfind(0, start, first) + 1), end if border < 0 else border


@lru_cache(maxsize=1)
def _find_escapes() -> Find:
    return compile_finder(SIGNS)


@lru_cache(maxsize=1)
def _find_controls() -> Find:
    return compile_finder(CONTROL_SIGNS)


class _Plain(dict[bytes, bytes]):
    """Decoded escapes, by escape."""

    def __missing__(self, escape: bytes) -> bytes:
        if escape[:1] == b"&":
            import html  # Its table of entities takes 4 ms to load, and few texts have one.

            plain = html.unescape(escape.decode()).encode()
            # Other characters occur in no secret; each escape becomes one byte.
            plain = plain if len(plain) == 1 and plain.isascii() else b" "
        else:
            plain = b"/" if escape == b"\\/" else bytes([int(escape[-2:], 16)])
        if len(self) < _MAX_CACHED_ESCAPES:
            self[escape] = plain
        return plain


_PLAIN = _Plain()
_with_escape = (1).__add__


class _Layer(NamedTuple):
    """A decoded text, and functions from its offsets to those of the text as written."""

    plain: bytes
    start: Callable[[int], int]
    end: Callable[[int], int]


Strip = Callable[[bytes], _Layer]


def _strip(text: bytes) -> _Layer:
    """Decode the escapes of a text."""
    pieces = _ESCAPE.split(text)
    escapes = pieces[1::2]
    # Where each escape, now one byte, ends in the decoded text, and how many bytes all escapes up to it had.
    ends = list(accumulate(map(_with_escape, map(len, pieces[:-1:2]))))
    within = list(accumulate(map(len, escapes)))
    pieces[1::2] = map(_PLAIN.__getitem__, escapes)

    def origin(place: int) -> int:
        passed = bisect_right(ends, place)
        return place + (within[passed - 1] - passed if passed else 0)

    return _Layer(b"".join(pieces), origin, origin)


def _blank(text: bytes) -> _Layer:
    """Replace control sequences by white space."""
    return _Layer(_CONTROL.sub(lambda match: b" " * len(match[0]), text), int, int)


def _leave_out(text: bytes) -> _Layer:
    """Remove control sequences."""
    spans = [match.span() for match in _CONTROL.finditer(text)]
    begins = [0, *[end for _, end in spans]]
    pieces = [text[begin:end] for begin, end in zip(begins, [*[start for start, _ in spans], len(text)], strict=True)]
    places = list(accumulate(map(len, pieces[:-1]), initial=0))

    def origin(place: int) -> int:
        number = bisect_right(places, place) - 1
        return begins[number] + place - places[number]

    # The sequence after a value is not part of it.
    return _Layer(b"".join(pieces), origin, lambda place: origin(place - 1) + 1)
