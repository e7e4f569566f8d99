"""Writes the names that the user gave to projects into the rows of sessions, where every query finds them.

The table `meta` holds the names that were written last. So a sync sees that the file of names has changed, and rows
that are written in the meantime have the names of all others.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping

from clew import project_names
from clew.errors import SourceUnreadable

META_KEY = "project names"


def names_changed(db: sqlite3.Connection) -> bool:
    """True if the user has changed names since they were written. A file that cannot be read changes nothing."""
    return _changed_names(db) is not None


def _changed_names(db: sqlite3.Connection) -> dict[str, str] | None:
    try:
        names = project_names.load()
    except SourceUnreadable:
        return None
    return names if names != written_names(db) else None


def written_names(db: sqlite3.Connection) -> dict[str, str]:
    """The names that the rows of this catalog have."""
    found = db.execute("SELECT value FROM meta WHERE key = ?", (META_KEY,)).fetchone()
    names: dict[str, str] = json.loads(found[0]) if found is not None else {}
    return names


def update_project_names(db: sqlite3.Connection) -> None:
    """Write the names into all rows if the user has changed them."""
    names = _changed_names(db)
    if names is None:
        return
    db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (META_KEY, json.dumps(names)))
    write_names(db, names)


def write_names(db: sqlite3.Connection, names: Mapping[str, str], source: int | None = None) -> None:
    """Write the names into the row of one source, or into all rows."""
    query = "SELECT id, project, json_extract(header, '$.workspace'), json_extract(header, '$.project') FROM session"
    rows = db.execute(query) if source is None else db.execute(f"{query} WHERE id = ?", (source,))
    named = [
        (project_names.name_of(workspace or "", recorded or "", names), number, project)
        for number, project, workspace, recorded in rows
    ]
    changed = [(name, number) for name, number, project in named if name != project]
    db.executemany("UPDATE session SET project = ? WHERE id = ?", changed)
