"""Sessions whose sources are gone, carried over from a catalog that was put aside: nothing else holds them any more.

Their rows go over table by table, with new keys and new numbers for words. What a table has gained since must be able
to do without; where it cannot, or a row cannot be read, the session stays where it is, in the catalog aside.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from clew.catalog import database
from clew.catalog.row_writer import COUNTS, key_range, transaction
from clew.catalog.schema import APPLICATION, KEYS_PER_SOURCE, add_days

MARK = "not carried over yet"
"""A file of this name in a catalog aside says that nobody has looked through it."""
_WORDS = {
    "message": ("kind", "role", "model", "git_branch"),
    "block": ("type", "kind"),
    "call": ("name",),
    "token_usage": ("model", "git_branch"),
    "change": ("op",),
    "todo": (),
}
"""The tables whose keys tell the source, and their columns that hold numbers of words."""
_KEYS = frozenset({"id", "message", "result", "first", "last", "doc"})
"""Columns that hold such keys."""

_NAMES_UNTIL_8 = {"token_usage": "use", "recorded_usage": "own_use", "string": "word", "text_chunk": "text"}

Row = dict[str, Any]


def carry_over(folder: Path) -> int:
    """Take over what catalogs aside hold alone. Returns how many sessions came."""
    carried = 0
    for mark in sorted(folder.parent.glob(f"{folder.name}.aside-*/{MARK}")):
        with closing(database.open_writer(folder)) as db:
            carried += _carry(db, mark.parent / database.DATABASE)
        mark.unlink(missing_ok=True)
    return carried


def _carry(db: sqlite3.Connection, path: Path) -> int:
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as old:
            old.row_factory = lambda cursor, row: {name[0]: value for name, value in zip(cursor.description, row)}  # noqa: B905
            if old.execute("PRAGMA application_id").fetchone()["application_id"] != APPLICATION:
                return 0
            prices = old.execute("SELECT value FROM meta WHERE key = 'prices'").fetchone()
            if prices is not None:
                # As old as the costs are, and brought up to date with them.
                db.execute("INSERT OR IGNORE INTO meta VALUES ('prices', ?)", (prices["value"],))
            return sum(_Carrier(db, old, source).run() for source in _alone(old))
    except sqlite3.Error:
        return 0


def _alone(old: sqlite3.Connection) -> list[Row]:
    """The sources that can be read nowhere else."""
    found = old.execute("SELECT f.* FROM source f JOIN session s ON s.id = f.id ORDER BY f.id").fetchall()
    return [source for source in found if source["state"] == "gone" or not os.path.exists(source["path"])]  # noqa: PTH110


class _Carrier:
    """Carries one source over."""

    def __init__(self, db: sqlite3.Connection, old: sqlite3.Connection, source: Row) -> None:
        self._db, self._old, self._source = db, old, source
        self._number = 0
        self._words: dict[int, int] = {0: 0}

    def run(self) -> bool:
        """True where it came over whole."""
        if self._db.execute("SELECT 1 FROM source WHERE path = ?", (self._source["path"],)).fetchone() is not None:
            return False
        try:
            with transaction(self._db):
                self._rows()
        except (sqlite3.Error, KeyError):
            return False
        return True

    def _rows(self) -> None:
        # In a shard of the index, and in flight: the sync that follows puts the text into it.
        source = {**self._source, "id": None, "state": "gone", "shard": 0, "size": max(0, self._source["size"])}
        self._number = self._insert("source", [source])
        base = self._number * KEYS_PER_SOURCE
        self._insert("session", [{**row, "id": self._number, "is_visible": 1} for row in self._of("session")])
        times: set[int] = set()
        for table, words in _WORDS.items():
            rows = [self._moved(row, words) for row in self._told(table)]
            times.update(row["ts_us"] for row in rows if "ts_us" in row)
            self._insert(table, rows)
        for table in ("text_chunk", "pending"):
            self._insert(table, [self._moved(row, ()) for row in self._of(table)])
        add_days(self._db, times)
        self._db.execute("INSERT INTO needs_dedupe VALUES (?, ?, ?)", (self._number, base, base))
        self._db.execute("INSERT INTO flight VALUES (?)", (self._number,))

    def _of(self, table: str) -> Iterator[Row]:
        number = self._source["id"]
        key = {"text_chunk": "first", "pending": "doc"}.get(table, "id")
        span = (number, number) if table == "session" else key_range(number)
        old = self._name(table)
        yield from self._old.execute(f"SELECT * FROM {old} WHERE {key} BETWEEN ? AND ? ORDER BY {key}", span)

    def _name(self, table: str) -> str:
        """The name of a table in the old catalog: until version 8, several had other names."""
        query = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?"
        return table if self._old.execute(query, (table,)).fetchone() else _NAMES_UNTIL_8.get(table, table)

    def _told(self, table: str) -> Iterator[Row]:
        """Rows as the source told them: shown, and not merged with copies."""
        own = {row["id"]: row for row in self._of("recorded_usage")} if table == "token_usage" else {}
        for row in self._of(table):
            told = own.get(row["id"], row)
            yield {
                **row,
                **({"is_visible": 1} if "is_visible" in row else {}),
                **{name: told[name] for name in COUNTS if name in row},
            }

    def _moved(self, row: Row, words: tuple[str, ...]) -> Row:
        shift = (self._number - self._source["id"]) * KEYS_PER_SOURCE
        keys = {name: row[name] + shift for name in row if name in _KEYS and row[name]}
        return {**row, **keys, **{name: self._word(row[name]) for name in words}}

    def _word(self, number: int) -> int:
        if number not in self._words:
            text = self._old.execute(f"SELECT text FROM {self._name('string')} WHERE id = ?", (number,)).fetchone()[
                "text"
            ]
            self._db.execute("INSERT OR IGNORE INTO string (text) VALUES (?)", (text,))
            (self._words[number],) = self._db.execute("SELECT id FROM string WHERE text = ?", (text,)).fetchone()
        return self._words[number]

    def _insert(self, table: str, rows: list[Row]) -> int:
        known = [row[1] for row in self._db.execute(f"PRAGMA table_info({table})")]
        last = 0
        for row in rows:
            names = [name for name in known if name in row]
            marks = ", ".join("?" * len(names))
            cursor = self._db.execute(
                f"INSERT INTO {table} ({', '.join(names)}) VALUES ({marks})", [row[name] for name in names]
            )
            last = cursor.lastrowid or 0
        return last
