"""A catalog made by hand, without sources: what search is given, and nothing else."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from clew.catalog import database, text_index
from clew.catalog.schema import KEYS_PER_SOURCE
from clew.catalog.search import Found, Request, Searcher, unmasked
from clew.catalog.text_store import ChunkPacker, SourceTextWriter


class Said(NamedTuple):
    """One block, in a message of its own."""

    text: str
    kind: str = "prompt"
    session: int = 1
    when: int = 0


def write_catalog(folder: Path, blocks: Iterable[Said | str], pending: Iterable[Said | str] = ()) -> Path:
    """A catalog over these blocks; those that are pending are not in the text index."""
    db = database.open_writer(folder)
    indexed = [_said(block) for block in blocks]
    waiting = [_said(block) for block in pending]
    rows = [(number, block) for number, block in enumerate([*indexed, *waiting], 1)]
    for session in sorted({block.session for _, block in rows}):
        names = (
            session,
            1,
            f"key{session}",
            "claude-code",
            f"session-{session}",
            "",
            0,
            f"Title {session}",
            "tidepool",
        )
        db.execute(_insert(db, "session"), _padded(db, "session", names))
        db.execute(_insert(db, "source"), _padded(db, "source", (session, f"/{session}", "claude-code", "live")))
    for name in sorted({block.kind for _, block in rows}):
        db.execute("INSERT OR IGNORE INTO string (text) VALUES (?)", (name,))
    words = dict(db.execute("SELECT text, id FROM string").fetchall())
    for number, block in rows:
        key = block.session * KEYS_PER_SOURCE + number
        db.execute(_insert(db, "message"), _padded(db, "message", (key, 1, b"%d" % number, "", b"", block.when)))
        db.execute(_insert(db, "block"), _padded(db, "block", (key, key, 0, 0, words[block.kind], len(block.text))))
    _store(db, rows[: len(indexed)])
    text_index.rebuild(db, folder)
    _store(db, rows[len(indexed) :])
    db.close()
    return folder


def _said(block: Said | str) -> Said:
    return Said(block) if isinstance(block, str) else block


def _store(db: sqlite3.Connection, rows: list[tuple[int, Said]]) -> None:
    for session in sorted({block.session for _, block in rows}):
        writer = SourceTextWriter(db, session)
        packer = ChunkPacker(lambda chunk, writer=writer: writer.write([chunk]))  # type: ignore[misc]
        for number, block in rows:
            if block.session == session:
                packer.add(session * KEYS_PER_SOURCE + number, block.kind, block.when, block.text)
        packer.flush()


def _columns(db: object, table: str) -> list[tuple[str, str]]:
    return [(row[1], row[2]) for row in db.execute(f"PRAGMA table_info({table})")]  # type: ignore[attr-defined]


def _insert(db: object, table: str) -> str:
    return f"INSERT INTO {table} VALUES ({', '.join('?' for _ in _columns(db, table))})"


def _padded(db: object, table: str, values: tuple[object, ...]) -> tuple[object, ...]:
    """The values, with something empty in all columns that are left."""
    rest = _columns(db, table)[len(values) :]
    empty = {"INTEGER": 0, "BLOB": b"", "TEXT": ""}
    return *values, *("{}" if name == "header" else empty.get(kind, "") for name, kind in rest)


def find(folder: Path, query: str, **options: object) -> Found:
    """Search, without redaction."""
    searcher = Searcher(folder, unmasked)
    try:
        return searcher.search(Request(query, **options))  # type: ignore[arg-type]
    finally:
        searcher.close()


def numbers(found: Found) -> set[int | None]:
    """The messages that were found."""
    return {hit.message for hit in found.hits}
