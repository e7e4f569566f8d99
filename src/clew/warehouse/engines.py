"""Engines that answer the catalog's statements, by the names that people give them. Each loads when it is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from clew.catalog.filters import DUCKDB, POSTGRESQL, SPARK, WarehouseRows
from clew.errors import UsageError

if TYPE_CHECKING:
    from clew.catalog.statements import Statement

_DIALECTS = {"duckdb": DUCKDB, "postgres": POSTGRESQL, "postgresql": POSTGRESQL, "spark": SPARK}
NAMES = ("sqlite", "duckdb:DIR", "postgresql://...", "spark://...")
CATALOG = "sqlite"
"""The catalog itself."""


class Engine(Protocol):
    """What answers statements."""

    def ask(self, statement: Statement) -> list[tuple[Any, ...]]:
        """The rows of a statement."""
        ...

    def close(self) -> None:
        """Let go of it."""
        ...


def need_server(name: str, what: str) -> None:
    """Raise UsageError where a name is no address of a server, or what speaks to one is not installed."""
    from clew.warehouse.extras import need
    from clew.warehouse.postgres.connection import is_server

    # The name first: nobody should install anything for one that is misspelled. It may hold a password.
    if not is_server(name):
        raise UsageError(f"{what} postgresql://USER@HOST:PORT/DATABASE")
    need("postgres")


def open_engine(name: str) -> Engine:
    """The engine of a name other than the catalog's."""
    scheme, mark, place = name.partition(":")
    scheme = scheme.lower()
    from clew.warehouse.extras import need

    if scheme == "duckdb" and mark and place:
        need("lake")
        from clew.warehouse.lake.engine import open_engine as open_duck

        return open_duck(place)
    if scheme in ("postgresql", "postgres") and mark:
        need("postgres")
        from clew.warehouse.postgres.engine import open_engine as open_postgres

        return open_postgres(name)
    if scheme == "spark" and mark:
        need("spark")
        from clew.warehouse.spark.engine import open_engine as open_spark

        return open_spark(name)
    # What was given may hold a password.
    raise UsageError(f"--engine: choose from {', '.join(NAMES)}")


def dialect_of(name: str) -> WarehouseRows:
    """The SQL dialect of an engine that `open_engine` can open."""
    return _DIALECTS[name.partition(":")[0].lower()]
