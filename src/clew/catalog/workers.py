"""Sources read into rows and text, by one process for each core. Each has a shard of the text index of its own."""

from __future__ import annotations

import gc
import json
import os
import select
import sqlite3
import struct
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from clew.agents import registry
from clew.agents.base import SourceFile, with_current_size
from clew.catalog import database, indexing
from clew.catalog.change_detection import fingerprint, trusted_mtime
from clew.catalog.ingest import Ingested, ingest
from clew.catalog.row_writer import RowWriter, transaction
from clew.catalog.rows import Rows
from clew.catalog.text_index import TextWriter
from clew.catalog.text_store import Packer
from clew.errors import ClewError, SourceUnreadable

HEAP = 48 << 20
"""Bytes that the text index of one process may hold before it writes a segment."""
BATCH = 4 << 20
"""Bytes of sources whose rows are written in one transaction."""
COMMIT = 256 << 20
"""Bytes of sources after which the text index is made durable."""
HELD = 48 << 20
"""Characters of text whose rows wait in memory; more are written before the source is at its end."""


class Task(NamedTuple):
    """A source to be read whole."""

    number: int
    agent: str
    source: SourceFile
    shard: int
    """The shard that holds its text; -1 where it has none yet."""
    is_known: bool
    """True where rows of it may be in the catalog already, or its text in the index."""


class Work(NamedTuple):
    """What was done: the counters that tests hold."""

    files: int = 0
    lines: int = 0
    rows: int = 0
    size: int = 0

    def plus(self, other: Work) -> Work:
        """Both together."""
        return Work(*(one + more for one, more in zip(self, other, strict=True)))


@dataclass
class _Read:
    """A source that was read, and waits to be written."""

    task: Task
    found: os.stat_result
    now: int
    rows: list[Rows] = field(default_factory=list)
    chunks: list[tuple[int, int, bytes]] = field(default_factory=list)
    chars: int = 0
    end: Ingested | None = None
    mark: bytes = b""
    is_void: bool = False
    """True where what is in the catalog of it must go first."""


class Shop:
    """One process's share: reads sources, fills shards of the index, and writes rows."""

    def __init__(self, folder: Path, shard: int) -> None:
        self._folder, self._shard = folder, shard
        self._db = database.open_writer(folder)
        self._texts: dict[int, TextWriter] = {}
        self._rows = RowWriter(self._db)
        self._since = 0
        self._done: list[int] = []

    def text(self, shard: int) -> TextWriter:
        """The writer of a shard."""
        if shard not in self._texts:
            self._texts[shard] = TextWriter(database.shard_folder(self._folder, shard), HEAP)
        return self._texts[shard]

    def take(self, tasks: list[Task]) -> Work:
        """Read some sources, then write their rows in one short transaction, so that others can write too."""
        before = self._rows.written
        reads = [read for task in tasks if (read := self._read(task)) is not None]
        self._write(reads)
        size = sum(read.found.st_size for read in reads)
        self._since += size
        self._done += [task.number for task in tasks]
        if self._since >= COMMIT:
            self.commit()
        lines = sum(read.end.lines for read in reads if read.end is not None)
        return Work(len(tasks), lines, self._rows.written - before, size)

    def _read(self, task: Task) -> _Read | None:
        now = time.time_ns()
        try:
            read = _Read(task, task.source.path.stat(), now, is_void=task.is_known)
        except OSError:
            # It went away meanwhile; the next sync will see.
            return None
        if task.is_known:
            self.text(self._place(task)).drop(task.number)
        try:
            self._ingest(read)
        except _BAD as error:
            # One bad file never stops a sync: what is wrong is noted with it.
            self._void(read)
            read.mark = f"{type(error).__name__}: {error}".encode("utf-8", "replace")
        return read

    def _place(self, task: Task) -> int:
        return task.shard if task.shard >= 0 else self._shard

    def _ingest(self, read: _Read) -> None:
        task, source = read.task, with_current_size(read.task.source)
        text = self.text(self._place(task))
        packer = Packer(lambda *chunk: read.chunks.append(chunk))
        for step in ingest(registry.get(task.agent), source, task.number):
            if isinstance(step, Rows):
                read.rows.append(step)
                for doc, _, _, words in step.texts:
                    packer.add(doc, words)
                self._index(task.number, text, step)
                read.chars += step.chars
                if read.chars > HELD:
                    self._write_some(read)
            else:
                packer.flush()
                read.end = step
                read.mark = fingerprint(str(source.path), read.found.st_size)

    def _index(self, number: int, text: TextWriter, rows: Rows) -> None:
        try:
            for doc, kind, when, words in rows.texts:
                text.add(doc, number, kind, when, words)
        except (OSError, ValueError) as error:
            # Not the source is bad: there is no room left, or no right to write.
            raise indexing.WriteFailed(str(error)) from error
        rows.texts.clear()

    def _void(self, read: _Read) -> None:
        """Forget what was read of a source."""
        read.rows.clear()
        read.chunks.clear()
        read.chars, read.is_void, read.end = 0, True, None
        self.text(self._place(read.task)).drop(read.task.number)

    def _write_some(self, read: _Read) -> None:
        """A large source is not held whole; until its end is written, it counts as not read."""
        with transaction(self._db):
            self._rows_of(read)
        read.chars = 0

    def _write(self, reads: list[_Read]) -> None:
        try:
            with transaction(self._db):
                for read in reads:
                    self._rows_of(read)
                    self._note(read)
        except BaseException:
            self._rows.forget()
            raise

    def _rows_of(self, read: _Read) -> None:
        if read.is_void:
            self._rows.drop(read.task.number)
            read.is_void = False
        for rows in read.rows:
            self._rows.write(rows)
        self._db.executemany("INSERT OR REPLACE INTO text_chunk VALUES (?, ?, ?)", read.chunks)
        read.rows.clear()
        read.chunks.clear()

    def _note(self, read: _Read) -> None:
        task, end, shard = read.task, read.end, self._place(read.task)
        if end is None:
            problem = {"code": "unreadable", "line": 0, "message": read.mark.decode()}
            note_source(self._db, task.number, shard, read.found, read.now, b"", [problem])
            return
        self._rows.session(task.number, end.session)
        note_source(self._db, task.number, shard, read.found, read.now, read.mark, end.problems)

    def commit(self) -> None:
        """Make the text durable; only then are its sources no longer in flight."""
        for text in self._texts.values():
            text.commit()
        with transaction(self._db):
            self._db.executemany("DELETE FROM flight WHERE source = ?", [(number,) for number in self._done])
        self._since, self._done = 0, []

    def close(self) -> None:
        """The end of the share."""
        self.commit()
        for text in self._texts.values():
            text.close()
        self._db.close()


_BAD = (ClewError, OSError, RecursionError, ValueError, TypeError, LookupError, AttributeError, AssertionError)


def note_source(
    db: sqlite3.Connection,
    number: int,
    shard: int,
    found: os.stat_result,
    now: int,
    mark: bytes,
    problems: list[dict[str, object]],
) -> None:
    """Note how far a source was read, and what it looked like."""
    mtime_ns = trusted_mtime(found.st_mtime_ns, now)
    noted = json.dumps(problems, ensure_ascii=False)
    look = (found.st_size, mtime_ns, found.st_ctime_ns, found.st_ino)
    db.execute(
        "UPDATE source SET state = 'live', shard = ?, size = ?, mtime_ns = ?, ctime_ns = ?, inode = ?,"
        " fingerprint = ?, problems = ? WHERE id = ?",
        (shard, *look, mark, noted, number),
    )


def batches(tasks: list[Task]) -> Iterator[list[Task]]:
    """Tasks in portions of about one transaction, the largest sources first."""
    batch: list[Task] = []
    size = 0
    for task in sorted(tasks, key=lambda task: task.source.size, reverse=True):
        batch.append(task)
        size += task.source.size + _LEAST
        if size >= BATCH:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def run(folder: Path, tasks: list[Task], workers: int, tell: Callable[[Work], None]) -> Work:
    """Read all tasks; with several workers, each takes the next portion when it is done with one."""
    if workers < 2 or not hasattr(os, "fork"):
        return _alone(folder, list(batches(tasks)), tell)
    own = [[task for task in tasks if task.shard >= 0 and task.shard % workers == number] for number in range(workers)]
    shared = list(batches([task for task in tasks if task.shard < 0]))
    queue, fill = os.pipe()
    for number in range(min(len(shared), _QUEUE)):
        os.write(fill, number.to_bytes(_WIDTH, "little"))
    pipes = {}
    for number in range(workers):
        reader, writer = os.pipe()
        if not (pid := os.fork()):
            os.close(reader)
            os.close(fill)
            _child(folder, number, list(batches(own[number])), shared, queue, writer)
        os.close(writer)
        pipes[reader] = pid
    os.close(queue)
    os.close(fill)
    return _listen(pipes, tell)


_QUEUE, _WIDTH = 1_000, 4
"""So many numbers fit into any pipe, whose size may be a page of 4096 bytes. Each stands for one portion in so many."""
_LEAST = 4096
_WORK = struct.Struct("<qqqq")


def _child(folder: Path, number: int, own: list[list[Task]], shared: list[list[Task]], queue: int, out: int) -> None:
    """A worker's life; it leaves without running anything of its parent's."""
    code = 1
    # What is read makes no circles, and there is much of it.
    gc.disable()
    try:
        shop = Shop(folder, number)
        for portion in chain(own, _queued(shared, queue)):
            os.write(out, _WORK.pack(*shop.take(portion)))
        shop.close()
        code = 0
    except BaseException as error:
        os.write(out, b"!" * _WORK.size + f"{type(error).__name__}: {error}".encode("utf-8", "replace")[:2000])
    finally:
        os._exit(code)


def _queued(shared: list[list[Task]], queue: int) -> Iterator[list[Task]]:
    while number := os.read(queue, _WIDTH):
        yield from shared[int.from_bytes(number, "little") :: _QUEUE]


def _listen(pipes: dict[int, int], tell: Callable[[Work], None]) -> Work:
    """Hear what the workers say until they are all done."""
    total, failure = Work(), b""
    waiting = dict(pipes)
    # And not select(), which knows the first thousand files of a process alone.
    ready = select.poll()
    for reader in waiting:
        ready.register(reader, select.POLLIN)
    while waiting:
        for reader, _ in ready.poll():
            said = os.read(reader, _WORK.size)
            if not said:
                ready.unregister(reader)
                os.close(reader)
                if os.waitpid(waiting.pop(reader), 0)[1] and not failure:
                    failure = b"a worker was stopped; the next sync goes on"
            elif said.startswith(b"!!!!!!!!"):
                failure = os.read(reader, 4000) or b"?"
            else:
                work = Work(*_WORK.unpack(said))
                total = total.plus(work)
                tell(work)
    if failure:
        raise SourceUnreadable(f"the catalog cannot be written: {failure.decode(errors='replace')}")
    return total


def _alone(folder: Path, portions: list[list[Task]], tell: Callable[[Work], None]) -> Work:
    total = Work()
    shop = Shop(folder, 0)
    for portion in portions:
        work = shop.take(portion)
        total = total.plus(work)
        tell(work)
    shop.close()
    return total
