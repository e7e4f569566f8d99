"""Arrow tables to Parquet objects and back. Equal rows give equal bytes, whatever their order was."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from clew.warehouse.build import SCHEMAS, halve_until
from clew.warehouse.columns import STATE, TABLES
from clew.warehouse.lake.layout import damaged, hash_matches, object_name, shard_of
from clew.warehouse.lake.store import Store

MAX_OBJECT_BYTES = 512 << 20
"""Rows of one object, as Arrow holds them in memory. As Parquet they are a fraction of it."""
MAX_NARROW_SORT_BYTES = 1 << 30
"""Larger tables are sorted with 64-bit offsets: Arrow concatenates strings first, and stops at two gibibytes."""
ROW_GROUP_ROWS = 128 * 1024
MONTH_CHARS = len("2026-11")


def to_objects(table: str, rows: pa.Table) -> Iterator[tuple[str, bytes]]:
    """Name and content of the objects that hold the rows: one per month, or several for a large month."""
    for month, part in _by_month(table, rows):
        for piece in halve_until(lambda rows: rows.nbytes <= MAX_OBJECT_BYTES, part):
            content = to_parquet(piece.cast(SCHEMAS[table]))
            yield object_name(table, month, content), content


def to_batch_objects(rows: pa.Table) -> Iterator[tuple[str, bytes]]:
    """Name and content of the objects that hold rows of `batches`: one per month and shard of origins."""
    shards = pc.utf8_slice_codeunits(rows["origin"], 0, len(shard_of("00")))
    for shard in sorted(pc.unique(shards).to_pylist()):
        for month, part in _by_month("batches", rows.filter(pc.equal(shards, shard))):
            content = to_parquet(part)
            yield object_name("batches", month, content, shard), content


def _by_month(table: str, rows: pa.Table) -> Iterator[tuple[str, pa.Table]]:
    """The rows of each month, sorted by key."""
    if not rows.num_rows:
        return
    rows = rows.append_column("month", pc.utf8_slice_codeunits(rows["day_utc"], 0, MONTH_CHARS))
    rows = _sort(rows, ("month", *TABLES[table].key))
    for month, part in split_runs(rows, "month"):
        yield month, part.drop_columns(["month"])


def split_runs(rows: pa.Table, column: str) -> Iterator[tuple[str, pa.Table]]:
    """Split a table where the value of a column changes."""
    runs = pc.run_end_encode(rows[column].combine_chunks())
    start = 0
    for value, end in zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True):
        yield value, rows.slice(start, end - start)
        start = end


def _sort(rows: pa.Table, ascending: Iterable[str], descending: Iterable[str] = ()) -> pa.Table:
    keys = [*((name, "ascending") for name in ascending), *((name, "descending") for name in descending)]
    order = pc.sort_indices(rows, keys)
    if rows.nbytes < MAX_NARROW_SORT_BYTES:
        return rows.take(order)
    wide = [field.with_type(pa.large_string()) if pa.types.is_string(field.type) else field for field in rows.schema]
    return rows.cast(pa.schema(wide)).take(order)


def to_parquet(rows: pa.Table) -> bytes:
    """Encode rows as Parquet."""
    out = io.BytesIO()
    pq.write_table(
        rows, out, compression="zstd", compression_level=3, row_group_size=ROW_GROUP_ROWS, store_schema=False
    )
    return out.getvalue()


def from_parquet(table: str, content: bytes, columns: list[str] | None = None) -> pa.Table:
    """Decode rows of a table, in the columns that this version knows."""
    names = columns or list(TABLES[table].names)
    schema = pa.schema([SCHEMAS[table].field(name) for name in names])
    found = pq.ParquetFile(pa.BufferReader(content)).read(columns=names, use_threads=False)
    for column in TABLES[table].columns:
        if column.added_in > 1 and column.name in names and column.name not in found.column_names:
            found = found.append_column(column.name, pa.nulls(found.num_rows, schema.field(column.name).type))
    return found.select(names).cast(schema)


def read_rows(store: Store, table: str, name: str, columns: list[str] | None = None) -> pa.Table:
    """Read the rows of an object; raises TargetRefused if it is damaged."""
    return from_parquet(table, read_checked(store, name), columns)


def read_checked(store: Store, name: str) -> bytes:
    """Read an object; raises TargetRefused if it is damaged."""
    content = store.read(name)
    if not hash_matches(name, content):
        raise damaged(store.display_url, name)
    return content


def drop_duplicates(table: str, rows: pa.Table) -> pa.Table:
    """Keep one row per key. Rows with equal keys are equal, except in `batches`: there the latest state is kept."""
    key = TABLES[table].key
    rows = _sort(rows, key, STATE if table == "batches" else ())
    if rows.num_rows < 2:
        return rows
    is_new = None
    for name in key:
        column = rows[name].combine_chunks()
        differs = pc.not_equal(column[1:], column[:-1])
        is_new = differs if is_new is None else pc.or_(is_new, differs)
    return rows.filter(pa.concat_arrays([pa.array([True]), is_new]))


def concat(table: str, parts: Iterable[pa.Table]) -> pa.Table:
    """Concatenate parts of a table; without parts the table is empty."""
    return pa.concat_tables([SCHEMAS[table].empty_table(), *parts])
