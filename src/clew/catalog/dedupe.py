"""Chooses which of several copies of a message, an API call or a session is visible.

The choice depends on the copies alone, never on the order in which they were read.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

from clew.analysis.usage import TOKEN_FIELDS
from clew.catalog.database import key_range
from clew.catalog.portable_sql import DUPLICATE_ORDER, SESSION_ORDER
from clew.catalog.row_writer import RowWriter
from clew.catalog.schema import KEYS_PER_SOURCE, SUMS
from clew.catalog.text_store import mark_session_unindexed, mark_unindexed

MANY_SOURCES = 64
"""From this many sources on, one query over all keys is faster than one for each source."""

CATALOG_ORDER = f"f.state = 'gone', {DUPLICATE_ORDER}, f.path, t.id"
"""Files that still exist first."""

_MESSAGE_COPIES = f"""
SELECT t.id, t.is_visible
FROM message t JOIN session s ON s.id = t.id / {KEYS_PER_SOURCE} JOIN source f ON f.id = s.id
WHERE t.event = ? ORDER BY {CATALOG_ORDER}
"""
_USAGE_COPIES = f"""
SELECT t.id, t.is_visible, f.state = 'gone', {", ".join("t." + name for name in TOKEN_FIELDS)}, w.text
FROM token_usage t JOIN session s ON s.id = t.id / {KEYS_PER_SOURCE} JOIN source f ON f.id = s.id
  JOIN string w ON w.id = t.model
WHERE t.usage_id = ? ORDER BY {CATALOG_ORDER}
"""
_SESSION_COPIES = f"""
SELECT s.id, s.is_visible FROM session s JOIN source f ON f.id = s.id
WHERE s.session_id = ? ORDER BY f.state = 'gone', {SESSION_ORDER}, f.path
"""
_RESTORE_COUNTS = f"""
UPDATE token_usage SET {", ".join(f"{name} = o.{name}" for name in TOKEN_FIELDS)} FROM recorded_usage o
WHERE token_usage.usage_id = ? AND o.id = token_usage.id
"""


def update_visible_copies(db: sqlite3.Connection) -> None:
    """Choose among the copies of everything that was written or deleted since the last call."""
    sources = [source for (source,) in db.execute("SELECT source FROM needs_dedupe")]
    orphaned = [key for (key,) in db.execute("SELECT key FROM orphaned_key")]
    if not sources and not orphaned:
        return
    changed = _update_messages(db, _copied_keys(db, "message", "event", sources, orphaned))
    mark_unindexed(db, changed)
    touched = {*sources, *(message // KEYS_PER_SOURCE for message in changed)}
    touched |= _update_usage(db, _copied_keys(db, "token_usage", "usage_id", sources, orphaned))
    _update_sessions(db, sources)
    for first, last in _consecutive_ranges(sorted(touched)):
        for table, insert in SUMS.items():
            db.execute(f"DELETE FROM {table} WHERE source BETWEEN ? AND ?", (first, last))
            db.execute(insert, (key_range(first)[0], key_range(last)[1]))
    db.execute("DELETE FROM needs_dedupe")
    db.execute("DELETE FROM orphaned_key")


def _consecutive_ranges(numbers: list[int]) -> Iterator[tuple[int, int]]:
    for _, run in groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0]):
        found = [number for _, number in run]
        yield found[0], found[-1]


def _copied_keys(
    db: sqlite3.Connection, table: str, key: str, sources: list[int], orphaned: Iterable[bytes]
) -> list[bytes]:
    """The keys with several rows, of which one is in these sources, and those that have lost a row."""
    if len(sources) > MANY_SOURCES:
        found = {name for (name,) in db.execute(f"SELECT {key} FROM {table} GROUP BY {key} HAVING count(*) > 1")}
    else:
        copies = f"SELECT 1 FROM {table} b WHERE b.{key} = a.{key} AND b.id <> a.id"
        query = f"SELECT {key} FROM {table} a WHERE id BETWEEN ? AND ? AND EXISTS ({copies})"
        found = {name for source in sources for (name,) in db.execute(query, key_range(source))}
    return sorted(found.union(orphaned))


def _update_messages(db: sqlite3.Connection, events: Iterable[bytes]) -> list[int]:
    """Make exactly one copy of each message visible. Returns the messages that changed."""
    changed: list[int] = []
    for event in events:
        for rank, (message, was_visible) in enumerate(db.execute(_MESSAGE_COPIES, (event,)).fetchall()):
            if was_visible != (rank == 0):
                db.execute("UPDATE message SET is_visible = ? WHERE id = ?", (int(rank == 0), message))
                changed.append(message)
    return changed


def _update_usage(db: sqlite3.Connection, keys: Iterable[bytes]) -> set[int]:
    """Merge the copies of API calls: the visible copy has the largest value of each counter. Returns the sources."""
    touched: set[int] = set()
    for key in keys:
        db.execute(_RESTORE_COUNTS, (key,))
        db.execute("DELETE FROM recorded_usage WHERE id IN (SELECT id FROM token_usage WHERE usage_id = ?)", (key,))
        copies = db.execute(_USAGE_COPIES, (key,)).fetchall()
        touched.update(copy[0] // KEYS_PER_SOURCE for copy in copies)
        for rank, copy in enumerate(copies):
            if copy[1] != (rank == 0):
                db.execute("UPDATE token_usage SET is_visible = ? WHERE id = ?", (int(rank == 0), copy[0]))
        if copies:
            _merge_counts(db, copies)
    return touched


def _merge_counts(db: sqlite3.Connection, copies: list[tuple[Any, ...]]) -> None:
    best, is_missing, recorded, model = copies[0][0], copies[0][2], copies[0][3:-1], copies[0][-1]
    # Copies in files that are gone count only where there is no other copy.
    columns = zip(*(copy[3:-1] for copy in copies if copy[2] == is_missing), strict=True)
    most = tuple(max((count for count in column if count is not None), default=None) for column in columns)
    if most != recorded:
        db.execute(f"INSERT INTO recorded_usage VALUES ({', '.join('?' * (len(TOKEN_FIELDS) + 1))})", (best, *recorded))
    cost = RowWriter(db).cost(model, most)
    sets = ", ".join(f"{name} = ?" for name in TOKEN_FIELDS)
    values = (*most, cost or 0, int(cost is not None), best)
    db.execute(f"UPDATE token_usage SET {sets}, cost_nano = ?, is_priced = ? WHERE id = ?", values)


def _update_sessions(db: sqlite3.Connection, sources: list[int]) -> None:
    """Of sessions with the same id, make one visible: one whose file exists, then the longest."""
    ids = {session for (session,) in db.execute("SELECT session_id FROM session WHERE is_visible = 0")}
    query = "SELECT session_id FROM session WHERE id = ?"
    ids.update(session for source in sources for (session,) in db.execute(query, (source,)))
    for session in sorted(ids):
        for rank, (source, was_visible) in enumerate(db.execute(_SESSION_COPIES, (session,)).fetchall()):
            if was_visible != (rank == 0):
                db.execute("UPDATE session SET is_visible = ? WHERE id = ?", (int(rank == 0), source))
                mark_session_unindexed(db, source)
