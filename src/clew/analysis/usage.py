"""Tokens counted once, whatever the source repeats."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence

import msgspec

TOKEN_FIELDS = (
    "input_tokens",
    "output_tokens",
    "cache_creation_tokens",
    "cache_read_tokens",
    "cache_creation_5m_tokens",
    "cache_creation_1h_tokens",
    "reasoning_tokens",
)
"""The token counters of an API call, in the order in which all modules pass and store them."""
_UNKNOWN = -1
_CREATED, _SHORT, _LONG = map(TOKEN_FIELDS.index, TOKEN_FIELDS[2:3] + TOKEN_FIELDS[4:6])
UNNAMED_CALL_PREFIX = "line "
"""The key of a call without an id is this prefix and its line; it is unique only within its session."""
_UUID_LENGTH = 36
MOST = 10**10
"""A larger count is no count, and neither is one below zero."""


class Usage(msgspec.Struct, frozen=True):
    """Sums over API calls. None: no call said anything about it."""

    calls: int = 0
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_creation_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_creation_5m_tokens: int | None = None
    cache_creation_1h_tokens: int | None = None
    reasoning_tokens: int | None = None

    @property
    def total_tokens(self) -> int | None:
        """Input plus output; None where neither is known."""
        if self.input_tokens is None and self.output_tokens is None:
            return None
        return (self.input_tokens or 0) + (self.output_tokens or 0)

    @property
    def cache_hit_rate(self) -> float | None:
        """Share of cached input that was read, not written; None where nothing was cached."""
        read, written = self.cache_read_tokens or 0, self.cache_creation_tokens or 0
        return read / (read + written) if read + written else None

    def __add__(self, other: Usage) -> Usage:
        sums = [_add(getattr(self, name), getattr(other, name)) for name in TOKEN_FIELDS]
        return Usage(self.calls + other.calls, *sums)


def _add(left: int | None, right: int | None) -> int | None:
    if left is None or right is None:
        return right if left is None else left
    return left + right


def call_of_message(uuid: str | None, record: int) -> str:
    """The name of a call that only its message names. Ids that are no UUIDs may occur in other sessions too."""
    if uuid is not None and len(uuid) == _UUID_LENGTH:
        return uuid
    return f"{UNNAMED_CALL_PREFIX}{record if uuid is None else uuid}"


def scoped(call: str, session: str) -> str:
    """A name that is the call's alone, whatever sessions there are."""
    return f"{session} {call}" if call.startswith(UNNAMED_CALL_PREFIX) else call


def created(total: int, short: int, long: int) -> int:
    """Tokens written to a cache, from the total and its parts, as far as recorded; the parts are preferred."""
    if short != _UNKNOWN:
        return short + max(0, long)
    return total if total != _UNKNOWN else long


class UsageLedger:
    """Usage by API call: the lines of one call repeat its counts, so the largest of each counts once."""

    def __init__(self) -> None:
        self._rows: dict[str, int] = {}
        self._models: dict[str, int] = {}
        self._counts = array("q")
        self._row_models = array("I")
        self._places = array("I")
        self._last_call: str | None = None
        self._last_counts: Sequence[int | None] = ()

    def __len__(self) -> int:
        return len(self._rows)

    def note(self, call: str, model: str | None, counts: Sequence[int | None], at: int = 0) -> None:
        """Note the counts a line gives for the call, in the order of TOKEN_FIELDS; `at` is the index of its message."""
        if call == self._last_call and counts == self._last_counts:
            return
        self._last_call, self._last_counts = call, counts
        row = self._rows.get(call)
        if row is None:
            row = self._open(call, model)
            self._places.append(at)
            known = [_UNKNOWN if count is None else count for count in counts]
            if min(known) < _UNKNOWN or max(known) > MOST:
                known = [count if 0 <= count <= MOST else _UNKNOWN for count in known]
            self._counts.extend(known)
            return
        at = row * len(TOKEN_FIELDS)
        before = self._counts[at : at + len(TOKEN_FIELDS)]
        for offset, count in enumerate(counts):
            if count is not None and before[offset] < count <= MOST:
                self._counts[at + offset] = count

    def _open(self, call: str, model: str | None) -> int:
        row = self._rows[call] = len(self._rows)
        self._row_models.append(self._models.setdefault(model or "", len(self._models)))
        return row

    def each(self) -> Iterator[tuple[str, str, tuple[int | None, ...], int]]:
        """Every call with its model, its counts, and the index of the message it was first noted for, or 0."""
        names, width = list(self._models), len(TOKEN_FIELDS)
        for call, row in self._rows.items():
            counts = self._counts[row * width : (row + 1) * width]
            known = tuple([None if count == _UNKNOWN else count for count in counts])
            yield call, names[self._row_models[row]], known, self._places[row]

    def absorb(self, other: UsageLedger, session: str) -> None:
        """Add the calls of a session; a call that is there already counts once."""
        names = list(other._models)
        for call, row in other._rows.items():
            at = row * len(TOKEN_FIELDS)
            counts = other._counts[at : at + len(TOKEN_FIELDS)]
            self.note(scoped(call, session), names[other._row_models[row]], counts)

    def by_model(self) -> dict[str, Usage]:
        """Totals by model name; the empty name stands for calls that name none."""
        width = len(TOKEN_FIELDS)
        if len(self._models) == 1:
            (name,) = self._models
            columns = [self._counts[offset::width] for offset in range(width)]
            columns[_CREATED] = array("q", map(created, columns[_CREATED], columns[_SHORT], columns[_LONG]))
            return {name: Usage(len(self._rows), *[_sum(column) for column in columns])}
        sums = [[0] * (width + 1) for _ in self._models]
        known = [[False] * width for _ in self._models]
        for row, model in enumerate(self._row_models):
            total, seen = sums[model], known[model]
            total[width] += 1
            counts = self._counts[row * width : (row + 1) * width]
            counts[_CREATED] = created(counts[_CREATED], counts[_SHORT], counts[_LONG])
            for offset, count in enumerate(counts):
                if count != _UNKNOWN:
                    total[offset] += count
                    seen[offset] = True
        return {name: _usage(sums[at], known[at]) for name, at in self._models.items()}

    def total(self) -> Usage:
        """The sum over all models."""
        return sum(self.by_model().values(), Usage())


def _sum(column: array[int]) -> int | None:
    """The sum of what is known; None where nothing is."""
    unknown = column.count(_UNKNOWN)
    return sum(column) - _UNKNOWN * unknown if unknown < len(column) else None


def _usage(sums: list[int], known: list[bool]) -> Usage:
    return Usage(sums[-1], *[total if seen else None for total, seen in zip(sums, known, strict=False)])
