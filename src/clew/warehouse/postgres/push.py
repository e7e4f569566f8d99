"""Push sources to a server: those that it does not have in their present state.

The server knows what it has; nothing is recorded locally. Every portion of sources is one transaction: an interrupted
push leaves complete sessions, and the next push sends the rest.
"""

from __future__ import annotations

import io
import os
import random
import signal
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from multiprocessing import parent_process
from typing import Any, NamedTuple

import psycopg
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from clew.agents.base import SourceFile
from clew.errors import ClewError, TargetRefused
from clew.io.batches import batches_by_size
from clew.io.workers import run_in_workers
from clew.warehouse.build import halve_until
from clew.warehouse.columns import COPIES, DATA_TABLES, LEVELS, STATE, TABLES
from clew.warehouse.ingest import Batch, SourceTask, read_sources
from clew.warehouse.merge_sql import level_rank
from clew.warehouse.postgres import schema
from clew.warehouse.postgres.connection import Connection, connect, is_transient, translate_errors
from clew.warehouse.postgres.dedupe import TEMPORARY_TABLES, RetryPush, lock, update_visible_copies
from clew.warehouse.postgres.tsvector import to_tsvector
from clew.warehouse.publisher import Publisher

PORTION_BYTES = 16 << 20
"""Sources whose rows are sent in one transaction."""
MAX_PORTION_SOURCES = 200
PARALLEL_FROM_BYTES = 4 << 20
"""Fewer bytes are read by one process."""
TRIES = 12
"""Of a transaction that conflicts with other pushes."""
ANALYZE_FROM_ROWS = 100_000
CSV_ROWS, CSV_BYTES = 20_000, 16 << 20
"""Rows that are encoded together, and their approximate bytes in memory."""
NUL, NUL_SYMBOL = "\0", "\u2400"
"""PostgreSQL cannot store the character NUL; its symbol replaces it."""

ProgressCallback = Callable[[int, int], None]
"""(bytes_done, bytes_total)"""


class PushCounts(NamedTuple):
    """What was pushed."""

    sources: int = 0
    rows: int = 0
    size: int = 0
    unreadable: tuple[str, ...] = ()
    """A message for each source that could not be read."""

    def plus(self, other: PushCounts) -> PushCounts:
        """The sum of both."""
        return PushCounts(
            self.sources + other.sources,
            self.rows + other.rows,
            self.size + other.size,
            self.unreadable + other.unreadable,
        )


class PushReport(NamedTuple):
    """What a push did, or would do."""

    level: str
    sources: int
    unchanged: int
    pushed: PushCounts

    def as_dict(self) -> dict[str, str | int]:
        """The counts for JSON output."""
        return {
            "level": self.level,
            "sources": self.sources,
            "unchanged": self.unchanged,
            "pushed": self.pushed.sources,
            "rows": self.pushed.rows,
            "bytes": self.pushed.size,
            "unreadable": len(self.pushed.unreadable),
        }


def push(
    url: str,
    sources: Iterable[SourceFile],
    publisher: Publisher,
    *,
    dry_run: bool = False,
    workers: int | None = None,
    on_progress: ProgressCallback | None = None,
) -> PushReport:
    """Send the sources that the server does not have as they are now."""
    tasks = publisher.tasks(sources)
    known = _known_states(url, publisher, dry_run)
    changed = [task for task in tasks if task.meta.state not in known]
    total = sum(task.meta.size for task in changed)
    done = PushCounts(len(changed), 0, total) if dry_run else PushCounts()
    if changed and not dry_run:
        # One more than cores: while the server works for one process, the others read.
        workers = workers or (1 if total < PARALLEL_FROM_BYTES else (os.cpu_count() or 1) + 1)
        # The largest sources first, so that no process is left with one at the end.
        changed.sort(key=lambda task: task.meta.size, reverse=True)
        portions = list(batches_by_size(changed, lambda task: task.meta.size, PORTION_BYTES, MAX_PORTION_SOURCES))
        with closing(_PortionPusher(url)) as pusher:
            for counts in run_in_workers(pusher, portions, workers=workers):
                done = done.plus(counts)
                if on_progress is not None:
                    on_progress(done.size, total)
        if done.rows >= ANALYZE_FROM_ROWS:
            _analyze(url)
    return PushReport(publisher.policy.level, len(tasks), len(tasks) - len(changed), done)


_CLAIM_UNNAMED_BATCHES = "UPDATE batches SET person = session_user WHERE origin = %s AND person IS NULL"
"""Batches that this data folder pushed before the server recorded persons."""


def _known_states(url: str, publisher: Publisher, dry_run: bool) -> set[tuple[object, ...]]:
    """The states of this publisher's sources that the server has, at this level or one with more content."""
    with closing(connect(url, read_only=dry_run)) as db, translate_errors(url):
        if not dry_run:
            schema.prepare(db, url)
            db.execute(_CLAIM_UNNAMED_BATCHES, (publisher.origin,))
        elif not schema.has_tables(db, url):
            return set()
        levels = list(LEVELS[LEVELS.index(publisher.policy.level) :])
        query = f"SELECT source_id, {', '.join(STATE)} FROM batches WHERE origin = %s AND level = ANY(%s)"
        return set(db.execute(query.encode(), (publisher.origin, levels)).fetchall())


class _PortionPusher:
    """Reads and sends portions. Every process that uses it opens a connection of its own."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._writer: BatchWriter | None = None

    def __call__(self, portion: list[SourceTask]) -> PushCounts:
        try:
            if self._writer is None:
                if parent_process() is not None:
                    # A terminated worker ends at once: the server rolls back when the connection ends, and a rollback
                    # from here could wait for a server that no longer answers.
                    signal.signal(signal.SIGTERM, signal.SIG_DFL)
                self._writer = BatchWriter(self._url)
            return _push_portion(self._writer, portion)
        except ClewError:
            raise
        except Exception as error:
            # The message may hold text of a session.
            raise TargetRefused(f"push worker failed: {type(error).__name__}") from None

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()


def _push_portion(writer: BatchWriter, portion: list[SourceTask]) -> PushCounts:
    found = read_sources(portion)
    rows = writer.write(found.batches) if found.batches else 0
    return PushCounts(len(found.batches), rows, found.size, tuple(found.unreadable))


def _analyze(url: str) -> None:
    """Update the planner's statistics: autovacuum never analyzes partitioned tables."""
    with closing(connect(url)) as db, translate_errors(url):
        # A small sample is enough to know how many rows share a value.
        db.execute("SET default_statistics_target TO 10")
        for table in schema.partitioned():
            db.execute(f"ANALYZE {table}".encode())


_BATCH_COLUMNS = TABLES["batches"].names
_STATE_AND_LEVEL = f"({', '.join(f'{{0}}.{name}' for name in STATE)}, {level_rank('{0}.level')})"
# A source may return to a state that it had before: the later registration counts.
_REGISTER_BATCH = f"""
INSERT INTO batches AS b ({", ".join(_BATCH_COLUMNS)}) VALUES ({", ".join(f"%({name})s" for name in _BATCH_COLUMNS)})
ON CONFLICT (source_id, batch) DO UPDATE SET {", ".join(f"{name} = excluded.{name}" for name in _BATCH_COLUMNS)}
WHERE {_STATE_AND_LEVEL.format("b")} < {_STATE_AND_LEVEL.format("excluded")}
"""
_CLAIM_BATCHES = "INSERT INTO loaded SELECT unnest(%s::text[]) ORDER BY 1 ON CONFLICT DO NOTHING RETURNING batch"


class BatchWriter:
    """Writes batches to a server, over one connection."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._db: Connection = connect(url)
        # A transaction that waited for the lock must see what its holder wrote.
        self._db.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
        try:
            with translate_errors(url):
                for statement in TEMPORARY_TABLES:
                    self._db.execute(statement.encode())
                self._months = schema.known_months(self._db)
        except BaseException:
            self._db.close()
            raise

    def close(self) -> None:
        """Close the connection."""
        self._db.close()

    def write(self, batches: Sequence[Batch]) -> int:
        """Write batches in one transaction. Returns the number of rows that were sent."""
        with translate_errors(self._url):
            for tries_left in reversed(range(TRIES)):
                try:
                    self._add_months(batches)
                    return self._write(batches)
                except (RetryPush, psycopg.Error) as error:
                    if not tries_left or not (isinstance(error, RetryPush) or is_transient(error)):
                        raise
                    self._months.clear()
                    time.sleep(random.uniform(0, 0.1) * (TRIES - tries_left))
        raise AssertionError("the last try returns or raises")

    def _add_months(self, batches: Sequence[Batch]) -> None:
        """Create the partitions of the batches' months."""
        days = {
            day
            for batch in batches
            for name in DATA_TABLES
            for day in pc.unique(batch.tables[name].column("day_utc")).to_pylist()
        }
        needed = schema.months_of(days)
        if needed - self._months:
            self._months = schema.known_months(self._db)
        if needed - self._months:
            schema.add_months(self._db, needed - self._months)
            self._months |= needed

    def _write(self, batches: Sequence[Batch]) -> int:
        """Copy the rows, which may take long and needs no lock; then update what is visible, under the lock."""
        db = self._db
        by_name = {batch.name: batch for batch in batches}
        registrations: list[dict[str, Any]] = [row for batch in batches for row in batch.tables["batches"].to_pylist()]
        with db.transaction():
            # The first transaction that claims a batch copies its rows; another one waits here until that is done.
            claimed = [name for (name,) in db.execute(_CLAIM_BATCHES, (list(by_name),)).fetchall()]
            count = copy_rows(db, [by_name[name] for name in claimed])
            lock(db)
            db.cursor().executemany(_REGISTER_BATCH.encode(), registrations)
            update_visible_copies(db, [row["source_id"] for row in registrations], claimed)
        return count


def copy_rows(db: Connection, batches: Sequence[Batch]) -> int:
    """Add the rows of batches with COPY; Arrow encodes them. Returns the number of rows."""
    count = 0
    for name in DATA_TABLES:
        tables = [batch.tables[name] for batch in batches if batch.tables[name].num_rows]
        if not tables:
            continue
        columns = ", ".join((*TABLES[name].names, "words") if name == "blocks" else TABLES[name].names)
        with db.cursor().copy(f"COPY {name}{COPIES} ({columns}) FROM STDIN (FORMAT csv)".encode()) as stream:
            for table in tables:
                for part in halve_until(_fits_csv, table):
                    stream.write(_to_csv(name, part))
                count += table.num_rows
    return count


def _fits_csv(table: pa.Table) -> bool:
    """True if the rows are few enough to be encoded at once."""
    return bool(table.num_rows <= CSV_ROWS and table.nbytes <= CSV_BYTES)


def _to_csv(name: str, table: pa.Table) -> memoryview:
    """Encode rows for COPY. Strings are quoted and NULL is not, so that an empty string is not NULL."""
    if name == "blocks":
        table = table.append_column("words", _words(table.column("text")))
    columns = [_replace_nul(column) for column in table.columns]
    out = io.BytesIO()
    options = csv.WriteOptions(include_header=False, quoting_style="needed")
    csv.write_csv(pa.Table.from_arrays(columns, names=table.column_names), out, options)
    return out.getbuffer()


def _words(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    """The `tsvector` of each text; NULL for an empty one."""
    vectors = [to_tsvector(text) if text else None for text in texts.to_pylist()]
    return pa.chunked_array([pa.array(vectors, pa.string())])


def _replace_nul(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if not pa.types.is_string(column.type) or not pc.any(pc.match_substring(column, NUL)).as_py():
        return column
    return pc.replace_substring(column, NUL, NUL_SYMBOL)
