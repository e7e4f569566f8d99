"""The list of sessions from the catalog: the same rows as from the sources."""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from clew.analysis.usage import Usage
from clew.catalog.database import key_range
from clew.catalog.ids import packed_uuid
from clew.catalog.listing import Header, row_of
from clew.catalog.row_writer import COUNTS
from clew.catalog.schema import KEYS_PER_SOURCE
from clew.filters import EDITING, Filters
from clew.model.json import JSON
from clew.model.time import parse_time

_LOOKED_INTO = ("subagent",)
"""What only a look at other files tells."""


class Stored(NamedTuple):
    """A session in the catalog."""

    number: int
    agent: str
    path: str
    size: int
    header: Header


def can_answer(filters: Filters) -> bool:
    """True where the rows alone tell which sessions pass."""
    return filters.file is None and filters.text is None and not any(name in _LOOKED_INTO for name in filters.has)


def listed(db: sqlite3.Connection, filters: Filters) -> list[dict[str, JSON]]:
    """The rows of all sessions that are there and pass, newest first."""
    found = [stored for stored in sessions(db) if admits(filters, stored)]
    usages = _usages(db)
    rows = {stored.number: _row(stored, usages.get(stored.number, Usage())) for stored in found}
    _find_titles(db, found, rows)
    return sorted(rows.values(), key=lambda row: (row["ended_at"] or "", row["id"]), reverse=True)


def sessions(db: sqlite3.Connection, state: str = "live") -> Iterator[Stored]:
    """The sessions of sources in this state, in the order in which they are found."""
    query = "SELECT f.id, f.agent, f.path, f.size, s.header FROM session s JOIN source f ON f.id = s.id"
    for number, agent, path, size, header in db.execute(
        f"{query} WHERE f.state = ? ORDER BY f.agent, f.path", (state,)
    ):
        yield Stored(number, agent, path, size, json.loads(header))


def _row(stored: Stored, usage: Usage) -> dict[str, JSON]:
    return row_of(stored.agent, stored.header, usage, stored.size, stored.path)


def admits(filters: Filters, stored: Stored) -> bool:
    """True where the session passes the filters that rows can answer."""
    header = stored.header
    if filters.agent and stored.agent not in filters.agent:
        return False
    started, ended = (parse_time(time) for time in header["span"])
    return (
        _in(filters.project, header["workspace"], header["workspace_encoded"])
        and _in(filters.branch, header["git_branch"])
        and _in(filters.model, *header["models"])
        and _in(filters.tool, *header["tools"])
        and (filters.since is None or (ended is not None and ended >= filters.since))
        and (filters.until is None or (started is not None and started <= filters.until))
        and all(_has(name, header) for name in filters.has)
    )


def _in(wanted: str | None, *values: str | None) -> bool:
    return wanted is None or any(wanted.casefold() in value.casefold() for value in values if value)


def _has(name: str, header: Header) -> bool:
    if name == "edit":
        return not EDITING.isdisjoint(header["tools"])
    return bool(header["has_errors" if name == "error" else "has_thinking"])


def _usages(db: sqlite3.Connection) -> dict[int, Usage]:
    """What each source itself says that was used, whatever other files repeat."""
    sums = ", ".join(f"sum(CASE WHEN o.id IS NULL THEN u.{name} ELSE o.{name} END)" for name in COUNTS)
    query = f"SELECT u.id / {KEYS_PER_SOURCE} AS source, count(*), {sums} FROM token_usage u"
    query += " LEFT JOIN recorded_usage o ON o.id = u.id"
    return {source: Usage(*counts) for source, *counts in db.execute(f"{query} GROUP BY source")}


def _find_titles(db: sqlite3.Connection, found: list[Stored], rows: dict[int, dict[str, JSON]]) -> None:
    """A summary of a session may stand in any later file of its project."""
    folders: dict[Path, list[Stored]] = defaultdict(list)
    for stored in found:
        folders[Path(stored.path).parent].append(stored)
    for folder in folders.values():
        summaries = {leaf: text for stored in folder for leaf, text in stored.header["summaries"].items()}
        for leaf, summary in summaries.items():
            for stored in folder:
                if not stored.header["is_titled"] and _holds(db, stored.number, leaf):
                    rows[stored.number]["title"] = summary


def _holds(db: sqlite3.Connection, source: int, uuid: str) -> bool:
    query = "SELECT 1 FROM message WHERE id BETWEEN ? AND ? AND uuid = ?"
    return db.execute(query, (*key_range(source), packed_uuid(uuid))).fetchone() is not None
