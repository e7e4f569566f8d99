"""A sync that has nothing to do but to note times of files whose content is unchanged. Loads no reader and no index."""

from __future__ import annotations

import os
import sqlite3

from clew.catalog import database
from clew.catalog.change_detection import look

WAITING = 1 << 20
"""Bytes that may wait in the log of the catalog: bringing them over costs several waits for the disk."""
MANY = 16
"""More files than this that grew are left to the workers."""


def quick_sync(homes: list[str]) -> dict[str, int] | None:
    """Bring the catalog over these homes up to date, if that is little work; None: it takes a whole sync."""
    folder = database.catalog_path(homes)
    db = database.open_reader(folder)
    if db is None or not (homes or _is_plain(db)):
        return None
    try:
        seen = _version(db)
        found = look(db, os.environ)
        if found.anew or len(found.changed) > MANY or _is_unfinished(db):
            return None
        return _take(folder, db, seen, found.changed) if found.changed else counts(db)
    except sqlite3.Error:
        return None
    finally:
        db.close()


def _version(db: sqlite3.Connection) -> object:
    """Changes when another connection has written."""
    return db.execute("PRAGMA data_version").fetchone()


def _is_plain(db: sqlite3.Connection) -> bool:
    """True where the default sources are folders of this machine alone, which can be watched."""
    return db.execute("SELECT 1 FROM meta WHERE key = 'plain' AND value = 1").fetchone() is not None


def _is_unfinished(db: sqlite3.Connection) -> bool:
    """True where a sync was killed, or something was never read."""
    query = "SELECT 1 FROM flight UNION ALL SELECT 1 FROM needs_dedupe UNION ALL SELECT 1 FROM orphaned_key"
    return db.execute(f"{query} UNION ALL SELECT 1 FROM source WHERE state = 'new' LIMIT 1").fetchone() is not None


def counts(db: sqlite3.Connection, files: int = 0, lines: int = 0, rows: int = 0, size: int = 0) -> dict[str, int]:
    """What a sync did, and what there is now."""
    sources, gone, problems = db.execute(
        "SELECT count(*), coalesce(sum(state = 'gone'), 0), coalesce(sum(problems NOT IN ('', '[]')), 0) FROM source"
    ).fetchone()
    done = {"files": files, "lines": lines, "rows": rows, "bytes": size}
    return {**done, "sources": sources, "gone": gone, "problems": problems}


def _take(folder: str, reader: sqlite3.Connection, seen: object, changed: list[int]) -> dict[str, int] | None:
    from clew.catalog.indexing import Unusable, WriteFailed
    from clew.catalog.lock import locked
    from clew.errors import Busy

    try:
        with locked(folder, 0):
            # Another sync may have been at work before we had the lock.
            return _write(folder, reader, changed) if _version(reader) == seen else None
    except (Busy, Unusable, WriteFailed, sqlite3.Error):
        # Whoever loads more can mend it, or say what is wrong.
        return None


def _write(folder: str, reader: sqlite3.Connection, changed: list[int]) -> dict[str, int] | None:
    db = database.open_writer(folder)
    try:
        return _add(db, folder, changed)
    finally:
        # Who closes the catalog last empties the log, but not if it can only read: a short log may wait.
        if os.stat(f"{folder}/{database.DATABASE}-wal").st_size > WAITING:
            reader.close()
        db.close()


def _add(db: sqlite3.Connection, folder: str, changed: list[int]) -> dict[str, int] | None:
    from clew.catalog.change_detection import content_unchanged, update_recorded_mtime
    from clew.catalog.row_writer import transaction

    if not all(content_unchanged(db, number) for number in changed):
        return None
    with transaction(db):
        for number in changed:
            update_recorded_mtime(db, number)
    return counts(db)
