"""Decides the titles of sessions that depend on more than their own source, and writes them into their rows.

The title that the user gave a session comes first. A session that neither the user, nor the agent, nor a person in the
agent has named is named by its first prompt, unless a file of the same folder has a summary of one of its messages.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterable
from typing import NamedTuple

from clew.catalog.ids import session_key
from clew.catalog.user_names import UserNames
from clew.datadir import ANNOTATIONS_FILE


def _load_titles() -> dict[str, str]:
    """The titles that the user gave to sessions, by the key of the session."""
    from clew.annotations import Annotations  # takes long to load, and changes are rare

    titles = Annotations().index().titles
    return {session_key(*session): title for session, title in titles.items()}


USER_TITLES = UserNames("titles", ANNOTATIONS_FILE, _load_titles)


def update_titles(db: sqlite3.Connection) -> None:
    """Decide titles again: those that the user has changed, and those in the folders of sources that were read.

    It is called before `update_visible_copies`, which forgets what was read.
    """
    before, after = USER_TITLES.update(db)
    changed = [key for key, _ in before.items() ^ after.items()]
    query = """SELECT f.path FROM needs_dedupe n JOIN source f ON f.id = n.source UNION
      SELECT f.path FROM session s JOIN source f ON f.id = s.id
      WHERE s.session_id IN (SELECT value FROM json_each(?))"""
    paths = db.execute(query, (json.dumps(changed),))
    for folder in sorted({path.rpartition(os.sep)[0] for (path,) in paths}):
        _update_folder(db, folder, after)


class _Row(NamedTuple):
    number: int
    key: str
    state: str
    title: str
    recorded: str
    """The title that was found in the source."""
    is_titled: bool
    summaries: str


def _update_folder(db: sqlite3.Connection, folder: str, titles: dict[str, str]) -> None:
    rows = _rows_in(db, folder)
    summaries = _summaries(rows)
    changed = []
    for row in rows:
        title = titles.get(row.key)
        if title is None and summaries and not row.is_titled:
            title = _summary_of(db, row.number, summaries)
        if (title or row.recorded) != row.title:
            changed.append((title or row.recorded, row.number))
    db.executemany("UPDATE session SET title = ? WHERE id = ?", changed)


def _rows_in(db: sqlite3.Connection, folder: str) -> list[_Row]:
    """The sessions whose source is in a folder, and not below it, ordered by file."""
    query = """SELECT f.path, s.id, s.session_id, f.state, s.title, coalesce(json_extract(s.header, '$.title'), ''),
      json_extract(s.header, '$.is_titled'), coalesce(json_extract(s.header, '$.summaries'), '{}')
      FROM source f JOIN session s ON s.id = f.id WHERE f.path > ? AND f.path < ? ORDER BY f.path"""
    first, end = (f"{folder}{os.sep}", f"{folder}{chr(ord(os.sep) + 1)}") if folder else ("", "\U0010ffff")
    return [_Row(*row) for path, *row in db.execute(query, (first, end)) if os.sep not in path[len(first) :]]


def _summaries(rows: Iterable[_Row]) -> list[tuple[bytes, str]]:
    """The summaries in existing files, each after the uuid of the message that it names, in the order of the files."""
    texts = [row.summaries for row in rows if row.state == "live" and row.summaries != "{}"]
    named = (pair for text in texts for pair in json.loads(text).items())
    return [(uuid.encode("utf-8", "surrogatepass"), summary) for uuid, summary in named]


def _summary_of(db: sqlite3.Connection, number: int, summaries: list[tuple[bytes, str]]) -> str | None:
    """The last summary of a message of an untitled session."""
    (uuids,) = db.execute("SELECT message_uuids FROM session WHERE id = ?", (number,)).fetchone()
    messages = set(uuids.split(b"\n"))
    return next((summary for uuid, summary in reversed(summaries) if uuid in messages), None)
