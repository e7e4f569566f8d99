"""Read queries: lists of sessions with their sub-agents, neighbours, usage, files, sources and problems."""

from __future__ import annotations

import json
import os
import sqlite3
from collections import Counter
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from clew.agents.file_evidence import absolute
from clew.analysis.pricing import NANO_DOLLARS
from clew.analysis.usage import TOKEN_FIELDS, Usage
from clew.catalog.change_detection import recorded_unreadable_folders
from clew.catalog.database import key_range
from clew.catalog.filters import Condition
from clew.catalog.portable_sql import CACHE_5M_TOKENS
from clew.catalog.schema import KEYS_PER_SOURCE, SESSION_BLOCKS
from clew.catalog.stats import UsageTotals, add_known, catalog_stats
from clew.catalog.unknown_formats import UNKNOWN_CODES, type_name, version_numbers
from clew.io.paths import escape_controls, path_for_display, path_from_text, path_to_text
from clew.model import Problem
from clew.model.codes import CODES, problem
from clew.model.json import JSON
from clew.model.time import format_utc
from clew.render.shell import shell_word
from clew.render.tables import counted

MAX_SUBAGENT_DEPTH = 8
"""Levels of sub-agents below a session that a list shows."""
_FIELDS = """s.id, s.session_id, s.agent, s.native_id, s.parent_session_id, s.is_agent_session, s.title, s.project,
  s.git_branch, s.started_us, s.ended_us, s.message_count, s.turn_count, s.error_count, s.active_us, f.host, f.state,
  json_extract(s.header, '$.models')"""
_NAMES_FILE = "c.path NOT IN ('', '.', './', '/')"
"""The path of a change `c` names a file, not the working folder itself."""
_FROM = "FROM session s JOIN source f ON f.id = s.id"
_USAGE_SUMS = (
    "calls priced_calls input_tokens output_tokens cache_read_tokens cache_creation_5m_tokens "
    "cache_creation_1h_tokens cost_nano"
).split()
_CALL_COLUMNS = {"priced_calls": "is_priced", "cache_creation_5m_tokens": CACHE_5M_TOKENS}
"""Columns of `token_usage` whose sums have another name in `usage_by_quarter_hour`."""


class Entry(NamedTuple):
    """A session in a list."""

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
    used: UsageTotals = UsageTotals()
    children: tuple[Entry, ...] = ()


SORTS = ("time", "cost", "tokens", "messages")
"""Sort orders of a list; each puts the latest or largest first."""
PAGE_SORTS = (*SORTS, "duration")
"""Those of a page."""


def list_rows(
    db: sqlite3.Connection,
    condition: Condition | None = None,
    *,
    subagents: bool = True,
    limit: int | None = None,
    sort: str = "time",
    reverse: bool = False,
) -> list[dict[str, JSON]]:
    """The sessions whose files exist and that pass the condition, as `clew list --json` prints them."""
    where, values = _list_condition(condition, subagents)
    order = "s.message_count DESC, " if sort == "messages" else ""
    query = f"SELECT s.id {_FROM} WHERE {where} ORDER BY {order}s.ended_us DESC, s.native_id DESC"
    numbers = [row[0] for row in db.execute(query, values)]
    if sort in ("cost", "tokens"):
        sizes = _costs(db, numbers) if sort == "cost" else _tokens(db, numbers)
        numbers.sort(key=lambda number: sizes.get(number, -1), reverse=True)
    if reverse:
        numbers.reverse()
    return _list_rows(db, numbers[:limit])


def _costs(db: sqlite3.Connection, numbers: Sequence[int]) -> dict[int, int]:
    return {number: used.cost_nano for number, used in _used(db, numbers).items() if used.priced_calls}


def _tokens(db: sqlite3.Connection, numbers: Sequence[int]) -> dict[int, int]:
    usages = _recorded_usage(db, numbers).items()
    return {number: usage.total_tokens for number, usage in usages if usage.total_tokens is not None}


def _list_rows(db: sqlite3.Connection, numbers: Sequence[int]) -> list[dict[str, JSON]]:
    """The rows of a list, in this order."""
    fields = "f.id, f.agent, f.path, f.size, s.title, s.project, s.header"
    query = f"SELECT {fields} {_FROM} WHERE f.id IN (SELECT value FROM json_each(?))"
    found = {
        number: (agent, path, size, {**json.loads(header), "title": title or None, "project": project or None})
        for number, agent, path, size, title, project, header in db.execute(query, (json.dumps(list(numbers)),))
    }
    usages, used = _recorded_usage(db, numbers), _used(db, numbers)
    rows = []
    for number in numbers:
        agent, path, size, header = found[number]
        row = _list_row(agent, header, usages.get(number, Usage()), size, path)
        rows.append(row | _cost_columns(used.get(number, UsageTotals())))
    return rows


def _cost_columns(used: UsageTotals) -> dict[str, JSON]:
    """The cost of the calls that count for this session and for no other; None without a known price."""
    cost = used.cost_nano / NANO_DOLLARS if used.priced_calls else None
    return {"cost": cost, "cost_is_at_least": used.cost_is_lower_bound}


def last_messages(db: sqlite3.Connection) -> dict[Path, datetime | None]:
    """The time of the last message of each session, by its main file; None where unknown."""
    query = f"SELECT f.path, s.ended_us {_FROM} WHERE f.state = 'live'"
    return {Path(path_from_text(path)): _known_time(ended_us) for path, ended_us in db.execute(query)}


def workspaces_and_times(db: sqlite3.Connection) -> dict[Path, tuple[str | None, datetime | None, datetime | None]]:
    """The project's folder, the first and the last message of each session, by its main file, also if it is gone."""
    query = f"SELECT f.path, json_extract(s.header, '$.workspace'), s.started_us, s.ended_us {_FROM}"
    return {
        Path(path_from_text(path)): (workspace or None, _known_time(started_us), _known_time(ended_us))
        for path, workspace, started_us, ended_us in db.execute(query)
    }


def _known_time(time_us: int) -> datetime | None:
    return datetime.fromtimestamp(time_us / 1e6, UTC) if time_us > 0 else None


def subagent_paths(db: sqlite3.Connection) -> set[Path]:
    """The main files of the sessions of sub-agents."""
    query = f"SELECT f.path {_FROM} WHERE s.is_agent_session = 1"
    return {Path(path_from_text(path)) for (path,) in db.execute(query)}


def list_ids(db: sqlite3.Connection, condition: Condition | None = None) -> list[str]:
    """The ids of the sessions of a list, to compute how short an id can be and still be unique."""
    where, values = _list_condition(condition, True)
    return [row[0] for row in db.execute(f"SELECT s.native_id {_FROM} WHERE {where}", values)]


def sessions_with_id_prefix(
    db: sqlite3.Connection, prefix: str, limit: int, *, agent: str = ""
) -> list[tuple[str, str, str]]:
    """Id, title and project of the sessions whose id begins with a text, without sub-agents, the latest first.

    With `agent`, only its sessions.
    """
    query = f"SELECT s.native_id, s.title, s.project {_FROM} WHERE f.state = 'live' AND s.is_agent_session = 0"
    query += " AND substr(s.native_id, 1, length(:prefix)) = :prefix AND :agent IN ('', s.agent)"
    query += " ORDER BY s.ended_us DESC LIMIT :limit"
    return db.execute(query, {"prefix": prefix, "limit": limit, "agent": agent}).fetchall()


def _list_condition(condition: Condition | None, subagents: bool) -> tuple[str, tuple[Any, ...]]:
    where = "f.state = 'live'" + ("" if subagents else " AND s.is_agent_session = 0")
    if condition is None:
        return where, ()
    return f"{where} AND s.id IN (SELECT id FROM session WHERE {condition.text})", condition.values


def _list_row(agent: str, header: dict[str, JSON], usage: Usage, size: int, path: str) -> dict[str, JSON]:
    return {
        "id": header["id"],
        "agent": agent,
        **{name: header[name] for name in _HEADER_COLUMNS},
        "turns": header["prompt_count"],
        "user_messages": header["turn_count"],
        "workspace": header["workspace"] and path_for_display(header["workspace"]),
        "project": header["project"] and path_for_display(header["project"]),
        "tokens": {name: getattr(usage, name) for name in ("calls", *TOKEN_FIELDS)},
        "total_tokens": usage.total_tokens,
        "cache_hit_rate": usage.cache_hit_rate,
        **{name: header[name] for name in ("is_agent_session", "parent_session_id", "agent_id")},
        "bytes": size,
        "path": path_for_display(path),
        "source": {**header["source"], "path": path_for_display(header["source"]["path"])},
    }


_HEADER_COLUMNS = (
    "title workspace project git_branch slug models started_at ended_at duration_seconds messages tool_calls has_errors"
).split()


def _recorded_usage(db: sqlite3.Connection, numbers: Sequence[int]) -> dict[int, Usage]:
    """The usage in the records of each source, including calls that count for another source."""
    sums = ", ".join(f"sum(CASE WHEN o.id IS NULL THEN u.{name} ELSE o.{name} END)" for name in TOKEN_FIELDS)
    query = f"""SELECT s.value, count(*), {sums} FROM json_each(?) s
      JOIN token_usage u ON u.id >= s.value * {KEYS_PER_SOURCE} AND u.id < (s.value + 1) * {KEYS_PER_SOURCE}
      LEFT JOIN recorded_usage o ON o.id = u.id GROUP BY s.value"""
    return {number: Usage(*counts) for number, *counts in db.execute(query, (json.dumps(list(numbers)),))}


MAX_MOVED_HINTS = 3


def moved_project_hints(db: sqlite3.Connection, folders: Sequence[str]) -> list[str]:
    """Hints for a folder without sessions: a missing folder of the same name has some, so it may have been moved.

    `folders` are all paths of the folder, the first as the user knows it.
    """
    query = f"""SELECT DISTINCT json_extract(s.header, '$.workspace') {_FROM}
      WHERE json_extract(s.header, '$.project') = ? AND f.host = ''"""
    recorded = [path_from_text(row[0]) for row in db.execute(query, (path_to_text(Path(folders[0]).name),)) if row[0]]
    missing = [path for path in recorded if path.startswith("/") and path not in folders and not Path(path).exists()]
    return [
        f"there are sessions of {path}, which does not exist; if it was moved: "
        f"clew sources map {shell_word(path)} {shell_word(folders[0])}"
        for path in sorted(missing)[:MAX_MOVED_HINTS]
    ]


def with_subagents(db: sqlite3.Connection, keys: Sequence[str]) -> list[str]:
    """The keys of sessions and of all sub-agents below them."""
    query = """WITH RECURSIVE family (key) AS (SELECT value FROM json_each(?) UNION
      SELECT s.session_id FROM session s JOIN family ON s.parent_session_id = family.key)
      SELECT key FROM family ORDER BY key"""
    return [row[0] for row in db.execute(query, (json.dumps(list(keys)),))]


def agent_summaries(db: sqlite3.Connection) -> dict[str, dict[str, JSON]]:
    """For each agent: sessions, sub-agents, messages, bytes of existing files, and last activity."""
    query = f"""SELECT f.agent, sum(CASE WHEN f.state = 'live' THEN f.size ELSE 0 END),
      max(CASE WHEN s.ended_us > 0 THEN s.ended_us END) {_FROM} GROUP BY f.agent ORDER BY f.agent"""
    side_query = """SELECT f.agent, sum(d.size) FROM side_file d JOIN source f ON f.id = d.owner
      WHERE f.state = 'live' AND d.size > 0 GROUP BY f.agent"""
    side_sizes = dict(db.execute(side_query))
    counts = catalog_stats(db).sessions_by("agent")
    return {
        agent: {
            **{name: counts[agent][name] for name in ("sessions", "subagents", "messages")},
            "bytes": size + side_sizes.get(agent, 0),
            "last_activity": None if last_us is None else format_utc(last_us),
        }
        for agent, size, last_us in db.execute(query)
    }


def agent_versions(db: sqlite3.Connection) -> dict[str, list[str]]:
    """For each agent the versions of it that wrote sessions, the oldest first."""
    query = f"SELECT DISTINCT f.agent, s.agent_version {_FROM} WHERE s.agent_version <> '' ORDER BY 1, 2"
    versions: dict[str, list[str]] = {}
    for agent, version in db.execute(query):
        versions.setdefault(agent, []).append(version)
    return {agent: sorted(found, key=version_numbers) for agent, found in versions.items()}


class Page(NamedTuple):
    """A page of a list: the number of all top-level rows, the entries shown, and the numbers of all sessions."""

    total: int
    entries: list[Entry]
    sessions: int
    subagents: int


def page(
    db: sqlite3.Connection, chosen: Collection[int] | None, limit: int, offset: int = 0, sort: str = "time"
) -> Page:
    """A page of sessions, the latest or largest first, with their sub-agents; `chosen` limits it to some ids."""
    query = """SELECT id, session_id, parent_session_id, is_agent_session FROM session WHERE is_visible = 1
      ORDER BY ended_us DESC, id DESC"""
    rows = [row for row in db.execute(query) if chosen is None or row[0] in chosen]
    known = {row[1] for row in rows}
    tops = [number for number, key, parent, _ in rows if parent not in known or parent == key]
    if sort != "time":
        sizes = _page_sizes(db, tops, sort)
        tops.sort(key=lambda number: sizes.get(number, -1), reverse=True)
    shown = with_children(db, entries(db, tops[offset : offset + limit]), chosen)
    subagents = sum(row[3] for row in rows)
    return Page(len(tops), shown, len(rows) - subagents, subagents)


def _page_sizes(db: sqlite3.Connection, numbers: Sequence[int], sort: str) -> dict[int, int]:
    """What a page is sorted by, as its rows show it; sessions without it are left out."""
    if sort == "cost":
        return _costs(db, numbers)
    if sort == "tokens":
        usages = _used(db, numbers).items()
        return {number: used.total_tokens for number, used in usages if used.total_tokens is not None}
    size = {"messages": "message_count", "duration": "CASE WHEN started_us > 0 THEN ended_us - started_us END"}[sort]
    query = f"SELECT id, {size} AS size FROM session WHERE size IS NOT NULL"
    return dict(db.execute(query))


def with_children(db: sqlite3.Connection, parents: list[Entry], chosen: Collection[int] | None) -> list[Entry]:
    """Add the sub-agents of each entry, and theirs, down to `MAX_SUBAGENT_DEPTH`."""
    below: dict[str, list[Entry]] = {}
    waiting, seen = [entry.key for entry in parents], {entry.key for entry in parents}
    for _ in range(MAX_SUBAGENT_DEPTH):
        if not waiting:
            break
        marks = ", ".join("?" * len(waiting))
        query = f"SELECT s.id FROM session s WHERE s.is_visible = 1 AND s.parent_session_id IN ({marks}) ORDER BY s.id"
        numbers = [row[0] for row in db.execute(query, waiting) if chosen is None or row[0] in chosen]
        found = [entry for entry in entries(db, numbers) if entry.key not in seen]
        for entry in found:
            below.setdefault(entry.parent, []).append(entry)
        waiting = [entry.key for entry in found]
        seen.update(waiting)
    return [_joined(entry, below) for entry in parents]


def _joined(entry: Entry, below: dict[str, list[Entry]]) -> Entry:
    children = tuple(_joined(child, below) for child in below.pop(entry.key, ()))
    return entry._replace(children=children)


def entries(db: sqlite3.Connection, numbers: Sequence[int]) -> list[Entry]:
    """The sessions with these numbers, in this order."""
    if not numbers:
        return []
    marks = ", ".join("?" * len(numbers))
    rows = {row[0]: row for row in db.execute(f"SELECT {_FIELDS} {_FROM} WHERE s.id IN ({marks})", numbers)}
    used = _used(db, numbers)
    return [_entry(rows[number], used.get(number, UsageTotals())) for number in numbers if number in rows]


def _entry(row: tuple[Any, ...], used: UsageTotals) -> Entry:
    models = tuple(map(str, json.loads(row[-1] or "[]")))
    return Entry._make((*row[:5], bool(row[5]), *row[6:-1], models, used, ()))


def _used(db: sqlite3.Connection, numbers: Sequence[int]) -> dict[int, UsageTotals]:
    sums = ", ".join(f"sum({name})" for name in _USAGE_SUMS)
    chosen = "source IN (SELECT value FROM json_each(?))"
    query = f"SELECT source, {sums} FROM usage_by_quarter_hour WHERE {chosen} GROUP BY source"
    return {row[0]: _usage_totals(row[1:]) for row in db.execute(query, (json.dumps(list(numbers)),))}


def _usage_totals(sums: Sequence[int | None]) -> UsageTotals:
    return UsageTotals.from_sums(dict(zip(_USAGE_SUMS, sums, strict=True)))


def entry(db: sqlite3.Connection, agent: str, identity: str) -> Entry | None:
    """The session with exactly this id; of several copies the visible one."""
    query = "SELECT id FROM session WHERE agent = ? AND native_id = ? ORDER BY is_visible DESC, id LIMIT 1"
    row = db.execute(query, (agent, identity)).fetchone()
    return entries(db, [row[0]])[0] if row is not None else None


def smallest(db: sqlite3.Connection) -> list[Entry]:
    """The shortest session of each agent with more than three messages."""
    query = "SELECT id, min(message_count) FROM session WHERE is_visible = 1 AND message_count > 3 GROUP BY agent"
    return entries(db, [row[0] for row in db.execute(query)])


def by_key(db: sqlite3.Connection, key: str) -> Entry | None:
    """The session with this key."""
    row = db.execute("SELECT id FROM session WHERE session_id = ? AND is_visible = 1", (key,)).fetchone()
    return entries(db, [row[0]])[0] if row is not None else None


def by_keys(db: sqlite3.Connection, keys: Sequence[str]) -> dict[str, Entry]:
    """The sessions with these keys, by key."""
    return {entry.key: entry for entry in entries(db, sorted(numbers_of(db, keys)))}


def numbers_of(db: sqlite3.Connection, keys: Sequence[str]) -> frozenset[int]:
    """The ids of the sessions with these keys."""
    query = "SELECT id FROM session WHERE is_visible = 1 AND session_id IN (SELECT value FROM json_each(?))"
    return frozenset(row[0] for row in db.execute(query, (json.dumps(list(keys)),)))


def numbers_in_project(db: sqlite3.Connection, project: str) -> frozenset[int]:
    """The ids of the sessions of the project with exactly this name."""
    rows = db.execute("SELECT id FROM session WHERE is_visible = 1 AND project = ?", (project,))
    return frozenset(row[0] for row in rows)


def neighbours(db: sqlite3.Connection, entry: Entry) -> tuple[Entry | None, Entry | None]:
    """The next newer and the next older session."""
    newer = "(ended_us, id) > (?, ?) ORDER BY ended_us, id"
    older = "(ended_us, id) < (?, ?) ORDER BY ended_us DESC, id DESC"
    found = []
    for condition in (newer, older):
        query = f"SELECT id FROM session WHERE is_visible = 1 AND is_agent_session = 0 AND {condition} LIMIT 1"
        row = db.execute(query, (entry.ended_us, entry.number)).fetchone()
        found.append(entries(db, [row[0]])[0] if row is not None else None)
    return found[0], found[1]


class WrittenSession(NamedTuple):
    """A session, and when its file was written to."""

    number: int
    is_subagent: bool
    written_ns: int


def written_since(db: sqlite3.Connection, written_ns: int, said_us: int, limit: int) -> list[WrittenSession]:
    """The sessions whose file was written since one time, and whose last message is since another, latest first.

    The second limit leaves out old sessions whose file was copied recently.
    """
    query = f"SELECT s.id, s.is_agent_session, max(f.mtime_ns, f.ctime_ns) AS written_ns {_FROM}"
    query += " WHERE s.is_visible = 1 AND f.state = 'live' AND written_ns >= ? AND (s.ended_us = 0 OR s.ended_us >= ?)"
    query += " ORDER BY s.ended_us DESC, s.id DESC LIMIT ?"
    return [WrittenSession(*row) for row in db.execute(query, (written_ns, said_us, limit))]


def ends_with_answer(db: sqlite3.Connection, number: int) -> bool:
    """True if the last block of a session is an answer, and no tool call of its message is open."""
    first = number * KEYS_PER_SOURCE
    query = """SELECT k.text = 'answer' AND NOT EXISTS
      (SELECT 1 FROM call c WHERE c.id BETWEEN ? AND ? AND c.message = b.message AND c.result = 0)
      FROM block b JOIN string k ON k.id = b.kind WHERE b.id BETWEEN ? AND ? AND b.chars > 0 AND k.text <> ''
      ORDER BY b.id DESC LIMIT 1"""
    row = db.execute(query, (*key_range(number), first, first + SESSION_BLOCKS)).fetchone()
    return row is not None and bool(row[0])


class Moment(NamedTuple):
    """A message on a timeline."""

    message: int
    time_us: int
    kind: str


def moments(db: sqlite3.Connection, number: int) -> list[Moment]:
    """The messages of a session whose time is known."""
    query = f"SELECT m.id % {KEYS_PER_SOURCE}, m.ts_us, k.text FROM message m JOIN string k ON k.id = m.kind"
    query += " WHERE m.id BETWEEN ? AND ? AND m.ts_us > 0 ORDER BY m.id"
    return [Moment(*row) for row in db.execute(query, key_range(number))]


def calls_of(db: sqlite3.Connection, number: int) -> list[tuple[int, UsageTotals]]:
    """The usage of each message of a session, by number; 0 for calls without a message. Each call is counted once."""
    sums = ", ".join("count(*)" if name == "calls" else f"sum({_CALL_COLUMNS.get(name, name)})" for name in _USAGE_SUMS)
    query = f"""SELECT message % {KEYS_PER_SOURCE} AS at, {sums} FROM token_usage u
      WHERE is_visible = 1 AND id BETWEEN ? AND ? GROUP BY at ORDER BY at"""
    return [(row[0], _usage_totals(row[1:])) for row in db.execute(query, key_range(number))]


def models_of_messages(db: sqlite3.Connection, number: int) -> dict[int, str]:
    """The models of the messages of a session, by their numbers."""
    query = f"SELECT m.id % {KEYS_PER_SOURCE}, o.text FROM message m JOIN string o ON o.id = m.model"
    return dict(db.execute(f"{query} WHERE m.id BETWEEN ? AND ? AND o.text <> ''", key_range(number)))


class RecordedChange(NamedTuple):
    """A change of a file by a message."""

    message: int
    path: str
    """Absolute; a relative path is below the session's folder."""
    op: str
    added: int | None
    removed: int | None
    """Lines added and removed; None where unknown."""
    time_us: int


def recorded_changes(db: sqlite3.Connection, number: int) -> list[RecordedChange]:
    """The file changes of a session, in order."""
    folder = workspaces(db, [number]).get(number)
    query = f"SELECT c.message % {KEYS_PER_SOURCE}, c.path, o.text, c.lines_added, c.lines_removed, m.ts_us"
    query += " FROM change c"
    query += " JOIN string o ON o.id = c.op JOIN message m ON m.id = c.message"
    query += f" WHERE c.id BETWEEN ? AND ? AND {_NAMES_FILE} ORDER BY c.id"
    changes = (RecordedChange(*row) for row in db.execute(query, key_range(number)))
    return [change._replace(path=absolute(change.path, folder)) for change in changes]


def workspaces(db: sqlite3.Connection, numbers: Collection[int] | None = None) -> dict[int, str | None]:
    """The working folders of some sessions, or of all."""
    query = "SELECT id, json_extract(header, '$.workspace') FROM session"
    if numbers is None:
        return dict(db.execute(query))
    return dict(db.execute(f"{query} WHERE id IN (SELECT value FROM json_each(?))", (json.dumps(list(numbers)),)))


class TouchedFile(NamedTuple):
    """A file that sessions changed."""

    path: str
    changes: int
    sessions: int
    added: int | None
    removed: int | None
    last_us: int


def files(db: sqlite3.Connection) -> list[TouchedFile]:
    """Every file that a session changed, the latest first. Relative and absolute paths of a file are one file."""
    folders = workspaces(db)
    query = f"SELECT c.id / {KEYS_PER_SOURCE} AS number, c.path, count(*), sum(c.lines_added),"
    query += " sum(c.lines_removed), max(m.ts_us)"
    query += f" FROM change c JOIN message m ON m.id = c.message WHERE m.is_visible = 1 AND {_NAMES_FILE}"
    query += " GROUP BY number, c.path"
    found: dict[str, list[tuple[Any, ...]]] = {}
    for row in db.execute(query):
        found.setdefault(absolute(row[1], folders.get(row[0])), []).append(row)
    return sorted(map(_touched_file, found, found.values()), key=lambda file: (-file.last_us, file.path))


def _touched_file(path: str, rows: list[tuple[Any, ...]]) -> TouchedFile:
    """Sum the changes of a file; a session may have recorded its path in several forms."""
    numbers, _, changes, added, removed, times = zip(*rows, strict=True)
    return TouchedFile(path, sum(changes), len(set(numbers)), add_known(added), add_known(removed), max(times))


def sessions_of_file(db: sqlite3.Connection, path: str) -> list[tuple[Entry, list[RecordedChange]]]:
    """The sessions that changed a file, the latest first, with their changes."""
    query = f"SELECT DISTINCT c.id / {KEYS_PER_SOURCE} FROM change c JOIN message m ON m.id = c.message"
    query += " WHERE m.is_visible = 1"
    query += " AND (substr(c.path, -length(:name)) = :name OR c.path LIKE 'file:%')"
    numbers = [row[0] for row in db.execute(query, {"name": path.rpartition("/")[2]})]
    latest = sorted(entries(db, numbers), key=lambda entry: (entry.ended_us, entry.number), reverse=True)
    found = ((one, [change for change in recorded_changes(db, one.number) if change.path == path]) for one in latest)
    return [(one, changes) for one, changes in found if changes]


def names(db: sqlite3.Connection) -> dict[str, list[str]]:
    """The agents, projects and models that filters can name."""
    queries = {
        "agent": "SELECT DISTINCT agent FROM session WHERE is_visible = 1 ORDER BY agent",
        "project": "SELECT DISTINCT project FROM session WHERE is_visible = 1 AND project <> '' ORDER BY project",
        "model": "SELECT DISTINCT o.text FROM usage_by_quarter_hour t JOIN string o ON o.id = t.model"
        " WHERE o.text <> '' ORDER BY o.text",
    }
    return {name: [row[0] for row in db.execute(query)] for name, query in queries.items()}


class Facets(NamedTuple):
    """The number of hits for each agent, project, kind of text, model of the session, and session by its key."""

    agent: dict[str, int]
    project: dict[str, int]
    kind: dict[str, int]
    model: dict[str, int]
    session: dict[str, int]


_FACETS = f"""SELECT s.agent, s.project, k.text, json_extract(s.header, '$.models'), s.session_id FROM block b
  JOIN session s ON s.id = b.id / {KEYS_PER_SOURCE} JOIN string k ON k.id = b.kind
  WHERE b.id IN """


def facets(db: sqlite3.Connection, docs: Sequence[int]) -> Facets:
    """Count the blocks that were found, by agent and so on; the largest counts first."""
    rows = db.execute(f"{_FACETS}({', '.join('?' * len(docs))})", docs).fetchall()
    counts = [Counter(column) for column in zip(*rows, strict=True)] if rows else [Counter[str]()] * 5
    counts[3] = _count_models(counts[3])
    return Facets(*(dict(sorted(count.items(), key=lambda pair: (-pair[1], pair[0]))) for count in counts))


def _count_models(hits: Counter[str]) -> Counter[str]:
    """The number of hits that the filter `model` keeps for each model; `hits` are counted by the models of sessions."""
    lists = [([str(model).casefold() for model in json.loads(models or "[]")], count) for models, count in hits.items()]
    names = {str(model) for models in hits for model in json.loads(models or "[]")}
    return Counter(
        {
            name: sum(count for models, count in lists if any(name.casefold() in model for model in models))
            for name in names
        }
    )


def sources_of_agents(db: sqlite3.Connection, agents: Collection[str]) -> set[int]:
    """The ids of the sources of some agents whose files exist."""
    rows = db.execute("SELECT id, agent FROM source WHERE state <> 'gone'")
    return {number for number, agent in rows if agent in agents}


class SourceCount(NamedTuple):
    """The sources of one agent on one host."""

    agent: str
    host: str
    state: str
    sources: int
    bytes: int
    problems: int


def source_counts(db: sqlite3.Connection) -> list[SourceCount]:
    """Count the sources of each agent, host and state."""
    query = "SELECT agent, host, state, count(*), sum(size), sum(problems NOT IN ('', '[]')) FROM source"
    return [SourceCount(*row) for row in db.execute(f"{query} GROUP BY agent, host, state ORDER BY agent, host, state")]


def source_problems(db: sqlite3.Connection, limit: int) -> list[tuple[str, str, str, str]]:
    """Sources with problems: agent, session id, path, and the problems as JSON."""
    query = "SELECT f.agent, coalesce(s.native_id, ''), f.path, f.problems FROM source f"
    query += " LEFT JOIN session s ON s.id = f.id WHERE f.problems NOT IN ('', '[]') ORDER BY f.agent, f.path LIMIT ?"
    return list(db.execute(query, (limit,)))


def problems(db: sqlite3.Connection) -> list[Problem]:
    """Every problem that the last sync recorded, in the order of the files."""
    query = "SELECT path, problems FROM source WHERE problems NOT IN ('', '[]') AND state <> 'gone' ORDER BY path"
    return [_problem(path, recorded) for path, text in db.execute(query) for recorded in json.loads(text)]


def shared_messages(db: sqlite3.Connection, path: Path) -> list[Problem]:
    """A problem for each other file with messages of the session at a path, such as a fork or a resumed copy."""
    query = f"""
    SELECT other.path, count(*), min(m.id) % {KEYS_PER_SOURCE} AS first
    FROM source f JOIN message m ON m.id BETWEEN f.id * {KEYS_PER_SOURCE} AND (f.id + 1) * {KEYS_PER_SOURCE} - 1
      JOIN message copy ON copy.event = m.event AND copy.id / {KEYS_PER_SOURCE} <> f.id
      JOIN source other ON other.id = copy.id / {KEYS_PER_SOURCE}
    WHERE f.path = ? AND other.state <> 'gone' GROUP BY other.id ORDER BY first, other.path
    """
    return [
        problem(
            "shared-uuid",
            f"{path_for_display(other)} also has {counted(count, 'message')} of this session, from this one on.",
            file=path_for_display(str(path)),
            index=first,
        )
        for other, count, first in db.execute(query, (path_to_text(str(path)),))
    ]


def _problem(path: str, recorded: dict[str, str | int]) -> Problem:
    code = CODES[str(recorded["code"])]
    message = str(recorded.get("message") or code.meaning)
    if recorded["code"] in UNKNOWN_CODES:
        message = f"{UNKNOWN_CODES[str(recorded['code'])]} {type_name(recorded)}"
    return Problem(
        code=str(recorded["code"]),
        severity=code.severity,
        message=message,
        file=path_for_display(path),
        line=int(recorded["line"]) or None,
        hint=code.hint,
    )


def sources_changing(db: sqlite3.Connection, paths: Collection[str]) -> set[int]:
    """The sources whose calls of tools changed a file under one of these paths."""
    query = f"SELECT DISTINCT id / {KEYS_PER_SOURCE} FROM change WHERE path IN (SELECT value FROM json_each(?))"
    return {number for (number,) in db.execute(query, (json.dumps(list(paths)),))}


def unreadable_sources(
    db: sqlite3.Connection, agents: Collection[str] = (), *, with_old_rows: bool = False
) -> list[str]:
    """The folders and sources of some agents or of all that cannot be read, with the reason.

    With `with_old_rows`, also the sources that were read before, whose rows may be out of date.
    """
    folders = [folder for folder in recorded_unreadable_folders(db) if not agents or folder.agent in agents]
    inside = tuple(f"{folder.path}{os.sep}" for folder in folders)
    condition = "s.id IS NULL" + (" OR f.problems LIKE '%\"unreadable\"%'" if with_old_rows else "")
    query = "SELECT f.agent, f.path, f.problems FROM source f LEFT JOIN session s ON s.id = f.id"
    query += f" WHERE ({condition}) AND f.state <> 'gone' ORDER BY f.path"
    found = [(path, text) for agent, path, text in db.execute(query) if not agents or agent in agents]
    return [
        *dict.fromkeys(map(str, folders)),
        *(_unreadable(path, json.loads(text or "[]")) for path, text in found if not path.startswith(inside)),
    ]


def _unreadable(path: str, recorded: list[dict[str, JSON]]) -> str:
    message = next((str(one["message"]) for one in recorded if one.get("message")), "cannot be read")
    return f"{escape_controls(path_for_display(path))}: {message}"
