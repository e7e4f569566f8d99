"""What has changed since the last sync, by asking the file system alone. Loads nothing but sqlite3.

Three things are watched: every folder below the places where agents keep sessions (its time changes when something is
added, renamed or removed), every file that belongs to a known session, and every file beside them that was consulted.
"""

from __future__ import annotations

import os
import sqlite3
from hashlib import blake2b

from clew.catalog import database

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

FULL_HASH_MAX_BYTES = 1 << 20
"""Up to this size a file's print is of every byte; beyond, of samples: appending to a file costs what was appended."""
_SAMPLES, _SAMPLE = 64, 4096
MTIME_GRACE_NS = 100_000_000
"""A file changed so shortly before it was looked at may change again without a new time."""
PRINT = 16
"""Bytes of a print."""
NO_SOURCE_ID = 0
"""The owner of a file beside that belongs to no source."""


class Outlook:
    """What is to be done."""

    def __init__(self, changed: list[int], anew: bool) -> None:
        self.changed = changed
        """Sources whose files differ from what is known of them."""
        self.anew = anew
        """Something came, went or was renamed, a side file changed, or another place is looked at: sessions must be
        looked for again."""

    @property
    def is_fresh(self) -> bool:
        """True where there is nothing to do."""
        return not self.changed and not self.anew


def look(db: sqlite3.Connection, env: Mapping[str, str]) -> Outlook:
    """Compare what is known with what is there."""
    stat = os.stat
    changed = []
    query = "SELECT id, path, size, mtime_ns, ctime_ns, inode FROM source WHERE state <> 'gone'"
    for number, path, size, mtime_ns, ctime_ns, inode in db.execute(query):
        try:
            found = stat(path)
        except OSError:
            changed.append(number)
            continue
        if (
            found.st_mtime_ns != mtime_ns
            or found.st_size != size
            or found.st_ctime_ns != ctime_ns
            or found.st_ino != inode
        ):
            changed.append(number)
    return Outlook(changed, _other_folders(db) or _other_settings(db, env) or _other_side_files(db))


def is_fresh(folder: Path) -> bool:
    """True where there is a catalog, whole, and nothing has changed since."""
    db = database.open_reader(folder)
    if db is None:
        return False
    try:
        unfinished = "SELECT 1 FROM flight UNION ALL SELECT 1 FROM needs_dedupe UNION ALL SELECT 1 FROM source"
        if db.execute(f"{unfinished} WHERE state = 'new' OR size = -1 LIMIT 1").fetchone() is not None:
            return False
        return look(db, os.environ).is_fresh
    except sqlite3.Error:
        return False
    finally:
        db.close()


def _other_folders(db: sqlite3.Connection) -> bool:
    """True where a folder changed, and where none is known: then sessions were never looked for."""
    folders = db.execute("SELECT path, mtime_ns FROM watched_folder").fetchall()
    return not folders or any(folder_time(path) != mtime_ns for path, mtime_ns in folders)


def _other_side_files(db: sqlite3.Connection) -> bool:
    """True where a file changed that is no source itself. The search for sessions finds out whose it is."""
    query = "SELECT path, mtime_ns, size FROM side_file"
    return any(stat_signature(path) != (mtime_ns, size) for path, mtime_ns, size in db.execute(query))


def _other_settings(db: sqlite3.Connection, env: Mapping[str, str]) -> bool:
    """True where an environment variable that decides about places is another."""
    for key, value in db.execute("SELECT key, value FROM meta WHERE key >= 'env ' AND key < 'env!'"):
        if env.get(key[4:]) != value:
            return True
    return False


def folder_time(path: str) -> int:
    """When something was last added to a folder or taken from it; -1 where there is no such folder."""
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return -1


def stat_signature(path: str) -> tuple[int, int]:
    """Time and size of a file; -1 where there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return -1, -1
    return found.st_mtime_ns, found.st_size


def fingerprint(path: str, size: int) -> bytes:
    """A print of the first `size` bytes of a file: of all of them, or of samples where they are many."""
    mark = blake2b(digest_size=PRINT)
    with open(path, "rb", buffering=0) as file:
        if size <= FULL_HASH_MAX_BYTES:
            mark.update(_exactly(file.fileno(), size))
        else:
            step = (size - _SAMPLE) // (_SAMPLES - 1)
            for number in range(_SAMPLES):
                mark.update(os.pread(file.fileno(), _SAMPLE, min(number * step, size - _SAMPLE)))
            mark.update(os.pread(file.fileno(), _SAMPLE, size - _SAMPLE))
    mark.update(size.to_bytes(8, "big"))
    return mark.digest()


def _exactly(descriptor: int, size: int) -> bytes:
    pieces = []
    while size > 0 and (piece := os.read(descriptor, size)):
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)


def trusted_mtime(mtime_ns: int, now_ns: int) -> int:
    """The time of a file as it is noted: one that may change again under the same time is noted as none."""
    return mtime_ns if now_ns - mtime_ns > MTIME_GRACE_NS else -1


def content_unchanged(db: sqlite3.Connection, number: int) -> bool:
    """True for a file that only has another time: its size is what it was, and so are its bytes.

    Of a large file, whose print is of samples alone, this is believed only where nothing but our own caution asks.
    """
    query = "SELECT path, size, mtime_ns, ctime_ns, inode, fingerprint FROM source WHERE id = ? AND state = 'live'"
    row = db.execute(query, (number,)).fetchone()
    if row is None:
        return False
    path, size, mtime_ns, ctime_ns, inode, recorded = row
    try:
        found = os.stat(path)
        was_racy = mtime_ns == -1 and (found.st_ctime_ns, found.st_ino) == (ctime_ns, inode)
        if found.st_size != size or not (was_racy or size <= FULL_HASH_MAX_BYTES):
            return False
        return bool(fingerprint(path, size) == recorded)
    except OSError:
        return False


def update_recorded_mtime(db: sqlite3.Connection, number: int) -> None:
    """Note the time that a file has now."""
    import time

    (path,) = db.execute("SELECT path FROM source WHERE id = ?", (number,)).fetchone()
    found = os.stat(path)
    look = (trusted_mtime(found.st_mtime_ns, time.time_ns()), found.st_ctime_ns, found.st_ino, number)
    db.execute("UPDATE source SET mtime_ns = ?, ctime_ns = ?, inode = ? WHERE id = ?", look)
