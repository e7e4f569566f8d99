"""Update a catalog. Interrupted at any point, the next sync continues and ends in the same state.

1. Changes are detected by stat alone. Without changes, the sync ends here.
2. Changed sources are read: sessions and token usage for lists; messages and their text too, unless `SESSIONS` is
   enough. Sources that an earlier sync read for lists alone are read again for their messages.
3. The text index is updated from the stored text, for search.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from functools import partial
from pathlib import Path

from clew.catalog.change_detection import (
    NO_SOURCE_ID,
    UNREAD,
    ChangeSet,
    Hosts,
    content_unchanged,
    detect_changes,
    fingerprint,
    has_unfinished_work,
    hosts_changed,
    is_missing,
    record_unreadable,
    stat_signature,
    update_recorded_mtime,
)
from clew.catalog.database import DATABASE, CatalogNotWritable, open_reader, open_writer, transaction
from clew.catalog.lock import LOCK_WAIT_SECONDS, locked
from clew.catalog.project_name_rows import PROJECT_NAMES, update_project_names
from clew.catalog.schema import add_indices, drop_indices_of_empty_tables
from clew.catalog.sync_level import SyncLevel
from clew.catalog.sync_report import SyncCounts, SyncReport, read_report
from clew.catalog.titles import USER_TITLES, update_titles
from clew.datadir import data_path
from clew.io.database_paths import FOLDER_SUFFIX
from clew.io.paths import path_from_text, path_to_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from clew.catalog.discovery import WatchList
    from clew.catalog.worker import Task
    from clew.host import Host
    from clew.sources.local import Found

MIN_PARALLEL_BYTES = 4 << 20
"""With fewer bytes, one process is faster than several."""
NOT_COPIED_YET = "not carried over yet"
"""A file of this name marks a catalog that was moved aside, and whose sessions were not copied into the new one."""

ProgressCallback = Callable[[str, int, int], None]
"""Called with the stage ("sessions" or "text"), the bytes done and the bytes in total."""
ShowProgress = Callable[[], AbstractContextManager[ProgressCallback | None]]
"""Called before each sync; the context ends with the sync."""


def sync(
    hosts: Hosts,
    folder: Path,
    level: SyncLevel = SyncLevel.TEXT,
    *,
    full: bool = False,
    on_progress: ProgressCallback | None = None,
    workers: int | None = None,
    wait: float = LOCK_WAIT_SECONDS,
) -> SyncReport:
    """Bring the catalog in `folder` up to date with its hosts.

    What is beyond `level` is left for a later sync. `full` reads every source again. Raises Busy where another sync is
    running for longer than `wait` seconds, and CatalogNotWritable.
    """
    if not full:
        report = _report_if_unchanged(hosts, folder, level)
        if report is not None:
            return report
    with _locked_for_writing(folder, wait):
        found = tuple(hosts() if callable(hosts) else hosts)
        return _with_usable_catalog(folder, partial(_run, found, folder, level, full, on_progress, workers))


def is_up_to_date(hosts: Hosts, folder: Path, level: SyncLevel = SyncLevel.TEXT) -> bool:
    """True where there is a catalog, and a sync would have nothing to do."""
    return _report_if_unchanged(hosts, folder, level) is not None


def _report_if_unchanged(hosts: Hosts, folder: Path, level: SyncLevel) -> SyncReport | None:
    db = open_reader(folder)
    if db is None:
        return None
    with closing(db):
        try:
            if has_unfinished_work(db, folder, level) or PROJECT_NAMES.have_changed(db) or USER_TITLES.have_changed(db):
                return None
            if not detect_changes(db, os.environ).is_empty or hosts_changed(db, hosts):
                return None
            return read_report(db, SyncCounts())
        except sqlite3.Error:
            # The catalog is damaged: a sync with the lock replaces it.
            return None


def _with_usable_catalog(folder: Path, run: Callable[[], SyncReport]) -> SyncReport:
    """Run a sync; move a catalog aside before it that has another version, or that turns out to be damaged.

    One of an older version is removed when everything in it was read or copied. It is reported only if some sessions
    are in it alone.
    """
    from clew.catalog import upgrade

    moved = move_aside(folder) if _is_unusable(folder) else None
    try:
        report = run()
    except sqlite3.DatabaseError as error:
        if not _is_corrupt(error):
            raise
        moved = move_aside(folder)
        report = run()
    replaced = upgrade.remove_replaced_catalogs(folder)
    return report._replace(moved=None if moved in replaced else moved)


@contextmanager
def _locked_for_writing(folder: Path, wait: float = LOCK_WAIT_SECONDS) -> Iterator[None]:
    """Hold the lock of a catalog; raises CatalogNotWritable where it cannot be written, as on a full disk.

    An OSError of a file elsewhere is not about the catalog.
    """
    from clew.catalog.text_index import IndexNotWritable, IndexUnreadable

    try:
        with locked(folder, wait):
            yield
    except (OSError, sqlite3.DatabaseError, IndexNotWritable, IndexUnreadable) as error:
        if isinstance(error, OSError) and error.filename and not _is_about_catalog(error.filename, folder):
            raise
        reason = (error.strerror if isinstance(error, OSError) else None) or error
        raise CatalogNotWritable(f"{folder}: the catalog cannot be written: {reason}") from error


def _is_about_catalog(path: str | bytes, folder: Path) -> bool:
    """True for a path in the folder of the catalog or of those moved aside, and for a folder that these are in."""
    place = Path(os.fsdecode(path))
    return place.is_relative_to(folder.parent) or folder.is_relative_to(place)


def _is_corrupt(error: sqlite3.DatabaseError) -> bool:
    return any(words in str(error) for words in ("malformed", "not a database", "no such table", "no such column"))


def _is_unusable(folder: Path) -> bool:
    """True if there is a database, but not a catalog of this version."""
    path = folder / DATABASE
    if not path.exists() or path.stat().st_size == 0:
        return False
    reader = open_reader(folder)
    if reader is None:
        return True
    reader.close()
    return False


def move_aside(folder: Path) -> str:
    """Move a catalog that cannot be used to a folder beside it; the lock file stays."""
    aside = folder.with_name(f"{folder.name}.aside-{time.strftime('%Y%m%d-%H%M%S')}")
    while aside.exists():
        aside = aside.with_name(f"{aside.name}+")
    aside.mkdir(mode=0o700)
    for entry in list(folder.iterdir()):
        if entry.name != "lock":
            entry.rename(aside / entry.name)
    (aside / NOT_COPIED_YET).touch(mode=0o600)
    return str(aside)


def _run(
    hosts: tuple[Host, ...],
    folder: Path,
    level: SyncLevel,
    full: bool,
    on_progress: ProgressCallback | None,
    workers: int | None,
) -> SyncReport:
    from clew.catalog import erase
    from clew.catalog.upgrade import copy_missing_sessions

    copy_missing_sessions(folder)
    # No connection goes through a fork: this one is closed while sources are read.
    with closing(open_writer(folder)) as db:
        plan = _Plan(db, hosts, folder, level)
        plan.find_changes(full)
    counts = _ingest(folder, plan.tasks, level, on_progress, workers)
    with closing(open_writer(folder)) as db:
        _finish_rows(db, plan, hosts)
        if erase.is_requested(db):
            erase.finish(db, folder)
        if level >= SyncLevel.TEXT:
            from clew.catalog import text_index

            report_text = (lambda done, total: on_progress("text", done, total)) if on_progress is not None else None
            text_index.update(db, folder, report_text)
        return read_report(db, counts)


def _ingest(
    folder: Path, tasks: list[Task], level: SyncLevel, on_progress: ProgressCallback | None, workers: int | None
) -> SyncCounts:
    if not tasks:
        return SyncCounts()
    from clew.catalog.worker import ingest_sources

    total = sum(task.source.size for task in tasks)
    done = 0
    if on_progress is not None:
        on_progress("sessions", done, total)

    def on_batch(counts: SyncCounts) -> None:
        nonlocal done
        done += counts.bytes
        if on_progress is not None:
            on_progress("sessions", done, total)

    workers = workers or (1 if total < MIN_PARALLEL_BYTES else os.cpu_count() or 1)
    return ingest_sources(folder, tasks, level, workers, on_batch)


def _finish_rows(db: sqlite3.Connection, plan: _Plan, hosts: tuple[Host, ...]) -> None:
    """Do what needs the rows of all sources: titles, visible copies, new prices and names of projects."""
    from clew.catalog.dedupe import update_visible_copies
    from clew.catalog.row_writer import update_costs

    with transaction(db):
        add_indices(db)
        update_titles(db)
        update_visible_copies(db)
        update_costs(db)
        update_project_names(db)
        if plan.watch_list is not None:
            from clew.catalog.discovery import record_watch_list

            record_watch_list(db, plan.watch_list, hosts)


class _Plan:
    """Finds the sources that have to be read."""

    def __init__(self, db: sqlite3.Connection, hosts: tuple[Host, ...], folder: Path, level: SyncLevel) -> None:
        self._db, self._hosts, self._folder, self._level = db, hosts, folder, level
        self.tasks: list[Task] = []
        self.watch_list: WatchList | None = None
        """What to watch from now on; None where sessions were not looked for."""

    def find_changes(self, full: bool) -> None:
        """Compare the catalog with the file system. Afterwards `tasks` is what has to be read."""
        changes = detect_changes(self._db, os.environ)
        if full or changes.needs_discovery or hosts_changed(self._db, self._hosts):
            self._discover()
        self._find_changed(changes, full)
        if self.tasks:
            drop_indices_of_empty_tables(self._db)

    def _discover(self) -> None:
        """Find all sources; record the new ones, and mark those whose file is gone."""
        from clew.catalog import discovery
        from clew.sources.local import in_homes

        self.watch_list = discovery.watch_list(self._hosts, self._folder)
        known = {
            path: (source, state) for source, path, state in self._db.execute("SELECT id, path, state FROM source")
        }
        present = {path_to_text(str(found.source.path)): found for found in in_homes(self._hosts)}
        missing = {path: source for path, (source, state) in known.items() if path not in present and state != "gone"}
        with transaction(self._db):
            for path, found in present.items():
                source, state = known.get(path) or (self._find_renamed(path, missing) or self._add(path, found), "new")
                self._record(source, found, state)
            for path, source in missing.items():
                self._mark_missing_unless_unreadable(source, path)
            self._delete_orphaned_side_files()
            discovery.reread_agents_with_changed_files(self._db, self.watch_list)

    def _add(self, path: str, found: Found) -> int:
        query = "INSERT INTO source VALUES (NULL, ?, ?, 'new', -1, -1, -1, -1, x'', '', '', '[]')"
        source = self._db.execute(query, (path, found.agent.id)).lastrowid
        assert source is not None
        return source

    def _find_renamed(self, path: str, missing: dict[str, int]) -> int | None:
        """The source whose file has this path now: the same inode, with the same content at its beginning."""
        if not missing:
            return None
        try:
            found = os.stat(path_from_text(path))
        except OSError:
            return None
        query = "SELECT id, path, size, fingerprint FROM source WHERE inode = ? AND state = 'live'"
        for source, old, size, recorded in self._db.execute(query, (found.st_ino,)).fetchall():
            if old in missing and found.st_size >= size >= 0 and _has_fingerprint(path, size, recorded):
                del missing[old]
                self._db.execute("UPDATE source SET path = ?, state = 'new', size = -1 WHERE id = ?", (path, source))
                return int(source)
        return None

    def _record(self, source: int, found: Found, state: str) -> None:
        from clew.catalog.discovery import host_name, side_files, source_to_json

        if state == "gone":
            self._db.execute("UPDATE source SET state = 'new', size = -1 WHERE id = ?", (source,))
        elif found.source.change_token:
            query = "UPDATE source SET size = -1 WHERE id = ? AND fingerprint <> ?"
            self._db.execute(query, (source, found.source.change_token))
        self._db.execute(
            "UPDATE source SET agent = ?, host = ?, source_json = ? WHERE id = ?",
            (found.agent.id, host_name(found.source), source_to_json(found.source), source),
        )
        recorded = set(self._db.execute("SELECT * FROM side_file WHERE owner = ?", (source,)))
        files = {(path, source, *stat_signature(path)) for path in map(path_to_text, side_files(found.source))}
        if files != recorded:
            self._db.execute("DELETE FROM side_file WHERE owner = ?", (source,))
            self._db.executemany("INSERT INTO side_file VALUES (?, ?, ?, ?)", files)
            # The header may come from a side file. Should this sync be killed, the next one reads the source.
            self._db.execute("UPDATE source SET size = -1 WHERE id = ?", (source,))

    def _mark_missing_unless_unreadable(self, source: int, path: str) -> None:
        """A file that was not found may be in a folder or a database that cannot be read now."""
        assert self.watch_list is not None
        for folder in self.watch_list.unreadable:
            if path.startswith(f"{folder.path}{FOLDER_SUFFIX}{os.sep}"):
                record_unreadable(self._db, source, folder.reason)
                return
        try:
            is_missing(path)
        except OSError as error:
            record_unreadable(self._db, source, error.strerror or str(error))
        else:
            self._mark_missing(source)

    def _mark_missing(self, source: int) -> None:
        """The file is gone; the catalog keeps the session that was read from it."""
        if self._db.execute("SELECT 1 FROM session WHERE id = ?", (source,)).fetchone() is None:
            from clew.catalog.row_writer import RowWriter

            RowWriter(self._db).delete_source(source)
            return
        self._db.execute("UPDATE source SET state = 'gone' WHERE id = ?", (source,))
        self._db.execute("INSERT OR IGNORE INTO needs_dedupe VALUES (?)", (source,))

    def _delete_orphaned_side_files(self) -> None:
        """Files of sources that are gone or deleted would never match what is recorded of them."""
        live = "SELECT id FROM source WHERE state <> 'gone'"
        self._db.execute(f"DELETE FROM side_file WHERE owner <> ? AND owner NOT IN ({live})", (NO_SOURCE_ID,))

    def _find_changed(self, changes: ChangeSet, full: bool) -> None:
        changed = dict.fromkeys(changes.changed_sources)
        query = "SELECT id FROM source WHERE state <> 'gone'" + ("" if full else " AND (state = 'new' OR size = -1)")
        changed.update(dict.fromkeys(source for (source,) in self._db.execute(query)))
        unread = {source for (source,) in self._db.execute(UNREAD)} if self._level >= SyncLevel.MESSAGES else set()
        for source in {**changed, **dict.fromkeys(unread)}:
            self._decide(source, full or source in unread)

    def _decide(self, source: int, must_read: bool) -> None:
        query = "SELECT path, agent, state, source_json FROM source WHERE id = ? AND state <> 'gone'"
        row = self._db.execute(query, (source,)).fetchone()
        if row is None:
            return
        path, agent, state, notes = row
        try:
            if is_missing(path):
                with transaction(self._db):
                    self._mark_missing(source)
            elif not must_read and state == "live" and content_unchanged(self._db, source):
                with transaction(self._db):
                    update_recorded_mtime(self._db, source)
            else:
                from clew.catalog.discovery import source_from_json
                from clew.catalog.worker import Task

                self.tasks.append(Task(source, agent, source_from_json(agent, path, notes)))
        except OSError as error:
            with transaction(self._db):
                record_unreadable(self._db, source, error.strerror or str(error))


def _has_fingerprint(path: str, size: int, recorded: bytes) -> bool:
    try:
        return fingerprint(path, size) == recorded
    except OSError:
        return False


def forget_gone(folder: Path) -> int:
    """Erase the sessions whose files are gone: rows, text and index. Returns how many there were."""
    return _forget(folder, "state = 'gone'")


def forget(folder: Path, path: str) -> int:
    """Erase what was read from one file. If it is still there, the next sync reads it again."""
    return _forget(folder, "path = ?", path_to_text(path))


def catalogs_with(path: str) -> tuple[list[Path], list[Path]]:
    """The catalogs in the data folder that hold a file: those of this version, and those that were moved aside."""
    current: list[Path] = []
    aside: list[Path] = []
    for database in sorted(Path(data_path()).glob(f"catalog*/{DATABASE}")):
        try:
            with closing(sqlite3.connect(f"{database.absolute().as_uri()}?mode=ro", uri=True)) as db:
                if db.execute("SELECT 1 FROM source WHERE path = ?", (path,)).fetchone() is None:
                    continue
        except sqlite3.Error:
            # It cannot be read, and may hold the file: it is returned rather than left out.
            pass
        (aside if ".aside-" in database.parent.name else current).append(database.parent)
    return current, aside


def apply_project_names(folder: Path, wait: float = LOCK_WAIT_SECONDS) -> None:
    """Write the names that the user gave to projects into a catalog. Raises Busy during a sync, which does it too."""
    with _locked_for_writing(folder, wait), closing(open_writer(folder)) as db, transaction(db):
        update_project_names(db)


def apply_titles(folder: Path, wait: float = LOCK_WAIT_SECONDS) -> None:
    """Write the titles that the user gave to sessions into a catalog. Raises Busy during a sync, which does it too."""
    with _locked_for_writing(folder, wait), closing(open_writer(folder)) as db, transaction(db):
        update_titles(db)


def rebuild_text_index(folder: Path) -> None:
    """Delete the text index of a catalog, and build it again from the stored text."""
    from clew.catalog import text_index

    with _locked_for_writing(folder), closing(open_writer(folder)) as db:
        text_index.rebuild(db, folder)


def erase_deleted(folder: Path) -> None:
    """Erase from the files of a catalog what was deleted from its tables."""
    from clew.catalog import erase, text_index

    with _locked_for_writing(folder), closing(open_writer(folder)) as db:
        erase.request(db)
        erase.finish(db, folder)
        text_index.update(db, folder)


def _forget(folder: Path, condition: str, *values: str) -> int:
    from clew.catalog import erase, text_index
    from clew.catalog.dedupe import update_visible_copies
    from clew.catalog.row_writer import RowWriter

    with _locked_for_writing(folder), closing(open_writer(folder)) as db:
        sources = [source for (source,) in db.execute(f"SELECT id FROM source WHERE {condition}", values)]
        if not sources and not erase.is_requested(db):
            return 0
        with transaction(db):
            erase.request(db)
            for source in sources:
                RowWriter(db).delete_source(source)
            # The next sync must look for sessions: the file may still be there, in a folder that did not change.
            db.execute("DELETE FROM watched_folder")
            update_titles(db)
            update_visible_copies(db)
        erase.finish(db, folder)
        text_index.update(db, folder)
    return len(sources)
