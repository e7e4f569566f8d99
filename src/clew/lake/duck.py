"""A lake as an engine: DuckDB over its objects, with the merged tables made when a statement asks for them."""

from __future__ import annotations

from typing import Any

from clew.catalog.statements import Statement
from clew.errors import RemoteFailed
from clew.lake.layout import MARKS, check_marks, day_of, folder_of, no_lake
from clew.lake.stores import RemoteStore, Store, open_store
from clew.tables.columns import COPIES, TABLES, Table
from clew.tables.merging import merged, needed

_TYPES = {"int": "BIGINT", "str": "VARCHAR"}
_TRIES = 3
"""Objects may be merged into others while they are read."""


class DuckEngine:
    """Answers statements from the objects that are there."""

    def __init__(self, store: Store) -> None:
        import duckdb

        self._store = store
        self._error: type[Exception] = duckdb.Error
        self._texts = merged(unique=False)
        self._open()

    def _open(self) -> None:
        import duckdb

        self._db = duckdb.connect(":memory:", config={"autoinstall_known_extensions": "false"})
        if isinstance(self._store, RemoteStore):
            self._db.register_filesystem(self._store.fs)
        self._made: set[str] = set()
        check_marks((one.name for one in self._store.list(f"{MARKS}/")), self._store.shown)
        # `batches` first: whatever it names was there before it.
        for table in TABLES.values():
            self._view(table)

    def _view(self, table: Table) -> None:
        found = [one.name for one in self._store.list(folder_of(table.name)) if day_of(one.name) is not None]
        if table.name == "batches" and not found:
            raise no_lake(self._store.shown)
        columns = ", ".join(f"{column.name} {_TYPES[column.type]}" for column in table.columns)
        self._db.execute(f"CREATE TABLE nothing_{table.name} ({columns})")
        if not found:
            self._db.execute(f"CREATE VIEW {table.name}{COPIES} AS SELECT * FROM nothing_{table.name}")
            return
        places = ", ".join("'" + self._store.url(name).replace("'", "''") + "'" for name in found)
        names = ", ".join(table.names)
        read = f"SELECT {names} FROM read_parquet([{places}], hive_partitioning = false)"
        self._db.execute(f"CREATE VIEW {table.name}{COPIES} AS {read}")

    def ask(self, statement: Statement) -> list[tuple[Any, ...]]:
        """The rows of a statement."""
        for attempt in range(_TRIES):
            try:
                return self._ask(statement)
            except self._error as error:
                if attempt == _TRIES - 1:
                    raise RemoteFailed(f"{self._store.shown}: {str(error).splitlines()[0]}") from error
                self.close()
                self._open()
        raise AssertionError

    def _ask(self, statement: Statement) -> list[tuple[Any, ...]]:
        for name in needed(statement.text, self._texts):
            if name not in self._made:
                self._db.execute(f"CREATE TABLE {name} AS {self._texts[name]}")
                self._made.add(name)
        return self._db.execute(statement.text, list(statement.values)).fetchall()

    def close(self) -> None:
        """Let go of what was made."""
        self._db.close()


def open_engine(place: str) -> DuckEngine:
    """The engine over the lake at a path or URL."""
    return DuckEngine(open_store(place))
