"""Open a catalog for a command: up to date, and in a temporary folder where its own folder cannot be written."""

from __future__ import annotations

import os
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from clew.catalog.change_detection import Hosts, unread_messages_warning
from clew.catalog.database import CatalogNotWritable, open_reader
from clew.catalog.sync import ShowProgress, sync
from clew.catalog.sync_level import SyncLevel
from clew.catalog.sync_report import SyncReport
from clew.errors import Busy, UsageError

if TYPE_CHECKING:
    from clew.catalog.text_index import UnindexedText


@dataclass(frozen=True)
class OpenCatalog:
    """A catalog that is open for reading."""

    db: sqlite3.Connection
    folder: Path
    """The folder with the database and the text index, for `Searcher`."""
    report: SyncReport | None = None
    """What the sync found and did; None without a sync."""
    is_temporary: bool = False

    def sources_with_text(self, text: str, kinds: frozenset[str] | None) -> Collection[int]:
        """The ids of the sources that contain a text, for filters. The text index is opened for it."""
        from clew.catalog.search import catalog_text_finder

        return catalog_text_finder(self.db, self.folder)(text, kinds)

    def sources_with_phrases(self, alternatives: Sequence[Sequence[str]], kinds: frozenset[str]) -> set[int] | None:
        """The ids of the sources with a block that has all texts of one alternative, each as a phrase of words.

        None where the text index cannot tell.
        """
        from clew.catalog.search import sources_with_phrases

        return sources_with_phrases(self.db, self.folder, alternatives, kinds)

    def unindexed_text(self) -> UnindexedText:
        """Count the text that a search by words cannot find yet."""
        from clew.catalog.text_index import unindexed_text

        return unindexed_text(self.db)


@contextmanager
def open_synced(
    hosts: Hosts,
    folder: Path,
    level: SyncLevel,
    *,
    sync: bool = True,
    show_progress: ShowProgress = nullcontext,
    warn: Callable[[str], None] | None = None,
) -> Iterator[OpenCatalog]:
    """Open the catalog in `folder`, after a sync with `hosts` as far as `level`.

    `hosts` may be a function: it is called only if something has to be read. Where another sync is running, the
    catalog is used as it is. Where the folder cannot be written, sessions are read into a temporary catalog.
    """
    warn = warn or _print_warning
    try:
        if level >= SyncLevel.TEXT and folder.exists() and not os.access(folder, os.W_OK):
            # tantivy takes a lock in the folder of an index even to read it.
            raise CatalogNotWritable(f"{folder}: the folder of the catalog is read-only")
        report = _sync(hosts, folder, level, show_progress, warn) if sync else None
    except CatalogNotWritable as error:
        warn(f"{error}; sessions are read into a temporary catalog")
        with tempfile.TemporaryDirectory(prefix="clew-") as temporary:
            folder = Path(temporary, "catalog")
            report = _sync(hosts, folder, level, show_progress, warn)
            with _open(folder, report, is_temporary=True) as catalog:
                yield catalog
        return
    with _open(folder, report, is_temporary=False) as catalog:
        if level >= SyncLevel.MESSAGES and (warning := unread_messages_warning(catalog.db)):
            warn(warning)
        yield catalog


def _sync(
    hosts: Hosts,
    folder: Path,
    level: SyncLevel,
    show_progress: ShowProgress,
    warn: Callable[[str], None],
) -> SyncReport | None:
    try:
        with show_progress() as on_progress:
            report = sync(hosts, folder, level, on_progress=on_progress)
    except Busy:
        db = open_reader(folder)
        if db is None:
            raise
        db.close()
        warn("another sync is running; the catalog is used as it is")
        return None
    if report.moved is not None:
        warn(f"the catalog could not be read; it was moved to {report.moved} and rebuilt")
    return report


@contextmanager
def _open(folder: Path, report: SyncReport | None, is_temporary: bool) -> Iterator[OpenCatalog]:
    db = open_reader(folder)
    if db is None:
        raise UsageError("there is no catalog yet; run `clew sync`")
    try:
        yield OpenCatalog(db, folder, report, is_temporary)
    finally:
        db.close()


def _print_warning(text: str) -> None:
    sys.stderr.write(f"clew: {text}\n")
