"""The API calls of one session, each once: what it used, when, with which model, on which branch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from msgspec import UNSET

from clew.analysis.usage import FIELDS, MOST, UsageLedger, scoped
from clew.model.json import JSON
from clew.model.usage import TokenUsage

UNKNOWN = -1
"""A count that nobody told."""


Call = list[Any]
"""Model, time, branch and counts of a call, as far as the lines seen so far tell; there are many, so it is plain."""


class Columns(NamedTuple):
    """The calls of a plain session, column by column, each once: summing up columns is quicker than calls."""

    names: Sequence[str]
    models: Sequence[str]
    times: Sequence[JSON]
    branches: Sequence[str | None]
    counts: Sequence[Sequence[int]]
    """One sequence for each of FIELDS."""


class Calls:
    """Collected while a source is read. Lines of one call repeat its counts: the largest of each counts, once."""

    def __init__(self) -> None:
        self.session = ""
        self.is_agent = False
        """True for the session of a sub-agent."""
        self.folder: str | None = None
        self.branch: str | None = None
        """The branch that the session began on, for calls that name none."""
        self.columns: Columns | None = None
        """All calls, where they came as columns."""
        self._by_key: dict[str, Call] = {}

    @property
    def by_key(self) -> dict[str, Call]:
        """The calls by their names."""
        if self.columns is not None:
            names, *facts, counts = self.columns
            rows = zip(*facts, map(list, zip(*counts, strict=True)), strict=True)
            self._by_key = dict(zip(names, map(list, rows), strict=True))
            self.columns = None
        return self._by_key

    @property
    def names(self) -> Sequence[str]:
        """The names of the calls."""
        return self.columns.names if self.columns is not None else list(self._by_key)

    def note(self, key: str, model: str | None, time: JSON, branch: str | None, counts: list[int]) -> None:
        """Note what a line tells of a call, with its counts in the order of FIELDS, UNKNOWN for what is not told."""
        known = self.by_key.get(key)
        if known is None:
            self.by_key[key] = [model or "", time, branch, counts]
        elif counts != known[3]:
            known[3] = list(map(max, sound(counts), sound(known[3])))

    def note_usage(self, key: str, model: str | None, time: JSON, branch: str | None, usage: TokenUsage) -> None:
        """Note the usage that a line reports for a call; a usage without any count is ignored."""
        counts = [UNKNOWN if (count := getattr(usage, name)) is UNSET else count for name in FIELDS]
        if max(counts) != UNKNOWN:
            self.note(key, model, time, branch, counts)

    def take(self, ledger: UsageLedger, times: Sequence[JSON]) -> None:
        """Take over the calls of a ledger; `times` are those of the messages, by their index."""
        for key, model, counts, at in ledger.each():
            self.by_key[scoped(key, self.session)] = [model, times[at - 1] if at else None, None, told(counts)]


def told(counts: Sequence[int | None]) -> list[int]:
    """Counts with a number for what is not told."""
    return [UNKNOWN if count is None else count for count in counts]


def sound(counts: Sequence[int]) -> Sequence[int]:
    """Counts, of which those that cannot be are unknown."""
    if min(counts) >= UNKNOWN and max(counts) <= MOST:
        return counts
    return [count if 0 <= count <= MOST else UNKNOWN for count in counts]
