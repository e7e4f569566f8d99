"""Values that were found once are found everywhere: as they are, escaped, encoded."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterable
from functools import cached_property, lru_cache
from urllib.parse import quote, quote_plus

from clew.redact.flat import to_bytes
from clew.redact.searching import Find, Fuel, Hit, crowd_at, each, finder

# Shorter values stand in texts by chance.
SHORTEST = 8
# These are spelled alike in JSON and in addresses.
_PLAIN = re.compile(rb"[A-Za-z0-9_.-]+")


# So many values are found in every spelling; further ones only as they are, where a word begins.
MOST_SPELLED = 500
_ANCHOR = 6
# What comparing a spelling costs, in bytes of text; how often that may be done; what finding its part costs.
_PRICE, _SAVED, _USUAL = 8, 50_000, 20
_HEX_LENGTH, _HEX = 2 * SHORTEST, re.compile(rb"[0-9a-f]+|[0-9A-F]+")
_LONGEST_WORD = 256
_BEFORE, _REST = re.compile(rb"[\s\"'\\\0]"), re.compile(rb"[^\s\"'\\\0]*")
# Nobody escapes a longer text letter by letter.
_LONGEST_ESCAPED = 512
_WORD = re.compile(rb"[A-Za-z0-9_]{4,}")


class Known:
    """The values of a session, ready to be searched for. More can be added at any time, each for a little."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        self._layers: list[_Layer] = []
        self._words: dict[bytes, dict[tuple[int, int], set[bytes]]] = {}
        """By the first word: where it stands in the value, how long that is, and all values for which that is so."""
        self._count = 0
        self.add(values)

    def add(self, values: Iterable[str]) -> None:
        """Search for more values."""
        kept = [value for value in values if len(value) >= SHORTEST]
        free = max(0, MOST_SPELLED - self._count)
        self._count += len(kept)
        if free and kept:
            forms = {form for value in kept[:free] for form in spellings_of(value)}
            # Each layer is at least twice as large as the next: a value is moved to a larger one only a few times.
            while self._layers and len(self._layers[-1].forms) <= 2 * len(forms):
                forms |= self._layers.pop().forms
            self._layers.append(_Layer(forms))
        for form in map(to_bytes, kept[free:]):
            if word := _WORD.search(form):
                self._words.setdefault(word[0], {}).setdefault((word.start(), len(form)), set()).add(form)

    def __bool__(self) -> bool:
        return self._count > 0

    def hits(self, text: bytes) -> list[Hit]:
        """Where the values stand in some bytes."""
        return [Hit(start, end, "known_value", 0.9) for find in self.finds for start, end in each(find, text)]

    @property
    def finds(self) -> list[Find]:
        """Finders for all that is known."""
        return [
            *[part.find for layer in self._layers for part in layer.parts],
            *([self._find_word] if self._words else []),
        ]

    def _find_word(self, text: bytes, start: int, end: int) -> tuple[int, int]:
        """The first place of a value that is found as it is, where a word begins; (-1, -1) if there is none."""
        for word in _WORD.finditer(text, start, end):
            for (before, length), forms in self._words.get(word[0], {}).items():
                first = word.start() - before
                if first >= 0 and text[first : first + length] in forms:
                    return first, first + length
        return -1, -1


class _Layer:
    """Spellings, those apart that most texts have no sign of: the fewer are searched for, the fewer states."""

    def __init__(self, forms: set[bytes]) -> None:
        self.forms = forms
        escaped = {form for form in forms if form.startswith(b"\\u00")}
        digits = {form for form in forms - escaped if len(form) >= _HEX_LENGTH and _HEX.fullmatch(form)}
        parts = (escaped, _has_escape), (digits, _has_hex), (forms - escaped - digits, None)
        self.parts = [_Spelled(some, may_hold) for some, may_hold in parts if some]


def _has_escape(text: bytes, start: int, end: int) -> bool:
    return text.find(b"\\u00", start, end) >= 0


def _has_hex(text: bytes, start: int, end: int) -> bool:
    return _find_hex()(text, start, end)[0] >= 0


@lru_cache(maxsize=1)
def _find_hex() -> Find:
    return finder([f"[0-9a-f]{{{_HEX_LENGTH}}}", f"[0-9A-F]{{{_HEX_LENGTH}}}"])


class _Spelled:
    """Spellings, found by a short part of each. Where such parts crowd, all of the crowd is taken for values."""

    def __init__(self, forms: set[bytes], may_hold: Callable[[bytes, int, int], bool] | None = None) -> None:
        self._may_hold = may_hold
        self._around: dict[bytes, list[tuple[int, bytes]]] = {}
        """By the part that is searched for: where it stands in a spelling, and the spelling."""
        for form in forms:
            place = _anchor(form)
            self._around.setdefault(form[place : place + _ANCHOR], []).append((place, form))
        self._fuel = Fuel(_PRICE, _SAVED)

    @cached_property
    def _find(self) -> Find:
        return finder(map(_escape, sorted(self._around)))

    def find(self, text: bytes, start: int, end: int) -> tuple[int, int]:
        """The first place of one of the spellings; (-1, -1) if there is none."""
        if self._may_hold is not None and not self._may_hold(text, start, end):
            return -1, -1
        while True:
            first, last = self._find(text, start, end)
            self._fuel.earn((end if first < 0 else first) - start)
            if first < 0:
                return -1, -1
            if self._fuel.left <= 0:
                begin, stop = _word_around(text, first, last, start)
                return begin, max(stop, crowd_at(self._find, text, first, last).end)
            forms = self._around[text[first:last]]
            self._fuel.spend(_USUAL + len(forms))
            span = _longest(forms, text, first)
            if span is not None:
                return span
            start = first + 1


def _word_around(text: bytes, first: int, last: int, least: int) -> tuple[int, int]:
    before = text[max(least, first - _LONGEST_WORD) : first]
    behind = _REST.match(text, last, last + _LONGEST_WORD)
    return first - len(_BEFORE.split(before)[-1]), behind.end() if behind else last


def _longest(forms: list[tuple[int, bytes]], text: bytes, place: int) -> tuple[int, int] | None:
    """The longest of some spellings that stands around a place."""
    spans = [(place - at, place - at + len(form)) for at, form in forms if text.startswith(form, max(0, place - at))]
    return max(spans, key=lambda span: span[1] - span[0], default=None)


def _anchor(form: bytes) -> int:
    """Where a spelling is least like a word: the part that is searched for must be rare in texts."""
    last = len(form) - _ANCHOR
    places = (last // 2, 0, last)
    rare = 0, 0
    for number, place in enumerate(places):
        count = len(form[place : place + _ANCHOR].translate(None, _COMMON))
        if count >= _RARE:
            return place
        rare = max(rare, (count, -number))
    return places[-rare[1]]


# So many characters that words have few of are enough.
_RARE = 4
_COMMON = b"abcdefghijklmnopqrstuvwxyz \\"


def spellings_of(value: str) -> set[bytes]:
    """The forms in which a value travels: plain, in JSON of two depths, in addresses, base64, hex, \\u escapes."""
    raw = to_bytes(value)
    is_plain = _PLAIN.fullmatch(raw) is not None
    forms = {raw, *(_in_escapes(value) if is_plain else _in_json(value))}
    if not is_plain and len(value) <= _LONGEST_ESCAPED and value.isprintable():
        plain = value.encode("utf-8", "replace")
        forms |= {quote(plain, safe="").encode(), quote_plus(plain).encode(), quote(plain).encode()}
        forms |= {form.lower() for form in forms if b"%" in form}
    if len(raw) >= SHORTEST:
        forms |= {raw.hex().encode(), raw.hex().upper().encode(), *_in_base64(raw)}
    return {form for form in forms if len(form) >= SHORTEST}


def _in_json(value: str) -> set[bytes]:
    once = json.dumps(value)[1:-1]
    twice = json.dumps(once)[1:-1]
    kept = json.dumps(value, ensure_ascii=False)[1:-1]
    slashes = kept.replace("/", "\\/")
    return {*map(to_bytes, (once, twice, kept, slashes)), *_in_escapes(value)}


def _in_escapes(value: str) -> set[bytes]:
    """Every character as an escape of JSON."""
    if len(value) > _LONGEST_ESCAPED:
        return set()
    spelled = "".join([f"\\u{unit:04x}" for unit in _units(value)]).encode()
    return {spelled, spelled.upper().replace(b"\\U", b"\\u")}


def _units(value: str) -> list[int]:
    raw = value.encode("utf-16-be", "surrogatepass")
    return [raw[place] << 8 | raw[place + 1] for place in range(0, len(raw), 2)]


def _in_base64(raw: bytes) -> set[bytes]:
    """The characters that a value determines at each of the three places it can have in a group."""
    forms = set()
    for shift in range(3):
        encoded = base64.b64encode(b"\0" * shift + raw)
        # What neighbours share is left out: the first 2 or 3 characters, and the last group if it is not full.
        start = (0, 2, 3)[shift]
        full = (len(raw) + shift) // 3 * 4 + ((len(raw) + shift) % 3)
        core = encoded[start:full]
        if len(core) >= SHORTEST:
            forms |= {core, core.translate(_ADDRESS)}
    return forms


_ADDRESS = bytes.maketrans(b"+/", b"-_")


def _escape(form: bytes) -> str:
    return re.escape(form.decode("latin-1"))
