"""Decide on the server which copies are visible. The result depends on the copies alone, not on the order of pushes.

The rules are those of `merge_sql.py`, applied to what a push touches: the ids of messages, calls and sessions in
batches that were added or removed. It runs in the transaction of the push, under one lock.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from clew.analysis.usage import TOKEN_FIELDS
from clew.catalog.portable_sql import DUPLICATE_ORDER, SESSION_ORDER
from clew.warehouse.columns import COPIES, DATA_TABLES, TABLES
from clew.warehouse.merge_sql import CURRENT_BATCH_ORDER, QUARTER_HOUR_SQL, QUARTER_HOUR_SUMS, cost_sql
from clew.warehouse.postgres.connection import Connection
from clew.warehouse.postgres.engine import psycopg_placeholders
from clew.warehouse.postgres.schema import LOCK_MERGE, TABLES_OF_MESSAGES

_TOUCHED = {
    "messages": ("touched_messages", "event_id"),
    "usage": ("touched_usage", "usage_id"),
    "sessions": ("touched_sessions", "session_id"),
}
"""For each table with copies: the temporary table of touched ids, and the column of the id."""
_ROW_KEYS = {"messages": "seq", "usage": "number", "sessions": "session_id"}
"""The key of a row within its batch."""
_TEXT = 'text COLLATE "C" NOT NULL'
TEMPORARY_TABLES = (
    *(f"CREATE TEMP TABLE {table} ({column} {_TEXT}) ON COMMIT DELETE ROWS" for table, column in _TOUCHED.values()),
    f"CREATE TEMP TABLE changed_messages (batch {_TEXT}, seq bigint NOT NULL, shown boolean NOT NULL)"
    " ON COMMIT DELETE ROWS",
)
"""Every connection that pushes creates its own."""

_UPDATE_CURRENT = f"""
WITH ranked AS (
  SELECT source_id, batch, row_number() OVER (PARTITION BY source_id ORDER BY {CURRENT_BATCH_ORDER}) = 1 AS is_first
  FROM batches WHERE source_id = ANY(%(sources)s)
)
UPDATE batches b SET is_current = r.is_first FROM ranked r
WHERE b.source_id = r.source_id AND b.batch = r.batch AND b.is_current <> r.is_first
"""
_REPLACED_BATCHES = """
SELECT l.batch FROM loaded l
WHERE l.batch IN (SELECT b.batch FROM batches b WHERE b.source_id = ANY(%(sources)s))
  AND NOT EXISTS (SELECT 1 FROM batches c WHERE c.batch = l.batch AND c.is_current)
"""
_MISSING_ROWS = """
SELECT count(*) FROM batches b WHERE b.source_id = ANY(%(sources)s) AND b.is_current
  AND NOT EXISTS (SELECT 1 FROM loaded l WHERE l.batch = b.batch)
"""
# LEFT JOIN: the row of a session may have been dropped with its month, while messages of later months exist.
_UPDATE_MESSAGES = f"""
WITH ranked AS (
  SELECT t.batch, t.seq, t.day_utc,
    row_number() OVER (PARTITION BY t.event_id ORDER BY {DUPLICATE_ORDER}, t.batch, t.seq) = 1 AS is_first
  FROM messages{COPIES} t LEFT JOIN sessions{COPIES} s ON s.batch = t.batch
  WHERE t.event_id IN (SELECT event_id FROM touched_messages)
), changed AS (
  UPDATE messages{COPIES} m SET shown = r.is_first FROM ranked r
  WHERE m.batch = r.batch AND m.seq = r.seq AND m.day_utc = r.day_utc AND m.shown <> r.is_first
  RETURNING m.batch, m.seq, m.shown
)
INSERT INTO changed_messages SELECT batch, seq, shown FROM changed
"""
_UPDATE_ROWS_OF_MESSAGES = """
UPDATE {0}_copies f SET shown = m.shown FROM changed_messages m
WHERE f.batch = m.batch AND f.seq = m.seq AND f.shown <> m.shown
"""
# Titles and file names (seq 0) belong to the session, and are visible with it.
_UPDATE_SESSIONS = f"""
WITH ranked AS (
  SELECT s.batch, s.day_utc,
    row_number() OVER (PARTITION BY s.session_id ORDER BY {SESSION_ORDER}, s.batch) = 1 AS is_first
  FROM sessions{COPIES} s WHERE s.session_id IN (SELECT session_id FROM touched_sessions)
), changed AS (
  UPDATE sessions{COPIES} s SET shown = r.is_first FROM ranked r
  WHERE s.batch = r.batch AND s.day_utc = r.day_utc AND s.shown <> r.is_first RETURNING s.batch, s.shown
)
UPDATE blocks{COPIES} b SET shown = c.shown FROM changed c WHERE b.batch = c.batch AND b.seq = 0 AND b.shown <> c.shown
"""

_DELETE_MERGED_USAGE = "DELETE FROM usage_merged WHERE usage_id IN (SELECT usage_id FROM touched_usage)"
_MAXIMA = ", ".join(
    f"max({name}) OVER copies_of_call AS {name}" if name in TOKEN_FIELDS else f"t.{name}"
    for name in TABLES["usage"].names
    if name != "cost_nano"
)
_MERGED_COLUMNS = ", ".join(
    f"CASE WHEN is_priced = 1 THEN {cost_sql('/')} ELSE 0 END" if name == "cost_nano" else name
    for name in TABLES["usage"].names
)
_INSERT_MERGED_USAGE = f"""
INSERT INTO usage_merged SELECT {_MERGED_COLUMNS} FROM (
  SELECT {_MAXIMA},
    row_number() OVER (PARTITION BY t.usage_id ORDER BY {DUPLICATE_ORDER}, t.batch, t.number) AS rank,
    count(*) OVER copies_of_call AS copies
  FROM usage{COPIES} t LEFT JOIN sessions{COPIES} s ON s.batch = t.batch
  WHERE t.usage_id IN (SELECT usage_id FROM touched_usage)
  WINDOW copies_of_call AS (PARTITION BY t.usage_id)
) x WHERE rank = 1 AND copies > 1
"""
_HIDE_MERGED_COPIES = f"""
WITH counted AS (
  SELECT batch, number, day_utc, count(*) OVER (PARTITION BY usage_id) = 1 AS is_only_copy FROM usage{COPIES}
  WHERE usage_id IN (SELECT usage_id FROM touched_usage)
)
UPDATE usage{COPIES} u SET shown = c.is_only_copy FROM counted c
WHERE u.batch = c.batch AND u.number = c.number AND u.day_utc = c.day_utc AND u.shown <> c.is_only_copy
"""


class RetryPush(Exception):
    """A concurrent push removed rows that this one relied on: repeat it."""


def lock(db: Connection) -> None:
    """Wait for other pushes; held until the end of the transaction."""
    db.execute("SELECT pg_advisory_xact_lock(%s)", (LOCK_MERGE,))


def update_visible_copies(db: Connection, sources: Sequence[str], added: Sequence[str]) -> None:
    """Update what is visible, after rows of the batches `added` were copied and those of `sources` were registered."""
    values = {"sources": list(sources)}
    db.execute(_UPDATE_CURRENT.encode(), values)
    replaced = _first_column(db, _REPLACED_BATCHES, values)
    missing = db.execute(_MISSING_ROWS.encode(), values).fetchone()
    if missing is not None and missing[0]:
        raise RetryPush
    added = sorted(set(added).difference(replaced))
    touched = Counter[str]()
    if replaced:
        touched += _delete_batches(db, replaced)
    if added:
        touched += _find_duplicates(db, added)
    if added or replaced:
        _update_sums(db, {*added, *_choose_visible(db, touched)})


def _first_column(db: Connection, query: str, values: Any = None) -> list[str]:
    return [name for (name,) in db.execute(query.encode(), values).fetchall()]


def _delete_batches(db: Connection, batches: list[str]) -> Counter[str]:
    """Delete the rows of batches that are current for no source; their ids may have other copies."""
    touched = Counter[str]()
    for table, (temporary, column) in _TOUCHED.items():
        query = f"INSERT INTO {temporary} SELECT {column} FROM {table}{COPIES} WHERE batch = ANY(%s)"
        touched[table] += db.execute(query.encode(), (batches,)).rowcount
    sums = (f"{name}_sums" for name in QUARTER_HOUR_SUMS)
    for table in [*(f"{name}{COPIES}" for name in DATA_TABLES), *sums, "loaded"]:
        db.execute(f"DELETE FROM {table} WHERE batch = ANY(%s)".encode(), (batches,))
    return touched


def _find_duplicates(db: Connection, added: list[str]) -> Counter[str]:
    """Collect the ids in new batches that other rows have too."""
    touched = Counter[str]()
    for table, (temporary, column) in _TOUCHED.items():
        key = _ROW_KEYS[table]
        query = f"""
            INSERT INTO {temporary} SELECT a.{column} FROM {table}{COPIES} a WHERE a.batch = ANY(%s) AND EXISTS (
              SELECT 1 FROM {table}{COPIES} b
              WHERE b.{column} = a.{column} AND (b.batch <> a.batch OR b.{key} <> a.{key}))
        """
        touched[table] += db.execute(query.encode(), (added,)).rowcount
    return touched


def _choose_visible(db: Connection, touched: Counter[str]) -> set[str]:
    """Choose among the copies of all touched ids. Returns the batches whose visible rows changed."""
    changed: set[str] = set()
    for table in touched:
        db.execute(f"ANALYZE {_TOUCHED[table][0]}".encode())
    if touched["messages"] and db.execute(_UPDATE_MESSAGES.encode()).rowcount:
        db.execute("ANALYZE changed_messages")
        for table in TABLES_OF_MESSAGES:
            db.execute(_UPDATE_ROWS_OF_MESSAGES.format(table).encode())
        changed.update(_first_column(db, "SELECT DISTINCT batch FROM changed_messages"))
    if touched["sessions"]:
        db.execute(_UPDATE_SESSIONS.encode())
    if touched["usage"]:
        for statement in (_DELETE_MERGED_USAGE, _INSERT_MERGED_USAGE, _HIDE_MERGED_COPIES):
            db.execute(statement.encode())
        query = f"SELECT DISTINCT batch FROM usage{COPIES} WHERE usage_id IN (SELECT usage_id FROM touched_usage)"
        changed.update(_first_column(db, query))
    return changed


def _update_sums(db: Connection, batches: set[str]) -> None:
    """Recompute the sums of these batches from their visible rows."""
    values = (sorted(batches),)
    for name, (rows, groups, sums) in QUARTER_HOUR_SUMS.items():
        db.execute(f"DELETE FROM {name}_sums WHERE batch = ANY(%s)".encode(), values)
        columns = ", ".join(("batch", *groups))
        query = f"SELECT {columns}, {', '.join(sums.values())}, {QUARTER_HOUR_SQL} FROM {rows} WHERE batch = ANY(?)"
        insert = f"INSERT INTO {name}_sums {query} GROUP BY {columns}, {QUARTER_HOUR_SQL}"
        db.execute(psycopg_placeholders(insert).encode(), values)
