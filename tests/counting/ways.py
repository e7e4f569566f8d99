"""The three ways to the same numbers: the facts of each session, the quick tally, and the catalog."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from clew.catalog.answer import over
from clew.catalog.counted import database
from clew.catalog.database import folder_of, open_reader
from clew.catalog.stats import Choice, Stats
from clew.catalog.sync import sync
from clew.catalog.tally import count
from clew.host import Host
from clew.library import Library

Counts = tuple[int, int | None, int | None, int | None, int | None, int | None]
"""Calls, and tokens: input, output, cache read, cache creation, reasoning."""
_TOKENS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_creation_tokens", "reasoning_tokens")


def from_facts(homes: Sequence[Path]) -> dict[str, Counts]:
    """By model, from the ledgers of the first pass."""
    found = Library(*map(Host.at, homes)).usage()
    return {model: (usage.calls, *(getattr(usage, name) for name in _TOKENS)) for model, usage in found.items()}


def from_tally(homes: Sequence[Path]) -> dict[str, Counts]:
    """By model, from the quick pass."""
    return _by_model(tallied(homes, by_call=False))


def from_catalog(homes: Sequence[Path]) -> dict[str, Counts]:
    """By model, from a catalog made now."""
    return _by_model(catalogued(homes))


WAYS: dict[str, Callable[[Sequence[Path]], dict[str, Counts]]] = {
    "facts": from_facts,
    "tally": from_tally,
    "catalog": from_catalog,
}


def _by_model(stats: Stats) -> dict[str, Counts]:
    found = stats.by_model().items()
    return {model: (row["calls"], *(row[name] for name in _TOKENS)) for model, row in found}


def tallied(homes: Sequence[Path], choice: Choice | None = None, *, by_call: bool = True) -> Stats:
    """Statistics without a catalog."""
    shelf = Library(*map(Host.at, homes))
    counted, unreadable = count(((each.agent, each.source) for each in shelf.sources()), projects=True, by_call=by_call)
    assert unreadable == []
    return over(database(counted, by_call=by_call), choice or Choice(), is_full=False)


def catalogued(homes: Sequence[Path], choice: Choice | None = None) -> Stats:
    """Statistics from a catalog made now; the data folder must be the test's own."""
    hosts = tuple(map(Host.at, homes))
    folder = folder_of(hosts)
    sync(hosts, folder)
    db = open_reader(folder)
    assert db is not None
    return over(db, choice or Choice(), is_full=True)
