"""Open a catalog for a command: up to date, and in a temporary folder where its own folder cannot be written."""

from __future__ import annotations

import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from clew.catalog import database
from clew.catalog.change_detection import is_fresh
from clew.errors import Busy, SourceUnreadable, UsageError

if TYPE_CHECKING:
    from clew.catalog.sync import Report
    from clew.host import Host

ProgressCallback = Callable[[str, int, int], None]
"""Called with the stage ("sessions" or "text"), the bytes done and the bytes in total."""


@dataclass(frozen=True)
class OpenCatalog:
    """A catalog that is open for reading."""

    db: sqlite3.Connection
    folder: Path
    """The folder with the database and the text index, for `Searcher`."""
    report: Report | None = None
    """What the sync did; None where nothing had to be done."""
    is_temporary: bool = False

    def unindexed_text(self) -> tuple[int, int]:
        """Count the blocks, and their characters, that a text search cannot find yet."""
        blocks, chars = self.db.execute("SELECT count(*), coalesce(sum(length(text)), 0) FROM pending").fetchone()
        return int(blocks), int(chars)


@contextmanager
def open_synced(
    hosts: Iterable[Host] | Callable[[], Iterable[Host]],
    folder: Path,
    *,
    text: bool,
    sync: bool = True,
    prices: bool = False,
    on_progress: ProgressCallback | None = None,
    warn: Callable[[str], None] | None = None,
) -> Iterator[OpenCatalog]:
    """Open the catalog in `folder`, after a sync with `hosts`; `text`: the text index is needed too.

    `hosts` may be a function: it is called only if something has to be read. Where another sync is at work, the
    catalog is used as it is. Where the folder cannot be written, sessions are read into a temporary catalog.
    `prices`: costs must follow the prices of today.
    """
    warn = warn or _print_warning
    is_current = is_fresh(folder) and not (prices and _prices_changed(folder))
    report = _sync(hosts, folder, text, on_progress, warn) if sync and not is_current else None
    if isinstance(report, _NotWritable):
        warn(f"{report.reason}; sessions are read into a temporary catalog")
        with tempfile.TemporaryDirectory(prefix="clew-") as temporary:
            folder = Path(temporary) / "catalog"
            made = _sync(hosts, folder, text, on_progress, warn)
            if isinstance(made, _NotWritable):
                raise SourceUnreadable(made.reason)
            with _opened(folder, made, is_temporary=True) as catalog:
                yield catalog
        return
    with _opened(folder, report, is_temporary=False) as catalog:
        yield catalog


def _prices_changed(folder: Path) -> bool:
    from clew.analysis.pricing import prices

    db = database.open_reader(folder)
    if db is None:
        return True
    with closing(db):
        known = db.execute("SELECT value FROM meta WHERE key = 'prices'").fetchone()
    return known is None or known[0] != prices().version


@dataclass(frozen=True)
class _NotWritable:
    reason: str


def _sync(
    hosts: Iterable[Host] | Callable[[], Iterable[Host]],
    folder: Path,
    text: bool,
    on_progress: ProgressCallback | None,
    warn: Callable[[str], None],
) -> Report | _NotWritable | None:
    from clew.catalog.sync import sync

    def tell(done: int, total: int) -> None:
        if on_progress is not None:
            on_progress("sessions", done, total)

    del text  # both stages are one until now
    try:
        report = sync(hosts() if callable(hosts) else hosts, folder, tell=tell)
    except Busy:
        if database.open_reader(folder) is None:
            raise
        warn("another sync is running; the catalog is used as it is")
        return None
    except SourceUnreadable as error:
        return _NotWritable(str(error))
    except OSError as error:
        return _NotWritable(f"{folder}: the catalog cannot be written: {error.strerror or error}")
    if report.moved is not None:
        warn(f"the catalog could not be read; it was moved to {report.moved} and built again")
    return report


@contextmanager
def _opened(folder: Path, report: Report | None, is_temporary: bool) -> Iterator[OpenCatalog]:
    db = database.open_reader(folder)
    if db is None:
        raise UsageError("there is no catalog yet; `clew sync` makes one")
    try:
        yield OpenCatalog(db, folder, report, is_temporary)
    finally:
        db.close()


def _print_warning(text: str) -> None:
    sys.stderr.write(f"clew: {text}\n")
