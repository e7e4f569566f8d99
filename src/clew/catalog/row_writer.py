"""Writes the rows of sources into the catalog, and deletes them."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from clew.analysis.pricing import PriceTable, prices
from clew.analysis.usage import TOKEN_FIELDS
from clew.catalog.database import key_range
from clew.catalog.project_name_rows import PROJECT_NAMES, write_names
from clew.catalog.rows import Row, Rows
from clew.catalog.schema import SUMS, add_days, add_indices
from clew.catalog.text_store import SourceTextWriter, mark_session_unindexed, mark_unindexed
from clew.catalog.titles import USER_TITLES

USAGE_TABLES = ("token_usage", "recorded_usage")
MESSAGE_TABLES = ("message", "block", "call", "credential_call", "change", "todo", "commit_mention")
"""Tables whose keys tell the source: those that every sync writes, and those that need `SyncLevel.MESSAGES`."""


class _StringIds(dict[str, int]):
    """The keys of strings that many rows repeat."""

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
        self._ids = _StringIds(db)
        self._prices: PriceTable | None = None
        self._project_names: dict[str, str] | None = None
        self._titles: dict[str, str] | None = None
        self.written = 0

    def forget_strings(self) -> None:
        """After a rollback: strings that it removed have no key."""
        self._ids = _StringIds(self._db)

    def delete_rows(self, source: int) -> None:
        """Delete the rows of a source, but not its text. Copies of them in other sources need another dedupe."""
        span = key_range(source)
        self._note_copies("message", "event", span)
        hidden = "SELECT id FROM message WHERE id BETWEEN ? AND ? AND is_visible = 0"
        # The index does not hold the text of hidden messages. Written again, they are visible at first.
        mark_unindexed(self._db, [message for (message,) in self._db.execute(hidden, span).fetchall()])
        for table in MESSAGE_TABLES:
            self._db.execute(f"DELETE FROM {table} WHERE id BETWEEN ? AND ?", span)
        self.delete_session(source)

    def delete_session(self, source: int) -> None:
        """Delete the session of a source and its token usage; messages stay as they were read last."""
        span = key_range(source)
        self._note_copies("token_usage", "usage_id", span)
        for table in USAGE_TABLES:
            self._db.execute(f"DELETE FROM {table} WHERE id BETWEEN ? AND ?", span)
        if self._db.execute("SELECT 1 FROM session WHERE id = ? AND is_visible = 0", (source,)).fetchone() is not None:
            # The index does not hold its title. Written again, it is visible at first.
            mark_session_unindexed(self._db, source)
        self._db.execute("DELETE FROM session WHERE id = ?", (source,))
        # Its sums stay until they are computed again, so that statistics include the source meanwhile.
        self._db.execute("INSERT OR IGNORE INTO needs_dedupe VALUES (?)", (source,))

    def _note_copies(self, table: str, key: str, span: tuple[int, int]) -> None:
        """Record the keys of rows that have copies in other sources, before they are deleted."""
        if self._db.execute(f"SELECT 1 FROM {table} WHERE id BETWEEN ? AND ?", span).fetchone() is None:
            return
        add_indices(self._db, [table])
        self._db.execute(
            f"INSERT OR IGNORE INTO orphaned_key SELECT {key} FROM {table} a WHERE a.id BETWEEN ? AND ? AND EXISTS"
            f" (SELECT 1 FROM {table} b WHERE b.{key} = a.{key} AND b.id NOT BETWEEN ? AND ?)",
            (*span, *span),
        )

    def delete_source(self, source: int) -> None:
        """Delete all that the catalog holds of a source: rows, text, side files and the source itself."""
        self.delete_rows(source)
        SourceTextWriter(self._db, source).finish()
        self._db.execute("DELETE FROM side_file WHERE owner = ?", (source,))
        for table in ("needs_dedupe", "unread_messages", *SUMS):
            self._db.execute(f"DELETE FROM {table} WHERE source = ?", (source,))
        self._db.execute("DELETE FROM source WHERE id = ?", (source,))

    def write(self, rows: Rows) -> None:
        """Write rows of a source."""
        ids = self._ids
        messages = [
            (key, visible, event, uuid, parent, time, gap, ids[kind], ids[role], ids[model], ids[branch], *more)
            for key, visible, event, uuid, parent, time, gap, kind, role, model, branch, *more in rows.messages
        ]
        blocks = [
            (key, message, idx, ids[type_], ids[kind], chars, call)
            for key, message, idx, type_, kind, chars, call in rows.blocks
        ]
        self._insert("message", 13, messages)
        self._insert("block", 7, blocks)
        self._insert("call", 8, [(*row[:4], ids[row[4]], *row[5:]) for row in rows.calls])
        self._insert("credential_call", 1, rows.credential_calls)
        self._insert("change", 6, [(*row[:3], ids[row[3]], *row[4:]) for row in rows.changes])
        self._insert("todo", 5, rows.todos)
        self._insert("commit_mention", 7, rows.commit_mentions)
        self._insert("token_usage", 16, [self._usage_row(row) for row in rows.uses])
        self._db.executemany("UPDATE call SET result = ?, is_error = ?, duration_us = ? WHERE id = ?", rows.results)
        self.written += len(rows.results)
        add_days(self._db, {row[5] for row in rows.messages} | {row[6] for row in rows.uses})

    def _insert(self, table: str, width: int, rows: list[Row]) -> None:
        if rows:
            marks = ", ".join("?" * width)
            self._db.executemany(f"INSERT OR REPLACE INTO {table} VALUES ({marks})", rows)
            self.written += len(rows)

    def _usage_row(self, row: Row) -> Row:
        key, visible, name, message, model, branch, time, *counts = row
        cost = self.cost(model, counts)
        ids = self._ids[model], self._ids[branch]
        return key, visible, name, message, *ids, time, *counts, cost or 0, int(cost is not None)

    def cost(self, model: str, counts: Sequence[int | None]) -> int | None:
        """What a call costs in nano-dollars; None for a model without a known price."""
        if self._prices is None:
            self._prices = prices()
        return self._prices.cost_of_call(model, counts)

    def write_session(self, source: int, row: Row, message_uuids: bytes = b"") -> None:
        """Write the row of a session, whose other rows are written."""
        marks = ", ".join("?" * (len(row) + 2))
        self._db.execute(f"INSERT OR REPLACE INTO session VALUES ({marks})", (source, *row, message_uuids))
        add_days(self._db, (row[10], row[11]))
        self._db.execute("INSERT OR IGNORE INTO needs_dedupe VALUES (?)", (source,))
        if self._project_names is None or self._titles is None:
            self._project_names, self._titles = PROJECT_NAMES.written(self._db), USER_TITLES.written(self._db)
        if self._project_names:
            write_names(self._db, self._project_names, source)
        if title := self._titles.get(row[1]):
            self._db.execute("UPDATE session SET title = ? WHERE id = ?", (title, source))
        self.written += 1


def update_costs(db: sqlite3.Connection) -> None:
    """Compute all costs and their sums again if the prices have changed."""
    version = prices().version
    known = db.execute("SELECT value FROM meta WHERE key = 'prices'").fetchone()
    if known is not None and known[0] == version:
        return
    db.execute("INSERT OR REPLACE INTO meta VALUES ('prices', ?)", (version,))
    if known is None:
        return
    writer = RowWriter(db)
    counts = ", ".join(f"u.{name}" for name in TOKEN_FIELDS)
    cost_before = "CASE u.is_priced WHEN 1 THEN u.cost_nano END"
    query = f"SELECT u.id, w.text, {cost_before}, {counts} FROM token_usage u JOIN string w ON w.id = u.model"
    changed = []
    for key, model, before, *values in db.execute(query):
        cost = writer.cost(model, values)
        if cost != before:
            changed.append((cost or 0, int(cost is not None), key))
    db.executemany("UPDATE token_usage SET cost_nano = ?, is_priced = ? WHERE id = ?", changed)
    db.execute("DELETE FROM usage_by_quarter_hour")
    db.execute(SUMS["usage_by_quarter_hour"], (0, 2**63 - 1))
