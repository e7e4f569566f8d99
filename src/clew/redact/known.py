"""Values that were found once are found everywhere: as they are, escaped, encoded."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from urllib.parse import quote, quote_plus

from clew.redact.flat import to_bytes
from clew.redact.further import Further, find_escape, find_hex
from clew.redact.searching import Find, Fuel, Hit, crowd_at, each, finder

# Shorter values stand in texts by chance.
SHORTEST = 8
# These are spelled alike in JSON and in addresses.
_PLAIN = re.compile(rb"[A-Za-z0-9_.-]+")


# So many values are searched for in every spelling; further ones by a word of theirs, and in what holds them encoded.
MOST_SPELLED = 500
# So long a part of a spelling is searched for, and of one with escapes, which are all alike; so many in one search.
_ANCHOR, _ESCAPED, _LOT = 6, 24, 500
# What comparing a spelling costs, in bytes of text; how often that may be done; what finding its part costs.
_PRICE, _SAVED, _USUAL = 8, 10_000, 20
_HEX_LENGTH, _HEX = 2 * SHORTEST, re.compile(rb"[0-9a-f]+|[0-9A-F]+")
_LONGEST_WORD = 256
_BEFORE, _REST = re.compile(rb"[\s\"'\\\0]"), re.compile(rb"[^\s\"'\\\0]*")
# Nobody escapes a longer text letter by letter.
_LONGEST_ESCAPED = 512


class Known:
    """The values of a session, ready to be searched for. More can be added at any time, each for a little."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        self._layers: list[_Layer] = []
        self._further = Further()
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
        for value in kept[free:]:
            self._further.add(_in_own_letters(value))

    def __bool__(self) -> bool:
        return self._count > 0

    @property
    def is_slow(self) -> bool:
        """There are so many values that a text is better searched once than sifted before."""
        return bool(self._further)

    def hits(self, text: bytes) -> list[Hit]:
        """Where the values stand in some bytes; crowds of what may be values count as such."""
        return [Hit(start, end, "known_value", 0.9) for find in self._finds(True) for start, end in each(find, text)]

    @property
    def finds(self) -> list[Find]:
        """Finders of the places where something known may stand."""
        return self._finds(False)

    def _finds(self, whole: bool) -> list[Find]:
        parts = [part for layer in self._layers for part in layer.parts]
        finds: list[Find] = [part.find if whole else part.place for part in parts]
        if self._further:
            finds.append(self._further.find)
        return finds


class _Layer:
    """Spellings, those apart that most texts have no sign of: the fewer are searched for, the fewer states."""

    def __init__(self, forms: set[bytes]) -> None:
        self.forms = forms
        escaped = {form for form in forms if b"\\u00" in form}
        digits = {form for form in forms - escaped if len(form) >= _HEX_LENGTH and _HEX.fullmatch(form)}
        parts = (escaped, find_escape), (digits, find_hex), (forms - escaped - digits, None)
        self.parts = [_Spelled(lot, may_hold) for some, may_hold in parts for lot in _lots(some)]


def _lots(forms: set[bytes]) -> Iterator[dict[bytes, list[tuple[int, bytes]]]]:
    """Spellings by the part that is searched for, in lots: an automaton for a few is built sooner than for all."""
    around: dict[bytes, list[tuple[int, bytes]]] = {}
    for form in forms:
        size = min(len(form), _ESCAPED if b"\\u00" in form or b"%" in form else _ANCHOR)
        place = _anchor(form, size)
        around.setdefault(form[place : place + size], []).append((place, form))
    parts = sorted(around)
    for start in range(0, len(parts), _LOT):
        yield {part: around[part] for part in parts[start : start + _LOT]}


class _Spelled:
    """Spellings, found by a short part of each. Where such parts crowd, all of the crowd is taken for values."""

    def __init__(
        self,
        around: dict[bytes, list[tuple[int, bytes]]],
        may_hold: Find | None = None,
    ) -> None:
        self._may_hold = may_hold
        self._around = around
        """By the part that is searched for: where it stands in a spelling, and the spelling."""
        self._fuel = Fuel(_PRICE, _SAVED)

    @cached_property
    def _find(self) -> Find:
        return finder(map(_escape, sorted(self._around)))

    def find(self, text: bytes, start: int, end: int) -> tuple[int, int]:
        """The first place of one of the spellings, or of a crowd of parts of them; (-1, -1) if there is none."""
        first, last = self.place(text, start, end)
        if first >= 0 and self._fuel.left <= 0:
            begin, stop = _word_around(text, first, last, start)
            return begin, max(stop, crowd_at(self._find, text, first, last).end)
        return first, last

    def place(self, text: bytes, start: int, end: int) -> tuple[int, int]:
        """The first place of one of the spellings; where comparing cannot be paid for, of a part of one."""
        if self._may_hold is not None and self._may_hold(text, start, end)[0] < 0:
            return -1, -1
        while True:
            first, last = self._find(text, start, end)
            self._fuel.earn((end if first < 0 else first) - start)
            if first < 0:
                return -1, -1
            if self._fuel.left <= 0:
                return first, last
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
    fitting = [(at, form) for at, form in forms if at <= place and text.startswith(form, place - at)]
    spans = [(place - at, place - at + len(form)) for at, form in fitting]
    return max(spans, key=lambda span: span[1] - span[0], default=None)


def _anchor(form: bytes, size: int) -> int:
    """Where a spelling is least like a word: the part that is searched for must be rare in texts."""
    last = len(form) - size
    places = (last // 2, 0, last)
    rare = 0, 0
    for number, place in enumerate(places):
        count = len(form[place : place + size].translate(None, _COMMON))
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
    forms = _in_own_letters(value) | _in_escapes(value)
    if len(raw) >= SHORTEST:
        forms |= {raw.hex().encode(), raw.hex().upper().encode(), *_in_base64(raw)}
    return {form for form in forms if len(form) >= SHORTEST}


def _in_own_letters(value: str) -> set[bytes]:
    """Those in which its letters are still seen: plain, in JSON, in addresses."""
    raw = to_bytes(value)
    if _PLAIN.fullmatch(raw) is not None:
        return {raw}
    forms = {raw, *_in_json(value)}
    if len(value) <= _LONGEST_ESCAPED and value.isprintable():
        plain = value.encode("utf-8", "replace")
        forms |= {quote(plain, safe="").encode(), quote_plus(plain).encode(), quote(plain).encode()}
        forms |= {form.lower() for form in forms if b"%" in form}
    return forms


def _in_json(value: str) -> set[bytes]:
    once = json.dumps(value)[1:-1]
    twice = json.dumps(once)[1:-1]
    kept = json.dumps(value, ensure_ascii=False)[1:-1]
    slashes = kept.replace("/", "\\/")
    return set(map(to_bytes, (once, twice, kept, slashes)))


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
