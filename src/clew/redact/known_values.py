"""Finds values that were found once in every text: plain, escaped, in hex and in base64."""

from __future__ import annotations

import base64
import json
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple

from ahocorasick_rs import BytesAhoCorasick

from clew.redact.encodings import to_bytes
from clew.redact.lazy_pattern import lazy_compile
from clew.redact.matcher import Find, Match, compile_finder

MIN_VALUE_CHARS = 6
"""Shorter values are masked only where a rule finds them: they occur in texts by chance."""
# A shorter spelling counts only where it is a word by itself.
_MIN_BYTES_WITHIN_WORD = 8
# What may precede a word: no letter or digit, or an escape or a colour of a terminal that ends in one.
_WORD_START = lazy_compile(rb"(?:\A|[^A-Za-z0-9]|\[[0-9;]*m|\\[bfnrt]|\\u[0-9A-Fa-f]{4}|%[0-9A-Fa-f]{2})\Z")
_MAX_ESCAPE_BYTES = 20
# Bytes that JSON and URLs write as they are.
_PLAIN = lazy_compile(rb"[A-Za-z0-9_.-]+")
# Characters that JSON writes as they are, but for slashes.
_JSON_PLAIN = lazy_compile(r"[ !#-\[\]-~]*")
_URL_QUOTED = [
    bytes([char]) if _PLAIN.match(bytes([char])) or char == 0x7E else b"%%%02X" % char for char in range(256)
]
# No program percent-encodes a longer text.
_MAX_URL_QUOTED_CHARS = 512
_HEX = lazy_compile(rb"[0-9A-Fa-f]+")
_HEX_DIGITS = b"0123456789ABCDEFabcdef"
_MIN_HEX_DIGITS = 2 * MIN_VALUE_CHARS
# Characters whose hex digits few numbers have.
_LETTERS = lazy_compile(r"[\t\n\r -~]*")
_ESCAPED = lazy_compile(rb"\\\\{0,7}u[0-9A-Fa-f]{4}(?:\\{1,8}u[0-9A-Fa-f]{4}){5,}")
_CODE = lazy_compile(rb"u([0-9A-Fa-f]{4})")
_SEPARATOR = b"\0" * MIN_VALUE_CHARS
_URL_SAFE = bytes.maketrans(b"+/", b"-_")
# Texts are searched in windows of this many bytes, which bounds the list of overlapping matches.
_WINDOW_BYTES = 1 << 16
# The automaton finds spellings by their first bytes: to build one of whole long keys takes too long.
_MAX_AUTOMATON_BYTES = 128
Span = tuple[int, int]
_PatternsByLength = dict[int, set[bytes]]


class KnownValues:
    """The values of a session, ready to be searched for.

    An Aho-Corasick automaton finds the beginnings of all spellings. It is rebuilt when values were added.
    """

    def __init__(self, values: Iterable[str] = ()) -> None:
        self._values: set[str] = set()
        self._patterns: dict[bytes, None] = {}
        self._automaton: BytesAhoCorasick | None = None
        self._patterns_by_beginning: list[_PatternsByLength] = []
        self._longest_value = 0
        self._has_letters_only = True
        self._sorted: list[str] | None = None
        self._beginnings: set[str] = set()
        self.add(values)

    def add(self, values: Iterable[str]) -> None:
        """Search for more values."""
        for value in values:
            if len(value) >= MIN_VALUE_CHARS and value not in self._values:
                self._values.add(value)
                self._has_letters_only = self._has_letters_only and _LETTERS.fullmatch(value) is not None
                self._patterns.update(dict.fromkeys(spellings_of(value)))
                self._beginnings.add(value[:MIN_VALUE_CHARS])
                self._longest_value = max(self._longest_value, len(value))
                self._automaton = self._sorted = None

    def __bool__(self) -> bool:
        return bool(self._values)

    def hits(self, text: bytes) -> list[Match]:
        """Return the places of the values in some bytes, sorted and without overlaps."""
        return [Match(start, end, "known_value", 0.9) for start, end in self.spans(text)]

    def spans(self, text: bytes) -> list[Span]:
        """Return where the values are in some bytes, sorted and without overlaps."""
        if not self._patterns:
            return []
        return _merged([*self._find_spellings(text), *self._find_encoded(text)])

    def find_truncated(self, text: str) -> TruncatedValue | None:
        """Find the beginning of a value at the end of a text that was cut off there, such as a title.

        Of several, the longest beginning counts. It has at least `MIN_VALUE_CHARS` characters.
        """
        if self._sorted is None:
            self._sorted = sorted(self._values)
        values, end = self._sorted, len(text.rstrip(".… "))
        for start in range(max(0, end - self._longest_value), end - MIN_VALUE_CHARS + 1):
            if text[start : start + MIN_VALUE_CHARS] not in self._beginnings:
                continue
            beginning = text[start:end]
            number = bisect_left(values, beginning)
            if number < len(values) and values[number].startswith(beginning):
                return TruncatedValue(start, end, values[number])
        return None

    def _find_spellings(self, text: bytes) -> list[Span]:
        """Return where spellings are: spans that cover all of them, in any order, and may overlap.

        Spellings of 6 or 7 bytes count only where they are words by themselves.
        """
        if self._automaton is None:
            self._automaton = self._build_automaton()
        spans: list[Span] = []
        for begin in range(0, len(text), _WINDOW_BYTES):
            window = text if len(text) <= _WINDOW_BYTES else text[begin : begin + _WINDOW_BYTES + _MAX_AUTOMATON_BYTES]
            for number, offset, _ in self._automaton.find_matches_as_indexes(window, overlapping=True):
                start = begin + offset
                end = _end_of_longest(text, start, self._patterns_by_beginning[number])
                if end is not None:
                    spans.append((start, end))
            spans = _merged(spans) if len(spans) > _WINDOW_BYTES else spans
        return spans

    def _build_automaton(self) -> BytesAhoCorasick:
        """Build the automaton, and store which spellings each of its beginnings has: by length, the longest first."""
        groups: dict[bytes, _PatternsByLength] = {}
        for pattern in sorted(self._patterns, key=len, reverse=True):
            patterns_by_length = groups.setdefault(pattern[:_MAX_AUTOMATON_BYTES], {})
            patterns_by_length.setdefault(len(pattern), set()).add(pattern)
        self._patterns_by_beginning = list(groups.values())
        return BytesAhoCorasick(groups)

    def _find_encoded(self, text: bytes) -> Iterator[Span]:
        """Yield runs of hex and of Unicode escapes that hold a value when they are decoded."""
        spans = _hex_runs(text, self._has_letters_only)
        for shift in (0, 1) if spans else ():
            runs = [text[start + shift : end - (end - start - shift) % 2] for start, end in spans]
            plain = bytes.fromhex(_SEPARATOR.hex().encode().join(runs).decode())
            yield from self._runs_with_value(plain, [len(run) // 2 for run in runs], spans)
        if b"\\u" in text and (spans := [match.span() for match in _ESCAPED.finditer(text)]):
            decoded = [_unescaped(text[start:end]) for start, end in spans]
            yield from self._runs_with_value(_SEPARATOR.join(decoded), list(map(len, decoded)), spans)

    def _runs_with_value(self, plain: bytes, sizes: list[int], spans: list[Span]) -> Iterator[Span]:
        """Yield those of some runs that hold a value; `plain` is all of them decoded and joined."""
        found = self._find_spellings(plain)
        starts = list(accumulate((size + len(_SEPARATOR) for size in sizes), initial=0)) if found else []
        return (spans[bisect_right(starts, start) - 1] for start, _ in found)


class TruncatedValue(NamedTuple):
    """The beginning of a known value in a text, by character offsets, and the value."""

    start: int
    end: int
    value: str


def _merged(spans: Iterable[Span]) -> list[Span]:
    """Sort spans, and join those that overlap."""
    joined: list[Span] = []
    for start, end in sorted(spans):
        if joined and start < joined[-1][1]:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        else:
            joined.append((start, end))
    return joined


def _end_of_longest(text: bytes, start: int, patterns_by_length: _PatternsByLength) -> int | None:
    """Return where the longest of some spellings ends that begins at an offset; a short one counts only as a word."""
    for length, patterns in patterns_by_length.items():
        end = start + length
        if text[start:end] in patterns and (length >= _MIN_BYTES_WITHIN_WORD or _is_word(text, start, end)):
            return end
    return None


def _is_word(text: bytes, start: int, end: int) -> bool:
    """Tell whether a spelling is a word by itself."""
    behind = text[end : end + 1]
    return not (behind.isalnum() and behind.isascii()) and (
        _WORD_START.search(text[max(0, start - _MAX_ESCAPE_BYTES) : start]) is not None
    )


@lru_cache(maxsize=2)
def _hex_finder(has_letters_only: bool) -> Find:
    """Return a finder of hex that may hold a value: letters are few of all pairs of digits."""
    if has_letters_only:
        return compile_finder([f"(?:[2-7][0-9A-Fa-f]|0[9AaDd]){{{MIN_VALUE_CHARS}}}"])
    return compile_finder([f"[0-9a-f]{{{_MIN_HEX_DIGITS}}}", f"[0-9A-F]{{{_MIN_HEX_DIGITS}}}"])


def _hex_runs(text: bytes, has_letters_only: bool) -> list[Span]:
    """Return the runs of hex that may hold a value, each from its first digit to its last."""
    runs: list[Span] = []
    place, find, run = 0, _hex_finder(has_letters_only), _HEX.match
    while (first := find(text, place, len(text))[0]) >= 0:
        start = place + len(text[place:first].rstrip(_HEX_DIGITS))
        place = run(text, first).end()  # type: ignore[union-attr]
        runs.append((start, place))
    return runs


def _unescaped(run: bytes) -> bytes:
    """Decode a run of Unicode escapes."""
    units = bytes.fromhex(b"".join(_CODE.findall(run)).decode())
    return to_bytes(units.decode("utf-16-be", "surrogatepass"))


def spellings_of(value: str) -> set[bytes]:
    """Return the byte strings that stand for a value: plain, in JSON of two depths, in URLs, in base64."""
    forms = _plain_spellings(value) | _base64_spellings(to_bytes(value))
    return {form for form in forms if len(form) >= MIN_VALUE_CHARS}


def _plain_spellings(value: str) -> set[bytes]:
    raw = to_bytes(value)
    if _PLAIN.fullmatch(raw) is not None:
        return {raw}
    forms = {raw, *_json_spellings(value)}
    if len(value) <= _MAX_URL_QUOTED_CHARS and value.isprintable():
        quoted = b"".join(map(_URL_QUOTED.__getitem__, value.encode("utf-8", "replace")))
        forms |= {quoted, quoted.replace(b"%20", b"+"), quoted.replace(b"%2F", b"/")}
        forms |= {form.lower() for form in forms if b"%" in form}
    return forms


def _json_spellings(value: str) -> set[bytes]:
    if _JSON_PLAIN.fullmatch(value) is not None:
        return {value.replace("/", "\\/").encode()}
    once = json.dumps(value)[1:-1]
    twice = json.dumps(once)[1:-1]
    kept = json.dumps(value, ensure_ascii=False)[1:-1]
    slashes = kept.replace("/", "\\/")
    return set(map(to_bytes, (once, twice, kept, slashes)))


def _base64_spellings(raw: bytes) -> set[bytes]:
    """Return the characters that a value determines at each of its three offsets in a group of base64."""
    forms = set()
    for shift in range(3):
        encoded = base64.b64encode(b"\0" * shift + raw)
        # Characters that neighbours determine too are left out: the first 2 or 3, and the last group if it is not full.
        start = (0, 2, 3)[shift]
        full = (len(raw) + shift) // 3 * 4 + ((len(raw) + shift) % 3)
        core = encoded[start:full]
        if len(core) >= _MIN_BYTES_WITHIN_WORD:
            forms |= {core, core.translate(_URL_SAFE)}
    return forms
