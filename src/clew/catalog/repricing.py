"""Costs, made anew where the prices are others than when they were made."""

from __future__ import annotations

import sqlite3

from clew.analysis.pricing import prices
from clew.catalog.row_writer import COUNTS, RowWriter
from clew.catalog.schema import TALLY


def reprice(db: sqlite3.Connection) -> None:
    """Bring all costs to the prices of today; the sums follow."""
    version = prices().version
    known = db.execute("SELECT value FROM meta WHERE key = 'prices'").fetchone()
    if known is not None and known[0] == version:
        return
    db.execute("INSERT OR REPLACE INTO meta VALUES ('prices', ?)", (version,))
    if known is None:
        return
    writer = RowWriter(db)
    names = ", ".join(f"u.{name}" for name in COUNTS)
    changed = []
    known_cost = "CASE u.is_priced WHEN 1 THEN u.cost_nano END"
    query = f"SELECT u.id, w.text, {names}, {known_cost} FROM token_usage u JOIN string w ON w.id = u.model"
    for number, model, *counts, before in db.execute(query):
        cost = writer.cost(model, counts)
        if cost != before:
            changed.append((cost or 0, int(cost is not None), number))
    db.executemany("UPDATE token_usage SET cost_nano = ?, is_priced = ? WHERE id = ?", changed)
    db.execute("DELETE FROM usage_by_day")
    db.execute(TALLY, (0, 2**63 - 1))
