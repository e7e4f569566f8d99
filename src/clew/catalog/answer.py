"""Where statistics come from: the catalog where it is fresh, else what is counted from the sources."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clew.catalog import database
from clew.catalog.stats import Choice, Stats
from clew.errors import Busy

if TYPE_CHECKING:
    from clew.agents.base import Agent, SourceFile
    from clew.catalog.statements import Statement


def fresh_stats(folder: Path, choice: Choice) -> Stats | None:
    """Statistics from a catalog; None where a source has changed since. Other prices price it anew."""
    from clew.analysis.pricing import prices
    from clew.catalog.sync import is_up_to_date as is_fresh

    db = database.open_reader(folder) if is_fresh(folder) else None
    if db is None:
        return None
    known = db.execute("SELECT value FROM meta WHERE key = 'prices'").fetchone()
    if known is not None and known[0] != prices(os.environ).version and not _repriced(folder):
        db.close()
        return None
    return over(db, choice, is_full=True)


def _repriced(folder: Path) -> bool:
    """Bring the costs in a catalog to the prices of today; False where another process is writing."""
    from clew.catalog.database import transaction
    from clew.catalog.lock import locked
    from clew.catalog.row_writer import update_costs

    try:
        with locked(folder, 0), closing(database.open_writer(folder)) as db, transaction(db):
            update_costs(db)
    except (Busy, sqlite3.OperationalError):
        return False
    return True


def counted_stats(
    sources: Iterable[tuple[Agent, SourceFile]], choice: Choice, *, by: str, by_call: bool = False
) -> tuple[Stats, list[str]]:
    """Statistics counted from the sources, and what of them could not be read."""
    from clew.catalog.counted import database
    from clew.catalog.tally import count

    projects = by in ("project", "session") or choice.project is not None
    by_call = by_call or choice.by_call
    counted, unreadable = count(sources, projects=projects, by_call=by_call)
    named = by == "session" or choice.project is not None
    return over(database(counted, by_call=by_call, named=named), choice, is_full=False), unreadable


def over(db: sqlite3.Connection, choice: Choice, *, is_full: bool) -> Stats:
    """Statistics over open rows."""

    def ask(statement: Statement) -> list[tuple[Any, ...]]:
        return db.execute(statement.text, statement.values).fetchall()

    return Stats(ask, choice, is_full=is_full)
