"""Erases the content of deleted rows from the files of a catalog: table of strings, free pages, text index.

`request` belongs to the transaction that deletes the rows. If the process is killed before `finish`, the next sync
calls `finish`.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from clew.catalog import text_index
from clew.catalog.change_detection import ERASURE_REQUESTED
from clew.catalog.database import transaction
from clew.catalog.schema import STRING_COLUMNS


def request(db: sqlite3.Connection) -> None:
    """Record that `finish` has to be called after the transaction."""
    db.execute("INSERT OR REPLACE INTO meta VALUES (?, 1)", (ERASURE_REQUESTED,))


def is_requested(db: sqlite3.Connection) -> bool:
    """True where `finish` has to be called."""
    return db.execute("SELECT 1 FROM meta WHERE key = ?", (ERASURE_REQUESTED,)).fetchone() is not None


def finish(db: sqlite3.Connection, folder: Path) -> None:
    """Erase what no row uses, and delete the text index. The caller builds it again with `text_index.update`."""
    with transaction(db):
        _delete_unused_strings(db)
    db.execute("VACUUM")
    # Deleted documents stay in the files of an index until segments are merged, so the index is built again.
    text_index.delete(db, folder)
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.execute("DELETE FROM meta WHERE key = ?", (ERASURE_REQUESTED,))


def _delete_unused_strings(db: sqlite3.Connection) -> None:
    columns = [(table, column) for table, names in STRING_COLUMNS.items() for column in names]
    used = " UNION ".join(f"SELECT {column} FROM {table}" for table, column in columns)
    db.execute(f"DELETE FROM string WHERE id <> 0 AND id NOT IN ({used})")
