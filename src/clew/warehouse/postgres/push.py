"""A push: which sources the server does not have as they are now, read by one process for each core, and put there.

The server says what it has, so nothing is kept here that could be wrong. Every portion of sources is one transaction:
whatever happens, what is there is whole, and the next push brings the rest.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, NamedTuple

from clew.agents.base import SourceFile
from clew.warehouse.columns import LEVELS, STATE
from clew.warehouse.postgres import schema
from clew.warehouse.postgres.connection import connect, told
from clew.warehouse.postgres.crew import crew

if TYPE_CHECKING:
    from clew.warehouse.ingest import Batch, Meta
    from clew.warehouse.postgres.putting import Putter
    from clew.warehouse.publisher import Writer

PORTION = 16 << 20
"""Bytes of sources whose rows are put there in one transaction."""
MOST = 200
"""Sources in one transaction."""
WORTH_SPREADING = 4 << 20
"""From this many bytes on, several processes are quicker than one."""


class Task(NamedTuple):
    """A source to be pushed."""

    source: SourceFile
    meta: Meta


class Work(NamedTuple):
    """What was done."""

    sources: int = 0
    rows: int = 0
    size: int = 0
    unreadable: tuple[str, ...] = ()

    def plus(self, other: Work) -> Work:
        """Both together."""
        return Work(
            self.sources + other.sources,
            self.rows + other.rows,
            self.size + other.size,
            self.unreadable + other.unreadable,
        )


class Report(NamedTuple):
    """What a push did, or would do."""

    level: str
    sources: int
    unchanged: int
    work: Work

    def counts(self) -> dict[str, str | int]:
        """The same as plain values."""
        found: dict[str, str | int] = {"level": self.level, "sources": self.sources, "unchanged": self.unchanged}
        found |= {"pushed": self.work.sources, "rows": self.work.rows, "bytes": self.work.size}
        return found | {"unreadable": len(self.work.unreadable)}


Tell = Callable[[int, int], None]
"""Is told of bytes done, and of all there are."""


def push(
    url: str,
    sources: Iterable[SourceFile],
    writer: Writer,
    *,
    is_dry: bool = False,
    count: int | None = None,
    tell: Tell | None = None,
) -> Report:
    """Bring a server up to date with these sources."""
    tasks = [Task(source, writer.meta(source)) for source in sources]
    known = _known(url, writer, is_dry)
    wanted = [task for task in tasks if task.meta.state not in known]
    unchanged = len(tasks) - len(wanted)
    total = sum(task.meta.size for task in wanted)
    if is_dry or not wanted:
        work = Work(len(wanted), 0, total)
        return Report(writer.policy.level, len(tasks), unchanged, work)
    done = Work()
    for work in _carry_out(url, wanted, total, count):
        done = done.plus(work)
        if tell is not None:
            tell(done.size, total)
    _tidy(url, done.rows)
    return Report(writer.policy.level, len(tasks), unchanged, done)


def _known(url: str, writer: Writer, is_dry: bool) -> set[tuple[object, ...]]:
    """The states of this machine's sources that the server has, with at least as much as is to be pushed."""
    db = connect(url, reads_only=is_dry)
    try:
        with told(url):
            if not is_dry:
                schema.prepare(db, url)
            elif not schema.has_tables(db, url):
                return set()
            levels = list(LEVELS[LEVELS.index(writer.policy.level) :])
            query = f"SELECT source_id, {', '.join(STATE)} FROM batches WHERE origin = %s AND level = ANY(%s)"
            return set(db.execute(query.encode(), (writer.origin, levels)).fetchall())
    finally:
        db.close()


def _portions(tasks: Iterable[Task]) -> Iterator[list[Task]]:
    """Portions of about one transaction, the largest sources first."""
    portion: list[Task] = []
    size = 0
    for task in sorted(tasks, key=lambda task: task.meta.size, reverse=True):
        portion.append(task)
        size += task.meta.size
        if size >= PORTION or len(portion) >= MOST:
            yield portion
            portion, size = [], 0
    if portion:
        yield portion


def _carry_out(url: str, tasks: Sequence[Task], total: int, count: int | None) -> Iterator[Work]:
    # One more than there are cores: while the server works for one of them, others read.
    count = count or (1 if total < WORTH_SPREADING else (os.cpu_count() or 1) + 1)

    @contextmanager
    def start() -> Iterator[Callable[[list[Task]], Work]]:
        from clew.warehouse.postgres.putting import Putter

        with closing(Putter(url)) as putter:
            yield lambda portion: _push_some(putter, portion)

    for found in crew(start, list(_portions(tasks)), count):
        sources, rows, size, unreadable = found
        yield Work(sources, rows, size, tuple(unreadable))


def _push_some(putter: Putter, portion: list[Task]) -> Work:
    """Read some sources, then put them there."""
    from clew.warehouse.ingest import BAD, read, unreadable

    batches: list[Batch] = []
    unread: list[str] = []
    for source, meta in portion:
        try:
            batches.append(read(source, meta))
        except BAD as error:
            unread.append(unreadable(meta.path, error))
    rows = putter.put(batches) if batches else 0
    return Work(len(batches), rows, sum(task.meta.size for task in portion), tuple(unread))


def _tidy(url: str, rows: int) -> None:
    """After very much was added, the server learns what its tables hold: partitioned ones it never looks at itself."""
    if rows < 100_000:
        return
    db = connect(url)
    try:
        with told(url):
            # A small sample tells how many rows share a value; that is all that is asked of it.
            db.execute("SET default_statistics_target TO 10")
            for table in schema.partitioned():
                db.execute(f"ANALYZE {table}".encode())
    finally:
        db.close()
