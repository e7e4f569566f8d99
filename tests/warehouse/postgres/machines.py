"""Machines that push to a server, each with a home and a data folder of its own, and what is there afterwards."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

from clew.catalog import database
from clew.catalog.sync import sync
from clew.host import Host
from clew.sources.local import in_homes
from clew.warehouse.merge_sql import PUBLIC
from clew.warehouse.postgres.connection import connect
from clew.warehouse.postgres.engine import PostgresEngine
from clew.warehouse.postgres.push import PushReport, push
from clew.warehouse.publisher import load_publisher
from tests.every_statement import every_statement

Rows = list[tuple[Any, ...]]
SAME_WITHOUT_TEXT = {
    name for name, _ in every_statement() if not any(part in name for part in ("files", "folders", "names of", "path"))
}
"""The statistics without paths and titles."""


class Machine:
    """One that pushes."""

    def __init__(self, folder: Path) -> None:
        self.home, self.data = folder / "home", folder / "data"
        self.home.mkdir(parents=True, exist_ok=True)

    def push(self, url: str, level: str = "raw", **options: Any) -> PushReport:
        """Push all sessions of the home, in this process."""
        sources = [found.source for found in in_homes([Host.at(self.home)])]
        return push(url, sources, load_publisher(level, folder=self.data), **{"workers": 1, **options})

    def statistics(self) -> dict[str, Rows]:
        """The answers of a catalog over the home."""
        folder = self.data / "catalog"
        sync([Host.at(self.home)], folder, workers=1)
        db = database.open_reader(folder)
        assert db is not None
        with closing(db):
            return {name: db.execute(*statement).fetchall() for name, statement in every_statement()}


def statistics(url: str) -> dict[str, Rows]:
    """The answers of the server."""
    with closing(PostgresEngine(url)) as engine:
        return {name: engine.ask(statement) for name, statement in every_statement()}


def tables(url: str) -> dict[str, Rows]:
    """All rows that the server shows, in an order of their own."""
    with closing(connect(url, read_only=True)) as db:
        return {name: sorted(db.execute(f"SELECT * FROM {name}".encode()).fetchall(), key=repr) for name in PUBLIC}


def ask(url: str, query: str) -> Rows:
    """The answer to a question."""
    with closing(connect(url)) as db:
        return db.execute(query.encode()).fetchall()


def change(url: str, *statements: str) -> None:
    """Do something to the server."""
    with closing(connect(url)) as db:
        for statement in statements:
            db.execute(statement.encode())
