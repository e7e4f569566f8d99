"""Read one source into one batch of Arrow tables. Every runner (lake, server, Spark) reads sources with this.

The name of a batch is a hash of its rows, after masking. So equal sources of two machines are one batch, and nothing
that is published was hashed before it was masked.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from clew.agents import registry
from clew.agents.masking import masked_source
from clew.agents.source import SourceFile, with_current_size
from clew.analysis.pricing import prices
from clew.catalog.ingest import SOURCE_ERRORS
from clew.catalog.ingest import ingest as read_rows
from clew.catalog.rows import Rows
from clew.errors import ClewError, PathRefused
from clew.host import Origin
from clew.warehouse.build import SCHEMAS, TableBuilder
from clew.warehouse.columns import SCHEMA_VERSION, TABLES
from clew.warehouse.privacy import FieldMasker, Policy, check_policy, make_redactor, redact_error

ARROW_SOURCE_ERRORS = (*SOURCE_ERRORS, pa.ArrowException)
"""What reading a source into Arrow tables may raise."""


class SourceMeta(NamedTuple):
    """What is known of a source besides its bytes. Plain values only, so that it can be sent to a worker."""

    agent: str
    path: str
    """The path of its main file."""
    source_id: str
    origin: str
    """The id of the data folder that publishes it."""
    mtime_ns: int = 0
    size: int = 0
    policy: Policy = Policy()
    redact_version: str = ""
    price_version: str = ""
    parts: tuple[str, ...] = ()
    sides: tuple[str, ...] = ()
    """Further files, as in `SourceFile`: relative to the folder of the main file."""
    machine: Origin | None = None
    """The machine that it was written on, unless it is this one."""

    @property
    def state(self) -> tuple[object, ...]:
        """The source id, and its state in the order of `columns.STATE`."""
        versions = (SCHEMA_VERSION, self.redact_version, self.price_version)
        return (self.source_id, *versions, self.mtime_ns, self.size)


class Batch(NamedTuple):
    """All rows of one source in one state."""

    name: str
    tables: dict[str, pa.Table]

    @property
    def rows(self) -> int:
        """The number of rows in all tables."""
        return sum(table.num_rows for table in self.tables.values())

    @property
    def size(self) -> int:
        """Bytes of all tables in memory."""
        return sum(table.get_total_buffer_size() for table in self.tables.values())


class SourceTask(NamedTuple):
    """A source to read. Plain values only, so that it can be sent to a worker."""

    source: SourceFile
    meta: SourceMeta


class ReadResult(NamedTuple):
    """What was read of some sources."""

    batches: list[Batch]
    unreadable: list[str]
    """A message for each source that could not be read."""
    size: int
    """Bytes of all sources."""


def read_sources(tasks: Sequence[SourceTask]) -> ReadResult:
    """Read sources into batches."""
    batches, unreadable = [], []
    for source, meta in tasks:
        try:
            batches.append(read_source(source, meta))
        except ARROW_SOURCE_ERRORS as error:
            unreadable.append(describe_unreadable(meta.path, error))
    return ReadResult(batches, unreadable, sum(task.meta.size for task in tasks))


def ingest_files(files: Iterable[tuple[str, bytes]], meta: SourceMeta) -> Batch:
    """Read a source whose files are given by name and content: `meta.path`, and others below the same root.

    The files are taken one by one, because a session may be as large as memory.
    """
    with tempfile.TemporaryDirectory(prefix="clew-") as folder:
        for name, content in files:
            path = _path_below(Path(folder), name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            del content
        path = _path_below(Path(folder), meta.path)
        return read_source(SourceFile(meta.agent, path, meta.parts, meta.sides, origin=meta.machine), meta)


def _path_below(folder: Path, name: str) -> Path:
    parts = PurePosixPath(name.replace("\\", "/").lstrip("/")).parts
    if not parts or ".." in parts:
        raise PathRefused(f"{name!r} is outside of the source")
    return folder.joinpath(*(part.replace(":", "_") for part in parts))


def read_source(source: SourceFile, meta: SourceMeta) -> Batch:
    """Read a source from disk."""
    policy = check_policy(meta.policy)
    agent, source = registry.get(meta.agent), with_current_size(source)
    redactor = make_redactor(policy) if policy.level != "raw" else None
    if policy.level == "redacted" and redactor is not None:
        source = masked_source(agent, source, redactor)
    builder = TableBuilder(FieldMasker(policy, redactor), prices())
    for step in read_rows(agent, source, 0):
        if isinstance(step, Rows):
            builder.add(step)
        else:
            tables, last_day = builder.finish(step, meta.path)
    return _name_batch(tables, last_day, meta)


def _name_batch(tables: dict[str, pa.Table], last_day: str, meta: SourceMeta) -> Batch:
    """Write the name of the batch into all rows, and add its row of `batches`."""
    name = batch_name(tables)
    row: dict[str, Any] = {
        "batch": name,
        "source_id": meta.source_id,
        "origin": meta.origin,
        "agent": meta.agent,
        "level": meta.policy.level,
        "schema_version": SCHEMA_VERSION,
        "redact_version": meta.redact_version,
        "price_version": meta.price_version,
        "mtime_ns": meta.mtime_ns,
        "size": meta.size,
        "day_utc": last_day,
    }
    named = {"batches": pa.Table.from_pylist([row], SCHEMAS["batches"])}
    for table, rows in tables.items():
        column = pa.repeat(pa.scalar(name, pa.string()), rows.num_rows)
        named[table] = rows.set_column(0, rows.schema.field(0), column)
    return Batch(name, {table: named[table] for table in TABLES})


def batch_name(tables: Mapping[str, pa.Table]) -> str:
    """The hash of all rows. How Arrow splits a column into chunks does not change it."""
    digest = blake2b(digest_size=16)
    for table in TABLES:
        if table == "batches":
            continue
        digest.update(f"{table} {tables[table].num_rows}\0".encode())
        for name, column in zip(tables[table].column_names, tables[table].columns, strict=True):
            if name not in _DERIVED[table]:
                digest.update(f"{name}\0".encode())
                _hash_column(digest, column)
    return digest.hexdigest()


def _derived_columns(table: str) -> frozenset[str]:
    """The columns that follow from others: days from times, ids of messages from `seq`, or the row of the session."""
    names = {"batch", "day_utc", "week_utc", "month_utc"}
    if table != "sessions":
        names |= {"session_id", "agent", "project"}
    if table in ("blocks", "file_changes", "todos"):
        names |= {"event_id", "ts_us"}
    if table in ("tool_calls", "usage"):
        names.add("event_id")
    return frozenset(names)


_DERIVED = {table: _derived_columns(table) for table in TABLES}


def _hash_column(digest: Any, column: pa.ChunkedArray) -> None:
    if pa.types.is_string(column.type):
        for chunk in column.chunks:
            _hash_integers(digest, pc.binary_length(chunk), width=4)
        for chunk in column.chunks:
            _, offsets, content = chunk.buffers()
            if content is not None:
                ends = memoryview(offsets).cast("i")
                digest.update(memoryview(content)[ends[chunk.offset] : ends[chunk.offset + len(chunk)]])
        return
    for chunk in column.chunks:
        _hash_integers(digest, pc.fill_null(chunk, -(2**63)) if chunk.null_count else chunk, width=8)


def _hash_integers(digest: Any, chunk: pa.Array, width: int) -> None:
    content = chunk.buffers()[1]
    if content is not None:
        digest.update(memoryview(content)[chunk.offset * width : (chunk.offset + len(chunk)) * width])


def describe_unreadable(path: str, error: BaseException) -> str:
    """One line for a source that cannot be read: the path first, and no secrets."""
    text = str(getattr(error, "strerror", None) or error)
    location, _, reason = text.partition(": ")
    if not isinstance(error, ClewError | OSError):
        text = f"cannot be read ({text or type(error).__name__})"
    elif reason and location.endswith(path.lstrip("/")):
        # Also where a copy of the file was read, in a temporary folder.
        text = reason
    return redact_error(f"{path}: {text}").encode(errors="backslashreplace").decode()
