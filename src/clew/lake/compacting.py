"""Many small objects of a day made into few, without the rows that no longer count.

New objects are there before old ones go, and rows that stand twice count once, so a reader sees the same rows at any
time. What comes out follows from what went in: two machines that do the same work write the same objects.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from clew.lake.layout import DATA, MARKS, UNKNOWN, check_marks, day_of, folder_of, no_lake
from clew.lake.objects import batch_objects, joined, objects_of, once, unpacked
from clew.lake.stores import FolderStore, Object, Store, patiently, put_all
from clew.tables.columns import LEVELS

GRACE = 3600.0
"""Seconds that an object is left alone after it was written: whoever wrote it may not have said yet that it counts."""
_ORPHANED = 86_400.0
"""Seconds after which rows that nobody said count belong to a writer that was killed."""
_ORDER = ("schema_version", "redact_version", "price_version", "mtime_ns", "size")
_MOST = 256 << 20
"""Bytes of objects that are read together."""


class Report(NamedTuple):
    """What was done."""

    before: int = 0
    after: int = 0
    bytes_before: int = 0
    bytes_after: int = 0
    batches_dropped: int = 0


class _Lake(NamedTuple):
    """What a lake holds: all its objects, every batch that it names, and those that count."""

    objects: dict[str, list[Object]]
    batches: pa.Table
    known: pa.Array
    current: pa.Array


def compact(store: Store, now: datetime, grace: float = GRACE) -> Report:
    """Merge the objects of days that are over."""
    return patiently(lambda: _compact(store, now, grace), store.shown)


def _compact(store: Store, now: datetime, grace: float) -> Report:
    marks = [one.name for one in store.list(f"{MARKS}/")]
    if not marks:
        raise no_lake(store.shown)
    check_marks(marks, store.shown)
    lake = _look(store)
    dropped = len(lake.known) - len(lake.current)
    closed = (now.astimezone(UTC) - timedelta(days=1)).date().isoformat()
    report = Report(batches_dropped=dropped)
    for table in DATA:
        for group in _groups(lake.objects[table], closed, now.timestamp() - grace):
            report = _plus(report, *_merge(store, table, group, lake, now.timestamp()))
    # What does not count may go from `batches` when its rows are gone, or nobody could tell that they may go.
    for group in _groups(lake.objects["batches"], closed, now.timestamp() - grace):
        report = _plus(report, *_merge_batches(store, group, lake))
    if isinstance(store, FolderStore):
        store.sweep(now.timestamp() - _ORPHANED)
    return report


def _plus(report: Report, old: Iterable[Object], new: Iterable[Object]) -> Report:
    old, new = list(old), list(new)
    sizes = [sum(one.size for one in some) for some in (old, new)]
    counts = (report.before + len(old), report.after + len(new))
    return Report(*counts, report.bytes_before + sizes[0], report.bytes_after + sizes[1], report.batches_dropped)


def _look(store: Store) -> _Lake:
    # The rows first: whoever is named by then wrote them before.
    objects = {table: store.list(folder_of(table)) for table in (*DATA, "batches")}
    parts = [unpacked("batches", store.read(one.name)) for one in objects["batches"] if day_of(one.name)]
    batches = once("batches", joined("batches", parts))
    return _Lake(objects, batches, pc.unique(batches["batch"]), pc.unique(current(batches)["batch"]))


def current(batches: pa.Table) -> pa.Table:
    """The rows of `batches` that count: one for each source, by the rule of `tables.merging`."""
    level = pc.index_in(batches["level"], pa.array(LEVELS))
    ranked = batches.append_column("rank", level)
    keys = [("source_id", "ascending"), *((name, "descending") for name in (*_ORDER, "rank", "batch"))]
    ranked = ranked.take(pc.sort_indices(ranked, keys)).drop_columns(["rank"])
    if ranked.num_rows < 2:
        return ranked
    names = ranked["source_id"].combine_chunks()
    return ranked.filter(pa.concat_arrays([pa.array([True]), pc.not_equal(names[1:], names[:-1])]))


def _groups(objects: Iterable[Object], closed: str, before: float) -> Iterator[list[Object]]:
    """The objects of each day that is over, as many as are merged together."""
    days: dict[str, list[Object]] = {}
    for one in objects:
        day = day_of(one.name)
        if day is not None and (day < closed or day == UNKNOWN) and one.written <= before:
            days.setdefault(day, []).append(one)
    for _, found in sorted(days.items()):
        group: list[Object] = []
        for one in found:
            if group and sum(other.size for other in group) + one.size > _MOST:
                yield group
                group = []
            group.append(one)
        yield group


def _merge(store: Store, table: str, group: list[Object], lake: _Lake, now: float) -> tuple[list[Object], list[Object]]:
    """Merge some objects of a table and day into one; returns those that went and those that came."""
    if len(group) == 1 and len(lake.known) == len(lake.current):
        return [], []
    parts, taken, is_whole = [], [], True
    for one in group:
        rows = unpacked(table, store.read(one.name))
        is_known = pc.all(pc.is_in(rows["batch"], lake.known)).as_py()
        if not is_known and now - one.written < _ORPHANED:
            # Somebody may be about to say that these rows count.
            continue
        taken.append(one)
        parts.append(rows.filter(pc.is_in(rows["batch"], lake.current)))
        is_whole = is_whole and parts[-1].num_rows == rows.num_rows
    if not taken or (len(taken) == 1 and is_whole):
        return [], []
    return _exchange(store, taken, dict(objects_of(table, once(table, joined(table, parts)))))


def _merge_batches(store: Store, group: list[Object], lake: _Lake) -> tuple[list[Object], list[Object]]:
    parts = [unpacked("batches", store.read(one.name)) for one in group]
    rows = once("batches", joined("batches", parts))
    kept = rows.filter(pc.is_in(rows["batch"], lake.current))
    return _exchange(store, group, dict(batch_objects(kept)))


def _exchange(store: Store, old: list[Object], new: dict[str, bytes]) -> tuple[list[Object], list[Object]]:
    """Put the new objects, then remove the old ones."""
    if {one.name for one in old} == set(new):
        return [], []
    put_all(store, new.items())
    store.settle()
    for one in old:
        if one.name not in new:
            store.remove(one.name)
    return old, [Object(name, len(content), 0.0) for name, content in new.items()]
