"""Answer the catalog's statements from a server, with the numbers that the catalog gives."""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg.adapt import Buffer, Loader

from clew.catalog.statements import Statement
from clew.warehouse.postgres.connection import Connection, connect, translate_errors
from clew.warehouse.postgres.schema import check_readable


class _IntegerLoader(Loader):
    """Sums of integers have the type `numeric`, and stay exact integers of any size."""

    def load(self, data: Buffer) -> int:
        return int(bytes(data))


class PostgresEngine:
    """Answers statements; all of them see the same state of the database."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._db: Connection = connect(url, read_only=True)
        try:
            with translate_errors(url):
                self._db.adapters.register_loader("numeric", _IntegerLoader)
                check_readable(self._db, url)
                self._db.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        except BaseException:
            self._db.close()
            raise

    def ask(self, statement: Statement) -> list[tuple[Any, ...]]:
        """The rows of a statement."""
        with translate_errors(self._url):
            # Values are bound by the client: a condition may name more sessions than a server takes parameters.
            cursor = psycopg.ClientCursor(self._db)
            cursor.execute(psycopg_placeholders(statement.text).encode(), statement.values)
            return cursor.fetchall()

    def close(self) -> None:
        """Close the connection."""
        self._db.close()


def psycopg_placeholders(text: str) -> str:
    """A statement with the placeholders of psycopg."""
    return text.replace("%", "%%").replace("?", "%s")
