"""Which records may hold something at all, told from their JSON text: most are passed by without being read.

The text is searched as it is written, so every sign is looked for in its escaped spelling too, and across the strings
of a list. What is held back is read and looked at closely; what passes holds nothing that a closer look would find.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from itertools import accumulate
from typing import NamedTuple

from clew.redact import credential_files, encodings, flat, machine_names, national_ids, pii, secret_names
from clew.redact.engine import Engine
from clew.redact.known_values import Known
from clew.redact.matcher import (
    BORDER,
    TOO_MANY,
    Checks,
    Find,
    Hit,
    LimitedLook,
    Look,
    ends_of,
    finder,
    plain_finder,
    walk,
    walk_limited,
)
from clew.redact.packed import ORIGIN
from clew.redact.skip_rules import CALL_IDS, CUT_KEYS

_QUOTE = r'\\*"'
_NEXT = rf"\\+[bfnrt]|{_QUOTE},\s*{_QUOTE}"
"""What a space may be in JSON: an escape, or the border between two words of a command."""
_PIECE = re.compile(r"(\\.|\[(?:\\.|[^\]\\])*\]| )(?:\{(\d+),\d+\})?")
_OTHER_NAMES = "authorization|cookie|_pat|auth"
_STRUCTURE = (
    # {"name": "DB_PASSWORD", "value": ...}
    rf'(?:name|key){_QUOTE}\s*:\s*{_QUOTE}[^"\\]*(?i:{secret_names.STRONG}|token|{_OTHER_NAMES})',
    rf"(?i:{secret_names.NAMES}|{_OTHER_NAMES}){_QUOTE}\s*:\s*\[",
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


class _Look(NamedTuple):
    """A precise check of candidates in JSON text, by which a record may pass that shows one."""

    find: Find
    """Finds the signs in their escaped spelling."""
    search: Callable[[list[bytes]], list[Hit]]
    """Confirms them in records, which it joins with borders."""

    def held(self, text: bytes, spans: list[Span], begin: int = 0) -> list[Span]:
        """Those of some records, which show a sign, that hold something. There is no sign before `begin`."""
        # What is no JSON is read for no more than a look.
        if not any(text[start : start + 1] in (b"{", b"[", b" ") for start, _ in spans):
            return spans
        records = [text[max(start, begin) : end] for start, end in spans]
        starts = list(accumulate((len(record) + len(BORDER) for record in records), initial=0))
        found = {bisect_right(starts, hit.start) - 1 for hit in self.search(records)}
        return [spans[index] for index in sorted(found)]


def _search_tokens(find: Find, look: LimitedLook) -> Callable[[list[bytes]], list[Hit]]:
    """Confirms tokens; of each record, the first will do."""

    def first(text: bytes, start: int, end: int, checks: Checks) -> tuple[tuple[Hit, ...], int]:
        hits, place = look(text, start, end, checks)
        return hits, _next_record(text, place) if hits else place

    def search(records: list[bytes]) -> list[Hit]:
        plain = flat.without_escapes(BORDER.join(records))
        return walk_limited(find, plain, first, ends_of(records))

    return search


def _search_numbers(find: Find, look: Look) -> Callable[[list[bytes]], list[Hit]]:
    """Confirms numbers. What goes over an escape, which is white space then, is taken for one."""

    def search(records: list[bytes]) -> list[Hit]:
        raw = BORDER.join(records)

        def first(text: bytes, start: int, end: int) -> tuple[tuple[Hit, ...], int]:
            if raw[start:end] != text[start:end]:
                hits, place = (Hit(start, end, TOO_MANY, 0.0),), end
            else:
                hits, place = look(text, start, end)  # type: ignore[assignment]
            return hits, _next_record(text, place) if hits else place

        return walk(find, flat.without_escapes(raw), first)

    return search


def _next_record(text: bytes, place: int) -> int:
    border = text.find(0, place)
    return len(text) if border < 0 else border


class Sieve:
    """Holds back the records in which some kinds of things may be found."""

    def __init__(self, engine: Engine, kinds: frozenset[str]) -> None:
        self._engine, self._kinds = engine, kinds

    @cached_property
    def _finds(self) -> list[Find]:
        found: list[Find] = []
        signs = [*encodings.SIGNS, *encodings.CONTROL_SIGNS, *_STRUCTURE]
        if "secret" in self._kinds:
            # All at once: one search for many signs takes hardly longer than one for few.
            signs += map(_wide, (*self._engine.context_signs, *credential_files.SIGNS))
            found += self._engine.find_addresses
        if "pii" in self._kinds:
            found.append(finder(map(_wide, national_ids.SIGNS)))
        return [finder(signs), *found, finder(_SEAM), finder([re.escape(ORIGIN)])]

    @cached_property
    def _looks(self) -> list[_Look]:
        """What is told by a look at the JSON text itself, so that fewer records are read."""
        looks = []
        if "secret" in self._kinds:
            token = finder(map(_wide, self._engine.token_signs))
            looks.append(_Look(token, _search_tokens(self._engine.find_token, self._engine.look_at_token())))
        if "pii" in self._kinds:
            numbers = [finder(map(_wide, group)) for group in pii.GROUPS]
            looks += [_Look(find, _search_numbers(find, pii.look_in_json)) for find in numbers]
        return looks

    def held(self, records: Sequence[bytes], known: Known | None = None, *, cut: bool = False) -> set[int]:
        """The numbers of the records that must be read: for rules, for known values, for `cut` ones."""
        if len(records) == 1:
            return {0} if self._is_held(records[0], known, cut) else set()
        starts = list(accumulate(map(_with_end, map(len, records)), initial=0))
        found = self.lines(b"\n".join(records), known, cut=cut)
        return {bisect_right(starts, start) - 1 for start, _ in found}

    def lines(self, text: bytes, known: Known | None = None, *, cut: bool = False) -> list[Span]:
        """The same for the lines of a text, each a record: where those stand that must be read. They are in order."""
        rest = _Rest(text)
        for find in self._all_finds(known, cut):
            rest.hold(rest.touched(find))
        for look in self._looks:
            rest.hold(look.held(text, sorted(rest.touched(look.find))))
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

    def _is_held(self, record: bytes, known: Known | None, cut: bool) -> bool:
        """The same for one record, which may have line ends within."""
        size = len(record)
        if any(find(record, 0, size)[0] >= 0 for find in self._all_finds(known, cut)):
            return True
        for look in self._looks:
            sign = look.find(record, 0, size)[0]
            if sign >= 0 and look.held(record, [(0, size)], record.rfind(b"\n", 0, sign) + 1):
                return True
        return False

    def _all_finds(self, known: Known | None, cut: bool) -> list[Find]:
        if not self._kinds:
            return []
        return [*self._finds, *_since(known, cut)]

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

    def touched(self, find: Find) -> set[Span]:
        """Those in which something is found."""
        text, found = self._text, set[Span]()
        place, length = 0, len(text)
        while place < length and (at := find(text, place, length)[0]) >= 0:
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


@lru_cache(maxsize=1)
def find_places() -> tuple[Find, Find]:
    """Finders, in JSON text, of what may name the person's machine."""
    return finder(map(_wide, machine_names.SIGNS)), plain_finder(_wide(machine_names.AT))


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
