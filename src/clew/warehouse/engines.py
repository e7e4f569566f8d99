"""Engines that answer the catalog's statements, by name. The libraries of an engine are imported when it is opened."""

from __future__ import annotations

from typing import Any, Protocol

from clew.catalog.filters import DUCKDB, POSTGRESQL, SPARK, WarehouseRows
from clew.catalog.statements import Statement
from clew.errors import UsageError
from clew.extras import require_extra
from clew.warehouse.urls import is_server

_DIALECTS = {"duckdb": DUCKDB, "postgres": POSTGRESQL, "postgresql": POSTGRESQL, "spark": SPARK}
NAMES = ("sqlite", "duckdb:DIR", "postgresql://...", "spark://...")
CATALOG = "sqlite"
"""The catalog itself."""


class Engine(Protocol):
    """Answers statements."""

    def ask(self, statement: Statement) -> list[tuple[Any, ...]]:
        """The rows of a statement."""
        ...

    def close(self) -> None:
        """Release the connection."""
        ...


def require_server(url: str, message: str) -> None:
    """Raise UsageError if this is not the URL of a server, or if the extra for servers is not installed."""
    # The URL is checked before the installed packages. The message does not repeat it: it may contain a password.
    if not is_server(url):
        raise UsageError(f"{message} postgresql://USER@HOST:PORT/DATABASE")
    require_extra("postgres")


def open_engine(name: str) -> Engine:
    """Open an engine other than the catalog."""
    scheme, colon, target = name.partition(":")
    scheme = scheme.lower()
    if scheme == "duckdb" and target:
        require_extra("lake")
        from clew.warehouse.lake.engine import DuckEngine
        from clew.warehouse.lake.store import open_store

        return DuckEngine(open_store(target))
    if scheme in ("postgresql", "postgres") and colon:
        require_extra("postgres")
        from clew.warehouse.postgres.engine import PostgresEngine

        return PostgresEngine(name)
    if scheme == "spark" and colon:
        require_extra("spark")
        from clew.warehouse.spark.engine import open_engine as open_spark

        return open_spark(name)
    # The name is not repeated: it may hold a password.
    raise UsageError(f"--engine: choose from {', '.join(NAMES)}")


def dialect_of(name: str) -> WarehouseRows:
    """The SQL dialect of an engine that `open_engine` can open."""
    return _DIALECTS[name.partition(":")[0].lower()]
