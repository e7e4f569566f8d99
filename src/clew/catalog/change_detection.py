"""Detects what changed since the last sync, by stat alone; no file of an agent is opened.

Watched are: every folder below the folders where agents keep sessions (its mtime changes when something is added,
renamed or removed), every database that holds sessions, every file of a known session, other files that agents read,
and the environment variables that name folders. The fingerprint of a file with a new mtime shows whether its content
changed.
"""

from __future__ import annotations

import json
import os
import sqlite3
import stat
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from clew.catalog.database import TEXT
from clew.catalog.sync_level import SyncLevel
from clew.io.database_paths import is_in_database
from clew.io.paths import MISSING, UnreadableFolder, folder_error, path_from_text

if TYPE_CHECKING:
    from clew.host import Host

Hosts: TypeAlias = "Sequence[Host] | Callable[[], Sequence[Host]]"
"""The homes to read, or a function that finds them: it is called only if they are needed."""

FULL_HASH_MAX_BYTES = 1 << 20
"""Up to this size the fingerprint of a file is of every byte, beyond it of samples."""
SAMPLES, SAMPLE_BYTES = 64, 4096
FINGERPRINT_BYTES = 16
MTIME_GRACE_NS = 100_000_000
"""A file modified less than this before the stat may be written again without a new mtime: that one is not trusted."""
NO_SOURCE_ID = 0
"""The owner of a side file that belongs to no single source."""
ENV_PREFIX = "env "
"""Keys of the table `meta` that record environment variables begin with it."""
UNREADABLE_FOLDERS = "unreadable folders"
"""The key of the table `meta` for the folders of agents that could not be read when sources were looked for."""
ERASURE_REQUESTED = "erasure requested"
"""A key of the table `meta`: rows were deleted, and have to be erased from the files too."""
UNFINISHED = f"""
SELECT 1 FROM needs_dedupe UNION ALL SELECT 1 FROM orphaned_key
UNION ALL SELECT 1 FROM meta WHERE key = '{ERASURE_REQUESTED}'
UNION ALL SELECT 1 FROM source WHERE state = 'new' OR (size = -1 AND state <> 'gone') LIMIT 1
"""
UNREAD = "SELECT u.source FROM unread_messages u JOIN source f ON f.id = u.source WHERE f.state <> 'gone'"
"""Sources whose session and token usage were read, and whose messages were not."""


@dataclass(frozen=True)
class ChangeSet:
    """Differences between the file system and the catalog."""

    changed_sources: list[int]
    """Sources whose file changed or is gone."""
    needs_discovery: bool
    """A file was added, removed or renamed, a folder became readable or unreadable, or a side file or a setting that
    names folders changed."""

    @property
    def is_empty(self) -> bool:
        """True where the catalog is up to date."""
        return not self.changed_sources and not self.needs_discovery


def detect_changes(db: sqlite3.Connection, environ: Mapping[str, str]) -> ChangeSet:
    """Compare every known file and folder with what is recorded of it."""
    changed = []
    is_folder_unreadable = False
    query = "SELECT id, path, size, mtime_ns, ctime_ns, inode FROM source WHERE state <> 'gone'"
    for source, path, *recorded in db.execute(query):
        path = path_from_text(path)
        if is_in_database(path):
            # The database is watched like a folder; its sessions are compared by their change tokens.
            continue
        try:
            found = os.stat(path)
        except OSError as error:
            changed.append(source)
            is_folder_unreadable |= error.errno not in MISSING
            continue
        if [found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino] != recorded:
            changed.append(source)
    return ChangeSet(
        changed,
        is_folder_unreadable or _folders_changed(db) or _settings_changed(db, environ) or _side_files_changed(db),
    )


def has_unfinished_work(db: sqlite3.Connection, folder: Path | str, level: SyncLevel) -> bool:
    """True where a sync was killed, a source was never read, or not as far as this level."""
    if db.execute(UNFINISHED).fetchone() is not None:
        return True
    if level >= SyncLevel.MESSAGES and db.execute(f"{UNREAD} LIMIT 1").fetchone() is not None:
        return True
    return level >= SyncLevel.TEXT and not text_index_is_complete(db, folder)


def count_unread_sources(db: sqlite3.Connection) -> int:
    """The number of sources whose messages are not in the catalog, or not as they are now."""
    return int(db.execute(f"SELECT count(*) FROM ({UNREAD})").fetchone()[0])


def unread_paths(db: sqlite3.Connection) -> set[Path]:
    """The main files of the sources whose messages are not in the catalog, or not as they are now."""
    found = db.execute(f"SELECT path FROM source WHERE id IN ({UNREAD})")
    return {Path(path_from_text(path)) for (path,) in found}


def has_unread_messages(db: sqlite3.Connection, source: int) -> bool:
    """True where the messages of a source are not in the catalog, or not as its file has or had them last."""
    return db.execute("SELECT 1 FROM unread_messages WHERE source = ?", (source,)).fetchone() is not None


def unread_messages_warning(db: sqlite3.Connection) -> str:
    """What to tell a user whose question is about messages; "" where all were read."""
    unread = count_unread_sources(db)
    sessions = "1 session" if unread == 1 else f"{unread} sessions"
    return f"the messages of {sessions} were not read yet; `clew sync` reads them" if unread else ""


def text_index_is_complete(db: sqlite3.Connection, folder: Path | str) -> bool:
    """True where the text index holds the stored text of the catalog, and no other."""
    if db.execute("SELECT 1 FROM unindexed_text UNION ALL SELECT 1 FROM removed_text LIMIT 1").fetchone() is not None:
        return False
    return text_index_exists(folder) or db.execute("SELECT 1 FROM text_chunk LIMIT 1").fetchone() is None


def text_index_exists(folder: Path | str) -> bool:
    """True where there is a text index, readable or not."""
    return Path(folder, TEXT, "meta.json").exists()


def find_hosts(hosts: Hosts) -> tuple[Host, ...]:
    """The homes, found now if a function finds them."""
    return tuple(hosts() if callable(hosts) else hosts)


def describe_hosts(hosts: Iterable[Host]) -> str:
    """The hosts of a catalog as text."""
    return json.dumps([[host.kind, str(host.home), str(host.base or "")] for host in hosts])


def hosts_changed(db: sqlite3.Connection, hosts: Hosts) -> bool:
    """True where the catalog was made of other hosts.

    A function is called only if hosts can appear without a change of a file: those of another system or machine.
    """
    (recorded,) = db.execute("SELECT value FROM meta WHERE key = 'hosts'").fetchone() or ("[]",)
    if callable(hosts):
        if all(kind == "local" for kind, *_ in json.loads(recorded)):
            return False
        hosts = hosts()
    return describe_hosts(hosts) != recorded


def _folders_changed(db: sqlite3.Connection) -> bool:
    """True where a folder changed, and where none is recorded: then sessions were never looked for."""
    folders = db.execute("SELECT path, mtime_ns FROM watched_folder").fetchall()
    if not folders or any(folder_mtime(path) != mtime_ns for path, mtime_ns in folders):
        return True
    # A change of permissions does not change the mtime of a folder.
    return any(not folder_error(path_from_text(folder.path)) for folder in recorded_unreadable_folders(db))


def recorded_unreadable_folders(db: sqlite3.Connection) -> list[UnreadableFolder]:
    """The folders that could not be read when sources were looked for."""
    (recorded,) = db.execute("SELECT value FROM meta WHERE key = ?", (UNREADABLE_FOLDERS,)).fetchone() or ("[]",)
    return [UnreadableFolder(*folder) for folder in json.loads(recorded)]


def _side_files_changed(db: sqlite3.Connection) -> bool:
    query = "SELECT path, mtime_ns, size FROM side_file"
    return any(stat_signature(path) != (mtime_ns, size) for path, mtime_ns, size in db.execute(query))


def _settings_changed(db: sqlite3.Connection, environ: Mapping[str, str]) -> bool:
    query = "SELECT key, value FROM meta WHERE key GLOB ?"
    recorded = db.execute(query, (f"{ENV_PREFIX}*",))
    return any(environ.get(key.removeprefix(ENV_PREFIX)) != value for key, value in recorded)


def folder_mtime(path: str) -> int:
    """When a folder last got or lost an entry; -1 where there is no such folder, -2 where permissions hide it."""
    try:
        return os.stat(path_from_text(path)).st_mtime_ns
    except OSError as error:
        return -1 if error.errno in MISSING else -2


def stat_signature(path: str) -> tuple[int, int]:
    """The mtime and the size of a file; -1 where there is none."""
    try:
        found = os.stat(path_from_text(path))
    except OSError:
        return -1, -1
    return found.st_mtime_ns, found.st_size


def trusted_mtime(mtime_ns: int, now_ns: int) -> int:
    """The mtime to record; -1, which matches no file, where the file may change again under the same mtime."""
    return mtime_ns if now_ns - mtime_ns > MTIME_GRACE_NS else -1


def fingerprint(path: str, size: int) -> bytes:
    """A hash of the first `size` bytes of a regular file: of all of them, or of samples where they are many."""
    digest = blake2b(digest_size=FINGERPRINT_BYTES)
    # Opening a FIFO would wait for a writer.
    descriptor = os.open(path_from_text(path), os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(f"{path}: not a regular file")
        with open(descriptor, "rb", buffering=0, closefd=False) as file:
            if size <= FULL_HASH_MAX_BYTES:
                while size_left := size - file.tell():
                    if not (piece := file.read(size_left)):
                        break
                    digest.update(piece)
            else:
                step = (size - SAMPLE_BYTES) // (SAMPLES - 1)
                for number in range(SAMPLES):
                    file.seek(min(number * step, size - SAMPLE_BYTES))
                    digest.update(file.read(SAMPLE_BYTES))
                file.seek(size - SAMPLE_BYTES)
                digest.update(file.read(SAMPLE_BYTES))
    finally:
        os.close(descriptor)
    digest.update(size.to_bytes(8, "big"))
    return digest.digest()


def content_unchanged(db: sqlite3.Connection, source: int) -> bool:
    """True for a file that only has another mtime: its size is the recorded one, and so is its fingerprint.

    Of a large file, whose fingerprint is of samples alone, this is believed only where its mtime was not trusted.
    """
    query = "SELECT path, size, mtime_ns, ctime_ns, inode, fingerprint FROM source WHERE id = ? AND state = 'live'"
    row = db.execute(query, (source,)).fetchone()
    if row is None:
        return False
    path, size, mtime_ns, ctime_ns, inode, recorded = row
    try:
        found = os.stat(path_from_text(path))
        was_distrusted = mtime_ns == -1 and (found.st_ctime_ns, found.st_ino) == (ctime_ns, inode)
        if found.st_size != size or not (was_distrusted or size <= FULL_HASH_MAX_BYTES):
            return False
        return bool(fingerprint(path, size) == recorded)
    except OSError:
        return False


def is_missing(path: str) -> bool:
    """True if there is no such file. Raises OSError if that is unknown, as without permission."""
    if is_in_database(path_from_text(path)):
        return False
    try:
        os.stat(path_from_text(path))
    except OSError as error:
        if error.errno in MISSING:
            return True
        raise
    return False


def record_unreadable(db: sqlite3.Connection, source: int, reason: str) -> None:
    """Record why a file cannot be read now. What was read from it before stays, and the next sync tries again."""
    problems = json.dumps([{"code": "unreadable", "line": 0, "message": reason}], ensure_ascii=False)
    query = "UPDATE source SET mtime_ns = -1, fingerprint = x'', problems = ? WHERE id = ?"
    db.execute(query, (problems, source))


def update_recorded_mtime(db: sqlite3.Connection, source: int) -> None:
    """Record the mtime that a file has now."""
    (path,) = db.execute("SELECT path FROM source WHERE id = ?", (source,)).fetchone()
    found = os.stat(path_from_text(path))
    values = (trusted_mtime(found.st_mtime_ns, time.time_ns()), found.st_ctime_ns, found.st_ino, source)
    db.execute("UPDATE source SET mtime_ns = ?, ctime_ns = ?, inode = ? WHERE id = ?", values)
