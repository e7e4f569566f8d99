"""A text index that cannot be read is made anew from the stored text: no source is needed for it."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

from clew.catalog import database
from clew.catalog.lock import WAIT, locked
from clew.catalog.row_writer import transaction
from clew.catalog.schema import KEYS_PER_SOURCE
from clew.catalog.text_index import TextWriter
from clew.catalog.text_store import TextStore

HEAP = 64 << 20

_BLOCKS = f"""
SELECT b.id, k.text, coalesce(m.ts_us, s.ended_us)
FROM block b JOIN source f ON f.id = b.id / {KEYS_PER_SOURCE} JOIN session s ON s.id = f.id JOIN string k
  ON k.id = b.kind
  LEFT JOIN message m ON m.id = b.message
WHERE f.shard = ? AND b.chars > 0 AND coalesce(m.is_visible, 1) = 1 AND b.id NOT IN (SELECT doc FROM pending)
  ORDER BY b.id
"""


def index_anew(folder: Path) -> None:
    """Throw the text index of a catalog away, and make another."""
    with locked(folder, WAIT):
        rebuild(folder)


def rebuild(folder: Path) -> None:
    """The same, for who holds the lock of the catalog."""
    db = database.open_writer(folder)
    try:
        with transaction(db):
            # Should we be killed, the next sync knows whose text is not in the index.
            db.execute("INSERT OR IGNORE INTO flight SELECT id FROM source WHERE shard >= 0")
        shutil.rmtree(folder / database.TEXT, ignore_errors=True)
        store = TextStore(db)
        for (shard,) in db.execute("SELECT DISTINCT shard FROM source WHERE shard >= 0 ORDER BY 1").fetchall():
            _fill(db, store, TextWriter(database.shard_folder(folder, shard), HEAP), shard)
        with transaction(db):
            db.execute("DELETE FROM stale")
            db.execute("DELETE FROM flight WHERE source IN (SELECT id FROM source WHERE shard >= 0)")
    finally:
        db.close()


def _fill(db: sqlite3.Connection, store: TextStore, writer: TextWriter, shard: int) -> None:
    for doc, kind, when in db.execute(_BLOCKS, (shard,)):
        text = store.get(doc)
        if text:
            writer.add(doc, doc // KEYS_PER_SOURCE, kind, when, text)
    writer.commit()
    writer.close()
