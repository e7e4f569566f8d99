"""The catalog brought up to date. Interrupted at any point, the next sync goes on and ends in the same state."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from clew.catalog import database, discovery, indexing, workers
from clew.catalog.change_detection import (
    NO_SOURCE_ID,
    Outlook,
    content_unchanged,
    fingerprint,
    look,
    stat_signature,
    update_recorded_mtime,
)
from clew.catalog.dedupe import settle
from clew.catalog.lock import WAIT, locked
from clew.catalog.row_writer import RowWriter, key_range, transaction
from clew.catalog.schema import KEYS_PER_SOURCE, add_indices, drop_indices
from clew.catalog.upgrade import MARK, carry_over
from clew.catalog.workers import Task, Work
from clew.errors import SourceUnreadable
from clew.host import Host
from clew.sources.local import Found

WORTH_SPREADING = 4 << 20
"""From this many bytes on, several processes are quicker than one."""


class Report(NamedTuple):
    """What a sync did."""

    work: Work
    sources: int
    gone: int
    problems: int
    moved: str | None = None
    """Where a catalog was moved that could not be used."""
    unreadable: int = 0
    """Sources that could not be opened or read."""
    passed_over: tuple[str, ...] = ()
    """Sources whose names are no text: the catalog has no place for them."""

    def counts(self) -> dict[str, int]:
        """The same as plain numbers."""
        files, lines, rows, size = self.work
        done = {"files": files, "lines": lines, "rows": rows, "bytes": size}
        return {**done, "sources": self.sources, "gone": self.gone, "problems": self.problems}


Tell = Callable[[int, int], None]
"""Is told of bytes done, and of all there are."""


def sync(
    hosts: Iterable[Host],
    folder: Path,
    *,
    full: bool = False,
    tell: Tell | None = None,
    count: int | None = None,
    wait: float = WAIT,
) -> Report:
    """Bring a catalog up to date with its hosts. Raises Busy where another sync is at work."""
    hosts = tuple(hosts)
    with locked(folder, wait):
        moved = _move_aside(folder) if _is_foreign(folder) else None
        try:
            carry_over(folder)
            return _sync(hosts, folder, full, tell, count)._replace(moved=moved)
        except sqlite3.DatabaseError as error:
            if not _is_corrupt(error):
                raise SourceUnreadable(f"{folder}: the catalog cannot be written: {error}") from error
            moved = _move_aside(folder)
            carry_over(folder)
            return _sync(hosts, folder, full, tell, count)._replace(moved=moved)
        except indexing.WriteFailed as error:
            raise SourceUnreadable(f"{folder}: the catalog cannot be written: {error}") from error
        except indexing.Unusable:
            from clew.catalog.mending import rebuild

            # The rows and the text are whole, sessions among them whose source is gone.
            rebuild(folder)
            return _sync(hosts, folder, full, tell, count)._replace(moved=moved)


def forget_gone(folder: Path) -> int:
    """Erase the sessions whose sources are gone: rows, text and index. Returns how many there were."""
    return _forget(folder, "state = 'gone'")


def forget(folder: Path, path: str) -> int:
    """Erase what was read from one file. If it is still there, the next sync reads it anew."""
    return _forget(folder, "path = ?", path)


def _forget(folder: Path, which: str, *values: str) -> int:
    with locked(folder):
        db = database.open_writer(folder)
        try:
            sources = [number for (number,) in db.execute(f"SELECT id FROM source WHERE {which}", values)]
            with transaction(db):
                for number in sources:
                    RowWriter(db).drop(number)
                    db.execute("DELETE FROM source WHERE id = ?", (number,))
                drop_orphans(db)
                if sources:
                    # The next sync must look for sessions: the file may still be there, in a folder that is as it was.
                    db.execute("DELETE FROM watched_folder")
                flights = {(message // KEYS_PER_SOURCE,) for message in settle(db)}
                db.executemany("INSERT OR IGNORE INTO flight VALUES (?)", flights)
            db.execute("VACUUM")
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        finally:
            db.close()
    if sources:
        from clew.catalog.mending import index_anew

        # Dropped documents stay in the files of an index until they are joined: only a new one is free of them.
        index_anew(folder)
    return len(sources)


def drop_orphans(db: sqlite3.Connection) -> None:
    """Remove what is noted of the side files of sources that are gone or erased: it would never match again."""
    live = "SELECT id FROM source WHERE state <> 'gone'"
    db.execute(f"DELETE FROM side_file WHERE owner <> ? AND owner NOT IN ({live})", (NO_SOURCE_ID,))


def _is_corrupt(error: sqlite3.DatabaseError) -> bool:
    words = str(error)
    return "malformed" in words or "not a database" in words or "no such table" in words or "no such column" in words


def _is_foreign(folder: Path) -> bool:
    """True where something lies in the catalog's place that is none of this version."""
    path = folder / database.DATABASE
    if not path.exists() or path.stat().st_size == 0:
        return False
    reader = database.open_reader(folder)
    if reader is None:
        return True
    reader.close()
    return False


def _move_aside(folder: Path) -> str:
    """Put away what cannot be used; the lock stays where it is."""
    aside = folder.with_name(f"{folder.name}.aside-{time.strftime('%Y%m%d-%H%M%S')}")
    while aside.exists():
        aside = aside.with_name(f"{aside.name}+")
    aside.mkdir(mode=0o700)
    for entry in list(folder.iterdir()):
        if entry.name != "lock":
            entry.rename(aside / entry.name)
    (aside / MARK).touch(mode=0o600)
    return str(aside)


def _sync(hosts: tuple[Host, ...], folder: Path, full: bool, tell: Tell | None, count: int | None) -> Report:
    db = database.open_writer(folder)
    try:
        indexing.recover(db, folder)
        found = look(db, os.environ)
        anew = found.anew or full
        plan = _Plan(db, folder)
        if anew:
            now = time.time_ns()
            places = discovery.places(hosts, now)
            plan.look_for(hosts)
            with transaction(db):
                discovery.consult_again(db, places)
        plan.compare(found, full)
        if plan.tasks:
            indexing.check_shards(folder)
        plan.begin()
        # No connection goes through a fork: each worker opens its own, and we another when they are done.
        db.close()
        work = plan.carry_out(tell, count)
        db = database.open_writer(folder)
        _settle(db, folder, is_large=bool(plan.tasks))
        if anew:
            with transaction(db):
                discovery.note_places(db, places, folder)
        return _report(db, work)._replace(passed_over=plan.passed_over)
    finally:
        db.close()


def _settle(db: sqlite3.Connection, folder: Path, is_large: bool) -> None:
    with transaction(db):
        add_indices(db)
        shown = settle(db)
        # Should we be killed before they are in the index, their sources are read anew.
        flights = {(message // KEYS_PER_SOURCE,) for message in shown}
        db.executemany("INSERT OR IGNORE INTO flight VALUES (?)", flights)
        _price(db)
    indexing.touch_up(db, folder, shown, is_large)


def _price(db: sqlite3.Connection) -> None:
    from clew.catalog.repricing import reprice

    reprice(db)


def _has(db: sqlite3.Connection, query: str) -> bool:
    return db.execute(query).fetchone() is not None


def _report(db: sqlite3.Connection, work: Work) -> Report:
    (sources, gone, problems) = db.execute(
        "SELECT count(*), coalesce(sum(state = 'gone'), 0), coalesce(sum(problems NOT IN ('', '[]')), 0) FROM source"
    ).fetchone()
    (unreadable,) = db.execute(
        """SELECT count(*) FROM source WHERE problems LIKE '%"unreadable"%' AND state <> 'gone'"""
    ).fetchone()
    return Report(work, sources, gone, problems, unreadable=unreadable)


class _Plan:
    """What must be done to which source."""

    def __init__(self, db: sqlite3.Connection, folder: Path) -> None:
        self._db, self._folder = db, folder
        self.tasks: list[Task] = []
        self.passed_over: tuple[str, ...] = ()
        self._added: set[int] = set()
        self._work = Work()

    def look_for(self, hosts: tuple[Host, ...]) -> None:
        """Look for sources; note those that are new, and those that are gone."""
        known = {
            path: (number, state) for number, path, state in self._db.execute("SELECT id, path, state FROM source")
        }
        present = {str(found.source.path): found for found in discovery.sources(hosts)}
        self.passed_over = tuple(sorted(path for path in present if not discovery.is_text(path)))
        for path in self.passed_over:
            del present[path]
        lost = {path: number for path, (number, state) in known.items() if path not in present and state != "gone"}
        with transaction(self._db):
            for path, found in present.items():
                if path in known:
                    self._note(known[path][0], path, found, known[path][1])
                else:
                    self._add(path, found, lost)
            for number in lost.values():
                self._lose(number)
            drop_orphans(self._db)

    def _add(self, path: str, found: Found, lost: dict[str, int]) -> None:
        number = self._renamed(path, lost)
        if number is None:
            query = "INSERT INTO source VALUES (NULL, ?, ?, 'new', -1, -1, -1, -1, x'', -1, ?, ?, '[]')"
            cursor = self._db.execute(query, (path, found.agent.id, "", discovery.source_to_json(found.source)))
            number = cursor.lastrowid
        assert number is not None
        self._note(number, path, found, "new")

    def _renamed(self, path: str, lost: dict[str, int]) -> int | None:
        """The source that has another name now: the same file, with the same beginning."""
        if not lost:
            return None
        try:
            inode = os.stat(path).st_ino
        except OSError:
            return None
        query = "SELECT id, path, size, fingerprint FROM source WHERE inode = ? AND state = 'live'"
        for number, old, size, recorded in self._db.execute(query, (inode,)).fetchall():
            if old in lost and _still_begins(path, size, recorded):
                del lost[old]
                self._db.execute("UPDATE source SET path = ?, state = 'new', size = -1 WHERE id = ?", (path, number))
                return int(number)
        return None

    def _note(self, number: int, path: str, found: Found, state: str) -> None:
        source = found.source
        host = source.origin.host if source.origin is not None else None
        if state == "gone":
            self._db.execute("UPDATE source SET state = 'new', size = -1 WHERE id = ?", (number,))
        self._db.execute(
            "UPDATE source SET agent = ?, host = ?, found = ? WHERE id = ?",
            (found.agent.id, host or "", discovery.source_to_json(source), number),
        )
        known = set(self._db.execute("SELECT * FROM side_file WHERE owner = ?", (number,)))
        files = {(file, number, *stat_signature(file)) for file in discovery.files_of(source)}
        if files != known:
            self._db.execute("DELETE FROM side_file WHERE owner = ?", (number,))
            self._db.executemany("INSERT INTO side_file VALUES (?, ?, ?, ?)", files)
            # The header may say something else now: the source is read whole, if need be by the next sync.
            self._db.execute("UPDATE source SET size = -1 WHERE id = ?", (number,))
        del path

    def _lose(self, number: int) -> None:
        """The file is gone; what it said stays."""
        if _has(self._db, f"SELECT 1 FROM session WHERE id = {int(number)}"):
            self._db.execute("UPDATE source SET state = 'gone' WHERE id = ?", (number,))
            first = number * KEYS_PER_SOURCE
            self._db.execute("INSERT OR IGNORE INTO needs_dedupe VALUES (?, ?, ?)", (number, first, first))
        else:
            self._db.execute("DELETE FROM source WHERE id = ?", (number,))

    def compare(self, found: Outlook, full: bool) -> None:
        """Decide about every source that is not as it was."""
        changed = dict.fromkeys(found.changed)
        query = "SELECT id FROM source WHERE state <> 'gone'" + ("" if full else " AND (state = 'new' OR size = -1)")
        changed.update(dict.fromkeys(number for (number,) in self._db.execute(query)))
        for number in changed:
            self._decide(number, full)

    def _decide(self, number: int, full: bool) -> None:
        query = "SELECT path, agent, state, shard, found FROM source WHERE id = ?"
        row = self._db.execute(query, (number,)).fetchone()
        if row is None:
            return
        path, agent, state, shard, notes = row
        if state == "gone":
            return
        try:
            os.stat(path)
        except OSError:
            with transaction(self._db):
                self._lose(number)
            return
        if not full and state == "live" and content_unchanged(self._db, number):
            with transaction(self._db):
                update_recorded_mtime(self._db, number)
            return
        source = discovery.source_from_json(agent, path, notes)
        # A sync that was killed may have written a part of it.
        rows = self._db.execute("SELECT 1 FROM message WHERE id BETWEEN ? AND ?", key_range(number)).fetchone()
        self.tasks.append(Task(number, agent, source, shard, shard >= 0 or state != "new" or rows is not None))

    def begin(self) -> None:
        """Note what will be read whole; from then on nothing is asked of the rows."""
        if not self.tasks:
            return
        with transaction(self._db):
            flights = [(task.number,) for task in self.tasks]
            self._db.executemany("INSERT OR IGNORE INTO flight VALUES (?)", flights)
            if not _has(self._db, "SELECT 1 FROM message"):
                drop_indices(self._db)

    def carry_out(self, tell: Tell | None, count: int | None) -> Work:
        """Read whole what must be read whole."""
        if not self.tasks:
            return self._work
        total = sum(task.source.size for task in self.tasks)
        count = count or (1 if total < WORTH_SPREADING else os.cpu_count() or 1)
        done = 0

        def told(work: Work) -> None:
            nonlocal done
            done += work.size
            if tell is not None:
                tell(done, total)

        return self._work.plus(workers.run(self._folder, self.tasks, count, told))


def _still_begins(path: str, size: int, prefix: bytes) -> bool:
    try:
        return os.stat(path).st_size >= size >= 0 and fingerprint(path, size) == prefix
    except OSError:
        return False
