"""A text index that cannot be read is made anew from the stored text: no source is needed for it."""

from __future__ import annotations

import shutil
from pathlib import Path

from clew.catalog import place
from clew.catalog.locking import WAIT, locked
from clew.catalog.schema import SPAN
from clew.catalog.text import TextWriter
from clew.catalog.texts import TextStore
from clew.catalog.writing import transaction

HEAP = 64 << 20

_BLOCKS = f"""
SELECT b.id, k.text, coalesce(m.ts_us, s.ended_us)
FROM block b JOIN source f ON f.id = b.id / {SPAN} JOIN session s ON s.id = f.id JOIN word k ON k.id = b.kind
  LEFT JOIN message m ON m.id = b.message
WHERE f.shard = ? AND b.chars > 0 AND coalesce(m.shown, 1) = 1 AND b.id NOT IN (SELECT doc FROM pending) ORDER BY b.id
"""


def index_anew(folder: Path) -> None:
    """Throw the text index of a catalog away, and make another."""
    with locked(folder, WAIT):
        shutil.rmtree(folder / place.TEXT, ignore_errors=True)
        db = place.open_writer(folder)
        try:
            store = TextStore(db)
            for (shard,) in db.execute("SELECT DISTINCT shard FROM source WHERE shard >= 0 ORDER BY 1").fetchall():
                writer = TextWriter(place.shard_folder(folder, shard), HEAP)
                for doc, kind, when in db.execute(_BLOCKS, (shard,)):
                    text = store.get(doc)
                    if text:
                        writer.add(doc, doc // SPAN, kind, when, text)
                writer.commit()
                writer.close()
            with transaction(db):
                db.execute("DELETE FROM stale")
        finally:
            db.close()
