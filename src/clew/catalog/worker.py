"""Reads changed sources into rows and stored text, in one process or several."""

from __future__ import annotations

import json
import pickle
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, NamedTuple

from clew.agents import registry
from clew.agents.source import SourceFile, SourceState, source_state, with_current_size
from clew.catalog.change_detection import fingerprint, record_unreadable, trusted_mtime
from clew.catalog.database import CatalogNotWritable, open_writer, transaction
from clew.catalog.ingest import SOURCE_ERRORS, Ingested, ingest
from clew.catalog.row_writer import RowWriter
from clew.catalog.rows import Rows
from clew.catalog.sync_level import SyncLevel
from clew.catalog.sync_report import SyncCounts
from clew.catalog.text_store import ChunkPacker, PackedChunk, SourceTextWriter
from clew.errors import ClewError, DatabaseLocked, LimitExceeded, SourceUnreadable
from clew.io.batches import batches_by_size
from clew.io.database_paths import database_of
from clew.io.paths import escape_controls, path_for_display
from clew.io.workers import run_in_workers

TRANSACTION_BYTES = 4 << 20
"""Bytes of sources whose rows are written in one transaction."""
SOURCE_OVERHEAD_BYTES = 4096
"""Opening a source and writing its session takes as long as reading this many bytes."""
MAX_BUFFERED_CHARS = 48 << 20
"""Rows are buffered in memory up to this many characters; further rows of a source go to a temporary file."""


class Task(NamedTuple):
    """A source to be read."""

    id: int
    agent: str
    source: SourceFile


@dataclass
class _ReadSource:
    """A source that was read, or is being read, and is not written yet."""

    task: Task
    state: SourceState
    read_at_ns: int
    text_writer: SourceTextWriter | None = None
    """None where only the session and its token usage are replaced."""
    rows: list[Rows] = field(default_factory=list)
    chunks: list[PackedChunk] = field(default_factory=list)
    buffered_chars: int = 0
    spill_file: IO[bytes] | None = None
    """Holds rows and chunks that do not fit in memory, until all of them are written in one transaction."""
    spilled_portions: int = 0
    end: Ingested | None = None
    fingerprint: bytes = b""
    error: str = ""
    keeps_session: bool = False
    """True where the file cannot be read now: what was read from it before stays."""

    def spill(self, folder: Path) -> None:
        """Move the rows and chunks from memory to a unnamed temporary file in a folder."""
        try:
            if self.spill_file is None:
                self.spill_file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - closed when the rows were written
            pickle.dump((self.rows, self.chunks), self.spill_file, pickle.HIGHEST_PROTOCOL)
            self.spill_file.flush()
        except OSError as error:
            reason = error.strerror or error
            raise CatalogNotWritable(f"{folder}: the catalog cannot be written: {reason}") from error
        self.spilled_portions += 1
        self._clear_memory()

    def portions(self) -> Iterator[tuple[list[Rows], list[PackedChunk]]]:
        """The rows and chunks, in the order in which they were read."""
        if self.spill_file is not None:
            self.spill_file.seek(0)
            for _ in range(self.spilled_portions):
                yield pickle.load(self.spill_file)
        yield self.rows, self.chunks

    def discard_rows(self) -> None:
        """Free memory and the temporary file: the rows were written, or the source could not be read to its end."""
        if self.spill_file is not None:
            self.spill_file.close()
        self.spill_file, self.spilled_portions = None, 0
        self._clear_memory()

    def _clear_memory(self) -> None:
        self.rows.clear()
        self.chunks.clear()
        self.buffered_chars = 0


def ingest_sources(
    folder: Path, tasks: list[Task], level: SyncLevel, workers: int, on_batch: Callable[[SyncCounts], None]
) -> SyncCounts:
    """Read sources and write their rows; a batch is written in one transaction, by the process that read it."""
    largest_first = sorted(tasks, key=lambda task: task.source.size, reverse=True)
    batches = list(batches_by_size(largest_first, _read_cost_bytes, TRANSACTION_BYTES))
    worker: IngestWorker | None = None

    def ingest_batch(number: int) -> SyncCounts:
        # Each process opens a connection of its own: none may go through a fork.
        nonlocal worker
        if worker is None:
            worker = IngestWorker(folder, level)
        return worker.ingest_batch(batches[number])

    total = SyncCounts()
    try:
        for counts in run_in_workers(ingest_batch, range(len(batches)), workers=workers):
            total = total.plus(counts)
            on_batch(counts)
    finally:
        if worker is not None:
            worker.close()
    return total


def _read_cost_bytes(task: Task) -> int:
    return task.source.size + SOURCE_OVERHEAD_BYTES


class IngestWorker:
    """Reads sources and writes their rows, with one connection."""

    def __init__(self, folder: Path, level: SyncLevel) -> None:
        self._folder = folder
        self._db = open_writer(folder)
        self._level = level
        self._writer = RowWriter(self._db)
        self._locked_databases: dict[Path, str] = {}
        """Databases that another program writes to: waiting for them once is enough."""

    def close(self) -> None:
        """Close the connection."""
        self._db.close()

    def ingest_batch(self, tasks: list[Task]) -> SyncCounts:
        """Read some sources, then write their rows in one short transaction, so that other processes can write too."""
        written_before = self._writer.written
        reads = [read for task in tasks if (read := self._read(task)) is not None]
        try:
            with transaction(self._db):
                for read in reads:
                    if read.keeps_session:
                        record_unreadable(self._db, read.task.id, read.error)
                        continue
                    self._write_rows(read)
                    self._write_end(read)
        except BaseException:
            self._writer.forget_strings()
            raise
        finally:
            for read in reads:
                read.discard_rows()
        lines = sum(read.end.lines for read in reads if read.end is not None)
        size = sum(read.state.st_size for read in reads)
        return SyncCounts(len(tasks), lines, self._writer.written - written_before, size)

    def _read(self, task: Task) -> _ReadSource | None:
        read = _ReadSource(task, SourceState(0, 0, 0, 0), time.time_ns())
        database = database_of(task.source.path)
        try:
            if database in self._locked_databases:
                raise DatabaseLocked(self._locked_databases[database])
            source = with_current_size(task.source)
            try:
                read.state = source_state(source)
            except OSError:
                # It was deleted meanwhile: the next sync detects that.
                return None
            self._read_rows(read, source)
        except CatalogNotWritable:
            read.discard_rows()
            raise
        except SOURCE_ERRORS as error:
            if database is not None and isinstance(error, DatabaseLocked):
                self._locked_databases[database] = str(error)
            read.discard_rows()
            read.end = None
            read.text_writer = SourceTextWriter(self._db, task.id)
            read.error = _describe(error, task.source.path)
            # A file that cannot be opened may be readable again later. Invalid content and limits stay as they are.
            is_temporary = isinstance(error, OSError | SourceUnreadable) and not isinstance(error, LimitExceeded)
            read.keeps_session = is_temporary and self._has_session(task.id)
        return read

    def _has_session(self, source: int) -> bool:
        return self._db.execute("SELECT 1 FROM session WHERE id = ?", (source,)).fetchone() is not None

    def _read_rows(self, read: _ReadSource, source: SourceFile) -> None:
        known: set[bytes] = set()
        if self._level >= SyncLevel.MESSAGES:
            read.text_writer = SourceTextWriter(self._db, read.task.id)
            known = read.text_writer.stored_fingerprints()
        packer = ChunkPacker(read.chunks.append, known)
        for step in ingest(registry.get(read.task.agent), source, read.task.id, self._level):
            if isinstance(step, Ingested):
                packer.flush()
                read.fingerprint = read.state.change_token or fingerprint(str(source.path), read.state.st_size)
                read.end = step
                continue
            for text in step.texts:
                packer.add(*text)
            step.texts.clear()
            read.rows.append(step)
            read.buffered_chars += step.chars
            if read.buffered_chars > MAX_BUFFERED_CHARS:
                read.spill(self._folder)

    def _write_rows(self, read: _ReadSource) -> None:
        """Replace the rows of a source; what was there before stays if the transaction is rolled back."""
        self._delete_rows(read)
        for portion, chunks in read.portions():
            for rows in portion:
                self._writer.write(rows)
            if read.text_writer is not None:
                read.text_writer.write(chunks)

    def _delete_rows(self, read: _ReadSource) -> None:
        """Delete what is going to be written again."""
        source = read.task.id
        self._db.execute("INSERT OR IGNORE INTO unread_messages VALUES (?)", (source,))
        if read.text_writer is None:
            self._writer.delete_session(source)
        else:
            self._writer.delete_rows(source)

    def _write_end(self, read: _ReadSource) -> None:
        """Write the session of a source, and that it was read."""
        if read.text_writer is not None:
            read.text_writer.finish()
            self._db.execute("DELETE FROM unread_messages WHERE source = ?", (read.task.id,))
        problems = [{"code": "unreadable", "line": 0, "message": read.error}]
        if read.end is not None:
            self._writer.write_session(read.task.id, read.end.session, read.end.message_uuids)
            problems = read.end.problems
        mtime_ns = trusted_mtime(read.state.st_mtime_ns, read.read_at_ns)
        self._db.execute(
            "UPDATE source SET state = 'live', size = ?, mtime_ns = ?, ctime_ns = ?, inode = ?, fingerprint = ?,"
            " problems = ? WHERE id = ?",
            (
                *(read.state.st_size, mtime_ns, read.state.st_ctime_ns, read.state.st_ino, read.fingerprint),
                *(json.dumps(problems, ensure_ascii=False), read.task.id),
            ),
        )


def _describe(error: BaseException, path: Path) -> str:
    """What is wrong with a file, without its path."""
    if isinstance(error, OSError):
        text = error.strerror or str(error)
    elif isinstance(error, ClewError):
        text = str(error)
    else:
        text = f"{type(error).__name__}: {error}"
    for name in (str(path), path_for_display(str(path)), escape_controls(str(path))):
        text = text.removeprefix(f"{name}: ")
    return text.encode("utf-8", "replace").decode()
