"""Statements of `catalog/statements.py`, answered by a server with the numbers that the catalog gives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from clew.warehouse.postgres.connection import connect, told
from clew.warehouse.postgres.schema import check_readable

if TYPE_CHECKING:
    from clew.catalog.statements import Statement
    from clew.warehouse.postgres.connection import Connection


def open_engine(url: str) -> PostgresEngine:
    """An engine over what was pushed to a server."""
    return PostgresEngine(url)


class PostgresEngine:
    """Answers statements; everything it is asked sees the same rows."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._db: Connection = connect(url, reads_only=True)
        try:
            with told(url):
                _count_exactly(self._db)
                check_readable(self._db, url)
                # One look at the rows, whatever others push meanwhile.
                self._db.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        except BaseException:
            self._db.close()
            raise

    def ask(self, statement: Statement) -> list[tuple[Any, ...]]:
        """The rows of an answer."""
        import psycopg

        with told(self._url):
            # Bound here, not there: a condition may name more sessions than a server takes parameters.
            cursor = psycopg.ClientCursor(self._db)
            cursor.execute(marked(statement.text).encode(), statement.values)
            return cursor.fetchall()

    def close(self) -> None:
        """Let go of the server."""
        self._db.close()


def marked(text: str) -> str:
    """A statement with its marks as the driver spells them."""
    return text.replace("%", "%%").replace("?", "%s")


def _count_exactly(db: Connection) -> None:
    """Sums are whole numbers of any size here, and stay so."""
    from psycopg.adapt import Buffer, Loader

    class WholeNumber(Loader):
        def load(self, data: Buffer) -> int:
            return int(bytes(data))

    db.adapters.register_loader("numeric", WholeNumber)
