"""Which of several copies is shown. The rule looks at the copies alone, never at the order in which they came."""

from __future__ import annotations

from itertools import groupby

from clew.catalog.row_writer import COUNTS, RowWriter, key_range
from clew.catalog.schema import KEYS_PER_SOURCE, TALLIES

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Iterator
    from typing import Any

MANY = 64
"""From so many sources on, one look at all keys is quicker than a look at each."""

_RULE = (
    "(f.state = 'gone'), (t.ts_us = 0), t.ts_us, s.is_agent_session, s.native_id, s.message_count DESC,"
    " s.ended_us DESC, f.path, t.id"
)
"""What is still there; the earliest; the session's own rather than a sub-agent's; of copies of one session the longest,
which knows most of what became of calls; then what never changes."""


def settle(db: sqlite3.Connection) -> list[int]:
    """Choose among the copies of all that is unsettled. Returns the messages that are shown now and were not before."""
    waiting = db.execute("SELECT source, message, use FROM needs_dedupe").fetchall()
    unsettled = [_all_of_copies(db, row) for row in waiting]
    sources = [source for source, _, _ in unsettled]
    loose = [key for (key,) in db.execute("SELECT key FROM orphaned_key")]
    if not sources and not loose:
        return []
    changed = _settle_messages(db, _copies(db, "message", "event", [row[1] for row in unsettled], loose))
    touched = {*sources, *(message // KEYS_PER_SOURCE for message in changed)}
    touched |= _settle_uses(db, _copies(db, "token_usage", "usage_id", [row[2] for row in unsettled], loose))
    _settle_sessions(db, sources)
    for first, last in _stretches(sorted(touched)):
        for table, text in TALLIES.items():
            db.execute(f"DELETE FROM {table} WHERE source BETWEEN ? AND ?", (first, last))
            db.execute(text, (first * KEYS_PER_SOURCE, last * KEYS_PER_SOURCE + KEYS_PER_SOURCE - 1))
    db.execute("DELETE FROM needs_dedupe")
    db.execute("DELETE FROM orphaned_key")
    return [message for message, is_shown in changed.items() if is_shown]


def _all_of_copies(db: sqlite3.Connection, row: tuple[int, int, int]) -> tuple[int, int, int]:
    """A source and the first of its rows to look at: which copy of a session is the longest decides about all of it."""
    query = "SELECT 1 FROM session s JOIN session o ON o.session_id = s.session_id AND o.id <> s.id WHERE s.id = ?"
    is_copied = db.execute(query, row[:1]).fetchone() is not None
    return (row[0], row[0] * KEYS_PER_SOURCE, row[0] * KEYS_PER_SOURCE) if is_copied else row


def _stretches(numbers: list[int]) -> Iterator[tuple[int, int]]:
    """Runs of numbers that follow each other."""
    for _, run in groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0]):
        found = [number for _, number in run]
        yield found[0], found[-1]


def _copies(db: sqlite3.Connection, table: str, key: str, since: list[int], loose: list[bytes]) -> list[bytes]:
    """The keys to look at: those that stand in several rows, of which one is new, and those that have lost a row."""
    if len(since) > MANY:
        found = {name for (name,) in db.execute(f"SELECT {key} FROM {table} GROUP BY {key} HAVING count(*) > 1")}
    else:
        found = set()
        for first in since:
            query = f"SELECT {key} FROM {table} a WHERE id BETWEEN ? AND ? AND EXISTS"
            query += f" (SELECT 1 FROM {table} b WHERE b.{key} = a.{key} AND b.id <> a.id)"
            found.update(name for (name,) in db.execute(query, (first, key_range(first // KEYS_PER_SOURCE)[1])))
    return sorted(found.union(loose))


def _settle_messages(db: sqlite3.Connection, keys: Iterable[bytes]) -> dict[int, bool]:
    """The messages that were hidden and are shown now, or the other way round."""
    changed: dict[int, bool] = {}
    for key in keys:
        copies = db.execute(
            "SELECT t.id, t.is_visible FROM message t JOIN session s ON s.id = t.id / ? JOIN source f ON f.id = s.id"
            f" WHERE t.event = ? ORDER BY {_RULE}",
            (KEYS_PER_SOURCE, key),
        ).fetchall()
        for place, (message, was_shown) in enumerate(copies):
            if was_shown != (place == 0):
                db.execute("UPDATE message SET is_visible = ? WHERE id = ?", (int(place == 0), message))
                changed[message] = place == 0
                if place:
                    query = "INSERT OR IGNORE INTO stale SELECT id FROM block WHERE message = ? AND id BETWEEN ? AND ?"
                    db.execute(query, (message, *key_range(message // KEYS_PER_SOURCE)))
    return changed


def _settle_uses(db: sqlite3.Connection, keys: Iterable[bytes]) -> set[int]:
    """Merge the copies of calls: the largest of each count, in the copy that is shown. Returns the sources touched."""
    touched: set[int] = set()
    for key in keys:
        db.execute(_RESTORE, (key,))
        db.execute("DELETE FROM recorded_usage WHERE id IN (SELECT id FROM token_usage WHERE usage_id = ?)", (key,))
        copies = db.execute(
            f"SELECT t.id, t.is_visible, f.state = 'gone', {', '.join('t.' + name for name in COUNTS)}, w.text"
            " FROM token_usage t"
            " JOIN session s ON s.id = t.id / ? JOIN source f ON f.id = s.id JOIN string w ON w.id = t.model"
            f" WHERE t.usage_id = ? ORDER BY {_RULE}",
            (KEYS_PER_SOURCE, key),
        ).fetchall()
        touched.update(copy[0] // KEYS_PER_SOURCE for copy in copies)
        _merge(db, copies)
    return touched


_RESTORE = f"""
UPDATE token_usage SET {", ".join(f"{name} = o.{name}" for name in COUNTS)} FROM recorded_usage o
WHERE token_usage.usage_id = ? AND o.id = token_usage.id
"""


def _merge(db: sqlite3.Connection, copies: list[tuple[Any, ...]]) -> None:
    for place, copy in enumerate(copies):
        if copy[1] != (place == 0):
            db.execute("UPDATE token_usage SET is_visible = ? WHERE id = ?", (int(place == 0), copy[0]))
    if not copies:
        return
    first, own, model = copies[0][0], copies[0][3:-1], copies[0][-1]
    # What is gone only counts where nothing else tells of the call.
    columns = zip(*(copy[3:-1] for copy in copies if copy[2] == copies[0][2]), strict=True)
    most = tuple(max((count for count in column if count is not None), default=None) for column in columns)
    if most != own:
        db.execute(f"INSERT INTO recorded_usage VALUES ({', '.join('?' * (len(COUNTS) + 1))})", (first, *own))
    cost = RowWriter(db).cost(model, most)
    sets = ", ".join(f"{name} = ?" for name in COUNTS)
    values = (*most, cost or 0, int(cost is not None), first)
    db.execute(f"UPDATE token_usage SET {sets}, cost_nano = ?, is_priced = ? WHERE id = ?", values)


def _settle_sessions(db: sqlite3.Connection, sources: list[int]) -> None:
    """Of sessions with the same name, one that is there comes before one that is gone, then the longest."""
    names = {name for (name,) in db.execute("SELECT session_id FROM session WHERE is_visible = 0")}
    query = "SELECT session_id FROM session WHERE id = ?"
    names.update(name for source in sources for (name,) in db.execute(query, (source,)))
    for name in sorted(names):
        copies = db.execute(
            "SELECT s.id, s.is_visible FROM session s JOIN source f ON f.id = s.id WHERE s.session_id = ?"
            " ORDER BY f.state = 'gone', s.message_count DESC, s.ended_us DESC, f.path",
            (name,),
        ).fetchall()
        for place, (source, was_shown) in enumerate(copies):
            if was_shown != (place == 0):
                db.execute("UPDATE session SET is_visible = ? WHERE id = ?", (int(place == 0), source))
