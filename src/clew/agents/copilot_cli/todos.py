"""The todo list of a session.

The model keeps it in a table of a SQLite database, which it changes by statements of its own. The database in the
session's folder holds the last state alone. For the states before it, the recorded statements run once more, in a
database in memory that they cannot leave or fill.
"""

from __future__ import annotations

import re
import sqlite3
from itertools import count

from clew.model.todo import Todo

_SCHEMA = """
CREATE TABLE todos (
    id TEXT PRIMARY KEY,
    title TEXT NOT NULL,
    description TEXT,
    status TEXT DEFAULT 'pending' CHECK(status IN ('pending', 'in_progress', 'done', 'blocked')),
    created_at TEXT DEFAULT (datetime('now')),
    updated_at TEXT DEFAULT (datetime('now'))
);
CREATE TABLE todo_deps (todo_id TEXT NOT NULL, depends_on TEXT NOT NULL, PRIMARY KEY (todo_id, depends_on));
PRAGMA max_page_count = 1000;
PRAGMA temp_store = MEMORY;
"""
"""The tables as the client makes them."""
_NAMES_TODOS = re.compile(r"\btodos\b", re.IGNORECASE)
_STATUSES = {"done": "completed"}
_MAX_VALUE_BYTES = 64 << 10
_STEPS_PER_CHECK, _MAX_CHECKS = 1000, 50
"""A statement is stopped after this many steps of the database engine, times this many checks."""
_DENIED_ACTIONS = frozenset(
    {
        sqlite3.SQLITE_ATTACH,
        sqlite3.SQLITE_DETACH,
        sqlite3.SQLITE_PRAGMA,
        # `max_page_count` does not limit temporary tables.
        sqlite3.SQLITE_CREATE_TEMP_TABLE,
        sqlite3.SQLITE_CREATE_TEMP_INDEX,
        sqlite3.SQLITE_CREATE_TEMP_TRIGGER,
        sqlite3.SQLITE_CREATE_TEMP_VIEW,
    }
)


class TodoDatabase:
    """The todo list after each statement that the model ran."""

    def __init__(self) -> None:
        self._database: sqlite3.Connection | None = None

    def run(self, query: str) -> list[Todo] | None:
        """The list after a statement; None for one that has nothing to do with it, or that fails here."""
        if not _NAMES_TODOS.search(query):
            return None
        if self._database is None:
            self._database = _open()
        checks = count()
        self._database.set_progress_handler(lambda: next(checks) >= _MAX_CHECKS, _STEPS_PER_CHECK)
        try:
            self._database.executescript(query)
            rows = self._database.execute("SELECT id, title, status FROM todos ORDER BY rowid").fetchall()
        except (sqlite3.Error, sqlite3.Warning, ValueError):
            return None
        return [
            Todo(content=str(title), status=_STATUSES.get(str(status), str(status)), id=str(key))
            for key, title, status in rows
        ]

    def close(self) -> None:
        if self._database is not None:
            self._database.close()


def _open() -> sqlite3.Connection:
    database = sqlite3.connect(":memory:")
    database.executescript(_SCHEMA)
    database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MAX_VALUE_BYTES)
    database.set_authorizer(
        lambda action, *_names: sqlite3.SQLITE_DENY if action in _DENIED_ACTIONS else sqlite3.SQLITE_OK
    )
    return database
