"""The numbers of some homes: by the ledgers of each session, and from a catalog made now."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from pathlib import Path

from clew.analysis.usage import UsageLedger
from clew.catalog.database import folder_of, open_reader
from clew.catalog.search import catalog_text_finder
from clew.catalog.stats import Stats, catalog_stats
from clew.catalog.sync import sync
from clew.filters import Filters
from clew.host import Host
from clew.library import Library
from clew.model.json import JSON

Counts = tuple[int, int | None, int | None, int | None, int | None, int | None]
"""Calls, and tokens: input, output, cache read, cache creation, reasoning."""
_TOKENS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_creation_tokens", "reasoning_tokens")


def from_ledgers(homes: Sequence[Path]) -> dict[str, Counts]:
    """By model, from the ledger of each session."""
    ledger = UsageLedger()
    for session in Library(*map(Host.at, homes)).sources():
        ledger.absorb(session.facts.ledger, f"{session.agent.id} {session.id}")
    found = ledger.by_model().items()
    return {model: (usage.calls, *(getattr(usage, name) for name in _TOKENS)) for model, usage in found}


def from_catalog(homes: Sequence[Path]) -> dict[str, Counts]:
    """By model, from a catalog made now."""
    found = catalogued(homes).by_model().items()
    return {model: (row["calls"], *(row[name] for name in _TOKENS)) for model, row in found}


WAYS: dict[str, Callable[[Sequence[Path]], dict[str, Counts]]] = {"ledgers": from_ledgers, "catalog": from_catalog}


def catalogued(homes: Sequence[Path], **filters: JSON) -> Stats:
    """Statistics from a catalog made now; the data folder must be the test's own."""
    hosts = tuple(map(Host.at, homes))
    folder = folder_of(hosts)
    sync(hosts, folder)
    db = open_reader(folder)
    assert db is not None
    stats = catalog_stats(db, Filters.of(**filters), catalog_text_finder(db, folder))
    weakref.finalize(stats, db.close)
    return stats
