"""The folder of a catalog, and connections to its database."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

from clew.catalog.schema import APPLICATION, KEYS_PER_SOURCE, VERSION, create
from clew.datadir import data_path, private_folder
from clew.errors import SourceUnreadable

if TYPE_CHECKING:
    from clew.host import Host

DATABASE = "catalog.sqlite"
TEXT = "text"
"""The folder of the text index."""
BUSY_TIMEOUT_SECONDS = 10.0
"""How long a connection waits for another one that is writing."""


class CatalogNotWritable(SourceUnreadable):
    """The catalog cannot be written: read-only, no permission, or the disk is full."""


def catalog_folder(homes: Iterable[Path | str] = ()) -> Path:
    """The folder of the catalog over these homes; without any, over the default sources."""
    named = sorted({os.path.realpath(home) for home in homes})
    if not named:
        return Path(data_path(), "catalog")
    digest = blake2b("\0".join(named).encode("utf-8", "surrogateescape"), digest_size=6).hexdigest()
    return Path(data_path(), f"catalog-{digest}")


def folder_of(hosts: Iterable[Host]) -> Path:
    """The folder of the catalog over hosts that were chosen by name."""
    return catalog_folder(host.base or host.home for host in hosts)


def open_reader(folder: Path | str) -> sqlite3.Connection | None:
    """Open the catalog for reading; None where there is none that this version can read.

    Raises CatalogNotWritable where the file cannot be opened, as without permission.
    """
    path = Path(folder, DATABASE).absolute()
    if not os.path.isfile(path):  # noqa: PTH113 - False where the folder cannot be searched
        return None
    # To read a database in WAL mode, SQLite creates files beside it; it cannot in a read-only folder.
    log = path.with_name(f"{DATABASE}-wal")
    is_immutable = not os.access(path.parent, os.W_OK) and not (log.exists() and log.stat().st_size)
    mode = "mode=ro&immutable=1" if is_immutable else "mode=ro"
    # A connection is used by one thread at a time; the web app closes those of its threads when it ends.
    try:
        db = sqlite3.connect(
            f"{path.as_uri()}?{mode}",
            timeout=BUSY_TIMEOUT_SECONDS,
            isolation_level=None,
            check_same_thread=False,
            uri=True,
        )
    except sqlite3.OperationalError as error:
        raise CatalogNotWritable(f"{path}: {error}") from error
    try:
        db.execute("PRAGMA query_only = 1")
        db.execute("PRAGMA cache_size = -16384")
        if is_current_version(db):
            return db
    except sqlite3.DatabaseError:
        pass
    db.close()
    return None


def open_all_readers() -> Iterator[sqlite3.Connection]:
    """Each catalog in the data folder that this version can read, opened until the next one."""
    for folder in sorted(Path(data_path()).glob("catalog*")):
        db = open_reader(folder)
        if db is not None:
            with closing(db):
                yield db


def is_current_version(db: sqlite3.Connection) -> bool:
    """True for a catalog of this very version."""
    (application,), (version,) = (
        db.execute(f"PRAGMA {name}").fetchone() for name in ("application_id", "user_version")
    )
    return bool(application == APPLICATION and version == VERSION)


def open_writer(folder: Path | str) -> sqlite3.Connection:
    """Open the catalog for reading and writing; create it where there is none."""
    path = Path(folder, DATABASE)
    if not path.exists():
        # Its content is private: other users must not read it, even with a permissive umask.
        private_folder(str(path.parent))
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))
    db = sqlite3.connect(path, timeout=BUSY_TIMEOUT_SECONDS, isolation_level=None, cached_statements=256)
    try:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = NORMAL")
        # Deleted content is overwritten: nothing of an erased session stays in free pages.
        db.execute("PRAGMA secure_delete = ON")
        db.execute("PRAGMA wal_autocheckpoint = 8000")
        if db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0:
            create(db)
    except BaseException:
        db.close()
        raise
    return db


class transaction:
    """A transaction that takes the write lock at its start: SQLite may refuse to upgrade a read lock later."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def __enter__(self) -> None:
        self._db.execute("BEGIN IMMEDIATE")

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self._db.execute("COMMIT")
        elif self._db.in_transaction:
            self._db.execute("ROLLBACK")


def key_range(source: int) -> tuple[int, int]:
    """The first and the last key that rows of a source can have."""
    return source * KEYS_PER_SOURCE, source * KEYS_PER_SOURCE + KEYS_PER_SOURCE - 1
