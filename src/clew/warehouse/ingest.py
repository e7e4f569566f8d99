"""One source in, one batch of Arrow tables out: the only entry of parsing for every runner.

The name of a batch is a hash over its rows, after masking and level. So equal sources on two machines are one batch,
and nothing that leaves was hashed before it was masked.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from clew.agents import registry
from clew.agents.base import SourceFile, with_current_size
from clew.agents.masking import masked_source
from clew.analysis.pricing import prices
from clew.catalog.ingest import ingest as rows_of
from clew.catalog.rows import Rows
from clew.errors import ClewError, PathRefused
from clew.host import Origin
from clew.warehouse.build import SCHEMAS, Builder
from clew.warehouse.columns import SCHEMA_VERSION, TABLES
from clew.warehouse.privacy import Policy, Words, check, redactor, told

BAD = (
    *(ClewError, OSError, RecursionError, ValueError, TypeError, LookupError, ArithmeticError, AttributeError),
    *(AssertionError, pa.ArrowException),
)
"""What one bad source may raise; it never stops the others."""


class Meta(NamedTuple):
    """What is known of a source beside its bytes. Plain values alone, so that it can be sent to a worker."""

    agent: str
    path: str
    """Where its main file lies: below a home, or from the root on."""
    source_id: str
    origin: str
    """The random name of the data folder that it is read for."""
    mtime_ns: int = 0
    size: int = 0
    policy: Policy = Policy()
    redact_version: str = ""
    price_version: str = ""
    parts: tuple[str, ...] = ()
    sides: tuple[str, ...] = ()
    """Further files, as `SourceFile` has them: relative to the folder of the main file."""
    place: Origin | None = None
    """The machine that it was written on, unless it is this one."""

    @property
    def state(self) -> tuple[object, ...]:
        """The source, what it is like, and by which rules it is read: in the order of `columns.STATE`."""
        versions = (SCHEMA_VERSION, self.redact_version, self.price_version)
        return (self.source_id, *versions, self.mtime_ns, self.size)


class Batch(NamedTuple):
    """All rows of one source in one state."""

    name: str
    tables: dict[str, pa.Table]

    @property
    def rows(self) -> int:
        """How many there are."""
        return sum(table.num_rows for table in self.tables.values())

    @property
    def size(self) -> int:
        """Bytes that they take in memory."""
        return sum(table.get_total_buffer_size() for table in self.tables.values())


def ingest(files: Iterable[tuple[str, bytes]], meta: Meta) -> Batch:
    """The tables of a source of which the bytes are at hand, by the names of its files: `meta.path`, and any others
    below the same root that its agent looks at. They are taken one by one: a session may be as large as memory."""
    with tempfile.TemporaryDirectory(prefix="clew-") as folder:
        for name, content in files:
            path = _below(Path(folder), name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            del content
        path = _below(Path(folder), meta.path)
        return read(SourceFile(meta.agent, path, meta.parts, meta.sides, origin=meta.place), meta)


def _below(folder: Path, name: str) -> Path:
    parts = PurePosixPath(name.replace("\\", "/").lstrip("/")).parts
    if not parts or ".." in parts:
        raise PathRefused(f"{name!r} leads elsewhere")
    return folder.joinpath(*(part.replace(":", "_") for part in parts))


def read(source: SourceFile, meta: Meta) -> Batch:
    """The same for a source that lies on disk."""
    policy = check(meta.policy)
    agent, source = registry.get(meta.agent), with_current_size(source)
    masking = redactor(policy) if policy.level != "raw" else None
    if policy.level == "redacted" and masking is not None:
        source = masked_source(agent, source, masking)
    builder = Builder(Words(policy, masking), prices())
    for step in rows_of(agent, source, 0):
        if isinstance(step, Rows):
            builder.add(step)
        else:
            tables, day = builder.finish(step, meta.path)
    return _batch(tables, day, meta)


def _batch(tables: dict[str, pa.Table], day: str, meta: Meta) -> Batch:
    name = batch_name(tables)
    row: dict[str, Any] = {"batch": name, "source_id": meta.source_id, "origin": meta.origin, "agent": meta.agent}
    row |= {"level": meta.policy.level, "schema_version": SCHEMA_VERSION, "redact_version": meta.redact_version}
    row |= {"price_version": meta.price_version, "mtime_ns": meta.mtime_ns, "size": meta.size, "day_utc": day}
    named = {"batches": pa.Table.from_pylist([row], SCHEMAS["batches"])}
    for table, rows in tables.items():
        column = pa.repeat(pa.scalar(name, pa.string()), rows.num_rows)
        named[table] = rows.set_column(0, rows.schema.field(0), column)
    return Batch(name, {table: named[table] for table in TABLES})


def batch_name(tables: Mapping[str, pa.Table]) -> str:
    """The name of a batch, from all its rows; how they are cut into chunks does not matter."""
    digest = blake2b(digest_size=16)
    for table in TABLES:
        if table == "batches":
            continue
        digest.update(f"{table} {tables[table].num_rows}\0".encode())
        for name, column in zip(tables[table].column_names, tables[table].columns, strict=True):
            if name not in _FOLLOWING[table]:
                digest.update(f"{name}\0".encode())
                _hash_column(digest, column)
    return digest.hexdigest()


def _following(table: str) -> frozenset[str]:
    """The columns that follow from others: days from times, names of messages from their places, and what the row of
    the session says for all."""
    names = {"batch", "day_utc", "week_utc", "month_utc"}
    if table != "sessions":
        names |= {"session_id", "agent", "project"}
    if table in ("blocks", "file_changes", "todos"):
        names |= {"event_id", "ts_us"}
    if table in ("tool_calls", "usage"):
        names.add("event_id")
    return frozenset(names)


_FOLLOWING = {table: _following(table) for table in TABLES}


def _hash_column(digest: Any, column: pa.ChunkedArray) -> None:
    if pa.types.is_string(column.type):
        for chunk in column.chunks:
            _hash_numbers(digest, pc.binary_length(chunk), 4)
        for chunk in column.chunks:
            _, offsets, content = chunk.buffers()
            if content is not None:
                ends = memoryview(offsets).cast("i")
                digest.update(memoryview(content)[ends[chunk.offset] : ends[chunk.offset + len(chunk)]])
        return
    for chunk in column.chunks:
        if chunk.null_count:
            _hash_numbers(digest, pc.fill_null(chunk, -(2**63)))
        else:
            _hash_numbers(digest, chunk)


def _hash_numbers(digest: Any, chunk: pa.Array, width: int = 8) -> None:
    content = chunk.buffers()[1]
    if content is not None:
        digest.update(memoryview(content)[chunk.offset * width : (chunk.offset + len(chunk)) * width])


def unreadable(path: str, error: BaseException) -> str:
    """The line for an error. Those of ours say in full words what is wrong, and most of them where."""
    said = str(getattr(error, "strerror", None) or error)
    where, _, why = said.partition(": ")
    if not isinstance(error, ClewError | OSError):
        said = f"cannot be read ({said or type(error).__name__})"
    elif why and where.endswith(path.lstrip("/")):
        # Also where a copy of the file was read, from a folder of its own.
        said = why
    return told(f"{path}: {said}").encode(errors="backslashreplace").decode()
