"""Which records may hold something at all, told from their JSON text: most are passed by without being read.

The text is searched as it is written, so every sign is looked for in its escaped spelling too, and across the strings
of a list. What is held back is read and looked at closely; what passes holds nothing that a closer look would find.
"""

from __future__ import annotations

import re
import sys
from bisect import bisect_right
from collections.abc import Container, Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from itertools import accumulate
from typing import NamedTuple

from clew.redact import files, flat, layers, names, national, pii, places
from clew.redact.engine import Engine
from clew.redact.known import Known
from clew.redact.searching import BORDER, Find, Fuel, Hit, Look, finder, plain_finder, walk
from clew.redact.untouched import CALL_IDS, CUT_KEYS

_QUOTE = r'\\*"'
_NEXT = rf"\\+[bfnrt]|{_QUOTE},\s*{_QUOTE}"
"""What a space may be in JSON: an escape, or the border between two words of a command."""
_PIECE = re.compile(r"(\\.|\[(?:\\.|[^\]\\])*\]| )(?:\{(\d+),\d+\})?")
_OTHER_NAMES = "authorization|cookie|_pat|auth"
_STRUCTURE = (
    # {"name": "DB_PASSWORD", "value": ...}
    rf'(?:name|key){_QUOTE}\s*:\s*{_QUOTE}[^"\\]*(?i:{names.TELLING}|token|{_OTHER_NAMES})',
    rf"(?i:{names.SIGNS}|{_OTHER_NAMES}){_QUOTE}\s*:\s*\[",
)
_SEAM = (
    rf'\}},\s*\{{\s*(?:{_QUOTE}[^"\\]{{1,20}}{_QUOTE}\s*:\s*(?:{_QUOTE}[^"]{{0,40}}"|[\w\[\]{{}}.-]{{1,20}}),\s*){{0,3}}'
    rf"{_QUOTE}(?:text|thinking){_QUOTE}\s*:\s*{_QUOTE}",
)
_CUT = (rf'"(?:{"|".join(sorted(CUT_KEYS))}){_QUOTE}\s*:',)
_CALL = re.compile(rf'"(?:{"|".join(CALL_IDS)})\\*"\s*:\s*\\*"([^"\\]{{1,200}})'.encode())
# Where so much more is searched than is left, what is left is put together anew.
_WORTH = 1.3
_with_end = (1).__add__
Span = tuple[int, int]
"""Where a line begins, and where the next one does."""
_ORIGIN = re.escape('{"type":"clew-origin",')


class _Look(NamedTuple):
    """A closer look at signs in JSON text, by which a record may pass that shows one."""

    find: Find
    """Finds the signs in their escaped spelling."""
    find_plain: Find
    """The same in JSON text without escapes."""
    look: Look
    is_number: bool

    def fuel_of(self, fuel: Fuel) -> Fuel:
        """What such looks are paid from: a crowd of numbers must not take those at tokens."""
        return fuel.for_sifting() if self.is_number else fuel

    def held(self, text: bytes, spans: list[Span], fuel: Fuel, begin: int = 0) -> list[Span]:
        """Those of some records, which show a sign, that hold something. Without looks left, a sign is enough.

        There is no sign before `begin`, where a line begins.
        """
        # What is no JSON is read for no more than a look.
        if not any(text[start : start + 1] in (b"{", b"[", b" ") for start, _ in spans):
            return spans
        own = self.fuel_of(fuel)
        paid = spans[: own.looks]
        records = [text[max(start, begin) : end] for start, end in paid]
        starts = list(accumulate((len(record) + len(BORDER) for record in records), initial=0))
        joined = BORDER.join(records)
        plain = flat.without_escapes(joined)
        look = _first_in_each(_within_words(self.look, joined) if self.is_number else self.look)
        hits = walk(self.find_plain, plain, look, own)
        found = {bisect_right(starts, hit.start) - 1 for hit in hits}
        return [paid[index] for index in sorted(found)] + spans[len(paid) :]


def _within_words(look: Look, raw: bytes) -> Look:
    """The same look, but what goes over an escape, which is white space then, is taken for something."""

    def within(text: bytes, start: int, end: int, fuel: Fuel) -> tuple[tuple[Hit, ...], int]:
        if raw[start:end] != text[start:end]:
            return (Hit(start, end, "crowded", 0.0),), end
        return look(text, start, end, fuel)

    return within


def _first_in_each(look: Look) -> Look:
    """The same look, but behind what it finds the next text is gone on with."""

    def first(text: bytes, start: int, end: int, fuel: Fuel) -> tuple[tuple[Hit, ...], int]:
        hits, place = look(text, start, end, fuel)
        border = text.find(0, place) if hits else place
        return hits, len(text) if border < 0 else border

    return first


class Sieve:
    """Holds back the records in which some kinds of things may be found."""

    def __init__(self, engine: Engine, kinds: frozenset[str]) -> None:
        self._engine, self._kinds = engine, kinds

    @cached_property
    def _finds(self) -> list[Find]:
        found: list[Find] = []
        signs = [*layers.SIGNS, *_STRUCTURE]
        if "secret" in self._kinds:
            # All at once: one search for many signs takes hardly longer than one for few.
            signs += map(_wide, (*self._engine.context_signs, *files.SIGNS))
            found += self._engine.find_addresses
        if "pii" in self._kinds:
            found.append(finder(map(_wide, national.SIGNS)))
        return [finder(signs), *found, finder(_SEAM), finder([_ORIGIN])]

    @cached_property
    def _looks(self) -> list[_Look]:
        """What is told by a look at the JSON text itself, so that fewer records are read."""
        looks = []
        if "secret" in self._kinds:
            token = finder(map(_wide, self._engine.token_signs))
            looks.append(_Look(token, self._engine.find_token, self._engine.look_at_token(), is_number=False))
        if "pii" in self._kinds:
            numbers = [finder(map(_wide, group)) for group in pii.GROUPS]
            looks += [_Look(find, find, pii.look_in_json, is_number=True) for find in numbers]
        return looks

    def held(
        self,
        records: Sequence[bytes],
        fuel: Fuel | None = None,
        known: Known | None = None,
        *,
        cut: bool = False,
        most: int = sys.maxsize,
    ) -> set[int]:
        """The numbers of the records that must be read: for rules, for known values, for `cut` ones.

        Where there are more than `most`, only so much is sure: there are more.
        """
        fuel = Fuel() if fuel is None else fuel
        if len(records) == 1:
            return {0} if self._is_held(records[0], fuel, known, cut) else set()
        starts = list(accumulate(map(_with_end, map(len, records)), initial=0))
        found = self.lines(b"\n".join(records), fuel, known, cut=cut, most=most)
        return {bisect_right(starts, start) - 1 for start, _ in found}

    def lines(
        self, text: bytes, fuel: Fuel, known: Known | None = None, *, cut: bool = False, most: int = sys.maxsize
    ) -> list[Span]:
        """The same for the lines of a text, each a record: where those stand that must be read. They are in order."""
        rest = self._sifted(text, known, cut, most)
        for look in self._looks:
            own = look.fuel_of(fuel)
            own.earn(len(text))
            # A line that is not looked at must be read.
            touched = rest.touched(look.find, most + own.looks)
            rest.hold(look.held(text, sorted(touched), fuel))
        return sorted(rest.held)

    def lines_again(self, text: bytes, spans: list[Span], known: Known | None, *, cut: bool) -> list[Span]:
        """The same where it was told before, for what has become known since."""
        rest = _Rest(text)
        rest.hold(spans)
        for find in _since(known, cut):
            rest.hold(rest.touched(find))
        return sorted(rest.held)

    def holds_known(self, record: bytes, known: Known | None, *, cut: bool) -> bool:
        """True for a record that may hold something known, or a part of it."""
        return any(find(record, 0, len(record))[0] >= 0 for find in _since(known, cut))

    def _is_held(self, record: bytes, fuel: Fuel, known: Known | None, cut: bool) -> bool:
        """The same for one record, which may have line ends within."""
        size = len(record)
        if any(find(record, 0, size)[0] >= 0 for find in self._all_finds(known, cut)):
            return True
        for look in self._looks:
            look.fuel_of(fuel).earn(size)
            sign = look.find(record, 0, size)[0]
            if sign >= 0 and look.held(record, [(0, size)], fuel, record.rfind(b"\n", 0, sign) + 1):
                return True
        return False

    def crowd(self, sample: Sequence[bytes], count: int, fuel: Fuel, known: Known | None, *, cut: bool) -> float:
        """Which part of so many records must be read, told from some of them. What looks cannot be paid for must."""
        text = b"".join(sample)
        rest = self._sifted(text, known, cut)
        signed: list[Span] = []
        for look in self._looks:
            touched = sorted(rest.touched(look.find))
            is_paid = look.fuel_of(fuel).covers(len(touched) * count // len(sample))
            signed += look.held(text, touched, fuel) if is_paid else touched
        if "path" in self._kinds:
            for find in _find_other_places():
                rest.hold(rest.touched(find))
        return len(rest.held.union(signed)) / len(sample)

    def _all_finds(self, known: Known | None, cut: bool) -> list[Find]:
        if not self._kinds:
            return []
        return [*self._finds, *_since(known, cut)]

    def _sifted(self, text: bytes, known: Known | None, cut: bool, most: int = sys.maxsize) -> _Rest:
        """Lines, those held back that show a sign of anything but tokens."""
        rest = _Rest(text)
        for find in self._all_finds(known, cut):
            rest.hold(rest.touched(find, most))
        return rest

    def placed(self, records: Sequence[bytes]) -> set[int]:
        """The numbers of the records in which something may name the person's machine."""
        if "path" not in self._kinds:
            return set()
        starts = list(accumulate(map(_with_end, map(len, records)), initial=0))
        found = touched_by(find_places(), b"\n".join(records))
        return {bisect_right(starts, start) - 1 for start, _ in found}

    def names_machine(self, text: bytes) -> bool:
        """True where something may name the person's machine."""
        return "path" in self._kinds and any(find(text, 0, len(text))[0] >= 0 for find in find_places())


def _since(known: Known | None, cut: bool) -> list[Find]:
    """Finders for what is not told by rules: known values, and titles that may hold a part of one."""
    return [*([known.find] if known else []), *([_find_cut()] if cut else [])]


def touched_by(finds: Iterable[Find], text: bytes) -> set[Span]:
    """The lines of a text in which one of some finders finds something."""
    rest = _Rest(text)
    for find in finds:
        rest.hold(rest.touched(find))
    return rest.held


class _Rest:
    """The lines of a text that may still hold nothing. Those that are held back are not searched again.

    A line is looked for only where something was found in it: that most lines are short costs nothing.
    """

    def __init__(self, text: bytes) -> None:
        self._whole = self._text = text
        self.held: set[Span] = set()
        self._starts, self._origins = [0], [0]
        self._away = 0

    def touched(self, find: Find, most: int = sys.maxsize) -> set[Span]:
        """Those in which something is found, until there are more than `most` with those that are held back."""
        text, found = self._text, set[Span]()
        place, length = 0, len(text)
        most -= len(self.held)
        while place < length and len(found) <= most and (at := find(text, place, length)[0]) >= 0:
            begin, place = text.rfind(b"\n", 0, at) + 1, text.find(b"\n", at) + 1 or length
            index = bisect_right(self._starts, begin) - 1
            origin = begin - self._starts[index] + self._origins[index]
            found.add((origin, origin + place - begin))
        return found - self.held

    def hold(self, found: Iterable[Span]) -> None:
        """Hold some back."""
        before = len(self.held)
        self.held.update(found)
        if len(self.held) > before:
            self._away = sum(end - start for start, end in self.held)
        if (len(self._whole) - self._away) * _WORTH < len(self._text):
            self._put_together()

    def _put_together(self) -> None:
        """The lines that are left, as one text, and where each stretch of it begins and comes from."""
        pieces, place = [], 0
        self._origins = []
        for start, end in sorted(self.held):
            if start > place:
                pieces.append(self._whole[place:start])
                self._origins.append(place)
            place = end
        pieces.append(self._whole[place:])
        self._origins.append(place)
        self._starts = list(accumulate(map(len, pieces[:-1]), initial=0))
        self._text = b"".join(pieces)


def call_places(text: bytes, calls: Container[str]) -> Iterator[int]:
    """Where some JSON text has to do with one of some calls."""
    return (match.start() for match in _CALL.finditer(text) if match[1].decode("utf-8", "replace") in calls)


def names_file(record: bytes) -> bool:
    """True for a record that may name a credential file; an unreadable one may."""
    return not record or _find_file()(record, 0, len(record))[0] >= 0


@lru_cache(maxsize=1)
def find_places() -> tuple[Find, Find]:
    """Finders, in JSON text, of what may name the person's machine."""
    return finder(map(_wide, places.SIGNS)), plain_finder(_wide(places.AT))


@lru_cache(maxsize=1)
def _find_other_places() -> tuple[Find, Find]:
    """Finders of what may name it by something else than a home path."""
    return finder(map(_wide, places.OTHER_SIGNS)), plain_finder(_wide(places.AT))


@lru_cache(maxsize=1)
def _find_file() -> Find:
    return finder(map(_wide, files.SIGNS))


@lru_cache(maxsize=1)
def _find_cut() -> Find:
    return finder(_CUT)


def _wide(sign: str) -> str:
    """A sign as it may stand in JSON, and in JSON within JSON."""
    return _PIECE.sub(_spelled, sign)


def _spelled(match: re.Match[str]) -> str:
    piece, least = match[1], match[2]
    if piece == r"\b":
        return r"(?:\b|\\[bfnrt]|\\u[0-9A-Fa-f]{4})"
    if piece == r"\s":
        return r"(?:\s|\\+[fnrt])"
    is_class = piece[0] == "[" and piece[1] != "^"
    # With each layer there are more backslashes.
    grows = least is not None and (piece == r"\\" or (is_class and r"\\" in piece))
    often = f"{{{least},}}" if grows else match[0][len(piece) :]
    is_space = piece == " " or (is_class and " " in piece)
    return (f"(?:{piece}|{_NEXT})" if is_space else piece) + often
