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

from clew.warehouse.columns import LEVELS, STATE
from clew.warehouse.lake.layout import DATA, MARKS, UNKNOWN, check_marks, day_of, folder_of, no_lake
from clew.warehouse.lake.objects import (
    LARGEST,
    batch_objects,
    joined,
    objects_of,
    once,
    read_rows,
    read_sound,
    unpacked,
)
from clew.warehouse.lake.store import FolderStore, Object, Store, patiently, put_all

GRACE = 3600.0
"""Seconds that an object is left alone after it was written: whoever wrote it may not have said yet that it counts."""
_ORPHANED = 86_400.0
"""Seconds after which rows that nobody said count belong to a writer that was killed."""
_HELD = 256 << 20
"""Bytes of objects that were removed, and are held until it is sure that nobody needs them."""


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
    regrets = _Regrets(store, lake)
    before = now.timestamp() - grace
    closed = (now.astimezone(UTC) - timedelta(days=1)).date().isoformat()
    report = Report(batches_dropped=len(lake.known) - len(lake.current))
    try:
        for table in DATA:
            for day in _days(lake.objects[table], closed, before):
                for old, new in _merge(store, table, day, lake, regrets, now.timestamp()):
                    report = _plus(report, old, new)
                    regrets.look(_HELD)
    finally:
        regrets.look()
    # What does not count may go from `batches` when its rows are gone, or nobody could tell that they may go.
    for day in _days(lake.objects["batches"], closed, before):
        report = _plus(report, *_merge_batches(store, day, lake))
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
    parts = [read_rows(store, "batches", one.name) for one in objects["batches"] if day_of(one.name)]
    batches = once("batches", joined("batches", parts))
    return _Lake(objects, batches, pc.unique(batches["batch"]), pc.unique(current(batches)["batch"]))


def current(batches: pa.Table) -> pa.Table:
    """The rows of `batches` that count: one for each source, by the rule of `merge_sql`."""
    level = pc.index_in(batches["level"], pa.array(LEVELS))
    ranked = batches.append_column("rank", level)
    keys = [("source_id", "ascending"), *((name, "descending") for name in (*STATE, "rank", "batch"))]
    ranked = ranked.take(pc.sort_indices(ranked, keys)).drop_columns(["rank"])
    if ranked.num_rows < 2:
        return ranked
    names = ranked["source_id"].combine_chunks()
    return ranked.filter(pa.concat_arrays([pa.array([True]), pc.not_equal(names[1:], names[:-1])]))


def _days(objects: Iterable[Object], closed: str, before: float) -> Iterator[list[Object]]:
    """The objects of each day that is over."""
    days: dict[str, list[Object]] = {}
    for one in objects:
        day = day_of(one.name)
        if day is not None and (day < closed or day == UNKNOWN) and one.written <= before:
            days.setdefault(day, []).append(one)
    for _, found in sorted(days.items()):
        yield found


class _Regrets:
    """Objects that were removed with rows that did not count, held until it is sure that they do not count now.

    Somebody may say of a batch that it counts while its rows are removed. Whoever says so looks afterwards whether they
    are there; here it is looked afterwards whether somebody said so. One of the two looks comes last, and sees.
    """

    def __init__(self, store: Store, lake: _Lake) -> None:
        self._store = store
        self._seen = {one.name for one in lake.objects["batches"]}
        self._held: dict[str, tuple[bytes, set[str]]] = {}

    def hold(self, name: str, content: bytes, batches: set[str]) -> None:
        """This object is about to go, and with it the rows of these batches."""
        self._held[name] = content, batches

    def look(self, most: int = 0) -> None:
        """Put back what counts now; not yet where no more bytes than this are held."""
        if sum(len(content) for content, _ in self._held.values()) <= most:
            return
        named = self._named()
        for name, (content, batches) in self._held.items():
            if named is None or named & batches:
                self._store.put(name, content)
        self._store.settle()
        self._held = {}

    def _named(self) -> set[str] | None:
        """The batches of which somebody has said since that they count; None where that cannot be told."""
        found: set[str] = set()
        try:
            for one in self._store.list(folder_of("batches")):
                if day_of(one.name) and one.name not in self._seen:
                    found.update(read_rows(self._store, "batches", one.name, ["batch"])["batch"].to_pylist())
        except FileNotFoundError:
            return None
        return found


Exchange = tuple[list[Object], list[Object]]
"""Objects that went, and those that came for them."""


def _merge(
    store: Store, table: str, day: list[Object], lake: _Lake, regrets: _Regrets, now: float
) -> Iterator[Exchange]:
    """Merge the objects of a table and day, as many together as memory should hold."""
    if len(day) == 1 and len(lake.known) == len(lake.current):
        return
    taken: list[Object] = []
    parts: list[pa.Table] = []
    is_whole = True
    for one in day:
        content = read_sound(store, one.name)
        rows = unpacked(table, content)
        kept = _counting(rows, lake, is_old=now - one.written >= _ORPHANED)
        if kept is None or (kept is rows and rows.nbytes > LARGEST // 2):
            continue
        if kept is not rows:
            is_whole = False
            dropped = rows["batch"].filter(pc.invert(pc.is_in(rows["batch"], lake.current)))
            regrets.hold(one.name, content, set(dropped.unique().to_pylist()))
        taken.append(one)
        parts.append(kept)
        if sum(part.nbytes for part in parts) > LARGEST:
            yield _exchange(store, taken, dict(objects_of(table, once(table, joined(table, parts)))))
            taken, parts, is_whole = [], [], True
    if len(taken) > 1 or (taken and not is_whole):
        yield _exchange(store, taken, dict(objects_of(table, once(table, joined(table, parts)))))


def _counting(rows: pa.Table, lake: _Lake, is_old: bool) -> pa.Table | None:
    """The rows that count; None where somebody may be about to say that these rows count."""
    if not is_old and not pc.all(pc.is_in(rows["batch"], lake.known)).as_py():
        return None
    kept = rows.filter(pc.is_in(rows["batch"], lake.current))
    return rows if kept.num_rows == rows.num_rows else kept


def _merge_batches(store: Store, day: list[Object], lake: _Lake) -> Exchange:
    rows = once("batches", joined("batches", [read_rows(store, "batches", one.name) for one in day]))
    kept = rows.filter(pc.is_in(rows["batch"], lake.current))
    return _exchange(store, day, dict(batch_objects(kept)))


def _exchange(store: Store, old: list[Object], new: dict[str, bytes]) -> Exchange:
    """Put the new objects, then remove the old ones."""
    if {one.name for one in old} == set(new):
        return [], []
    put_all(store, new.items())
    store.settle()
    for one in old:
        if one.name not in new:
            store.remove(one.name)
    return old, [Object(name, len(content), 0.0) for name, content in new.items()]
