"""Merge the objects of each month into few, and drop rows that no longer count.

New objects are written before old ones are removed, and readers count equal rows once, so readers see the same rows at
any time. The result depends only on the input: two machines that merge the same objects write the same new ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import groupby
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from clew.warehouse.columns import DATA_TABLES, LEVELS, STATE
from clew.warehouse.lake.layout import is_by_day, month_of, version_name
from clew.warehouse.lake.objects import (
    MAX_OBJECT_BYTES,
    concat,
    drop_duplicates,
    from_parquet,
    read_checked,
    read_rows,
    to_batch_objects,
    to_objects,
)
from clew.warehouse.lake.store import FolderStore, Object, Store, check_lake, list_objects, put_all, retry_if_deleted

GRACE_SECONDS = 3600.0
"""Younger objects are skipped: their writer may not have registered the batches yet."""
ORPHAN_SECONDS = 86_400.0
"""Older rows of a batch that is not registered belong to a writer that was killed."""
MAX_GUARDED_BYTES = 256 << 20
"""Removed objects that are kept in memory until it is certain that no writer has registered their batches."""


class CompactReport(NamedTuple):
    """Counts of a compaction."""

    before: int = 0
    after: int = 0
    bytes_before: int = 0
    bytes_after: int = 0
    batches_dropped: int = 0


class Replacement(NamedTuple):
    """Objects that were removed, and the new ones that hold their rows."""

    old: list[Object]
    new: list[Object]


class _Lake(NamedTuple):
    """What a lake held when it was listed."""

    objects: dict[str, list[Object]]
    """By table."""
    registered: pa.Array
    """All batches that `batches` names."""
    current: pa.Array
    """Those of them that count."""


def compact(store: Store, now: datetime, grace_seconds: float = GRACE_SECONDS) -> CompactReport:
    """Merge the objects that are older than the grace period."""
    return retry_if_deleted(lambda: _compact(store, now.timestamp(), grace_seconds), store.display_url)


def _compact(store: Store, now: float, grace_seconds: float) -> CompactReport:
    check_lake(store, must_exist=True)
    store.put(version_name(), b"\n")
    lake = _list_lake(store)
    guard = DeletionGuard(store, lake.objects["batches"])
    report = CompactReport(batches_dropped=len(lake.registered) - len(lake.current))
    try:
        for table in DATA_TABLES:
            for month in _months(lake.objects[table], now - grace_seconds):
                for replacement in _merge_month(store, table, month, lake, guard, now):
                    report = _add_counts(report, replacement)
                    guard.restore_registered(keep_bytes=MAX_GUARDED_BYTES)
    finally:
        guard.restore_registered()
    # `batches` last: while rows of a dropped batch exist, its row must say that they may be removed.
    for month in _months(lake.objects["batches"], now - grace_seconds):
        report = _add_counts(report, _merge_batches(store, month, lake))
    if isinstance(store, FolderStore):
        store.remove_partial(now - ORPHAN_SECONDS)
    return report


def _add_counts(report: CompactReport, replacement: Replacement) -> CompactReport:
    return CompactReport(
        report.before + len(replacement.old),
        report.after + len(replacement.new),
        report.bytes_before + sum(one.size for one in replacement.old),
        report.bytes_after + sum(one.size for one in replacement.new),
        report.batches_dropped,
    )


def _list_lake(store: Store) -> _Lake:
    # Rows first: a batch that is registered by the time `batches` is listed had its rows written before.
    objects = {table: list_objects(store, table) for table in (*DATA_TABLES, "batches")}
    parts = [read_rows(store, "batches", one.name) for one in objects["batches"]]
    batches = drop_duplicates("batches", concat("batches", parts))
    return _Lake(objects, pc.unique(batches["batch"]), pc.unique(current_batches(batches)["batch"]))


def current_batches(batches: pa.Table) -> pa.Table:
    """The rows of `batches` that count: one per source, in the order of `merge_sql.CURRENT_BATCH_ORDER`."""
    level = pc.index_in(batches["level"], pa.array(LEVELS))
    ranked = batches.append_column("rank", level)
    keys = [("source_id", "ascending"), *((name, "descending") for name in (*STATE, "rank", "batch"))]
    ranked = ranked.take(pc.sort_indices(ranked, keys)).drop_columns(["rank"])
    if ranked.num_rows < 2:
        return ranked
    ids = ranked["source_id"].combine_chunks()
    return ranked.filter(pa.concat_arrays([pa.array([True]), pc.not_equal(ids[1:], ids[:-1])]))


def _months(objects: Iterable[Object], written_before: float) -> Iterator[list[Object]]:
    """The objects of each month that are old enough."""
    old = [one for one in objects if one.written <= written_before]
    old.sort(key=lambda one: (month_of(one.name) or "", one.name))
    for _, month in groupby(old, key=lambda one: month_of(one.name)):
        yield list(month)


class DeletionGuard:
    """Guards against a race with writers.

    A writer may register a batch while compaction deletes its rows. Writers re-check their rows after registering, and
    compaction re-reads `batches` after deleting; whichever runs last restores the rows.
    """

    def __init__(self, store: Store, batch_objects: Iterable[Object]) -> None:
        self._store = store
        self._read_before = {one.name for one in batch_objects}
        self._removed: dict[str, tuple[bytes, set[str]]] = {}

    def remember(self, name: str, content: bytes, batches: set[str]) -> None:
        """Keep an object that is about to be removed, with the batches whose rows are dropped with it."""
        self._removed[name] = content, batches

    def restore_registered(self, keep_bytes: int = 0) -> None:
        """Put back objects whose batches were registered meanwhile. Does nothing while no more bytes are kept."""
        if sum(len(content) for content, _ in self._removed.values()) <= keep_bytes:
            return
        registered = self._newly_registered()
        for name, (content, batches) in self._removed.items():
            if registered is None or registered & batches:
                self._store.put(name, content)
        self._store.fsync()
        self._removed = {}

    def _newly_registered(self) -> set[str] | None:
        """The batches that were registered since the lake was listed; None if that cannot be determined."""
        found: set[str] = set()
        try:
            for one in list_objects(self._store, "batches"):
                if one.name not in self._read_before:
                    found.update(read_rows(self._store, "batches", one.name, ["batch"])["batch"].to_pylist())
        except FileNotFoundError:
            return None
        return found


def _merge_month(
    store: Store, table: str, month: list[Object], lake: _Lake, guard: DeletionGuard, now: float
) -> Iterator[Replacement]:
    """Merge the objects of a table and month, as many at a time as fit into one object."""
    if len(month) == 1 and len(lake.registered) == len(lake.current) and not is_by_day(month[0].name):
        return
    merged: list[Object] = []
    parts: list[pa.Table] = []
    is_changed = False
    for one in month:
        content = read_checked(store, one.name)
        rows = from_parquet(table, content)
        kept = _rows_that_count(rows, lake, is_old=now - one.written >= ORPHAN_SECONDS)
        if kept is None or (kept is rows and rows.nbytes > MAX_OBJECT_BYTES // 2 and not is_by_day(one.name)):
            continue
        if kept is not rows:
            dropped = rows["batch"].filter(pc.invert(pc.is_in(rows["batch"], lake.current)))
            guard.remember(one.name, content, set(dropped.unique().to_pylist()))
        is_changed |= kept is not rows or is_by_day(one.name)
        merged.append(one)
        parts.append(kept)
        if sum(part.nbytes for part in parts) > MAX_OBJECT_BYTES:
            yield _replace_objects(store, merged, _merged_objects(table, parts))
            merged, parts, is_changed = [], [], False
    if len(merged) > 1 or is_changed:
        yield _replace_objects(store, merged, _merged_objects(table, parts))


def _merged_objects(table: str, parts: list[pa.Table]) -> dict[str, bytes]:
    return dict(to_objects(table, drop_duplicates(table, concat(table, parts))))


def _rows_that_count(rows: pa.Table, lake: _Lake, is_old: bool) -> pa.Table | None:
    """The rows of current batches; None if a writer may be about to register some of the others."""
    if not is_old and not pc.all(pc.is_in(rows["batch"], lake.registered)).as_py():
        return None
    kept = rows.filter(pc.is_in(rows["batch"], lake.current))
    return rows if kept.num_rows == rows.num_rows else kept


def _merge_batches(store: Store, month: list[Object], lake: _Lake) -> Replacement:
    rows = drop_duplicates("batches", concat("batches", [read_rows(store, "batches", one.name) for one in month]))
    kept = rows.filter(pc.is_in(rows["batch"], lake.current))
    return _replace_objects(store, month, dict(to_batch_objects(kept)))


def _replace_objects(store: Store, old: list[Object], new: dict[str, bytes]) -> Replacement:
    """Put the new objects, then remove the old ones."""
    if {one.name for one in old} == set(new):
        return Replacement([], [])
    put_all(store, new.items())
    store.fsync()
    for one in old:
        if one.name not in new:
            store.remove(one.name)
    return Replacement(old, [Object(name, len(content), 0.0) for name, content in new.items()])
