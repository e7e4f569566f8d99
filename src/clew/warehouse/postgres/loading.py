"""Rows of batches into the tables of copies, by COPY: Arrow spells them, and no row passes through Python."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from clew.warehouse.columns import COPIES, TABLES
from clew.warehouse.postgres.schema import COPIED
from clew.warehouse.postgres.words import vector

if TYPE_CHECKING:
    from clew.warehouse.ingest import Batch
    from clew.warehouse.postgres.connection import Connection

NUL, SYMBOL = "\0", "\u2400"
"""The one character that the server cannot hold, and its symbol, which stands for it."""
AT_ONCE, LARGEST = 20_000, 16 << 20
"""Rows that are spelled together, and the bytes that they may have, about: one of them can be as large as a session."""
_SPELLING = csv.WriteOptions(include_header=False, quoting_style="needed")
"""Texts are quoted and NULL is not, so that an empty text is told from none."""


def copy(db: Connection, batches: Sequence[Batch]) -> int:
    """Add the rows of all these batches. Returns how many there are."""
    count = 0
    for name in COPIED:
        tables = [batch.tables[name] for batch in batches if batch.tables[name].num_rows]
        if not tables:
            continue
        columns = ", ".join((*TABLES[name].names, "words") if name == "blocks" else TABLES[name].names)
        with db.cursor().copy(f"COPY {name}{COPIES} ({columns}) FROM STDIN (FORMAT csv)".encode()) as stream:
            for table in tables:
                for some in _pieces(table):
                    stream.write(spelled(name, some))
                count += table.num_rows
    return count


def _pieces(table: pa.Table) -> Iterator[pa.Table]:
    """The rows in their order, in halves of halves, until each is small enough."""
    if table.num_rows <= 1 or (table.num_rows <= AT_ONCE and table.nbytes <= LARGEST):
        yield table
        return
    half = table.num_rows // 2
    yield from _pieces(table.slice(0, half))
    yield from _pieces(table.slice(half))


def spelled(name: str, table: pa.Table) -> memoryview:
    """Rows as COPY reads them."""
    if name == "blocks":
        table = table.append_column("words", _words(table.column("text")))
    columns = [_without_nul(column) for column in table.columns]
    out = io.BytesIO()
    csv.write_csv(pa.Table.from_arrays(columns, names=table.column_names), out, _SPELLING)
    return out.getbuffer()


def _words(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    """The words of each text; NULL where there is none."""
    if not pc.any(pc.not_equal(texts, "")).as_py():
        return pa.chunked_array([pa.nulls(len(texts), pa.string())])
    return pa.chunked_array([pa.array([vector(text) if text else None for text in texts.to_pylist()], pa.string())])


def _without_nul(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if not pa.types.is_string(column.type) or not pc.any(pc.match_substring(column, NUL)).as_py():
        return column
    return pc.replace_substring(column, NUL, SYMBOL)


def days_of(batches: Sequence[Batch]) -> set[str]:
    """The days that rows of these batches are of."""
    found: set[str] = set()
    for batch in batches:
        for name in COPIED:
            found.update(pc.unique(batch.tables[name].column("day_utc")).to_pylist())
    return found
