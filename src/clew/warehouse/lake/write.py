"""Write sources to a lake: those that are new there, or have changed. Writing the same sources again adds nothing."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import NamedTuple

import pyarrow as pa

from clew.agents.base import SourceFile
from clew.io.batches import batches_by_size
from clew.io.workers import run_in_workers
from clew.warehouse.columns import DATA_TABLES, LEVELS, STATE
from clew.warehouse.ingest import Batch, SourceMeta, SourceTask, read_sources
from clew.warehouse.lake.layout import is_in_shard, shard_of, table_folder, version_name
from clew.warehouse.lake.objects import concat, read_rows, to_batch_objects, to_objects
from clew.warehouse.lake.store import Store, check_lake, list_objects, put_all, retry_if_deleted
from clew.warehouse.publisher import Publisher

BUFFER_BYTES = 128 << 20
"""Rows in memory, of many sources, that are written together."""
TASK_BYTES = 8 << 20
"""Sources that a process reads as one task."""
TASKS_AHEAD = 3
"""Tasks per process whose rows may wait in memory."""
PARALLEL_FROM_BYTES = 16 << 20
"""Fewer bytes are read by one process."""
_STATE_COLUMNS = ["source_id", *STATE, "level"]

KnownStates = dict[tuple[object, ...], int]
"""States of sources that a lake has, with the index of the level."""
ProgressCallback = Callable[[int, int], None]
"""(bytes_done, bytes_total)"""


class WriteReport(NamedTuple):
    """Counts of a write."""

    sources: int = 0
    written: int = 0
    unchanged: int = 0
    rows: int = 0
    objects: int = 0
    bytes: int = 0
    unreadable: tuple[str, ...] = ()
    """A message for each source that could not be read."""


def write(
    store: Store,
    sources: Iterable[SourceFile],
    publisher: Publisher,
    *,
    on_progress: ProgressCallback | None = None,
    workers: int | None = None,
) -> WriteReport:
    """Write the sources that the lake does not have as they are now."""
    check_lake(store)
    tasks = publisher.tasks(sources)
    known = retry_if_deleted(lambda: known_states(store, publisher.origin), store.display_url)
    changed = [task for task in tasks if not is_known(task.meta, known)]
    report = _write_tasks(store, changed, workers, on_progress) if changed else WriteReport()
    return report._replace(sources=len(tasks), unchanged=len(tasks) - len(changed))


def _write_tasks(
    store: Store, tasks: list[SourceTask], workers: int | None, on_progress: ProgressCallback | None
) -> WriteReport:
    # Oldest first, so that sources of the same months are buffered together.
    tasks.sort(key=lambda task: (task.meta.mtime_ns, task.meta.path))
    done, total = 0, sum(task.meta.size for task in tasks)
    workers = workers or (1 if total < PARALLEL_FROM_BYTES else os.cpu_count() or 1)
    store.put(version_name(), b"\n")
    writer = LakeWriter(store)
    groups = list(batches_by_size(tasks, lambda task: task.meta.size, TASK_BYTES))
    for result in run_in_workers(read_sources, groups, workers=workers, ahead=TASKS_AHEAD):
        for batch in result.batches:
            writer.add(batch)
        writer.unreadable += result.unreadable
        done += result.size
        if on_progress is not None:
            on_progress(done, total)
    writer.flush()
    return writer.report()


def known_states(store: Store, origin: str) -> KnownStates:
    """The states of an origin's sources that are in the lake."""
    known: KnownStates = {}
    for one in list_objects(store, "batches"):
        if is_in_shard(one.name, shard_of(origin)):
            rows = read_rows(store, "batches", one.name, _STATE_COLUMNS)
            for *state, level in zip(*(rows[name].to_pylist() for name in _STATE_COLUMNS), strict=True):
                known[tuple(state)] = max(known.get(tuple(state), 0), LEVELS.index(level))
    return known


def is_known(meta: SourceMeta, known: KnownStates) -> bool:
    """True if the lake has the source in this state, at this level or one with more content."""
    return known.get(meta.state, -1) >= LEVELS.index(meta.policy.level)


class LakeWriter:
    """Buffers batches, and writes the rows of many of them into few objects."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._batches: list[Batch] = []
        self._buffered_bytes = 0
        self._report = WriteReport()
        self.unreadable: list[str] = []

    def add(self, batch: Batch) -> None:
        """Buffer a batch; writes the buffer when it is full."""
        if batch.size > BUFFER_BYTES:
            self.flush()
        self._batches.append(batch)
        self._buffered_bytes += batch.size
        if self._buffered_bytes > BUFFER_BYTES:
            self.flush()

    def flush(self) -> None:
        """Write the buffered rows, then `batches`, which makes them count."""
        if not self._batches:
            return
        objects = (one for table in DATA_TABLES for one in to_objects(table, self._rows(table)))
        existed = put_all(self._store, objects, self._count_object)
        self._store.fsync()
        put_all(self._store, to_batch_objects(self._rows("batches")), self._count_object)
        self._store.fsync()
        self._restore_removed(existed)
        self._report = self._report._replace(
            rows=self._report.rows + sum(batch.rows for batch in self._batches),
            written=self._report.written + len(self._batches),
        )
        self._batches, self._buffered_bytes = [], 0

    def _rows(self, table: str) -> pa.Table:
        if table == "batches":
            return concat(table, [batch.tables[table] for batch in self._batches])
        # Equal sources are one batch.
        return concat(table, {batch.name: batch.tables[table] for batch in self._batches}.values())

    def _restore_removed(self, existed: list[str]) -> None:
        """Put objects again that existed before and that a compaction removed before their batch was registered."""
        if not existed:
            return
        found = {one.name for one in list_objects(self._store, *DATA_TABLES)}
        for table in DATA_TABLES:
            if any(name.startswith(table_folder(table)) and name not in found for name in existed):
                put_all(self._store, to_objects(table, self._rows(table)), self._count_object)
        self._store.fsync()

    def _count_object(self, size: int) -> None:
        self._report = self._report._replace(objects=self._report.objects + 1, bytes=self._report.bytes + size)

    def report(self) -> WriteReport:
        """The counts of everything that was written."""
        return self._report._replace(unreadable=tuple(self.unreadable))
