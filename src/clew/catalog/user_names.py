"""Names that the user gave to sessions and projects, as the rows of a catalog have them.

The table `meta` holds the names that were written last, and the state of the file that they were read from. So a sync
sees with one stat whether they have changed, and rows that are written in the meantime have the names of all others.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable
from typing import NamedTuple

from clew.datadir import data_path
from clew.errors import Busy, SourceUnreadable

Names = dict[str, str]


class _Written(NamedTuple):
    file_state: list[int] | None
    """Inode, size and modification time of the file; None without one."""
    names: Names


class UserNames(NamedTuple):
    """The names of one file in clew's data folder."""

    meta_key: str
    file_name: str
    load: Callable[[], Names]
    """Reads the names; raises Busy or SourceUnreadable. It is called only when the file has changed."""

    def written(self, db: sqlite3.Connection) -> Names:
        """The names that the rows of a catalog have."""
        return self._written(db).names

    def have_changed(self, db: sqlite3.Connection) -> bool:
        """True if the user has changed names since they were written."""
        written = self._written(db)
        return self._current(written).names != written.names

    def update(self, db: sqlite3.Connection) -> tuple[Names, Names]:
        """Record the names as they are now as written; returns those that were written before, and these."""
        before = self._written(db)
        after = self._current(before)
        if after != before:
            db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (self.meta_key, json.dumps(after)))
        return before.names, after.names

    def _written(self, db: sqlite3.Connection) -> _Written:
        found = db.execute("SELECT value FROM meta WHERE key = ?", (self.meta_key,)).fetchone()
        return _Written(*json.loads(found[0])) if found is not None else _Written(None, {})

    def _current(self, written: _Written) -> _Written:
        """The names as they are now; those that were written, if the file cannot be read."""
        try:
            stat = os.stat(os.path.join(data_path(), self.file_name))  # noqa: PTH118 - pathlib is not light
            state = [stat.st_ino, stat.st_size, stat.st_mtime_ns]
        except OSError:
            state = None
        if state == written.file_state:
            return written
        try:
            return _Written(state, self.load())
        except (Busy, SourceUnreadable):
            return written
