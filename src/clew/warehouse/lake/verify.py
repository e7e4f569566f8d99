"""Check that a lake holds everything it names, unchanged, and repair it.

An object is named by a hash of its bytes, and a batch by a hash of its rows. So damaged objects are found, and also
missing ones, although there is no list of the objects that should exist.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from clew.warehouse.columns import DATA_TABLES, SCHEMA_VERSION
from clew.warehouse.ingest import batch_name
from clew.warehouse.lake.compact import current_batches
from clew.warehouse.lake.layout import QUARANTINE, hash_matches, table_of
from clew.warehouse.lake.objects import (
    concat,
    drop_duplicates,
    from_parquet,
    split_runs,
    to_batch_objects,
)
from clew.warehouse.lake.store import Object, Store, check_lake, list_objects, put_all, retry_if_deleted

REWRITE_SIZE = -1
"""Marker size for a source that must be rewritten. It never matches a real file, and sorts last."""
MAX_OBJECT_BYTES_PER_PASS = 256 << 20
"""Rows are compared in memory. A larger lake is read in several passes, each for a part of the batches."""


class IncompleteSession(NamedTuple):
    """A session of which rows are missing."""

    batch: str
    agent: str
    day: str
    origin: str


class VerifyReport(NamedTuple):
    """What was found."""

    objects: int = 0
    bytes: int = 0
    batches: int = 0
    damaged: tuple[str, ...] = ()
    incomplete: tuple[IncompleteSession, ...] = ()


def verify(store: Store) -> VerifyReport:
    """Read every object, and compare it with its name and with the names of the batches."""
    return retry_if_deleted(lambda: _verify(store), store.display_url)


def _verify(store: Store) -> VerifyReport:
    check_lake(store, must_exist=True)
    # `batches` first: the rows of a batch that it names were written before it.
    objects = list_objects(store, "batches", *DATA_TABLES)
    damaged = {one.name for one, content in _read_all(store, objects) if not hash_matches(one.name, content)}
    intact = [one for one in objects if one.name not in damaged]
    current = _current(store, [one for one in intact if table_of(one.name) == "batches"])
    incomplete = _incomplete(store, [one for one in intact if table_of(one.name) != "batches"], current)
    size = sum(one.size for one in objects)
    return VerifyReport(len(objects), size, current.num_rows, tuple(sorted(damaged)), tuple(incomplete))


def _read_all(store: Store, objects: Iterable[Object]) -> Iterator[tuple[Object, bytes]]:
    """Objects with their content, several read at a time."""
    objects = iter(objects)
    with ThreadPoolExecutor(store.max_parallel) as pool:
        while group := list(islice(objects, store.max_parallel)):
            yield from zip(group, pool.map(lambda one: store.read(one.name), group), strict=True)


def _current(store: Store, objects: Iterable[Object]) -> pa.Table:
    """The rows of `batches` that count."""
    parts = [
        from_parquet("batches", content)
        for one, content in _read_all(store, objects)
        if hash_matches(one.name, content)
    ]
    return current_batches(drop_duplicates("batches", concat("batches", parts)))


def _incomplete(store: Store, objects: list[Object], current: pa.Table) -> Iterator[IncompleteSession]:
    """The current batches whose rows do not have the hash that is their name."""
    # The columns of another version are unknown here, and so are the hashes of its batches.
    own = current.filter(pc.equal(current["schema_version"], SCHEMA_VERSION))
    names = sorted(set(own["batch"].to_pylist()))
    passes = 1 + sum(one.size for one in objects) // MAX_OBJECT_BYTES_PER_PASS
    missing = {name for number in range(passes) for name in _not_complete(store, objects, set(names[number::passes]))}
    if missing:
        # Batches that were replaced since may have been removed.
        missing &= set(_current(store, list_objects(store, "batches"))["batch"].to_pylist())
    columns = ("batch", "agent", "day_utc", "origin")
    for row in zip(*(own[name].to_pylist() for name in columns), strict=True):
        if row[0] in missing:
            yield IncompleteSession(*row)


def _not_complete(store: Store, objects: list[Object], names: set[str]) -> set[str]:
    """Those of these batches whose rows do not have the hash that is their name."""
    found: dict[str, dict[str, list[pa.Table]]] = {name: {} for name in names}
    wanted = pa.array(names, pa.string())
    for one, content in _read_all(store, objects):
        table = table_of(one.name)
        rows = from_parquet(table, content)
        for batch, part in split_runs(rows.filter(pc.is_in(rows["batch"], wanted)), "batch"):
            found[batch].setdefault(table, []).append(part)
    return {name for name, parts in found.items() if _hash(parts) != name}


def _hash(parts: dict[str, list[pa.Table]]) -> str:
    return batch_name({table: drop_duplicates(table, concat(table, parts.get(table, ()))) for table in DATA_TABLES})


def repair(store: Store, report: VerifyReport) -> None:
    """Move damaged objects to the quarantine, and mark incomplete sessions so that their machines write them again."""
    for name in report.damaged:
        content = store.read(name)
        # It may only have been transferred wrongly.
        if not hash_matches(name, content):
            store.put(f"{QUARANTINE}{name}", content)
            store.fsync()
            store.remove(name)
    if report.incomplete:
        batches = pa.array(sorted({one.batch for one in report.incomplete}))
        retry_if_deleted(lambda: _mark_for_rewrite(store, batches), store.display_url)


def _mark_for_rewrite(store: Store, batches: pa.Array) -> None:
    for one, content in _read_all(store, list_objects(store, "batches")):
        rows = from_parquet("batches", content)
        is_marked = pc.is_in(rows["batch"], batches)
        if not pc.any(is_marked).as_py():
            continue
        sizes = pc.if_else(is_marked, pa.scalar(REWRITE_SIZE, pa.int64()), rows["size"])
        position = rows.schema.get_field_index("size")
        new = dict(to_batch_objects(rows.set_column(position, rows.schema.field(position), sizes)))
        put_all(store, new.items())
        store.fsync()
        if one.name not in new:
            store.remove(one.name)
