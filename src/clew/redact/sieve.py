"""Which records may hold something at all, told from their JSON text: most are passed by without being read.

The text is searched as it is written, so every sign is looked for in its escaped spelling too, and across the strings
of a list. What is held back is read and looked at closely; what passes holds nothing that a closer look would find.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from itertools import accumulate

from clew.redact import files, layers, names, pii, places
from clew.redact.engine import Engine
from clew.redact.known import Known
from clew.redact.searching import Find, Fuel, finder, plain_finder
from clew.redact.untouched import CALL_IDS, CUT_KEYS

_QUOTE = r'\\*"'
_NEXT = rf"\\+[bfnrt]|{_QUOTE},\s*{_QUOTE}"
"""What a space may be in JSON: an escape, or the border between two words of a command."""
_PIECE = re.compile(r"(\\.|\[(?:\\.|[^\]\\])*\]| )(?:\{(\d+),\d+\})?")
_NAME = rf"(?i:{names.SIGNS}|authorization|cookie|_pat|auth)"
_STRUCTURE = (
    rf'(?:name|key){_QUOTE}\s*:\s*{_QUOTE}[^"\\]{{0,40}}{_NAME}',  # {"name": "DB_PASSWORD", "value": ...}
    rf"{_NAME}{_QUOTE}\s*:\s*\[",
)
_SEAM = (
    rf'\}},\s*\{{\s*(?:{_QUOTE}[^"\\]{{1,20}}{_QUOTE}\s*:\s*(?:{_QUOTE}[^"]{{0,40}}"|[\w\[\]{{}}.-]{{1,20}}),\s*){{0,3}}'
    rf"{_QUOTE}(?:text|thinking){_QUOTE}\s*:\s*{_QUOTE}",
)
_CUT = (rf'"(?:{"|".join(sorted(CUT_KEYS))}){_QUOTE}\s*:',)
_CALL = re.compile(rf'"(?:{"|".join(CALL_IDS)})\\*"\s*:\s*\\*"([^"\\]{{1,200}})'.encode())
# Where this part of the records is left, they are put together anew.
_WORTH = 1.3
_ORIGIN = re.escape('{"type":"clew-origin",')


class Sieve:
    """Holds back the records in which some kinds of things may be found."""

    def __init__(self, engine: Engine, kinds: frozenset[str]) -> None:
        self._engine, self._kinds = engine, kinds

    @cached_property
    def _finds(self) -> list[Find]:
        groups = {
            "secret": [self._engine.context_signs, files.SIGNS],
            "pii": pii.GROUPS,
        }
        found = [finder(map(_wide, group)) for kind in groups if kind in self._kinds for group in groups[kind]]
        if "secret" in self._kinds:
            found += self._engine.find_addresses
        return [*found, finder([*layers.SIGNS, *_STRUCTURE]), finder(_SEAM), finder([_ORIGIN])]

    @cached_property
    def _find_token(self) -> Find:
        return finder(map(_wide, self._engine.token_signs))

    def held(
        self, records: Sequence[bytes], fuel: Fuel | None = None, known: Known | None = None, *, cut: bool = False
    ) -> set[int]:
        """The numbers of the records that must be read: for rules, for known values, for `cut` ones."""
        rest = self._sifted(records, known, cut)
        if "secret" in self._kinds and rest.numbers:
            fuel = Fuel() if fuel is None else fuel
            fuel.earn(sum(map(len, records)))
            rest.hold(self._with_token(records, sorted(rest.touched(self._find_token)), fuel))
        return rest.held

    def crowd(self, sample: Sequence[bytes], count: int, fuel: Fuel, known: Known | None, *, cut: bool) -> float:
        """Which part of so many records must be read, told from some of them. What looks cannot be paid for must."""
        rest = self._sifted(sample, known, cut)
        signed = sorted(rest.touched(self._find_token)) if "secret" in self._kinds else []
        if fuel.covers(len(signed) * count // len(sample)):
            signed = self._with_token(sample, signed, fuel)
        return (len(rest.held) + len(signed)) / len(sample)

    def _sifted(self, records: Sequence[bytes], known: Known | None, cut: bool) -> _Rest:
        """Records, those held back that show a sign of anything but tokens."""
        more = [*(known.finds if known else []), *([_find_cut()] if cut else [])]
        rest = _Rest(records)
        for find in (*self._finds, *more) if self._kinds else ():
            rest.hold(rest.touched(find))
        return rest

    def _with_token(self, records: Sequence[bytes], numbers: list[int], fuel: Fuel) -> list[int]:
        """Those that hold a token. Where the looks are used up, a sign is enough."""
        # What is no JSON is read for no more than a look.
        if not any(records[number].lstrip()[:1] in (b"{", b"[") for number in numbers):
            return numbers
        paid = numbers[: fuel.looks]
        found = self._engine.with_token([records[number] for number in paid], fuel)
        return [paid[index] for index in found] + numbers[len(paid) :]

    def placed(self, records: Sequence[bytes]) -> set[int]:
        """The numbers of the records that may name the person's machine."""
        return _found(records, find_places()) if "path" in self._kinds else set()


def placed_otherwise(records: Sequence[bytes]) -> set[int]:
    """The numbers of those that may name it by something else than a home path."""
    return _found(records, _find_other_places())


def _found(records: Sequence[bytes], finds: Iterable[Find]) -> set[int]:
    rest = _Rest(records)
    for find in finds:
        rest.hold(rest.touched(find))
    return rest.held


class _Rest:
    """Records that may still hold nothing, as one text. Those that are held back are not searched again."""

    def __init__(self, records: Sequence[bytes]) -> None:
        self._records = records
        self.held: set[int] = set()
        self._take(list(range(len(records))))

    def _take(self, numbers: list[int]) -> None:
        self.numbers = numbers
        texts = [self._records[number] for number in numbers]
        self.joined = b"\n".join(texts)
        self._starts = list(accumulate((len(text) + 1 for text in texts[:-1]), initial=0))

    def touched(self, find: Find) -> set[int]:
        """The numbers of those in which something is found."""
        found = {self.numbers[index] for index in _touched(find, self.joined, self._starts)} if self.numbers else set()
        return found - self.held

    def hold(self, found: Iterable[int]) -> None:
        """Hold some back."""
        self.held.update(found)
        if (len(self._records) - len(self.held)) * _WORTH < len(self.numbers):
            self._take([number for number in self.numbers if number not in self.held])


def calls(record: bytes) -> Iterator[str]:
    """The ids of calls that a record has to do with."""
    return (match[1].decode("utf-8", "replace") for match in _CALL.finditer(record))


def names_file(record: bytes) -> bool:
    """True for a record that may name a credential file; an unreadable one may."""
    return not record or _find_file()(record, 0, len(record))[0] >= 0


@lru_cache(maxsize=1)
def find_places() -> tuple[Find, Find]:
    """Finders, in JSON text, of what may name the person's machine."""
    return finder(map(_wide, places.SIGNS)), plain_finder(_wide(places.AT))


@lru_cache(maxsize=1)
def _find_other_places() -> tuple[Find, Find]:
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


def _touched(find: Find, joined: bytes, starts: Sequence[int]) -> Iterator[int]:
    """The numbers of the records in which something is found; `starts` are their places."""
    place, length = 0, len(joined)
    while True:
        start, _ = find(joined, place, length)
        if start < 0:
            return
        number = bisect_right(starts, start) - 1
        yield number
        if number + 1 == len(starts):
            return
        place = starts[number + 1]
