"""Rows to Parquet objects and back. The same rows give the same bytes, in whatever order they came."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from clew.errors import TargetRefused
from clew.warehouse.build import SCHEMAS
from clew.warehouse.columns import STATE, TABLES
from clew.warehouse.lake.layout import is_sound, object_name, shard_of
from clew.warehouse.lake.store import Store

LARGEST = 512 << 20
"""Bytes in memory of the rows of one object; packed, they are a fraction of it."""
_WIDE = 1 << 30
"""From so many bytes on, texts are counted in 64 bits while rows are sorted: Arrow joins them first, and would stop at
two gibibytes."""
_GROUP = 128 * 1024
"""Rows of one group of an object, which a reader can pass over."""


def objects_of(table: str, rows: pa.Table) -> Iterator[tuple[str, bytes]]:
    """The rows of a table as objects: one for each day, or several where there is much."""
    for day, part in by_day(table, rows):
        for piece in _pieces(part):
            content = packed(piece.cast(SCHEMAS[table]))
            yield object_name(table, day, content), content


def batch_objects(rows: pa.Table) -> Iterator[tuple[str, bytes]]:
    """The rows of `batches` as objects, for each day and shard of origins."""
    shards = pc.utf8_slice_codeunits(rows["origin"], 0, len(shard_of("00")))
    for shard in sorted(pc.unique(shards).to_pylist()):
        own = rows.filter(pc.equal(shards, shard))
        for day, part in by_day("batches", own):
            content = packed(part)
            yield object_name("batches", day, content, shard), content


def by_day(table: str, rows: pa.Table) -> Iterator[tuple[str, pa.Table]]:
    """The rows of each day, in the order of their keys."""
    if not rows.num_rows:
        return
    if not _is_sorted(rows):
        rows = _ordered(rows, ("day_utc", *TABLES[table].key))
    runs = pc.run_end_encode(rows["day_utc"].combine_chunks())
    start = 0
    for day, end in zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True):
        yield day, rows.slice(start, end - start)
        start = end


def _ordered(rows: pa.Table, key: Iterable[str], falling: Iterable[str] = ()) -> pa.Table:
    order = pc.sort_indices(rows, [*((name, "ascending") for name in key), *((name, "descending") for name in falling)])
    if rows.nbytes < _WIDE:
        return rows.take(order)
    wide = [field.with_type(pa.large_string()) if pa.types.is_string(field.type) else field for field in rows.schema]
    return rows.cast(pa.schema(wide)).take(order)


def _is_sorted(rows: pa.Table) -> bool:
    """True for the rows of one batch, which come in the order of their key, where their days do so too."""
    if pc.count_distinct(rows["batch"]).as_py() != 1:
        return False
    days = pc.run_end_encode(rows["day_utc"].combine_chunks()).values.to_pylist()
    return bool(days == sorted(set(days)))


def _pieces(rows: pa.Table) -> Iterator[pa.Table]:
    """The rows in halves of halves, until each is small enough."""
    if rows.nbytes <= LARGEST or rows.num_rows == 1:
        yield rows
        return
    half = rows.num_rows // 2
    yield from _pieces(rows.slice(0, half))
    yield from _pieces(rows.slice(half))


def packed(rows: pa.Table) -> bytes:
    """Rows as Parquet."""
    out = io.BytesIO()
    pq.write_table(rows, out, compression="zstd", compression_level=3, row_group_size=_GROUP, store_schema=False)
    return out.getvalue()


def read_rows(store: Store, table: str, name: str, columns: list[str] | None = None) -> pa.Table:
    """The rows of an object."""
    return unpacked(table, read_sound(store, name), columns)


def read_sound(store: Store, name: str) -> bytes:
    """The content of an object; raises TargetRefused where it is damaged."""
    content = store.read(name)
    if not is_sound(name, content):
        raise damaged(store, name)
    return content


def damaged(store: Store, name: str) -> TargetRefused:
    """What to raise of an object whose content is not what its name says."""
    return TargetRefused(f"{store.shown}: {name} is damaged; `clew lake verify --fix` shows the way back")


def unpacked(table: str, content: bytes, columns: list[str] | None = None) -> pa.Table:
    """Parquet as rows of a table, in the columns that this version knows."""
    names = columns or list(TABLES[table].names)
    found = pq.read_table(pa.BufferReader(content), columns=names, use_threads=False)
    schema = SCHEMAS[table] if columns is None else pa.schema([SCHEMAS[table].field(name) for name in names])
    return found.select(names).cast(schema)


def once(table: str, rows: pa.Table) -> pa.Table:
    """The rows without repetition: those with the same key are the same, but that a batch may be named in several
    states of its source, of which the latest counts."""
    key = TABLES[table].key
    rows = _ordered(rows, key, STATE if table == "batches" else ())
    if rows.num_rows < 2:
        return rows
    is_new = None
    for name in key:
        column = rows[name].combine_chunks()
        differs = pc.not_equal(column[1:], column[:-1])
        is_new = differs if is_new is None else pc.or_(is_new, differs)
    return rows.filter(pa.concat_arrays([pa.array([True]), is_new]))


def joined(table: str, parts: Iterable[pa.Table]) -> pa.Table:
    """Parts of a table as one."""
    return pa.concat_tables([SCHEMAS[table].empty_table(), *parts])
