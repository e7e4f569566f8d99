"""Batches put on a server: all that is read of some sources at once, or nothing of it."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from psycopg import IsolationLevel

from clew.warehouse.columns import LEVELS, STATE, TABLES
from clew.warehouse.postgres import loading, schema
from clew.warehouse.postgres.connection import connect, is_passing, told
from clew.warehouse.postgres.dedupe import NOTES, Again, lock, settle

if TYPE_CHECKING:
    from clew.warehouse.ingest import Batch
    from clew.warehouse.postgres.connection import Connection

TRIES = 12
"""How often the same is tried while others push what it depends on."""
_NAMES = ", ".join(TABLES["batches"].names)
_GIVEN = ", ".join(f"%({name})s" for name in TABLES["batches"].names)
_ORDER = f"({', '.join(f'{{0}}.{name}' for name in STATE)}, {{1}})"
_LEVEL = f"array_position(ARRAY{list(LEVELS)}, {{0}}.level)"
_NOTE = f"""
INSERT INTO batches AS b ({_NAMES}) VALUES ({_GIVEN}) ON CONFLICT (source_id, batch) DO UPDATE SET
  {", ".join(f"{name} = excluded.{name}" for name in TABLES["batches"].names)}
WHERE {_ORDER.format("b", _LEVEL.format("b"))} < {_ORDER.format("excluded", _LEVEL.format("excluded"))}
"""
"""A source that comes back to a state it was in has it for the second time: the later one counts."""
_OWN = "INSERT INTO loaded SELECT unnest(%s::text[]) ORDER BY 1 ON CONFLICT DO NOTHING RETURNING batch"


class Putter:
    """Puts batches on one server, over one connection."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._db: Connection = connect(url)
        # Whatever the server's own default: who waited for the lock must see what its holder did.
        self._db.isolation_level = IsolationLevel.READ_COMMITTED
        try:
            with told(url):
                for statement in NOTES:
                    self._db.execute(statement.encode())
                self._months = schema.known_months(self._db)
        except BaseException:
            self._db.close()
            raise

    def close(self) -> None:
        """Let go of the server."""
        self._db.close()

    def put(self, batches: Sequence[Batch]) -> int:
        """Put these there in one transaction. Returns how many rows were sent."""
        import psycopg

        with told(self._url):
            for left in reversed(range(TRIES)):
                try:
                    self._add_months(batches)
                    return self._put(batches)
                except (Again, psycopg.Error) as error:
                    if not left or not (isinstance(error, Again) or is_passing(error)):
                        raise
                    self._months.clear()
                    time.sleep(random.uniform(0, 0.1) * (TRIES - left))
        raise AssertionError("the last try returns or raises")

    def _add_months(self, batches: Sequence[Batch]) -> None:
        wanted = schema.months_of(loading.days_of(batches))
        if wanted - self._months:
            self._months = schema.known_months(self._db)
        if wanted - self._months:
            schema.add_months(self._db, wanted - self._months)
            self._months |= wanted

    def _put(self, batches: Sequence[Batch]) -> int:
        """First the rows, which may take long and disturb nobody; then, alone, what follows from them."""
        db = self._db
        by_name = {batch.name: batch for batch in batches}
        notes: list[dict[str, Any]] = [row for batch in batches for row in batch.tables["batches"].to_pylist()]
        with db.transaction():
            # Whoever notes a name first loads its rows; another waits here until that is done.
            own = [name for (name,) in db.execute(_OWN, (list(by_name),)).fetchall()]
            count = loading.copy(db, [by_name[name] for name in own])
            lock(db)
            db.cursor().executemany(_NOTE.encode(), notes)
            settle(db, [note["source_id"] for note in notes], own)
        return count
