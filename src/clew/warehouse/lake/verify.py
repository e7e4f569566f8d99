"""Whether all that a lake names is there as it was written, and a way back where it is not.

An object is named by a hash of its bytes, and a batch by a hash of its rows. So what is damaged is known, and so is
what is missing, although nobody wrote down which objects there should be.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby, islice
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from clew.warehouse.columns import SCHEMA_VERSION
from clew.warehouse.ingest import batch_name
from clew.warehouse.lake.compact import current
from clew.warehouse.lake.layout import DATA, MARKS, UNKNOWN, check_marks, day_of, folder_of, is_sound, no_lake
from clew.warehouse.lake.objects import batch_objects, joined, once, unpacked
from clew.warehouse.lake.store import Object, Store, patiently, put_all

ASIDE = "_damaged/"
"""Where damaged objects are moved to; engines pass over names that begin like this."""
_AGAIN = -1
"""The size of a source that is to be written again: no source has it, and all other states of it come before it."""


class Lacking(NamedTuple):
    """A session of which rows are missing."""

    batch: str
    agent: str
    day: str
    origin: str


class Proof(NamedTuple):
    """What was found."""

    objects: int = 0
    bytes: int = 0
    batches: int = 0
    damaged: tuple[str, ...] = ()
    lacking: tuple[Lacking, ...] = ()


def verify(store: Store) -> Proof:
    """Read everything, and compare it with what it was."""
    return patiently(lambda: _verify(store), store.shown)


def _verify(store: Store) -> Proof:
    marks = [one.name for one in store.list(f"{MARKS}/")]
    if not marks:
        raise no_lake(store.shown)
    check_marks(marks, store.shown)
    # `batches` first: whatever it names was there before it.
    objects = [one for table in ("batches", *DATA) for one in store.list(folder_of(table)) if day_of(one.name)]
    damaged: list[str] = []
    ends: dict[str, str] = {}
    parts: list[pa.Table] = []
    for one, content in _contents(store, objects):
        if not is_sound(one.name, content):
            damaged.append(one.name)
        elif _table(one) == "batches":
            parts.append(unpacked("batches", content))
        else:
            for batch in unpacked(_table(one), content, ["batch"])["batch"].unique().to_pylist():
                ends[batch] = max(ends.get(batch, ""), _day(one))
    counting = current(once("batches", joined("batches", parts)))
    sound = [one for one in objects if one.name not in damaged and _table(one) != "batches"]
    lacking = _lacking(store, sound, counting, ends)
    return Proof(len(objects), sum(one.size for one in objects), counting.num_rows, tuple(damaged), tuple(lacking))


def _contents(store: Store, objects: Iterable[Object]) -> Iterator[tuple[Object, bytes]]:
    """Objects with their content, several read at a time."""
    from concurrent.futures import ThreadPoolExecutor

    objects = iter(objects)
    with ThreadPoolExecutor(store.at_once) as pool:
        while some := list(islice(objects, store.at_once)):
            yield from zip(some, pool.map(lambda one: store.read(one.name), some), strict=True)


def _table(one: Object) -> str:
    return one.name.partition("/")[0].removeprefix("table=")


def _day(one: Object) -> str:
    """In the order of which rows are read; those without a time first."""
    day = day_of(one.name) or ""
    return "" if day == UNKNOWN else day


def _lacking(store: Store, objects: list[Object], counting: pa.Table, ends: dict[str, str]) -> Iterator[Lacking]:
    """The batches whose rows are not those that they are named by."""
    # Of another version the columns are not these, and what they were is not known here.
    own = counting.filter(pc.equal(counting["schema_version"], SCHEMA_VERSION))
    wrong = set(own["batch"].to_pylist()) - _whole(store, objects, own["batch"], ends)
    # What was replaced meanwhile may have gone.
    wrong &= set(_named(store)) if wrong else set()
    names = ("batch", "agent", "day_utc", "origin")
    for row in zip(*(own[name].to_pylist() for name in names), strict=True):
        if row[0] in wrong:
            yield Lacking(*row)


def _named(store: Store) -> list[str]:
    """The batches that count now."""
    found = (one for one in store.list(folder_of("batches")) if day_of(one.name))
    parts = [unpacked("batches", content) for one, content in _contents(store, found) if is_sound(one.name, content)]
    names: list[str] = current(once("batches", joined("batches", parts)))["batch"].to_pylist()
    return names


def _whole(store: Store, objects: list[Object], wanted: pa.ChunkedArray, ends: dict[str, str]) -> set[str]:
    """The batches of which all rows are there. Day by day: only those that are not over are held."""
    held: dict[str, dict[str, list[pa.Table]]] = {}
    whole: set[str] = set()
    for day, found in groupby(sorted(objects, key=_day), _day):
        for one, content in _contents(store, found):
            rows = unpacked(_table(one), content)
            for batch, part in _by_batch(rows.filter(pc.is_in(rows["batch"], pc.unique(wanted)))):
                held.setdefault(batch, {}).setdefault(_table(one), []).append(part)
        for batch in [batch for batch in held if ends[batch] == day]:
            parts = held.pop(batch)
            if batch_name({table: once(table, joined(table, parts.get(table, ()))) for table in DATA}) == batch:
                whole.add(batch)
    return whole


def _by_batch(rows: pa.Table) -> Iterator[tuple[str, pa.Table]]:
    """The rows of each batch, which stand together."""
    runs = pc.run_end_encode(rows["batch"].combine_chunks())
    start = 0
    for batch, end in zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True):
        yield batch, rows.slice(start, end - start)
        start = end


def mend(store: Store, proof: Proof) -> None:
    """Move aside what is damaged, and let what lacks rows be written again by whoever has it. What is there stays."""
    for name in proof.damaged:
        content = store.read(name)
        # It may only have been read wrong.
        if not is_sound(name, content):
            store.put(f"{ASIDE}{name}", content)
            store.settle()
            store.remove(name)
    if proof.lacking:
        patiently(lambda: _ask_again(store, pa.array(sorted({one.batch for one in proof.lacking}))), store.shown)


def _ask_again(store: Store, batches: pa.Array) -> None:
    for one, content in _contents(store, store.list(folder_of("batches"))):
        rows = unpacked("batches", content)
        is_meant = pc.is_in(rows["batch"], batches)
        if not pc.any(is_meant).as_py():
            continue
        sizes = pc.if_else(is_meant, pa.scalar(_AGAIN, pa.int64()), rows["size"])
        place = rows.schema.get_field_index("size")
        new = dict(batch_objects(rows.set_column(place, rows.schema.field(place), sizes)))
        put_all(store, new.items())
        store.settle()
        if one.name not in new:
            store.remove(one.name)
