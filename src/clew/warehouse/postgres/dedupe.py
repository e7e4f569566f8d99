"""Which copies are shown, decided on the server. The rule looks at the copies alone, never at the order they came in.

It is the rule of `merge_sql.py`, worked out for what a push has touched: names of messages, calls and sessions in
batches that came or went. All of it happens in the transaction that brought them, under one lock.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from clew.warehouse.columns import COPIES, COUNTS, LEVELS, STATE, TABLES
from clew.warehouse.merge_sql import cost
from clew.warehouse.postgres.schema import COPIED, FOLLOWING, LOCK_MERGE, SUMMED, SUMS

if TYPE_CHECKING:
    from clew.warehouse.postgres.connection import Connection

_NAMES = {"messages": ("events", "event_id"), "usage": ("uses", "usage_id"), "sessions": ("names", "session_id")}
"""For each table with copies: where the touched names are noted, and what they are."""
_KEYS = {"messages": "seq", "usage": "number", "sessions": "session_id"}
"""What tells rows of a batch apart."""
_TEXT = 'text COLLATE "C" NOT NULL'
NOTES = (
    *(f"CREATE TEMP TABLE {note} ({key} {_TEXT}) ON COMMIT DELETE ROWS" for note, key in _NAMES.values()),
    f"CREATE TEMP TABLE moved (batch {_TEXT}, seq bigint NOT NULL, shown boolean NOT NULL) ON COMMIT DELETE ROWS",
)
"""What is noted while settling; every connection has its own."""

_LEVEL = f"array_position(ARRAY{list(LEVELS)}, level)"
_CURRENT = f"""
WITH ranked AS (
  SELECT source_id, batch, row_number() OVER (PARTITION BY source_id
    ORDER BY {", ".join(f"{name} DESC" for name in STATE)}, {_LEVEL} DESC, batch DESC) = 1 AS is_first
  FROM batches WHERE source_id = ANY(%(sources)s)
)
UPDATE batches b SET is_current = r.is_first FROM ranked r
WHERE b.source_id = r.source_id AND b.batch = r.batch AND b.is_current <> r.is_first
"""
"""The current batch of a source is the one with the greatest of all these."""
_LIVE = "EXISTS (SELECT 1 FROM batches c WHERE c.batch = {0}.batch AND c.is_current)"
_DEPARTED = f"""
SELECT l.batch FROM loaded l
WHERE l.batch IN (SELECT b.batch FROM batches b WHERE b.source_id = ANY(%(sources)s)) AND NOT {_LIVE.format("l")}
"""
_MISSING = """
SELECT count(*) FROM batches b WHERE b.source_id = ANY(%(sources)s) AND b.is_current
  AND NOT EXISTS (SELECT 1 FROM loaded l WHERE l.batch = b.batch)
"""
_RULE = """(t.ts_us = 0), t.ts_us, s.is_agent_session, s.native_id, s.message_count DESC NULLS LAST,
  s.ended_us DESC NULLS LAST, t.batch"""
"""As `merge_sql` has it: what has a time, the earliest; the session's own rather than a sub-agent's; of copies of
one session the longest; then what never changes.

The row of a session may be gone with its month while messages of later months are there.
"""

_SETTLE_MESSAGES = f"""
WITH ranked AS (
  SELECT t.batch, t.seq, t.day_utc, row_number() OVER (PARTITION BY t.event_id ORDER BY {_RULE}, t.seq) = 1 AS is_first
  FROM messages{COPIES} t LEFT JOIN sessions{COPIES} s ON s.batch = t.batch
  WHERE t.event_id IN (SELECT event_id FROM events)
), changed AS (
  UPDATE messages{COPIES} m SET shown = r.is_first FROM ranked r
  WHERE m.batch = r.batch AND m.seq = r.seq AND m.day_utc = r.day_utc AND m.shown <> r.is_first
  RETURNING m.batch, m.seq, m.shown
)
INSERT INTO moved SELECT batch, seq, shown FROM changed
"""
_FOLLOW = """
UPDATE {0}_copies f SET shown = m.shown FROM moved m WHERE f.batch = m.batch AND f.seq = m.seq AND f.shown <> m.shown
"""
_SETTLE_SESSIONS = f"""
WITH ranked AS (
  SELECT batch, session_id, day_utc,
    row_number() OVER (PARTITION BY session_id ORDER BY message_count DESC, ended_us DESC, batch) = 1 AS is_first
  FROM sessions{COPIES} WHERE session_id IN (SELECT session_id FROM names)
), changed AS (
  UPDATE sessions{COPIES} s SET shown = r.is_first FROM ranked r
  WHERE s.batch = r.batch AND s.day_utc = r.day_utc AND s.shown <> r.is_first RETURNING s.batch, s.shown
)
UPDATE blocks{COPIES} b SET shown = c.shown FROM changed c WHERE b.batch = c.batch AND b.seq = 0 AND b.shown <> c.shown
"""
"""Titles and names of files belong to the session as a whole, and are shown with it."""

_FORGET_MERGED = "DELETE FROM usage_merged WHERE usage_id IN (SELECT usage_id FROM uses)"
_MERGED_COLUMNS = ", ".join(
    f"max({name}) OVER everywhere AS {name}" if name in COUNTS else f"t.{name}"
    for name in TABLES["usage"].names
    if name != "cost_nano"
)
_MERGED = ", ".join(
    f"CASE WHEN is_priced = 1 THEN {cost('/')} ELSE 0 END" if name == "cost_nano" else name
    for name in TABLES["usage"].names
)
_MERGE = f"""
INSERT INTO usage_merged SELECT {_MERGED} FROM (
  SELECT {_MERGED_COLUMNS},
    row_number() OVER (PARTITION BY t.usage_id ORDER BY {_RULE}, t.number) AS place,
    count(*) OVER everywhere AS copies
  FROM usage{COPIES} t LEFT JOIN sessions{COPIES} s ON s.batch = t.batch
  WHERE t.usage_id IN (SELECT usage_id FROM uses)
  WINDOW everywhere AS (PARTITION BY t.usage_id)
) x WHERE place = 1 AND copies > 1
"""
_HIDE_MERGED = f"""
WITH counted AS (
  SELECT batch, number, day_utc, count(*) OVER (PARTITION BY usage_id) = 1 AS is_alone FROM usage{COPIES}
  WHERE usage_id IN (SELECT usage_id FROM uses)
)
UPDATE usage{COPIES} u SET shown = c.is_alone FROM counted c
WHERE u.batch = c.batch AND u.number = c.number AND u.day_utc = c.day_utc AND u.shown <> c.is_alone
"""


class Again(Exception):
    """Another push was quicker: the same must be done once more."""


def lock(db: Connection) -> None:
    """Wait until nobody else settles; until the end of the transaction nobody else will."""
    db.execute("SELECT pg_advisory_xact_lock(%s)", (LOCK_MERGE,))


def settle(db: Connection, sources: Sequence[str], copied: Sequence[str]) -> None:
    """Bring in line what is shown, after rows of `copied` were added and the batches of `sources` were noted."""
    given = {"sources": list(sources)}
    db.execute(_CURRENT.encode(), given)
    gone = _column(db, _DEPARTED, given)
    row = db.execute(_MISSING.encode(), given).fetchone()
    if row is not None and row[0]:
        raise Again
    come = sorted(set(copied).difference(gone))
    names = Counter[str]()
    if gone:
        names += _depart(db, gone)
    if come:
        names += _note_copies(db, come)
    if come or gone:
        _sum_up(db, {*come, *_choose(db, names)})


def _column(db: Connection, query: str, given: Any = None) -> list[str]:
    return [name for (name,) in db.execute(query.encode(), given).fetchall()]


def _depart(db: Connection, gone: list[str]) -> Counter[str]:
    """Remove the rows of batches that are current for no source; what they told of may have other copies."""
    noted = Counter[str]()
    for table, (note, key) in _NAMES.items():
        query = f"INSERT INTO {note} SELECT {key} FROM {table}{COPIES} WHERE batch = ANY(%s)"
        noted[table] += db.execute(query.encode(), (gone,)).rowcount
    for table in [*(f"{name}{COPIES}" for name in COPIED), *(f"{name}_sums" for name in SUMS), "loaded"]:
        db.execute(f"DELETE FROM {table} WHERE batch = ANY(%s)".encode(), (gone,))
    return noted


def _note_copies(db: Connection, come: list[str]) -> Counter[str]:
    """Note the names in new batches that other rows have too."""
    noted = Counter[str]()
    for table, (note, key) in _NAMES.items():
        query = f"INSERT INTO {note} SELECT a.{key} FROM {table}{COPIES} a WHERE a.batch = ANY(%s) AND EXISTS"
        query += f" (SELECT 1 FROM {table}{COPIES} b WHERE b.{key} = a.{key}"
        other = _KEYS[table]
        query += f" AND (b.batch <> a.batch OR b.{other} <> a.{other}))"
        noted[table] += db.execute(query.encode(), (come,)).rowcount
    return noted


def _choose(db: Connection, names: Counter[str]) -> set[str]:
    """Choose among the copies of all names that were noted. Returns the batches of which other rows are shown now."""
    touched: set[str] = set()
    for table in names:
        db.execute(f"ANALYZE {_NAMES[table][0]}".encode())
    if names["messages"] and db.execute(_SETTLE_MESSAGES.encode()).rowcount:
        db.execute("ANALYZE moved")
        for table in FOLLOWING:
            db.execute(_FOLLOW.format(table).encode())
        touched.update(_column(db, "SELECT DISTINCT batch FROM moved"))
    if names["sessions"]:
        db.execute(_SETTLE_SESSIONS.encode())
    if names["usage"]:
        for statement in (_FORGET_MERGED, _MERGE, _HIDE_MERGED):
            db.execute(statement.encode())
        query = f"SELECT DISTINCT batch FROM usage{COPIES} WHERE usage_id IN (SELECT usage_id FROM uses)"
        touched.update(_column(db, query))
    return touched


def _sum_up(db: Connection, batches: set[str]) -> None:
    """Make the sums by day anew for every batch of which other rows are shown than before."""
    given = (sorted(batches),)
    for name, (by, sums) in SUMS.items():
        db.execute(f"DELETE FROM {name}_sums WHERE batch = ANY(%s)".encode(), given)
        columns = ", ".join(("batch", *by))
        made = ", ".join(f"{expression} AS {column}" for column, expression in sums.items())
        query = f"INSERT INTO {name}_sums SELECT {columns}, {made} FROM {SUMMED[name]} WHERE batch = ANY(%s)"
        db.execute(f"{query} GROUP BY {columns}".encode(), given)
