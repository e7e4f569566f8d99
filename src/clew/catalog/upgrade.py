"""Copies sessions whose files are gone from a catalog of another version, which was moved aside: only it has them.

Rows are copied table by table, with new keys. A column that a table has gained since must have a default; where it has
none, or a row cannot be read, the session stays in the catalog that was moved aside. Otherwise that one is removed.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from clew.analysis.usage import TOKEN_FIELDS
from clew.catalog.change_detection import is_missing
from clew.catalog.database import DATABASE, key_range, open_writer, transaction
from clew.catalog.schema import APPLICATION, KEYS_PER_SOURCE, STRING_COLUMNS, VERSION, add_days
from clew.catalog.sync import NOT_COPIED_YET
from clew.catalog.text_store import ChunkPacker, SourceTextWriter

_TABLES = ("message", "block", "call", "token_usage", "change", "todo", "commit_mention")
"""The tables whose keys tell the source."""
_KEY_COLUMNS = frozenset({"id", "message", "result", "first", "last"})
"""Columns that hold such keys."""
_NAMES_UNTIL_8 = {"token_usage": "use", "recorded_usage": "own_use", "string": "word", "text_chunk": "text"}

_READ = "SELECT f.path FROM source f JOIN session s ON s.id = f.id"
_UNREAD = "SELECT f.path FROM source f JOIN unread_messages u ON u.source = f.id"

Row = dict[str, Any]


def copy_missing_sessions(folder: Path) -> int:
    """Copy what catalogs that were moved aside hold alone. Returns the number of sessions."""
    copied = 0
    for marker in sorted(folder.parent.glob(f"{folder.name}.aside-*/{NOT_COPIED_YET}")):
        with closing(open_writer(folder)) as db:
            copied += _copy_from(db, marker.parent / DATABASE)
        marker.unlink(missing_ok=True)
    return copied


def remove_replaced_catalogs(folder: Path) -> set[str]:
    """Remove catalogs of older versions that were moved aside, once nothing is in them alone.

    Returns the folders of all that hold no session alone. Those whose messages were not read again yet are kept.
    """
    replaced: set[str] = set()
    for path in sorted(folder.parent.glob(f"{folder.name}.aside-*/{DATABASE}")):
        with closing(open_writer(folder)) as db:
            sessions, messages = _only_in_old(db, path)
        if not sessions:
            replaced.add(str(path.parent))
            if not messages:
                shutil.rmtree(path.parent, ignore_errors=True)
    return replaced


def _only_in_old(db: sqlite3.Connection, path: Path) -> tuple[bool, bool]:
    """Whether a catalog that was moved aside holds sessions alone, and whether it holds messages alone."""
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as old:
            if old.execute("PRAGMA application_id").fetchone() != (APPLICATION,):
                return True, True
            if old.execute("PRAGMA user_version").fetchone()[0] >= VERSION:
                return True, True
            unread = _paths(old, _UNREAD) if _has_table(old, "unread_messages") else set()
            known = _paths(old, _READ)
    except sqlite3.Error:
        return True, True
    current, current_unread = _paths(db, _READ), _paths(db, _UNREAD)
    sessions = any(_may_be_missing(path) for path in known - current)
    return sessions, sessions or not (known - unread).isdisjoint(current_unread)


def _paths(db: sqlite3.Connection, query: str) -> set[str]:
    return {path for (path,) in db.execute(query)}


def _has_table(db: sqlite3.Connection, name: str) -> bool:
    query = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?"
    return db.execute(query, (name,)).fetchone() is not None


class _OldCatalogUnreadable(Exception):
    """The catalog that was moved aside cannot be read."""


@contextmanager
def _reading_old_catalog() -> Iterator[None]:
    """Tell errors of the old catalog from those of the new one, after which the next sync tries again."""
    try:
        yield
    except sqlite3.Error as error:
        raise _OldCatalogUnreadable(str(error)) from error


def _copy_from(db: sqlite3.Connection, path: Path) -> int:
    try:
        with _reading_old_catalog():
            old = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
        with closing(old):
            old.row_factory = _as_dict
            with _reading_old_catalog():
                if old.execute("PRAGMA application_id").fetchone()["application_id"] != APPLICATION:
                    return 0
                prices = old.execute("SELECT value FROM meta WHERE key = 'prices'").fetchone()
                sources = _sources_without_file(old)
            if prices is not None:
                # The costs are copied, so the sync that follows must know which prices they were made with.
                db.execute("INSERT OR IGNORE INTO meta VALUES ('prices', ?)", (prices["value"],))
            return sum(SessionCopier(db, old, source).copy() for source in sources)
    except _OldCatalogUnreadable:
        return 0


def _as_dict(cursor: sqlite3.Cursor, row: tuple[Any, ...]) -> Row:
    return dict(zip((column[0] for column in cursor.description), row, strict=True))


def _sources_without_file(old: sqlite3.Connection) -> list[Row]:
    found = old.execute("SELECT f.* FROM source f JOIN session s ON s.id = f.id ORDER BY f.id").fetchall()
    return [source for source in found if source["state"] == "gone" or _may_be_missing(source["path"])]


def _may_be_missing(path: str) -> bool:
    """True also if that is unknown: if the file exists, a sync reads it again."""
    try:
        return is_missing(path)
    except OSError:
        return True


class SessionCopier:
    """Copies the session of one source."""

    def __init__(self, db: sqlite3.Connection, old: sqlite3.Connection, source: Row) -> None:
        self._db, self._old, self._source = db, old, source
        self._id = 0
        self._strings: dict[int, int] = {0: 0}
        with _reading_old_catalog():
            tables = old.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        self._old_tables = {row["name"] for row in tables}

    def copy(self) -> bool:
        """Copy the session; False where that is not possible, or the new catalog has the source already."""
        if self._db.execute("SELECT 1 FROM source WHERE path = ?", (self._source["path"],)).fetchone() is not None:
            return False
        try:
            with transaction(self._db):
                self._copy_rows()
        except (_OldCatalogUnreadable, sqlite3.IntegrityError, KeyError):
            return False
        return True

    def _copy_rows(self) -> None:
        source = {**self._source, "id": None, "state": "gone", "size": max(0, self._source["size"])}
        # Until version 12, the column had another name.
        source.setdefault("source_json", source.get("found"))
        self._id = self._insert("source", [source])
        sessions = [{**row, "id": self._id, "is_visible": 1} for row in self._rows("session")]
        self._insert("session", sessions)
        times: set[int] = {row[name] for row in sessions for name in ("started_us", "ended_us")}
        for table in _TABLES:
            if table == "commit_mention" and table not in self._old_tables:
                continue  # until version 15
            string_columns = STRING_COLUMNS.get(table, ())
            rows = [self._with_new_keys(row, string_columns) for row in self._as_recorded(table)]
            times.update(row["ts_us"] for row in rows if "ts_us" in row)
            self._insert(table, rows)
        self._copy_credential_calls()
        self._copy_text()
        add_days(self._db, times)
        self._db.execute("INSERT INTO needs_dedupe VALUES (?)", (self._id,))
        if "unread_messages" in self._old_tables and self._rows("unread_messages"):
            self._db.execute("INSERT INTO unread_messages VALUES (?)", (self._id,))

    def _copy_credential_calls(self) -> None:
        if "credential_call" in self._old_tables:
            self._insert("credential_call", [self._with_new_keys(row, ()) for row in self._rows("credential_call")])
            return
        # Until version 11, the header named them.
        named = "SELECT j.value FROM session s, json_each(s.header, '$.credential_calls') j WHERE s.id = ?"
        insert = f"INSERT INTO credential_call SELECT id FROM call WHERE id BETWEEN ? AND ? AND call_id IN ({named})"
        self._db.execute(insert, (*key_range(self._id), self._id))

    def _copy_text(self) -> None:
        for row in self._rows("text_chunk"):
            chunk = self._with_new_keys({"fingerprint": b"", **row}, ())
            self._insert("text_chunk", [chunk])
            self._db.execute("INSERT INTO unindexed_text VALUES (?)", (chunk["first"],))
        if "pending" in self._old_tables:
            # Until version 8, the newest texts waited uncompressed.
            writer = SourceTextWriter(self._db, self._id)
            packer = ChunkPacker(lambda chunk: writer.write([chunk]))
            for row in self._rows("pending"):
                packer.add(row["doc"] + self._key_shift(), "", 0, row["text"])
            packer.flush()

    def _old_name(self, table: str) -> str:
        return table if table in self._old_tables else _NAMES_UNTIL_8.get(table, table)

    def _rows(self, table: str) -> list[Row]:
        source = self._source["id"]
        key = {"text_chunk": "first", "pending": "doc", "unread_messages": "source"}.get(table, "id")
        span = (source, source) if table in ("session", "unread_messages") else key_range(source)
        query = f"SELECT * FROM {self._old_name(table)} WHERE {key} BETWEEN ? AND ? ORDER BY {key}"
        with _reading_old_catalog():
            return self._old.execute(query, span).fetchall()

    def _as_recorded(self, table: str) -> Iterator[Row]:
        """Rows as they were read from the source: visible, and with counters not merged with those of copies."""
        recorded = {row["id"]: row for row in self._rows("recorded_usage")} if table == "token_usage" else {}
        for row in self._rows(table):
            counts = recorded.get(row["id"], row)
            yield {**row, "is_visible": 1, **{name: counts[name] for name in TOKEN_FIELDS if name in row}}

    def _key_shift(self) -> int:
        return int(self._id - self._source["id"]) * KEYS_PER_SOURCE

    def _with_new_keys(self, row: Row, string_columns: tuple[str, ...]) -> Row:
        keys = {name: row[name] + self._key_shift() for name in row if name in _KEY_COLUMNS and row[name]}
        return {**row, **keys, **{name: self._string(row[name]) for name in string_columns}}

    def _string(self, key: int) -> int:
        if key not in self._strings:
            query = f"SELECT text FROM {self._old_name('string')} WHERE id = ?"
            with _reading_old_catalog():
                text = self._old.execute(query, (key,)).fetchone()["text"]
            self._db.execute("INSERT OR IGNORE INTO string (text) VALUES (?)", (text,))
            (self._strings[key],) = self._db.execute("SELECT id FROM string WHERE text = ?", (text,)).fetchone()
        return self._strings[key]

    def _insert(self, table: str, rows: list[Row]) -> int:
        columns = [row[1] for row in self._db.execute(f"PRAGMA table_info({table})")]
        last = 0
        for row in rows:
            names = [name for name in columns if name in row]
            marks = ", ".join("?" * len(names))
            query = f"INSERT INTO {table} ({', '.join(names)}) VALUES ({marks})"
            last = self._db.execute(query, [row[name] for name in names]).lastrowid or 0
        return last
