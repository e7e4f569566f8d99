"""What faces show of sessions while somebody browses: pages of them, their trees, neighbours, turns and files.

Everything is read from the rows; a session that the catalog does not know cannot be asked for.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from clew.agents.file_evidence import absolute
from clew.catalog.database import key_range
from clew.catalog.schema import KEYS_PER_SOURCE

DEEPEST = 8
"""Sub-agents of sub-agents that a list shows."""
_FIELDS = """s.id, s.session_id, s.agent, s.native_id, s.parent_session_id, s.is_agent_session, s.title, s.project,
  s.git_branch, s.started_us, s.ended_us, s.message_count, s.turn_count, s.error_count, s.active_us, f.host, f.state,
  json_extract(s.header, '$.models')"""
_NAMED = "c.path NOT IN ('', '.', './', '/')"
"""What a path must be to name a file, and not the folder that it is taken from."""
_FROM = "FROM session s JOIN source f ON f.id = s.id"


class Used(NamedTuple):
    """What a session used, each call counted once. None is unknown."""

    calls: int = 0
    priced_calls: int = 0
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_creation_tokens: int | None = None
    cost_nano: int = 0

    @property
    def total_tokens(self) -> int | None:
        """Input and output."""
        known = [count for count in (self.input_tokens, self.output_tokens) if count is not None]
        return sum(known) if known else None


class Entry(NamedTuple):
    """A session as a list shows it."""

    number: int
    key: str
    agent: str
    id: str
    parent: str
    is_subagent: bool
    title: str
    project: str
    branch: str
    started_us: int
    ended_us: int
    messages: int
    turns: int
    errors: int
    active_us: int
    host: str
    state: str
    models: tuple[str, ...]
    used: Used = Used()
    children: tuple[Entry, ...] = ()


class Page(NamedTuple):
    """Some sessions, and how many there are in all."""

    total: int
    entries: list[Entry]


def page(db: sqlite3.Connection, chosen: Collection[int] | None, limit: int, offset: int = 0) -> Page:
    """Sessions, the latest first, with their sub-agents below them; `chosen` are those that may be shown."""
    query = "SELECT id, session_id, parent_session_id FROM session WHERE is_visible = 1 ORDER BY ended_us DESC, id DESC"
    rows = [row for row in db.execute(query) if chosen is None or row[0] in chosen]
    known = {key for _, key, _ in rows}
    tops = [number for number, key, parent in rows if parent not in known or parent == key]
    entries = _entries(db, tops[offset : offset + limit])
    return Page(len(tops), with_children(db, entries, None if chosen is None else chosen))


def with_children(db: sqlite3.Connection, entries: list[Entry], chosen: Collection[int] | None) -> list[Entry]:
    """The entries with the sessions they started, and those which these started, as deep as they go."""
    below: dict[str, list[Entry]] = {}
    waiting, seen = [entry.key for entry in entries], {entry.key for entry in entries}
    for _ in range(DEEPEST):
        if not waiting:
            break
        marks = ", ".join("?" * len(waiting))
        query = f"SELECT s.id FROM session s WHERE s.is_visible = 1 AND s.parent_session_id IN ({marks}) ORDER BY s.id"
        numbers = [row[0] for row in db.execute(query, waiting) if chosen is None or row[0] in chosen]
        found = [entry for entry in _entries(db, numbers) if entry.key not in seen]
        for entry in found:
            below.setdefault(entry.parent, []).append(entry)
        waiting = [entry.key for entry in found]
        seen.update(waiting)
    return [_joined(entry, below) for entry in entries]


def _joined(entry: Entry, below: dict[str, list[Entry]]) -> Entry:
    children = tuple(_joined(child, below) for child in below.pop(entry.key, ()))
    return entry._replace(children=children)


def _entries(db: sqlite3.Connection, numbers: Sequence[int]) -> list[Entry]:
    if not numbers:
        return []
    marks = ", ".join("?" * len(numbers))
    rows = {row[0]: row for row in db.execute(f"SELECT {_FIELDS} {_FROM} WHERE s.id IN ({marks})", numbers)}
    used = _used(db, numbers)
    return [_entry(rows[number], used.get(number, Used())) for number in numbers if number in rows]


def _entry(row: tuple[Any, ...], used: Used) -> Entry:
    import json

    models = tuple(map(str, json.loads(row[-1] or "[]")))
    return Entry._make((*row[:5], bool(row[5]), *row[6:-1], models, used, ()))


def _used(db: sqlite3.Connection, numbers: Sequence[int]) -> dict[int, Used]:
    marks = ", ".join("?" * len(numbers))
    created = "sum(cache_creation_5m_tokens), sum(cache_creation_1h_tokens)"
    query = f"""SELECT source, sum(calls), sum(priced_calls), sum(input_tokens), sum(output_tokens),
      sum(cache_read_tokens), {created}, sum(cost_nano) FROM usage_by_day WHERE source IN ({marks}) GROUP BY source"""
    return {row[0]: _used_of(row[1:]) for row in db.execute(query, numbers)}


def _used_of(row: Sequence[Any]) -> Used:
    calls, priced, given, said, read, short, long, cost = row
    created = None if short is None and long is None else (short or 0) + (long or 0)
    return Used(calls, priced, given, said, read, created, cost or 0)


def entry(db: sqlite3.Connection, agent: str, identity: str) -> Entry | None:
    """The session with this very id; of several copies the one that is shown."""
    query = "SELECT id FROM session WHERE agent = ? AND native_id = ? ORDER BY is_visible DESC, id LIMIT 1"
    row = db.execute(query, (agent, identity)).fetchone()
    return _entries(db, [row[0]])[0] if row is not None else None


def smallest(db: sqlite3.Connection) -> list[Entry]:
    """Of each agent the shortest session with something in it."""
    query = "SELECT id, min(message_count) FROM session WHERE is_visible = 1 AND message_count > 3 GROUP BY agent"
    return _entries(db, [row[0] for row in db.execute(query)])


def by_key(db: sqlite3.Connection, key: str) -> Entry | None:
    """The session with this key."""
    row = db.execute("SELECT id FROM session WHERE session_id = ? AND is_visible = 1", (key,)).fetchone()
    return _entries(db, [row[0]])[0] if row is not None else None


def neighbours(db: sqlite3.Connection, entry: Entry) -> tuple[Entry | None, Entry | None]:
    """The session before this one in a list, which is newer, and the one behind it."""
    newer = "(ended_us, id) > (?, ?) ORDER BY ended_us, id"
    older = "(ended_us, id) < (?, ?) ORDER BY ended_us DESC, id DESC"
    found = []
    for condition in (newer, older):
        query = f"SELECT id FROM session WHERE is_visible = 1 AND is_agent_session = 0 AND {condition} LIMIT 1"
        row = db.execute(query, (entry.ended_us, entry.number)).fetchone()
        found.append(_entries(db, [row[0]])[0] if row is not None else None)
    return found[0], found[1]


def written_since(db: sqlite3.Connection, mtime_ns: int, said_us: int, limit: int) -> list[Entry]:
    """The sessions whose files were written to since one time and whose last words are since another, latest first.

    A file that was copied is new, and what it tells of is not.
    """
    query = "SELECT s.id FROM session s JOIN source f ON f.id = s.id WHERE s.is_visible = 1 AND f.state = 'live'"
    query += " AND max(f.mtime_ns, f.ctime_ns) >= ? AND (s.ended_us = 0 OR s.ended_us >= ?)"
    query += " ORDER BY s.ended_us DESC, s.id DESC LIMIT ?"
    return _entries(db, [row[0] for row in db.execute(query, (mtime_ns, said_us, limit))])


class Moment(NamedTuple):
    """A message, as a timeline shows it."""

    message: int
    time_us: int
    kind: str


def moments(db: sqlite3.Connection, number: int) -> list[Moment]:
    """The messages of a session whose time is known."""
    query = f"SELECT m.id % {KEYS_PER_SOURCE}, m.ts_us, k.text FROM message m JOIN string k ON k.id = m.kind"
    query += " WHERE m.id BETWEEN ? AND ? AND m.ts_us > 0 ORDER BY m.id"
    return [Moment(*row) for row in db.execute(query, key_range(number))]


def calls_of(db: sqlite3.Connection, number: int) -> list[tuple[int, Used]]:
    """What each message of a session used; 0 is for what belongs to none. Each call is counted once in a home."""
    created = "sum(cache_creation_tokens), NULL"
    query = f"""SELECT message % {KEYS_PER_SOURCE} AS at, count(*), sum(is_priced), sum(input_tokens),
      sum(output_tokens),
      sum(cache_read_tokens), {created}, sum(cost_nano) FROM token_usage WHERE is_visible = 1 AND id BETWEEN ? AND ?
      GROUP BY at ORDER BY at"""
    return [(row[0], _used_of(row[1:])) for row in db.execute(query, key_range(number))]


class Change(NamedTuple):
    """What a message did to a file."""

    message: int
    path: str
    """As the time machine spells it: one that was recorded relative is below the session's folder."""
    op: str
    added: int | None
    removed: int | None
    """How many lines came and went; None where nobody tells."""
    time_us: int


def changes_of(db: sqlite3.Connection, number: int) -> list[Change]:
    """What a session did to files, in its order."""
    folder = _folders(db, [number]).get(number)
    query = f"SELECT c.message % {KEYS_PER_SOURCE}, c.path, o.text, c.lines_added, c.lines_removed, m.ts_us"
    query += " FROM change c"
    query += " JOIN string o ON o.id = c.op JOIN message m ON m.id = c.message"
    query += f" WHERE c.id BETWEEN ? AND ? AND {_NAMED} ORDER BY c.id"
    changes = (Change(*row) for row in db.execute(query, key_range(number)))
    return [change._replace(path=absolute(change.path, folder)) for change in changes]


def _folders(db: sqlite3.Connection, numbers: Sequence[int] | None = None) -> dict[int, str | None]:
    """The folders that sessions were in; of all of them, if none are named."""
    chosen = "" if numbers is None else f" WHERE id IN ({', '.join('?' * len(numbers))})"
    return dict(db.execute(f"SELECT id, json_extract(header, '$.workspace') FROM session{chosen}", numbers or ()))


class TouchedFile(NamedTuple):
    """A file that sessions changed."""

    path: str
    changes: int
    sessions: int
    added: int | None
    removed: int | None
    last_us: int


def files(db: sqlite3.Connection) -> list[TouchedFile]:
    """Every file that a session changed, however its path was recorded; the latest first."""
    folders = _folders(db)
    query = f"SELECT c.id / {KEYS_PER_SOURCE} AS number, c.path, count(*), sum(c.lines_added),"
    query += " sum(c.lines_removed), max(m.ts_us)"
    query += f" FROM change c JOIN message m ON m.id = c.message WHERE m.is_visible = 1 AND {_NAMED}"
    query += " GROUP BY number, c.path"
    found: dict[str, TouchedFile] = {}
    for number, path, *counts in db.execute(query):
        name = absolute(path, folders.get(number))
        found[name] = _with(found.get(name), TouchedFile(name, counts[0], 1, *counts[1:]))
    return sorted(found.values(), key=lambda file: (-file.last_us, file.path))


def _with(one: TouchedFile | None, other: TouchedFile) -> TouchedFile:
    """What became of a file in several sessions."""
    if one is None:
        return other
    changes, sessions = one.changes + other.changes, one.sessions + other.sessions
    added, removed = _sum(one.added, other.added), _sum(one.removed, other.removed)
    return TouchedFile(one.path, changes, sessions, added, removed, max(one.last_us, other.last_us))


def _sum(one: int | None, other: int | None) -> int | None:
    return other if one is None else one if other is None else one + other


def sessions_of_file(db: sqlite3.Connection, path: str) -> list[tuple[Entry, list[Change]]]:
    """The sessions that changed a file, the latest first, with what they did to it."""
    query = f"SELECT DISTINCT c.id / {KEYS_PER_SOURCE} FROM change c JOIN message m ON m.id = c.message"
    query += " WHERE m.is_visible = 1"
    query += " AND (substr(c.path, -length(?1)) = ?1 OR c.path LIKE 'file:%')"
    numbers = [row[0] for row in db.execute(query, (path.rpartition("/")[2],))]
    entries = sorted(_entries(db, numbers), key=lambda entry: (entry.ended_us, entry.number), reverse=True)
    found = ((one, [change for change in changes_of(db, one.number) if change.path == path]) for one in entries)
    return [(one, changes) for one, changes in found if changes]


def names(db: sqlite3.Connection) -> dict[str, list[str]]:
    """What filters can be chosen from: agents, projects and models."""
    queries = {
        "agent": "SELECT DISTINCT agent FROM session WHERE is_visible = 1 ORDER BY agent",
        "project": "SELECT DISTINCT project FROM session WHERE is_visible = 1 AND project <> '' ORDER BY project",
        "model": "SELECT DISTINCT o.text FROM usage_by_day t JOIN string o ON o.id = t.model WHERE o.text <> ''"
        " ORDER BY o.text",
    }
    return {name: [row[0] for row in db.execute(query)] for name, query in queries.items()}


class Facets(NamedTuple):
    """How many hits are of which agent, project, kind of text and model."""

    agent: dict[str, int]
    project: dict[str, int]
    kind: dict[str, int]
    model: dict[str, int]


_FACETS = f"""SELECT s.agent, s.project, k.text, coalesce(o.text, '') FROM block b
  JOIN session s ON s.id = b.id / {KEYS_PER_SOURCE} JOIN string k ON k.id = b.kind
  LEFT JOIN message m ON m.id = b.message LEFT JOIN string o ON o.id = m.model
  WHERE b.id IN """


def facets(db: sqlite3.Connection, docs: Sequence[int]) -> Facets:
    """Counts over blocks that were found, the largest first."""
    rows = db.execute(f"{_FACETS}({', '.join('?' * len(docs))})", docs).fetchall()
    counts = [Counter(column) for column in zip(*rows, strict=True)] if rows else [Counter[str]()] * 4
    return Facets(*(dict(sorted(count.items(), key=lambda pair: (-pair[1], pair[0]))) for count in counts))


class SourceCount(NamedTuple):
    """The sources of one agent on one host."""

    agent: str
    host: str
    state: str
    sources: int
    bytes: int
    problems: int


def source_counts(db: sqlite3.Connection) -> list[SourceCount]:
    """How many sources there are, of which agent, from where."""
    query = "SELECT agent, host, state, count(*), sum(size), sum(problems NOT IN ('', '[]')) FROM source"
    return [SourceCount(*row) for row in db.execute(f"{query} GROUP BY agent, host, state ORDER BY agent, host, state")]


def source_problems(db: sqlite3.Connection, limit: int) -> list[tuple[str, str, str, str]]:
    """Sources that could not be read, or not whole: agent, session, path, and what is wrong as JSON."""
    query = "SELECT f.agent, coalesce(s.native_id, ''), f.path, f.problems FROM source f"
    query += " LEFT JOIN session s ON s.id = f.id WHERE f.problems NOT IN ('', '[]') ORDER BY f.agent, f.path LIMIT ?"
    return list(db.execute(query, (limit,)))
