"""Sources into a lake: those that are new there, or have changed. A second write of the same sources writes nothing."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import pyarrow as pa

from clew.agents.base import SourceFile
from clew.io.workers import run_in_workers
from clew.warehouse.columns import LEVELS, STATE
from clew.warehouse.ingest import BAD, Batch, Meta, read
from clew.warehouse.ingest import unreadable as unread
from clew.warehouse.lake.layout import DATA, MARKS, check_marks, folder_of, is_in, mark_name, shard_of
from clew.warehouse.lake.objects import batch_objects, joined, objects_of, read_rows
from clew.warehouse.lake.store import Store, patiently, put_all
from clew.warehouse.publisher import Writer

PACK = 128 << 20
"""Bytes of rows in memory that become objects together."""
TASK = 8 << 20
"""Bytes of sources that a process reads in one go."""
TASKS_AHEAD = 3
"""Tasks per process whose rows may wait in memory."""
WORTH_SPREADING = 16 << 20
"""From this many bytes on, several processes are quicker than one."""
_STATE = ["source_id", *STATE, "level"]

Job = tuple[SourceFile, Meta]
Tell = Callable[[int, int], None]
"""Is told of bytes of sources done, and of all there are."""


class Report(NamedTuple):
    """What a write did."""

    sources: int = 0
    written: int = 0
    unchanged: int = 0
    rows: int = 0
    objects: int = 0
    bytes: int = 0
    unreadable: tuple[str, ...] = ()


class Taken(NamedTuple):
    """What became of some sources: their batches, and those that could not be read."""

    batches: list[Batch]
    unreadable: list[str]
    size: int


def take(jobs: Sequence[Job]) -> Taken:
    """Read some sources."""
    batches, unreadable, size = [], [], 0
    for source, meta in jobs:
        size += meta.size
        try:
            batches.append(read(source, meta))
        except BAD as error:
            unreadable.append(unread(meta.path, error))
    return Taken(batches, unreadable, size)


def write(
    store: Store, sources: Iterable[SourceFile], who: Writer, *, tell: Tell | None = None, workers: int | None = None
) -> Report:
    """Bring a lake up to date with some sources."""
    jobs = [(source, who.meta(source)) for source in sources]
    total = sum(meta.size for _, meta in jobs)
    workers = workers or (1 if total < WORTH_SPREADING else os.cpu_count() or 1)
    check_marks((one.name for one in store.list(f"{MARKS}/")), store.shown)
    known = patiently(lambda: known_states(store, who.origin), store.shown)
    fresh = [job for job in jobs if not is_known(job[1], known)]
    report = _write(store, fresh, workers, tell)
    return report._replace(sources=len(jobs), unchanged=len(jobs) - len(fresh))


def _write(store: Store, jobs: list[Job], workers: int, tell: Tell | None) -> Report:
    if not jobs:
        return Report()
    # The oldest first: what was written on one day stands together.
    jobs.sort(key=lambda job: (job[1].mtime_ns, job[1].path))
    store.put(mark_name(), b"\n")
    packer, done, total = Packer(store), 0, sum(meta.size for _, meta in jobs)
    for taken in run_in_workers(take, list(_tasks(jobs)), workers=workers, ahead=TASKS_AHEAD):
        for batch in taken.batches:
            packer.add(batch)
        packer.unreadable += taken.unreadable
        done += taken.size
        if tell is not None:
            tell(done, total)
    packer.flush()
    return packer.report()


def _tasks(jobs: Iterable[Job]) -> Iterator[list[Job]]:
    task: list[Job] = []
    size = 0
    for job in jobs:
        task.append(job)
        size += job[1].size
        if size > TASK:
            yield task
            task, size = [], 0
    if task:
        yield task


def known_states(store: Store, origin: str) -> dict[tuple[object, ...], int]:
    """The states of sources that are in the lake, with the level of each."""
    known: dict[tuple[object, ...], int] = {}
    for one in store.list(folder_of("batches")):
        if is_in(one.name, shard_of(origin)):
            rows = read_rows(store, "batches", one.name, _STATE)
            for *state, level in zip(*(rows[name].to_pylist() for name in _STATE), strict=True):
                known[tuple(state)] = max(known.get(tuple(state), 0), LEVELS.index(level))
    return known


def is_known(meta: Meta, known: dict[tuple[object, ...], int]) -> bool:
    """True for a source that is there as it is now, at its level or above."""
    return known.get(meta.state, -1) >= LEVELS.index(meta.policy.level)


class Packer:
    """Puts the rows of many batches into few objects."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._batches: list[Batch] = []
        self._size = 0
        self.unreadable: list[str] = []
        self._report = Report()

    def add(self, batch: Batch) -> None:
        """One more; it may take others with it."""
        if batch.size > PACK:
            self.flush()
        self._batches.append(batch)
        self._size += batch.size
        if self._size > PACK:
            self.flush()

    def flush(self) -> None:
        """Write what waits. It counts when `batches` is written, which comes last."""
        if not self._batches:
            return
        there = put_all(
            self._store, (one for table in DATA for one in objects_of(table, self._rows(table))), self._note
        )
        self._store.settle()
        put_all(self._store, batch_objects(self._rows("batches")), self._note)
        self._store.settle()
        self._mend(there)
        rows, written = self._report.rows, self._report.written
        more = sum(batch.rows for batch in self._batches)
        self._report = self._report._replace(rows=rows + more, written=written + len(self._batches))
        self._batches, self._size = [], 0

    def _rows(self, table: str) -> pa.Table:
        # Equal sources are one batch.
        found = {batch.name: batch.tables[table] for batch in self._batches}
        return joined(table, found.values() if table != "batches" else [one.tables[table] for one in self._batches])

    def _mend(self, there: list[str]) -> None:
        """Objects that were there could have been removed meanwhile, as nobody counted on them yet."""
        if not there:
            return
        found = {one.name for table in DATA for one in self._store.list(folder_of(table))}
        for table in DATA:
            if any(name.startswith(folder_of(table)) and name not in found for name in there):
                put_all(self._store, objects_of(table, self._rows(table)), self._note)
        self._store.settle()

    def _note(self, size: int) -> None:
        self._report = self._report._replace(objects=self._report.objects + 1, bytes=self._report.bytes + size)

    def report(self) -> Report:
        """What was done."""
        return self._report._replace(unreadable=tuple(self.unreadable))
