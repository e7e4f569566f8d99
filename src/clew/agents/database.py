"""Sessions that are rows of a SQLite database, read as files of JSON lines.

A session's rows are its main file: one header line, then one line for each row, in a fixed order, with the values as
they are stored. Such a file exists on disk only where it was restored or exported. Everywhere else it is made from the
database when it is opened. `clew.io.database_paths` says what its path is.

An agent gives a `Layout`: which tables hold its sessions. Only these are read; accounts and credentials are in others.
"""

from __future__ import annotations

import base64
import io
import math
import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from fnmatch import fnmatchcase
from hashlib import blake2b
from pathlib import Path
from typing import BinaryIO, NamedTuple, TypeAlias, cast

import msgspec

from clew.errors import DatabaseDamaged, DatabaseLocked, DatabaseUnknown, SourceUnreadable
from clew.io.database_paths import FILE_SUFFIX, FOLDER_SUFFIX
from clew.io.paths import escape_controls
from clew.model.json import JSON

DUMP_VERSION = 1
HEADER_KEY = "clew_rows"
"""The key of the header line that holds `DUMP_VERSION`; no agent has such a key."""
DATABASE_LOCK_WAIT_SECONDS = 2.0
IN_MEMORY_BYTES = 4 << 20
"""A session up to this size is read at once."""
CHANGE_TOKEN_BYTES = 16
_FETCHED_ROWS = 64
_ERRORS: dict[int, type[SourceUnreadable]] = {
    sqlite3.SQLITE_BUSY: DatabaseLocked,
    sqlite3.SQLITE_CORRUPT: DatabaseDamaged,
    sqlite3.SQLITE_NOTADB: DatabaseDamaged,
    sqlite3.SQLITE_ERROR: DatabaseUnknown,
}
"""By the code of SQLite; `SQLITE_ERROR` is that of a missing table or column."""

Schema: TypeAlias = Mapping[str, frozenset[str]]
"""The columns of each table of a database."""


class Table(NamedTuple):
    """The rows of one session in one table."""

    name: str
    rows: str
    """SQL behind `SELECT name.* FROM name`: joins, the condition with `:session`, and the order."""
    is_optional: bool = False
    """True for a table that older or newer databases lack."""
    children: tuple[Table, ...] = ()
    """Tables whose rows follow each row of this one: their condition has `:parent`, its `id`."""
    columns: str = ""
    """SQL of the columns to read, where not all are: credentials among them are left out."""


class Layout(msgspec.Struct, frozen=True):
    """Where an agent's sessions are in its databases."""

    file_names: tuple[str, ...]
    """Patterns of the names of databases."""
    sessions: Callable[[Schema], str]
    """SQL that lists the sessions: id, time of the last change in milliseconds, number of rows, and whatever else
    changes with them. Empty where no known table holds sessions."""
    tables: Callable[[Schema], Sequence[Table]]
    """What is read of a session, in this order."""
    other_tables: frozenset[str]
    """Known tables without history: never read. Some hold credentials."""
    version: Callable[[Schema], str] = lambda _schema: "PRAGMA user_version"
    """SQL that gives the version of the schema."""

    def is_database(self, name: str) -> bool:
        """True for the name of a database file of the agent."""
        return any(fnmatchcase(name, pattern) for pattern in self.file_names)


class StoredRows(NamedTuple):
    """A session in a database."""

    session: str
    mtime: float
    row_count: int
    change_token: bytes
    """Another one whenever the rows changed."""


class Snapshot:
    """A read transaction on a database: everything read through it is of one moment."""

    def __init__(self, path: Path, layout: Layout) -> None:
        self.path, self.layout = path, layout
        self._db = self._connect()
        try:
            self.schema = self._read_schema()
            versions = self._query(layout.version(self.schema))
            self.version = str(versions[0][0]) if versions else ""
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Snapshot:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_db"):
            self.close()

    def close(self) -> None:
        """End the transaction."""
        self._db.close()

    def _connect(self) -> sqlite3.Connection:
        """Open the database so that nothing is written to it.

        A reader of a database with a write-ahead log takes part in locking; where the shared memory of the log is
        missing (`-shm`), SQLite creates it. Without a log, opening it that way would create one. Then the file alone is
        read, and `check_unchanged` finds out whether it was written to meanwhile.
        """
        self._state: tuple[int, int] | None = None
        has_log = any(_size(Path(f"{self.path}{suffix}")) for suffix in ("-wal", "-journal"))
        if not has_log:
            self._state = _file_state(self.path)
        address = f"{self.path.absolute().as_uri()}?mode=ro" + ("" if has_log else "&immutable=1")
        db = None
        try:
            db = sqlite3.connect(
                address, uri=True, timeout=DATABASE_LOCK_WAIT_SECONDS, isolation_level=None, check_same_thread=False
            )
            db.text_factory = _decode_text
            db.execute("BEGIN")
        except sqlite3.Error as error:
            if db is not None:
                db.close()
            raise self._unreadable(error) from error
        return db

    def check_unchanged(self) -> None:
        """Raise SourceUnreadable where the file was read without locks and has changed since."""
        if self._state is not None and _file_state(self.path) != self._state:
            raise SourceUnreadable(f"{_shown(self.path)}: the database changed while it was read; try again")

    def sessions(self) -> list[StoredRows]:
        """All sessions in the database."""
        found = [_stored_rows(row) for row in self._query(self._sessions_query())]
        self.check_unchanged()
        return found

    def find(self, session: str) -> StoredRows | None:
        """One session; None where there is none with this id."""
        query = f"SELECT * FROM ({self._sessions_query()}) WHERE id = ?"
        rows = self._query(query, (session,))
        return _stored_rows(rows[0]) if rows else None

    def _sessions_query(self) -> str:
        query = self.layout.sessions(self.schema)
        if not query:
            raise DatabaseUnknown(f"{_shown(self.path)}: no table of sessions that this version of clew knows")
        return query

    def unknown_tables(self) -> list[str]:
        """Tables that this version of clew does not know and that may hold sessions, by their names or columns."""
        tables = self.layout.tables(self.schema)
        read = {one.name for table in tables for one in (table, *table.children)}
        known = read | self.layout.other_tables
        unknown = (name for name in self.schema if name not in known)
        return [
            name
            for name in unknown
            if "session" in name or "message" in name or self.schema[name] & {"session_id", "message_id"}
        ]

    def lines(self, agent: str, session: str) -> Iterator[bytes]:
        """The rows of a session as JSON lines, behind a header line."""
        header = {HEADER_KEY: DUMP_VERSION, "agent": agent, "schema": self.version, "session": session}
        yield msgspec.json.encode(header) + b"\n"
        for table in self.layout.tables(self.schema):
            yield from self._table_lines(table, {"session": session})
        self.check_unchanged()

    def _table_lines(self, table: Table, values: dict[str, str]) -> Iterator[bytes]:
        if table.is_optional and table.name not in self.schema:
            return
        selected = table.columns or f'"{table.name}".*'
        cursor = self._execute(f'SELECT {selected} FROM "{table.name}" {table.rows}', values)
        names = [column[0] for column in cursor.description]
        for row in self._rows(cursor):
            columns = {name: _json_value(value) for name, value in zip(names, row, strict=True)}
            yield msgspec.json.encode({"table": table.name, "row": columns}) + b"\n"
            for child in table.children:
                yield from self._table_lines(child, {**values, "parent": str(columns.get("id"))})

    def _read_schema(self) -> dict[str, frozenset[str]]:
        """The columns of all tables. Views and virtual tables are none: they could compute anything."""
        query = "SELECT name FROM sqlite_master WHERE type = 'table' AND sql LIKE 'CREATE TABLE%'"
        tables = [str(name) for (name,) in self._query(query)]
        columns = "SELECT name FROM pragma_table_info(?)"
        return {table: frozenset(str(name) for (name,) in self._query(columns, (table,))) for table in tables}

    def _query(self, query: str, values: Sequence[str] = ()) -> list[tuple[object, ...]]:
        return list(self._rows(self._execute(query, values)))

    def _execute(self, query: str, values: Sequence[str] | Mapping[str, str]) -> sqlite3.Cursor:
        try:
            return self._db.execute(query, values)
        except sqlite3.Error as error:
            raise self._unreadable(error) from error

    def _rows(self, cursor: sqlite3.Cursor) -> Iterator[tuple[object, ...]]:
        try:
            while rows := cursor.fetchmany(_FETCHED_ROWS):
                yield from rows
        except sqlite3.Error as error:
            raise self._unreadable(error) from error

    def _unreadable(self, error: sqlite3.Error) -> SourceUnreadable:
        version = f" (schema {self.version})" if getattr(self, "version", "") not in ("", "0") else ""
        # The lowest byte is the kind of an error, the others tell more about it.
        kind = _ERRORS.get(getattr(error, "sqlite_errorcode", 0) & 0xFF, SourceUnreadable)
        return kind(f"{_shown(self.path)}: {error}{version}")


def _stored_rows(row: tuple[object, ...]) -> StoredRows:
    session, changed_ms, row_count, *_ = row
    token = blake2b(repr(row).encode(), digest_size=CHANGE_TOKEN_BYTES).digest()
    is_time = isinstance(changed_ms, int | float) and math.isfinite(changed_ms)
    mtime = cast(float, changed_ms) / 1000 if is_time else 0.0
    return StoredRows(str(session), mtime, row_count if isinstance(row_count, int) else 0, token)


def open_rows(snapshot: Snapshot, agent: str, session: str, *, closes_snapshot: bool) -> BinaryIO:
    """The rows of a session as a file; its snapshot may be closed with it."""
    lines = snapshot.lines(agent, session)
    head, size = [], 0
    try:
        for line in lines:
            head.append(line)
            size += len(line)
            if size > IN_MEMORY_BYTES:
                break
        else:
            if closes_snapshot:
                snapshot.close()
            return io.BytesIO(b"".join(head))
    except BaseException:
        if closes_snapshot:
            snapshot.close()
        raise
    stream = _LineStream(head, lines, snapshot if closes_snapshot else None)
    return cast(BinaryIO, io.BufferedReader(stream, 1 << 18))


class _LineStream(io.RawIOBase):
    """Lines as a file that is read once."""

    def __init__(self, head: list[bytes], lines: Iterator[bytes], snapshot: Snapshot | None) -> None:
        self._head, self._lines, self._snapshot = iter(head), lines, snapshot
        self._left = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        while not self._left:
            line = next(self._head, None) or next(self._lines, None)
            if line is None:
                return 0
            self._left = memoryview(line)
        size = min(len(buffer), len(self._left))
        buffer[:size] = self._left[:size]
        self._left = self._left[size:]
        return size

    def close(self) -> None:
        if self._snapshot is not None:
            self._snapshot.close()
        super().close()


def is_header(head: bytes, agent: str) -> bool:
    """True for the first bytes of the rows of an agent's session."""
    return head.startswith(msgspec.json.encode({HEADER_KEY: DUMP_VERSION, "agent": agent})[:-1] + b",")


def session_in_header(line: bytes) -> str | None:
    """The session that a header line names."""
    try:
        header = msgspec.json.decode(line, type=_Header)
    except msgspec.MsgspecError:
        return None
    return header.session if header.clew_rows else None


class _Header(msgspec.Struct):
    clew_rows: int = 0
    session: str | None = None


def databases_in(folder: Path, layout: Layout) -> list[Path]:
    """The databases of an agent in a folder."""
    with suppress(OSError):
        return sorted(path for path in folder.iterdir() if layout.is_database(path.name) and _is_plain_file(path))
    return []


def _is_plain_file(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


def restored_files(folder: Path, layout: Layout) -> Iterator[Path]:
    """Sessions of databases that lie in a folder as plain files."""
    with suppress(OSError):
        for below in sorted(folder.iterdir()):
            name = below.name.removesuffix(FOLDER_SUFFIX)
            if below.name != name and layout.is_database(name) and below.is_dir() and not below.is_symlink():
                yield from sorted(below.glob(f"*{FILE_SUFFIX}"))


def database_problem(path: Path, layout: Layout) -> SourceUnreadable | None:
    """Why sessions of a database cannot be read, or may be missing; None where nothing is known to be wrong."""
    try:
        with closing(Snapshot(path, layout)) as snapshot:
            snapshot.sessions()
            unknown = snapshot.unknown_tables()
    except SourceUnreadable as error:
        return type(error)(str(error).removeprefix(f"{_shown(path)}: "))
    if not unknown:
        return None
    version = f" of schema {snapshot.version}" if snapshot.version not in ("", "0") else ""
    names = ", ".join(unknown)
    return DatabaseUnknown(
        f"tables{version} that this version of clew does not know: {names}; their content is not shown"
    )


def _json_value(value: object) -> JSON:
    if isinstance(value, bytes):
        return {"base64": base64.b64encode(value).decode()}
    if isinstance(value, _InvalidText):
        return {"text_base64": base64.b64encode(value.raw).decode()}
    if isinstance(value, float) and not math.isfinite(value):
        return {"real": str(value)}
    return cast(JSON, value)


class _InvalidText(NamedTuple):
    """A text that is not UTF-8."""

    raw: bytes


def _decode_text(raw: bytes) -> str | _InvalidText:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return _InvalidText(raw)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _file_state(path: Path) -> tuple[int, int]:
    try:
        found = os.stat(path)  # noqa: PTH116 - compared often
    except OSError as error:
        raise SourceUnreadable(f"{_shown(path)}: {error.strerror or error}") from error
    return found.st_size, found.st_mtime_ns


def _shown(path: Path) -> str:
    return escape_controls(str(path))
