"""What a sync did, and what the catalog holds afterwards."""

from __future__ import annotations

import sqlite3
from typing import NamedTuple

from clew.catalog.change_detection import recorded_unreadable_folders
from clew.catalog.unknown_formats import unknown_formats


class SyncCounts(NamedTuple):
    """What a sync read and wrote."""

    files: int = 0
    lines: int = 0
    rows: int = 0
    bytes: int = 0

    def plus(self, other: SyncCounts) -> SyncCounts:
        """The sum of both."""
        return SyncCounts(*(one + more for one, more in zip(self, other, strict=True)))


class SyncReport(NamedTuple):
    """The result of a sync."""

    work: SyncCounts
    sources: int
    gone: int
    """Sources whose file is gone; the catalog keeps their sessions."""
    problems: int
    """Sources with problems."""
    unreadable: int
    """Sources that could not be opened or read."""
    unreadable_folders: tuple[str, ...] = ()
    """Folders of agents that could not be read, with the reason."""
    unknown_formats: tuple[str, ...] = ()
    """Records of agents that this version of clew does not know."""
    moved: str | None = None
    """Where a catalog was moved that could not be used."""

    def counts(self) -> dict[str, int]:
        """The numbers, by name."""
        return {**self.work._asdict(), "sources": self.sources, "gone": self.gone, "problems": self.problems}


def read_report(db: sqlite3.Connection, work: SyncCounts) -> SyncReport:
    """Count the sources of a catalog."""
    query = """
    SELECT count(*), coalesce(sum(state = 'gone'), 0), coalesce(sum(problems NOT IN ('', '[]')), 0),
      coalesce(sum(problems LIKE '%"unreadable"%' AND state <> 'gone'), 0)
    FROM source"""
    folders = dict.fromkeys(map(str, recorded_unreadable_folders(db)))
    sources, gone, problems, unreadable = db.execute(query).fetchone()
    return SyncReport(work, sources, gone, problems, unreadable, tuple(folders), tuple(map(str, unknown_formats(db))))
