"""Machines with homes, what they write at some time, and the engine and the catalog to compare."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from clew.agents.base import SourceFile
from clew.catalog import database, statements
from clew.catalog.sync import sync
from clew.host import Host
from clew.sources.local import in_homes
from clew.warehouse.columns import TABLES
from clew.warehouse.ingest import Batch, read_source
from clew.warehouse.merge_sql import PUBLIC, merged_tables
from clew.warehouse.publisher import Publisher, load_publisher


class Machine:
    """A home, and the data folder of the clew that reads it."""

    def __init__(self, top: Path, name: str) -> None:
        self.home, self.data = top / name / "home", top / name / "data"
        self.home.mkdir(parents=True)
        self.data.mkdir()

    def publisher(self, level: str = "raw") -> Publisher:
        """The publisher of this machine."""
        return load_publisher(level, folder=self.data)

    def sources(self) -> list[SourceFile]:
        """What there is to write."""
        return [found.source for found in in_homes([Host.at(self.home)])]

    def batches(self, level: str = "raw") -> list[Batch]:
        """All of it."""
        who = self.publisher(level)
        return [read_source(source, who.meta(source)) for source in self.sources()]


def engine(batches: Iterable[Batch], *, unique: bool = False) -> duckdb.DuckDBPyConnection:
    """DuckDB with the merged tables of these batches."""
    found = list(batches)
    db = duckdb.connect()
    for table in TABLES:
        rows = pa.concat_tables(batch.tables[table] for batch in found)
        db.register("rows", rows)
        db.execute(f"CREATE TABLE {table}_copies AS SELECT {'DISTINCT' if unique else ''} * FROM rows")
        db.unregister("rows")
    for name, text in merged_tables(rows_are_unique=unique, int_div="//").items():
        db.execute(f"CREATE TABLE {name} AS {text}")
    return db


ROWS = tuple(name for name in PUBLIC if not name.endswith("_days"))
DAYS = {
    "usage_days": statements.aggregate(statements.USAGE, ["session"]).text,
    "turn_days": statements.aggregate(statements.TURNS, ["session"]).text,
    "tool_days": statements.aggregate(statements.TOOLS, ["session"]).text,
    "change_days": statements.aggregate(statements.CHANGES, ["session", "path"]).text,
}
"""The catalog keeps its sums for each source, so only what they come to can be compared."""


def shown(db: duckdb.DuckDBPyConnection) -> dict[str, list[tuple[Any, ...]]]:
    """All rows of all merged tables, in an order of its own, and sums."""
    queries = {name: f"SELECT {'* EXCLUDE (batch)' if name == 'sessions' else '*'} FROM {name}" for name in ROWS}
    rows = {name: sorted(db.execute(query).fetchall(), key=repr) for name, query in queries.items()}
    return rows | {name: db.execute(text).fetchall() for name, text in DAYS.items()}


def catalogued(homes: Iterable[Path], folder: Path) -> dict[str, list[tuple[Any, ...]]]:
    """The same from a new catalog over some homes."""
    shutil.rmtree(folder, ignore_errors=True)
    sync([Host.at(home) for home in homes], folder, workers=1)
    db = database.open_reader(folder)
    assert db is not None
    try:
        rows = {name: sorted(db.execute(f"SELECT {_columns(db, name)} FROM {name}"), key=repr) for name in ROWS}
        return rows | {name: db.execute(text).fetchall() for name, text in DAYS.items()}
    finally:
        db.close()


def _columns(db: sqlite3.Connection, view: str) -> str:
    names = [row[0] for row in db.execute(f"SELECT * FROM {view} LIMIT 0").description]
    return ", ".join(name for name in names if name not in ("source_path", "source_host", "state"))


def texts(tables: Mapping[str, pa.Table]) -> str:
    """Every text in some tables."""
    found: list[str] = []
    for table in tables.values():
        for column in table.columns:
            if pa.types.is_string(column.type):
                found += column.to_pylist()
    return "\n".join(found)
