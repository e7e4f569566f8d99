"""Which records may hold something at all, told from their JSON text: most are passed by without being read.

The text is searched as it is written, so every sign is looked for in its escaped spelling too, and across the strings
of a list. What is held back is read and looked at closely; what passes holds nothing that a closer look would find.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache
from itertools import accumulate

from clew.redact import files, layers, names, pii, places
from clew.redact.engine import Engine
from clew.redact.known import Known
from clew.redact.searching import Find, finder
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
_ORIGIN = re.escape('{"type":"clew-origin",')


class Sieve:
    """Holds back the records in which some kinds of things may be found."""

    def __init__(self, engine: Engine, kinds: frozenset[str]) -> None:
        self._engine, self._kinds = engine, kinds

    @cached_property
    def _finds(self) -> list[Find]:
        groups = {
            "secret": [[*self._engine.context_signs, *files.SIGNS]],
            "pii": pii.GROUPS,
            "path": [places.SIGNS],
        }
        found = [finder(map(_wide, group)) for kind in groups if kind in self._kinds for group in groups[kind]]
        return [*found, finder([*layers.SIGNS, *_STRUCTURE]), finder(_SEAM), finder([_ORIGIN])]

    @cached_property
    def _find_token(self) -> Find:
        return finder(map(_wide, self._engine.token_signs))

    def held(self, records: Sequence[bytes], known: Known | None = None, *, cut: bool = False) -> set[int]:
        """The numbers of the records that must be looked at: for rules, for known values, for `cut` ones."""
        if not self._kinds:
            return set()
        joined = b"\n".join(records)
        starts = list(accumulate((len(record) + 1 for record in records[:-1]), initial=0))
        more = [*([known.find] if known else []), *([_find_cut()] if cut else [])]
        held = {number for find in (*self._finds, *more) for number in _touched(find, joined, starts)}
        if "secret" in self._kinds:
            signed = set(_touched(self._find_token, joined, starts)) - held
            held |= {number for number in signed if self._engine.has_token(records[number])}
        return held


def calls(record: bytes) -> Iterator[str]:
    """The ids of calls that a record has to do with."""
    return (match[1].decode("utf-8", "replace") for match in _CALL.finditer(record))


def names_file(record: bytes) -> bool:
    """True for a record that may name a credential file; an unreadable one may."""
    return not record or _find_file()(record, 0, len(record))[0] >= 0


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
