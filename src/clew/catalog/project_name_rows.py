"""Writes the names that the user gave to projects into the rows of sessions, where every query finds them."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping

from clew.catalog.user_names import UserNames
from clew.datadir import PROJECT_NAMES_FILE


def _load_names() -> dict[str, str]:
    from clew import project_names  # takes long to load, and changes are rare

    return project_names.load()


PROJECT_NAMES = UserNames("project names", PROJECT_NAMES_FILE, _load_names)


def update_project_names(db: sqlite3.Connection) -> None:
    """Write the names into all rows if the user has changed them."""
    before, after = PROJECT_NAMES.update(db)
    if after != before:
        write_names(db, after)


def write_names(db: sqlite3.Connection, names: Mapping[str, str], source: int | None = None) -> None:
    """Write the names into the row of one source, or into all rows."""
    from clew.project_names import name_of

    query = "SELECT id, project, json_extract(header, '$.workspace'), json_extract(header, '$.project') FROM session"
    rows = db.execute(query) if source is None else db.execute(f"{query} WHERE id = ?", (source,))
    named = [
        (name_of(workspace or "", recorded or "", names), number, project)
        for number, project, workspace, recorded in rows
    ]
    changed = [(name, number) for name, number, project in named if name != project]
    db.executemany("UPDATE session SET project = ? WHERE id = ?", changed)
