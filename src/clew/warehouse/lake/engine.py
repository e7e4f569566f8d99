"""A lake as an engine: DuckDB over its objects, with the merged tables made when a statement asks for them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, TypeVar

from clew.catalog.statements import Statement
from clew.errors import ClewError, RemoteFailed, TargetRefused
from clew.warehouse.columns import COPIES, TABLES, Table
from clew.warehouse.lake.layout import MARKS, check_marks, day_of, folder_of, is_sound, no_lake
from clew.warehouse.lake.objects import damaged
from clew.warehouse.lake.store import RemoteStore, Store, open_store, shown
from clew.warehouse.merge_sql import merged, needed

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

T = TypeVar("T")
_TYPES = {"int": "BIGINT", "str": "VARCHAR"}
_TRIES = 3
"""Objects may be merged into others while they are read."""


class DuckEngine:
    """Answers statements from the objects that are there."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._texts = merged(unique=False, divided_by="//")
        self._db: DuckDBPyConnection | None = None
        self._patiently(self._opened)

    def _patiently(self, work: Callable[[], T]) -> T:
        """Do something again, from the beginning, where it fails."""
        import duckdb

        for left in reversed(range(_TRIES)):
            try:
                return work()
            except duckdb.Error as error:
                self.close()
                if not left:
                    raise _error_of(error, self._store) from None
            except ClewError:
                self.close()
                raise
        raise AssertionError("the last try returns or raises")

    def _opened(self) -> DuckDBPyConnection:
        """The tables, over the objects that are there when they are first asked for."""
        import duckdb

        if self._db is not None:
            return self._db
        # What does not fit into memory goes to a folder that nobody else can read, not to wherever we were started.
        self._room = TemporaryDirectory(prefix="clew-")
        config: dict[str, Any] = {"autoinstall_known_extensions": "false", "temp_directory": self._room.name}
        db = self._db = duckdb.connect(":memory:", config=config)
        if isinstance(self._store, RemoteStore):
            db.register_filesystem(self._store.fs)
        self._made: set[str] = set()
        check_marks((one.name for one in self._store.list(f"{MARKS}/")), self._store.shown)
        # `batches` first: whatever it names was there before it.
        for table in TABLES.values():
            self._view(db, table)
        return db

    def _view(self, db: DuckDBPyConnection, table: Table) -> None:
        found = [one.name for one in self._store.list(folder_of(table.name)) if day_of(one.name) is not None]
        if table.name == "batches" and not found:
            raise no_lake(self._store.shown)
        columns = ", ".join(f"{column.name} {_TYPES[column.type]}" for column in table.columns)
        db.execute(f"CREATE TABLE nothing_{table.name} ({columns})")
        if not found:
            db.execute(f"CREATE VIEW {table.name}{COPIES} AS SELECT * FROM nothing_{table.name}")
            return
        places = ", ".join("'" + self._store.url(name).replace("'", "''") + "'" for name in found)
        names = ", ".join(table.names)
        read = f"SELECT {names} FROM read_parquet([{places}], hive_partitioning = false)"
        db.execute(f"CREATE VIEW {table.name}{COPIES} AS {read}")

    def ask(self, statement: Statement) -> list[tuple[Any, ...]]:
        """The rows of a statement."""
        return self._patiently(lambda: self._ask(statement))

    def _ask(self, statement: Statement) -> list[tuple[Any, ...]]:
        db = self._opened()
        for name in needed(statement.text, self._texts):
            if name not in self._made:
                db.execute(f"CREATE TABLE {name} AS {self._texts[name]}")
                self._made.add(name)
        return db.execute(statement.text, list(statement.values)).fetchall()

    def close(self) -> None:
        """Let go of what was made."""
        if self._db is not None:
            self._db.close()
            self._db = None
            self._room.cleanup()


def _error_of(error: Exception, store: Store) -> ClewError:
    """What DuckDB says of objects: out of reach, or not to be understood. Statements of ours are never wrong."""
    import duckdb

    place = store.shown
    # The statement itself stands behind an empty line.
    first, *more = str(error).partition("\n\n")[0].splitlines() or [type(error).__name__]
    if first.startswith("Traceback"):
        # What reads from an object store has stopped, and the last line says why.
        return RemoteFailed(f"{place}: {shown((more or [first])[-1])}")
    with suppress(FileNotFoundError):
        name = _damaged(store, str(error))
        if name is not None:
            return damaged(store, name)
    if isinstance(error, duckdb.IOException | duckdb.HTTPException):
        return RemoteFailed(f"{place}: {shown(first)}")
    return TargetRefused(f"{place}: an object cannot be read: {shown(first)}")


def _damaged(store: Store, said: str) -> str | None:
    """The first object that is damaged, of those that DuckDB speaks of; of all where it does not say."""
    names = [one.name for table in TABLES for one in store.list(folder_of(table)) if day_of(one.name)]
    told = [name for name in names if name in said]
    return next((name for name in told or names if not is_sound(name, store.read(name))), None)


def open_engine(place: str) -> DuckEngine:
    """The engine over the lake at a path or URL."""
    return DuckEngine(open_store(place))
