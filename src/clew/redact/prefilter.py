"""Finds the records that must be read: a record without any candidate in its JSON text is passed by unread.

The text is searched as it is written, so every candidate pattern is widened to match its escaped spellings, and values
across the strings of a list. A record that passes holds nothing that scanning its strings would find.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Container, Iterator
from functools import cached_property, lru_cache
from io import BytesIO
from itertools import accumulate
from typing import NamedTuple

from clew.redact import credential_files, encodings, machine_names, pii, secret_names
from clew.redact.json_walk import CALL_IDS, CUT_KEYS
from clew.redact.lazy_pattern import lazy_compile
from clew.redact.matcher import (
    LARGE_MEMORY_BYTES,
    TEXT_SEPARATOR,
    TOO_MANY_CANDIDATES,
    Check,
    CheckLimit,
    Find,
    LimitedCheck,
    Match,
    all_spans,
    compile_finder,
    compile_plain_finder,
    ends_of,
    find_limited_matches,
    find_matches,
)
from clew.redact.packed import ORIGIN
from clew.redact.scanner import Rules

_QUOTE = r'\\*"'
_SPACE_SPELLINGS = rf"\\+[bfnrt]|{_QUOTE},\s*{_QUOTE}"
"""What may stand in JSON for a space: an escape, or the separator of two words of a command."""
_PIECE = lazy_compile(r"(\\.|\[(?:\\.|[^\]\\])*\]| )(?:\{(\d+),\d+\})?")
_OTHER_NAMES = "authorization|cookie|_pat|auth"
_STRUCTURE = (
    # {"name": "DB_PASSWORD", "value": ...}
    rf'(?:name|key){_QUOTE}\s*:\s*{_QUOTE}[^"\\]*(?i:{secret_names.STRONG}|token|{_OTHER_NAMES})',
    rf"(?i:{secret_names.NAMES}|{_OTHER_NAMES}){_QUOTE}\s*:\s*\[",
)
_BOUNDARY = (
    rf'\}},\s*\{{\s*(?:{_QUOTE}[^"\\]{{1,20}}{_QUOTE}\s*:\s*(?:{_QUOTE}[^"]{{0,40}}"|[\w\[\]{{}}.-]{{1,20}}),\s*){{0,3}}'
    rf"{_QUOTE}(?:text|thinking){_QUOTE}\s*:\s*{_QUOTE}",
)
_CUT = (rf'"(?:{"|".join(sorted(CUT_KEYS))}){_QUOTE}\s*:',)
_CALL = lazy_compile(rf'"(?:{"|".join(CALL_IDS)})\\*"\s*:\s*\\*"([^"\\]{{1,200}})'.encode())
_JSON_RECORD = lazy_compile(rb"\s*+[{\[]")
UNFILTERED_RUN_BYTES = 4 << 20
"""The first bytes of a run are read without the prefilter: building its automata takes longer than that."""
_MAX_UNFILTERED_TEXT_BYTES = 512 << 10
"""A longer text is always filtered: a record with too many strings (`MAX_STRINGS`) is masked whole if it is read."""
Span = tuple[int, int]
"""Offsets of the beginning of a line and of the next one."""


class _ConfirmedCandidates(NamedTuple):
    """Candidates that are so frequent that they are checked in the JSON text before a record is read."""

    find: Find
    """Finds the candidates in their escaped spellings."""
    search: Callable[[list[bytes]], list[Match]]
    """Confirms candidates in records. Offsets of matches count in the records joined with `TEXT_SEPARATOR`."""

    def confirm(self, text: bytes, spans: list[Span]) -> list[Span]:
        """Return those of some records with candidates in which a check confirms one."""
        json_spans = [span for span in spans if _JSON_RECORD.match(text, *span)]
        records = [text[start:end] for start, end in json_spans]
        starts = list(accumulate((len(record) + len(TEXT_SEPARATOR) for record in records), initial=0))
        found = {json_spans[bisect_right(starts, hit.start) - 1] for hit in self.search(records)} if records else set()
        # The backslashes of a text that is not JSON are not escapes, so it is always read.
        return [span for span in spans if span in found or not _JSON_RECORD.match(text, *span)]


def _search_tokens(find: Find, check: LimitedCheck) -> Callable[[list[bytes]], list[Match]]:
    """Return a search that confirms tokens; of each record, the first is enough."""

    def first(text: bytes, start: int, end: int, checks: CheckLimit) -> tuple[tuple[Match, ...], int]:
        hits, place = check(text, start, end, checks)
        return hits, _next_record(text, place) if hits else place

    def search(records: list[bytes]) -> list[Match]:
        raw, ends = TEXT_SEPARATOR.join(records), ends_of(records)
        # A record may look like JSON without being JSON. Then `\b` and `\f` are the ends of names, not escapes.
        texts = dict.fromkeys((raw, encodings.blank_json_escapes(raw)))
        return [match for text in texts for match in find_limited_matches(find, text, first, ends)]

    return search


def _search_numbers(find: Find, check: Check) -> Callable[[list[bytes]], list[Match]]:
    """Return a search that confirms numbers. A candidate across an escape, which is blanked, counts as confirmed."""

    def search(records: list[bytes]) -> list[Match]:
        raw = TEXT_SEPARATOR.join(records)

        def first(text: bytes, start: int, end: int) -> tuple[tuple[Match, ...], int]:
            if raw[start:end] != text[start:end]:
                hits, place = (Match(start, end, TOO_MANY_CANDIDATES, 0.0),), end
            else:
                hits, place = check(text, start, end)  # type: ignore[assignment]
            return hits, _next_record(text, place) if hits else place

        return find_matches(find, encodings.blank_json_escapes(raw), first)

    return search


def _next_record(text: bytes, place: int) -> int:
    border = text.find(0, place)
    return len(text) if border < 0 else border


class Prefilter:
    """Finds the records in which rules may find something of some kinds."""

    def __init__(self, rules: Rules, kinds: frozenset[str]) -> None:
        self._secrets, self._kinds = rules.secrets, kinds
        self._bytes_seen = 0

    def count_and_should_filter(self, size: int) -> bool:
        """Count the bytes of a text to read; return whether the prefilter pays off for it."""
        self._bytes_seen += size
        return size > _MAX_UNFILTERED_TEXT_BYTES or self._bytes_seen > UNFILTERED_RUN_BYTES

    @cached_property
    def _finders(self) -> list[Find]:
        found: list[Find] = []
        signs = [*encodings.SIGNS, *encodings.CONTROL_SIGNS, *_STRUCTURE]
        if "secret" in self._kinds:
            # One search for many patterns takes hardly longer than one for few.
            signs += map(_wide, (*self._secrets.context_signs, *credential_files.SIGNS))
            # The spaces in a value of several lines have spellings in JSON that the check of tokens does not know.
            signs += map(re.escape, self._secrets.multi_line_prefixes)
            found += self._secrets.find_addresses
        if "pii" in self._kinds:
            found.append(compile_finder(map(_wide, pii.NATIONAL_PATTERNS)))
        if "path" in self._kinds:
            found += [compile_finder(map(_wide, machine_names.SIGNS)), compile_plain_finder(_wide(machine_names.AT))]
        found += [compile_finder(_BOUNDARY), compile_finder([re.escape(ORIGIN)])]
        return [compile_finder(signs, LARGE_MEMORY_BYTES), *found]

    @cached_property
    def _confirmed(self) -> list[_ConfirmedCandidates]:
        confirmed = []
        if "secret" in self._kinds:
            search = _search_tokens(self._secrets.find_token, self._secrets.token_check())
            confirmed.append(_ConfirmedCandidates(compile_finder(map(_wide, self._secrets.token_signs)), search))
        if "pii" in self._kinds:
            numbers = [compile_finder(map(_wide, group)) for group in pii.GROUPS]
            confirmed += [_ConfirmedCandidates(find, _search_numbers(find, pii.check_in_json)) for find in numbers]
        return confirmed

    def lines_to_read(self, text: bytes) -> list[Span]:
        """Return the lines of a text, each a record, that must be read, in order."""
        if not self._kinds:
            return []
        found: set[Span] = set()
        for find in self._finders:
            found.update(lines_with(find, text))
        for candidates in self._confirmed:
            spans = [span for span in lines_with(candidates.find, text) if span not in found]
            found.update(candidates.confirm(text, spans))
        return sorted(found)

    def must_read(self, record: bytes) -> bool:
        """Tell whether a record, which may have line ends within, must be read."""
        if not self._kinds:
            return False
        size = len(record)
        return any(find(record, 0, size)[0] >= 0 for find in self._finders) or any(
            candidates.find(record, 0, size)[0] >= 0 and candidates.confirm(record, [(0, size)])
            for candidates in self._confirmed
        )


@lru_cache(maxsize=16)
def prefilter_for(rules: Rules, kinds: frozenset[str]) -> Prefilter | None:
    """Return the prefilter of some rules; None if a user added rules, which may match anywhere."""
    return None if rules.has_user_rules else Prefilter(rules, kinds)


def lines_with(find: Find, text: bytes) -> list[Span]:
    """Return the lines of a text in which a finder finds something."""
    found = []
    place, length = 0, len(text)
    while place < length and (at := find(text, place, length)[0]) >= 0:
        span = line_around(text, at)
        found.append(span)
        place = span[1]
    return found


def line_around(text: bytes, offset: int) -> Span:
    """Return the line that an offset is in."""
    return text.rfind(b"\n", 0, offset) + 1, text.find(b"\n", offset) + 1 or len(text)


def all_lines(text: bytes) -> list[Span]:
    """Return every line of a text."""
    ends = list(accumulate(map(len, BytesIO(text))))
    return list(zip([0, *ends], ends, strict=False))


def calls_in(text: bytes, calls: Container[str]) -> Iterator[int]:
    """Yield the offsets in JSON text at which one of some calls is named."""
    return (match.start() for match in _CALL.finditer(text) if match[1].decode("utf-8", "replace") in calls)


def find_truncatable(text: bytes) -> Iterator[int]:
    """Yield the offsets in JSON text of keys whose strings may be cut off."""
    return (start for start, _ in all_spans(_truncatable_finder(), text))


@lru_cache(maxsize=1)
def _truncatable_finder() -> Find:
    return compile_finder(_CUT)


def _wide(sign: str) -> str:
    """Widen a candidate pattern to its spellings in JSON, and in JSON within JSON."""
    return _PIECE.sub(_widen_piece, sign)


def _widen_piece(match: re.Match[str]) -> str:
    piece, least = match[1], match[2]
    if piece == r"\b":
        return r"(?:\b|\\[bfnrt]|\\u[0-9A-Fa-f]{4})"
    if piece == r"\s":
        return r"(?:\s|\\+[fnrt])"
    is_class = piece[0] == "[" and piece[1] != "^"
    # Each layer of JSON adds backslashes.
    grows = least is not None and (piece == r"\\" or (is_class and r"\\" in piece))
    often = f"{{{least},}}" if grows else match[0][len(piece) :]
    if is_class and r"\n" in piece and " " not in piece:
        return rf"(?:{piece}|\\+[nr])" + often
    is_space = piece == " " or (is_class and " " in piece)
    return (f"(?:{piece}|{_SPACE_SPELLINGS})" if is_space else piece) + often
