"""Answer the catalog's statements from a lake: DuckDB over its objects. Merged tables are computed on first use."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import duckdb

from clew.catalog.statements import Statement
from clew.errors import ClewError, RemoteFailed, TargetRefused
from clew.warehouse.columns import COPIES, TABLES, Table
from clew.warehouse.lake.layout import damaged, hash_matches, no_lake
from clew.warehouse.lake.store import RemoteStore, Store, check_lake, list_objects
from clew.warehouse.merge_sql import merged_tables, required_tables, tables_read
from clew.warehouse.urls import mask_urls

T = TypeVar("T")
_TYPES = {"int": "BIGINT", "str": "VARCHAR"}
_SHARED_TABLES = ("current_batches", "visible_messages")
"""Merged tables that most others are made from."""
_TRIES = 3
"""Compaction may replace objects while they are read."""


class DuckEngine:
    """Answers statements from the objects that exist when the first one is asked."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._merged = merged_tables(rows_are_unique=False, int_div="//")
        self._created: set[str] = set()
        self._db: duckdb.DuckDBPyConnection | None = None
        self._retry(self._connection)

    def _retry(self, work: Callable[[], T]) -> T:
        """Repeat work that failed, with a new connection."""
        for tries_left in reversed(range(_TRIES)):
            try:
                return work()
            except duckdb.Error as error:
                self.close()
                if not tries_left:
                    raise _translate_error(error, self._store) from None
            except ClewError:
                self.close()
                raise
        raise AssertionError("the last try returns or raises")

    def _connection(self) -> duckdb.DuckDBPyConnection:
        if self._db is not None:
            return self._db
        # A private folder for data that exceeds memory; the default is the working directory.
        self._temporary = TemporaryDirectory(prefix="clew-")
        config: dict[str, Any] = {"autoinstall_known_extensions": "false", "temp_directory": self._temporary.name}
        db = self._db = duckdb.connect(":memory:", config=config)
        if isinstance(self._store, RemoteStore):
            db.register_filesystem(self._store.fs)
        self._created = set()
        check_lake(self._store)
        # `batches` first: the rows of a batch that it names were written before it.
        for table in TABLES.values():
            self._create_view(db, table)
        return db

    def _create_view(self, db: duckdb.DuckDBPyConnection, table: Table) -> None:
        """A view of the rows of a table, as they were written."""
        objects = [one.name for one in list_objects(self._store, table.name)]
        if table.name == "batches" and not objects:
            raise no_lake(self._store.display_url)
        if not objects:
            columns = ", ".join(f"{column.name} {_TYPES[column.type]}" for column in table.columns)
            db.execute(f"CREATE TABLE {table.name}{COPIES} ({columns})")
            return
        urls = ", ".join("'" + self._store.url(name).replace("'", "''") + "'" for name in objects)
        added = [column for column in table.columns if column.added_in > 1]
        rows = f"read_parquet([{urls}], hive_partitioning = false, union_by_name = {bool(added)})"
        if added:
            # Older objects, or all of them, lack these columns.
            nulls = ", ".join(f"NULL::{_TYPES[column.type]} AS {column.name}" for column in added)
            rows = f"(SELECT {nulls} WHERE false UNION ALL BY NAME SELECT * FROM {rows})"
        db.execute(f"CREATE VIEW {table.name}{COPIES} AS SELECT {', '.join(table.names)} FROM {rows}")

    def ask(self, statement: Statement) -> list[tuple[Any, ...]]:
        """The rows of a statement."""
        return self._retry(lambda: self._ask(statement))

    def _ask(self, statement: Statement) -> list[tuple[Any, ...]]:
        db = self._connection()
        stored = {*_SHARED_TABLES, *tables_read(statement.text)}
        for name in required_tables(statement.text, self._merged):
            if name not in self._created:
                # A table that is only aggregated is a view, so that DuckDB reads only the needed columns.
                db.execute(f"CREATE {'TABLE' if name in stored else 'VIEW'} {name} AS {self._merged[name]}")
                self._created.add(name)
        return db.execute(statement.text, list(statement.values)).fetchall()

    def close(self) -> None:
        """Close the connection and remove temporary files."""
        if self._db is not None:
            self._db.close()
            self._db = None
            self._temporary.cleanup()


def _translate_error(error: Exception, store: Store) -> ClewError:
    """The error for an object that cannot be reached or decoded. The statements themselves are always valid."""
    # The statement follows after an empty line.
    message = str(error).partition("\n\nLINE ")[0]
    first, *more = filter(None, message.splitlines() or [type(error).__name__])
    if first.startswith("Traceback"):
        # fsspec raised an exception; the last line is its message.
        return RemoteFailed(f"{store.display_url}: {mask_urls((more or [first])[-1])}")
    with suppress(FileNotFoundError):
        name = _first_damaged(store, str(error))
        if name is not None:
            return damaged(store.display_url, name)
    if isinstance(error, duckdb.IOException | duckdb.HTTPException):
        return RemoteFailed(f"{store.display_url}: {mask_urls(first)}")
    return TargetRefused(f"{store.display_url}: an object cannot be read: {mask_urls(first)}")


def _first_damaged(store: Store, message: str) -> str | None:
    """The first damaged object among those that DuckDB's message names, or among all if it names none."""
    names = [one.name for one in list_objects(store, *TABLES)]
    named = [name for name in names if name in message]
    return next((name for name in named or names if not hash_matches(name, store.read(name))), None)
