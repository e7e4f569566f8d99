"""The text index kept in step with the rows: what a kill left behind, what became visible, what is no longer true."""

from __future__ import annotations

from collections import defaultdict

from clew.catalog import database
from clew.catalog.row_writer import key_range, transaction
from clew.catalog.schema import KEYS_PER_SOURCE

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable
    from pathlib import Path

    from clew.catalog.text_index import TextWriter

PENDING = 256 << 10
"""So many characters of new text wait for the index; search looks through them one by one."""
HEAP = 16 << 20


class Unusable(Exception):
    """The text index cannot be opened."""


class WriteFailed(Exception):
    """The text index cannot be written: the disk is full, or closed to us."""


def recover(db: sqlite3.Connection, folder: Path | str) -> None:
    """A sync that was killed may have left text without rows, or rows without text: the rows are right.

    What was written in part is read anew.
    """
    flight = [source for (source,) in db.execute("SELECT source FROM flight")]
    if not flight:
        return
    rows = "SELECT f.id, f.shard FROM source f JOIN session s ON s.id = f.id JOIN flight t ON t.source = f.id"
    whole: dict[int, list[int]] = defaultdict(list)
    for source, shard in db.execute(f"{rows} WHERE f.shard >= 0 AND f.size >= 0"):
        whole[shard].append(source)
    for shard in sorted({*_shards(folder), *whole}):
        writer = _writer(folder, shard)
        # Which shard a new source went to is not known yet.
        for source in flight:
            writer.drop(source)
        for source in whole[shard]:
            _add_texts(db, writer, _shown_docs(db, source))
        writer.commit()
        writer.close()
    with transaction(db):
        known = "SELECT f.id FROM source f JOIN session s ON s.id = f.id WHERE f.shard >= 0 AND f.size >= 0"
        unread = f"id IN (SELECT source FROM flight) AND id NOT IN ({known})"
        db.execute(f"UPDATE source SET size = -1 WHERE {unread}")
        db.execute("DELETE FROM flight")


def touch_up(db: sqlite3.Connection, folder: Path | str, shown: list[int], is_large: bool) -> None:
    """Index what waits, once it is much; drop what is stale, whenever the index is written anyway."""
    (waiting,) = db.execute("SELECT coalesce(sum(length(text)), 0) FROM pending").fetchone()
    again = [doc for message in shown for doc in _docs_of(db, message)]
    if not (again or waiting > PENDING or (is_large and _has_any(db))):
        return
    wanted = _by_shard(db, [*again, *(doc for (doc,) in db.execute("SELECT doc FROM pending"))])
    stale = _by_shard(db, [doc for (doc,) in db.execute("SELECT doc FROM stale")])
    dropped = {doc for docs in stale.values() for doc in docs}.difference(again)
    with transaction(db):
        touched = {doc // KEYS_PER_SOURCE for docs in wanted.values() for doc in docs}
        db.executemany("INSERT OR IGNORE INTO flight VALUES (?)", [(source,) for source in touched])
    for shard in sorted({*wanted, *stale}):
        writer = _writer(folder, shard)
        writer.drop_docs(sorted({*stale[shard], *wanted[shard]}))
        _add_texts(db, writer, [doc for doc in wanted[shard] if doc not in dropped])
        writer.commit()
        writer.close()
    with transaction(db):
        _pack_pending(db)
        db.execute("DELETE FROM stale")
        db.executemany("DELETE FROM flight WHERE source = ?", [(source,) for source in touched])


def _has_any(db: sqlite3.Connection) -> bool:
    return db.execute("SELECT 1 FROM pending UNION ALL SELECT 1 FROM stale LIMIT 1").fetchone() is not None


def _pack_pending(db: sqlite3.Connection) -> None:
    from clew.catalog.text_store import Packer

    chunks: list[tuple[int, int, bytes]] = []
    source = -1
    packer = Packer(lambda *chunk: chunks.append(chunk))
    for doc, text in db.execute("SELECT doc, text FROM pending ORDER BY doc"):
        if doc // KEYS_PER_SOURCE != source:
            packer.flush()
            source = doc // KEYS_PER_SOURCE
        packer.add(doc, text)
    packer.flush()
    db.executemany("INSERT OR REPLACE INTO text_chunk VALUES (?, ?, ?)", chunks)
    db.execute("DELETE FROM pending")


def _by_shard(db: sqlite3.Connection, docs: Iterable[int]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = defaultdict(list)
    shards = dict(db.execute("SELECT id, shard FROM source").fetchall())
    for doc in docs:
        shard = shards.get(doc // KEYS_PER_SOURCE, -1)
        if shard >= 0:
            found[shard].append(doc)
    return found


def _docs_of(db: sqlite3.Connection, message: int) -> list[int]:
    query = "SELECT id FROM block WHERE message = ? AND chars > 0 AND id BETWEEN ? AND ?"
    return [doc for (doc,) in db.execute(query, (message, *key_range(message // KEYS_PER_SOURCE)))]


def _shown_docs(db: sqlite3.Connection, source: int) -> list[int]:
    query = "SELECT b.id FROM block b LEFT JOIN message m ON m.id = b.message WHERE b.id BETWEEN ? AND ?"
    query += " AND b.chars > 0 AND coalesce(m.is_visible, 1) = 1 AND b.id NOT IN (SELECT doc FROM pending)"
    return [doc for (doc,) in db.execute(query, key_range(source))]


def _add_texts(db: sqlite3.Connection, writer: TextWriter, docs: list[int]) -> None:
    from clew.catalog.text_store import TextStore

    store = TextStore(db)
    # Titles and names of files belong to no message: they are as new as their session.
    query = "SELECT k.text, coalesce(m.ts_us, s.ended_us) FROM block b JOIN string k ON k.id = b.kind"
    query += f" JOIN session s ON s.id = b.id / {KEYS_PER_SOURCE} LEFT JOIN message m ON m.id = b.message"
    query += " WHERE b.id = ?"
    for doc in docs:
        row = db.execute(query, (doc,)).fetchone()
        text = store.get(doc) if row is not None else None
        if text:
            writer.add(doc, doc // KEYS_PER_SOURCE, row[0], row[1], text)


def check_shards(folder: Path | str) -> None:
    """Raise Unusable where the index cannot be opened: then it is rebuilt before anything is written to it."""
    from clew.catalog.text_index import open_index, shards

    for shard in shards(f"{folder}/{database.TEXT}"):
        try:
            open_index(shard)
        except (ValueError, OSError) as error:
            raise Unusable(str(error)) from error


def _writer(folder: Path | str, shard: int) -> TextWriter:
    from clew.catalog.text_index import TextWriter

    try:
        return TextWriter(database.shard_folder(folder, shard), HEAP)
    except (ValueError, OSError) as error:
        raise Unusable(str(error)) from error


def _shards(folder: Path | str) -> list[int]:
    """The numbers of the shards that are there: a worker that had nothing to do made none."""
    from clew.catalog.text_index import shards

    return [int(path.rpartition("/")[2]) for path in shards(database.shard_folder(folder, 0).parent)]
