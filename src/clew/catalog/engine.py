"""SQLite by itself: what its package adds, dates and times as values, nobody here uses, and it costs as much again."""

from __future__ import annotations

__all__ = ["sqlite3"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
else:
    try:
        import _sqlite3 as sqlite3
    except ImportError:
        import sqlite3
