"""Values that were found once are found everywhere: as they are, escaped, encoded."""

from __future__ import annotations

import base64
import json
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import accumulate

from clew.redact.flat import to_bytes
from clew.redact.grams import Found, Grams, Span, merged
from clew.redact.matcher import Find, Hit, finder

SHORTEST = 6
"""Shorter values are masked where they are found, and nowhere else: they stand in texts by chance."""
# A shorter spelling counts only where it is a word by itself.
_SHORTEST_WITHIN = 8
# What ends before a word: no letter or digit, or an escape or a colour of a terminal that ends in one.
_APART = re.compile(rb"(?:\A|[^A-Za-z0-9]|\[[0-9;]*m|\\[bfnrt]|\\u[0-9A-Fa-f]{4}|%[0-9A-Fa-f]{2})\Z")
_LONGEST_ESCAPE = 20
# These are spelled alike in JSON and in addresses.
_PLAIN = re.compile(rb"[A-Za-z0-9_.-]+")


# And these in JSON, but for slashes.
_ALIKE = re.compile(r"[ !#-\[\]-~]*")
# Each byte as it stands in an address.
_QUOTED = [bytes([char]) if _PLAIN.match(bytes([char])) or char == 0x7E else b"%%%02X" % char for char in range(256)]
# Nobody escapes a longer text letter by letter.
_LONGEST_ESCAPED = 512
_HEX = re.compile(rb"[0-9A-Fa-f]+")
_DIGITS = b"0123456789ABCDEFabcdef"
_LEAST_HEX = 2 * SHORTEST
# And these in hex by digits that few numbers have.
_LETTERS = re.compile(r"[\t\n\r -~]*")
_ESCAPED = re.compile(rb"\\\\{0,7}u[0-9A-Fa-f]{4}(?:\\{1,8}u[0-9A-Fa-f]{4}){5,}")
_CODE = re.compile(rb"u([0-9A-Fa-f]{4})")
_BETWEEN = b"\0" * SHORTEST
# A character may be an escape, behind as many backslashes as it has layers around it.
_MOST_FOR_ONE = 16


class Known:
    """The values of a session, ready to be searched for. More can be added at any time, each for a little."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        self._spelled, self._short = Grams(_SHORTEST_WITHIN), Grams(SHORTEST)
        self._found = Found(self._spans)
        self._count, self._is_plain = 0, True
        self.longest = 0
        """No spelling of a value is longer, in characters."""
        self.add(values)

    def add(self, values: Iterable[str]) -> None:
        """Search for more values."""
        for value in values:
            if len(value) >= SHORTEST:
                self._count += 1
                self.longest = max(self.longest, _MOST_FOR_ONE * len(value))
                self._is_plain = self._is_plain and _LETTERS.fullmatch(value) is not None
                forms = spellings_of(value)
                self._spelled.add(form for form in forms if len(form) >= _SHORTEST_WITHIN)
                self._short.add(form for form in forms if len(form) < _SHORTEST_WITHIN)
        self._found.forget()

    def __bool__(self) -> bool:
        return self._count > 0

    def hits(self, text: bytes) -> list[Hit]:
        """Where the values stand in some bytes."""
        return [Hit(start, end, "known_value", 0.9) for start, end in self._found.within(text)]

    @property
    def find(self) -> Find:
        """A finder of the places where something known stands."""
        return self._found.first

    def _spans(self, text: bytes) -> list[Span]:
        return merged([*self._plain(text), *self._encoded(text)])

    def _plain(self, text: bytes) -> list[Span]:
        """Where spellings stand."""
        return self._spelled.spans(text) + self._short.spans(text, _is_apart)

    def _encoded(self, text: bytes) -> Iterator[Span]:
        """What holds a value letter by letter, in hex or in escapes: it is read, not searched for in that spelling."""
        spans = _hex_runs(text, self._is_plain)
        for shift in (0, 1) if spans else ():
            runs = [text[start + shift : end - (end - start - shift) % 2] for start, end in spans]
            plain = bytes.fromhex(_BETWEEN.hex().encode().join(runs).decode())
            yield from self._spelled_in(plain, [len(run) // 2 for run in runs], spans)
        if b"\\u" in text and (spans := [match.span() for match in _ESCAPED.finditer(text)]):
            units = [_unescaped(text[start:end]) for start, end in spans]
            yield from self._spelled_in(_BETWEEN.join(units), list(map(len, units)), spans)

    def _spelled_in(self, plain: bytes, sizes: list[int], spans: list[Span]) -> Iterator[Span]:
        """Those of some spans that hold a value, told from what they stand for, one behind the other."""
        found = self._plain(plain)
        starts = list(accumulate((size + len(_BETWEEN) for size in sizes), initial=0)) if found else []
        return (spans[bisect_right(starts, start) - 1] for start, _ in found)


def _is_apart(text: bytes, start: int, end: int) -> bool:
    """True for a word by itself."""
    behind = text[end : end + 1]
    return not (behind.isalnum() and behind.isascii()) and (
        _APART.search(text[max(0, start - _LONGEST_ESCAPE) : start]) is not None
    )


@lru_cache(maxsize=2)
def _hex_finder(is_plain: bool) -> Find:
    """Finds hex in which a value may stand: one of plain letters is spelled by few pairs of digits."""
    if is_plain:
        return finder([f"(?:[2-7][0-9A-Fa-f]|0[9AaDd]){{{SHORTEST}}}"])
    return finder([f"[0-9a-f]{{{_LEAST_HEX}}}", f"[0-9A-F]{{{_LEAST_HEX}}}"])


def _hex_runs(text: bytes, is_plain: bool) -> list[Span]:
    """Where runs of hex stand that may hold a value, each from its first digit to its last."""
    runs: list[Span] = []
    place, find, run = 0, _hex_finder(is_plain), _HEX.match
    while (first := find(text, place, len(text))[0]) >= 0:
        start = place + len(text[place:first].rstrip(_DIGITS))
        place = run(text, first).end()  # type: ignore[union-attr]
        runs.append((start, place))
    return runs


def _unescaped(run: bytes) -> bytes:
    """What a run of escapes stands for."""
    units = bytes.fromhex(b"".join(_CODE.findall(run)).decode())
    return to_bytes(units.decode("utf-16-be", "surrogatepass"))


def spellings_of(value: str) -> set[bytes]:
    """The forms in which a value travels: plain, in JSON of two depths, in addresses, in base64."""
    forms = _in_own_letters(value) | _in_base64(to_bytes(value))
    return {form for form in forms if len(form) >= SHORTEST}


def _in_own_letters(value: str) -> set[bytes]:
    """Those in which its letters are still seen: plain, in JSON, in addresses."""
    raw = to_bytes(value)
    if _PLAIN.fullmatch(raw) is not None:
        return {raw}
    forms = {raw, *_in_json(value)}
    if len(value) <= _LONGEST_ESCAPED and value.isprintable():
        quoted = b"".join(map(_QUOTED.__getitem__, value.encode("utf-8", "replace")))
        forms |= {quoted, quoted.replace(b"%20", b"+"), quoted.replace(b"%2F", b"/")}
        forms |= {form.lower() for form in forms if b"%" in form}
    return forms


def _in_json(value: str) -> set[bytes]:
    if _ALIKE.fullmatch(value) is not None:
        return {value.replace("/", "\\/").encode()}
    once = json.dumps(value)[1:-1]
    twice = json.dumps(once)[1:-1]
    kept = json.dumps(value, ensure_ascii=False)[1:-1]
    slashes = kept.replace("/", "\\/")
    return set(map(to_bytes, (once, twice, kept, slashes)))


def _in_base64(raw: bytes) -> set[bytes]:
    """The characters that a value determines at each of the three places it can have in a group."""
    forms = set()
    for shift in range(3):
        encoded = base64.b64encode(b"\0" * shift + raw)
        # What neighbours share is left out: the first 2 or 3 characters, and the last group if it is not full.
        start = (0, 2, 3)[shift]
        full = (len(raw) + shift) // 3 * 4 + ((len(raw) + shift) % 3)
        core = encoded[start:full]
        if len(core) >= _SHORTEST_WITHIN:
            forms |= {core, core.translate(_ADDRESS)}
    return forms


_ADDRESS = bytes.maketrans(b"+/", b"-_")
