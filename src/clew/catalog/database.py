"""Where the catalog lies, and how it is opened. Loads next to nothing: every quick command begins here."""

from __future__ import annotations

import os
import sqlite3
from hashlib import blake2b

from clew.catalog.schema import APPLICATION, VERSION, create
from clew.datadir import data_path, private_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from clew.host import Host

DATABASE = "catalog.sqlite"
TEXT = "text"
"""The folder of the text index; one folder in it for each shard."""
WAIT_SECONDS = 10.0
"""How long a process waits for another that is writing."""


def catalog_path(homes: Iterable[Path | str] = ()) -> str:
    """The path of the folder of the catalog over these homes; without any, over the default sources."""
    named = sorted({os.path.realpath(home) for home in homes})
    if not named:
        return f"{data_path()}/catalog"
    mark = blake2b("\0".join(named).encode("utf-8", "surrogateescape"), digest_size=6).hexdigest()
    return f"{data_path()}/catalog-{mark}"


def catalog_folder(homes: Iterable[Path | str] = ()) -> Path:
    """The same folder."""
    from pathlib import Path

    return Path(catalog_path(homes))


def folder_of(hosts: Iterable[Host]) -> Path:
    """The same for hosts that were chosen by name."""
    return catalog_folder(host.base or host.home for host in hosts)


def shard_folder(folder: Path | str, shard: int) -> Path:
    """Where a shard of the text index lies."""
    from pathlib import Path

    return Path(folder) / TEXT / str(shard)


def open_reader(folder: Path | str) -> sqlite3.Connection | None:
    """The catalog for reading alone; None where there is none that this version can read."""
    path = os.path.abspath(f"{folder}/{DATABASE}")  # noqa: PTH100 - pathlib is not light
    if not os.path.isfile(path):  # noqa: PTH113
        return None
    quoted = path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    db = sqlite3.connect(f"file:{quoted}?mode=ro", uri=True, timeout=WAIT_SECONDS, isolation_level=None)
    try:
        db.execute("PRAGMA query_only = 1")
        # Statistics look at the same pages again and again.
        db.execute("PRAGMA cache_size = -16384")
        if is_ours(db):
            return db
    except sqlite3.DatabaseError:
        pass
    db.close()
    return None


def is_ours(db: sqlite3.Connection) -> bool:
    """True for a catalog of this very version."""
    (mark,), (version,) = db.execute("PRAGMA application_id").fetchone(), db.execute("PRAGMA user_version").fetchone()
    return bool(mark == APPLICATION and version == VERSION)


def open_writer(folder: Path | str) -> sqlite3.Connection:
    """The catalog for reading and writing; made where there is none."""
    path = f"{folder}/{DATABASE}"
    if not os.path.exists(path):  # noqa: PTH110 - pathlib is not light
        _make_private(str(folder), path)
    db = sqlite3.connect(path, timeout=WAIT_SECONDS, isolation_level=None, cached_statements=256)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = NORMAL")
    # What is removed is overwritten: nothing of an erased session stays in free pages.
    db.execute("PRAGMA secure_delete = ON")
    db.execute("PRAGMA wal_autocheckpoint = 8000")
    if db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0:
        create(db)
    return db


def _make_private(folder: str, path: str) -> None:
    """What is indexed is private: nobody else may read it, whatever the umask."""
    private_folder(f"{folder}/{TEXT}")
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))
