"""Rows into the catalog. All that is written for a source is written in one transaction, so a kill leaves no half."""

from __future__ import annotations

from clew.catalog.schema import KEYS_PER_SOURCE, TALLIES, add_days, add_indices

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable

    from clew.analysis.pricing import PriceTable
    from clew.catalog.rows import Row, Rows

KEYED = ("message", "block", "call", "token_usage", "recorded_usage", "change", "todo")
"""Tables whose keys tell the source."""
COUNTS = (
    "input_tokens output_tokens cache_creation_tokens cache_read_tokens cache_creation_5m_tokens "
    "cache_creation_1h_tokens reasoning_tokens"
).split()
"""In the order of `analysis.usage.FIELDS`."""


class transaction:
    """All or nothing. The lock is taken at once: a reader that becomes a writer could find itself too late."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def __enter__(self) -> None:
        self._db.execute("BEGIN IMMEDIATE")

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self._db.execute("COMMIT")
        elif self._db.in_transaction:
            self._db.execute("ROLLBACK")


def key_range(source: int) -> tuple[int, int]:
    """The first and the last key that rows of a source can have."""
    return source * KEYS_PER_SOURCE, source * KEYS_PER_SOURCE + KEYS_PER_SOURCE - 1


class _Words(dict[str, int]):
    """The numbers of words that many rows repeat."""

    def __init__(self, db: sqlite3.Connection) -> None:
        super().__init__({"": 0})
        self._db = db

    def __missing__(self, text: str) -> int:
        self._db.execute("INSERT OR IGNORE INTO string (text) VALUES (?)", (text,))
        (number,) = self._db.execute("SELECT id FROM string WHERE text = ?", (text,)).fetchone()
        self[text] = number
        return int(number)


class RowWriter:
    """Writes rows of sources, and counts them."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._words = _Words(db)
        self._prices: PriceTable | None = None
        self.written = 0

    def forget(self) -> None:
        """Words of a transaction that was undone have no number."""
        self._words = _Words(self._db)

    def drop(self, source: int) -> None:
        """Remove all rows of a source. Copies of them in other sources are to be looked at anew."""
        span = key_range(source)
        for table, key in (("message", "event"), ("token_usage", "usage_id")):
            if self._db.execute(f"SELECT 1 FROM {table} WHERE id BETWEEN ? AND ?", span).fetchone() is None:
                continue
            add_indices(self._db)
            self._db.execute(
                f"INSERT OR IGNORE INTO orphaned_key SELECT {key} FROM {table} a WHERE a.id BETWEEN ? AND ? AND EXISTS"
                f" (SELECT 1 FROM {table} b WHERE b.{key} = a.{key} AND b.id NOT BETWEEN ? AND ?)",
                (*span, *span),
            )
        for table in KEYED:
            self._db.execute(f"DELETE FROM {table} WHERE id BETWEEN ? AND ?", span)
        self._db.execute("DELETE FROM session WHERE id = ?", (source,))
        for table in TALLIES:
            self._db.execute(f"DELETE FROM {table} WHERE source = ?", (source,))
        for table in ("pending", "stale"):
            self._db.execute(f"DELETE FROM {table} WHERE doc BETWEEN ? AND ?", span)
        self._db.execute("DELETE FROM text_chunk WHERE first BETWEEN ? AND ?", span)

    def write(self, rows: Rows) -> None:
        """Write what a source told."""
        words = self._words
        messages = [
            (key, shown, event, uuid, parent, time, gap, words[kind], words[role], words[model], words[branch], *more)
            for key, shown, event, uuid, parent, time, gap, kind, role, model, branch, *more in rows.messages
        ]
        blocks = [
            (key, message, idx, words[type_], words[kind], chars, call)
            for key, message, idx, type_, kind, chars, call in rows.blocks
        ]
        self._many("message", 13, messages)
        self._many("block", 7, blocks)
        self._many("call", 8, [(*row[:4], words[row[4]], *row[5:]) for row in rows.calls])
        self._many("change", 6, [(*row[:3], words[row[3]], *row[4:]) for row in rows.changes])
        self._many("todo", 5, rows.todos)
        self._many("token_usage", 16, [self._use(row) for row in rows.uses])
        self._db.executemany("UPDATE call SET result = ?, is_error = ?, duration_us = ? WHERE id = ?", rows.results)
        self.written += len(rows.results)
        add_days(self._db, {row[5] for row in rows.messages} | {row[6] for row in rows.uses})

    def _many(self, table: str, width: int, rows: Iterable[Row]) -> None:
        found = rows if isinstance(rows, list) else list(rows)
        if found:
            marks = ", ".join("?" * width)
            self._db.executemany(f"INSERT OR REPLACE INTO {table} VALUES ({marks})", found)
            self.written += len(found)

    def _use(self, row: Row) -> Row:
        key, shown, name, message, model, branch, time, *counts = row
        cost = self.cost(model, counts)
        priced = cost is not None
        return key, shown, name, message, self._words[model], self._words[branch], time, *counts, cost or 0, int(priced)

    def cost(self, model: str, counts: Iterable[int | None]) -> int | None:
        """What a call costs in nano-dollars; None where nobody knows."""
        if self._prices is None:
            from clew.analysis.pricing import prices

            self._prices = prices()
        fresh, output, created, read, short, long, _ = counts
        if short is None:
            short = max(0, (created or 0) - (long or 0))
        return self._prices.cost(model, fresh or 0, output or 0, read or 0, short, long or 0)

    def session(self, source: int, row: Row, message: int = 0, use: int = 0) -> None:
        """Write the row of a session; of its messages and calls, those behind these numbers are new."""
        marks = ", ".join("?" * (len(row) + 1))
        self._db.execute(f"INSERT OR REPLACE INTO session VALUES ({marks})", (source, *row))
        add_days(self._db, (row[10], row[11]))
        base = source * KEYS_PER_SOURCE
        self._db.execute("INSERT OR IGNORE INTO needs_dedupe VALUES (?, ?, ?)", (source, base + message, base + use))
        self.written += 1
