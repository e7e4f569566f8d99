"""The text index, in tantivy: one document for each block with text of a visible message.

It is built from the stored text of the catalog, and stores no text itself. `update` adds what is not indexed yet and
removes what is stale; the same code runs after a sync, after a crash and for a new index.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from clew.catalog.change_detection import text_index_exists, text_index_is_complete
from clew.catalog.database import TEXT, transaction
from clew.catalog.schema import KEYS_PER_SOURCE, VISIBLE_BLOCK
from clew.catalog.text_store import TextStore
from clew.catalog.tokenizer import camel_case_parts, has_overlong_word, normalize_text
from clew.datadir import private_folder
from clew.io.batches import batches_by_size

if TYPE_CHECKING:
    import tantivy

KINDS = ("prompt", "answer", "thinking", "input", "output", "title", "file")
"""The kinds of text. The index stores the position in this list: append only."""
META = "meta.json"
"""The file that names the files of an index; replaced with each commit."""
OVERLONG_MARKER = "GIANT"
"""Marks blocks with a word that is too long for the index. All words of texts are in lower case."""
COMMIT_BYTES = 24 << 20
"""Compressed bytes of text after which the index is committed."""
MAX_THREADS = 4
HEAP_BYTES_PER_THREAD = 64 << 20
SMALL_UPDATE_BYTES = 1 << 20
"""Compressed bytes up to which one thread with little memory is enough."""
SMALL_HEAP_BYTES = 16 << 20
_KIND_NUMBERS = {kind: number for number, kind in enumerate(KINDS)}
_TOKENIZER = "letters and digits"

ProgressCallback = Callable[[int, int], None]
"""Called with the bytes done and the bytes in total."""


class IndexUnreadable(Exception):
    """The text index is damaged: it has to be rebuilt."""


class IndexNotWritable(Exception):
    """The text index cannot be written: the disk is full, or permission is missing."""


class UnindexedText(NamedTuple):
    """How much text the index does not hold yet."""

    blocks: int
    bytes: int
    """Of compressed text."""


_UNINDEXED_CHUNKS = "unindexed_text u CROSS JOIN text_chunk c USING (first)"
"""SQLite keeps the order of a cross join: reading `text_chunk` first would read all stored text."""


def unindexed_text(db: sqlite3.Connection) -> UnindexedText:
    """Count the text that a search by words cannot find yet."""
    blocks = "SELECT count(*) FROM block b WHERE b.id BETWEEN c.first AND c.last AND b.chars > 0"
    query = f"SELECT coalesce(sum(({blocks})), 0), coalesce(sum(length(c.packed)), 0)"
    return UnindexedText(*db.execute(f"{query} FROM {_UNINDEXED_CHUNKS}").fetchone())


def stale_ranges(db: sqlite3.Connection) -> list[tuple[int, int]]:
    """The ranges of blocks whose text in the index may differ from the catalog."""
    unindexed = f"SELECT c.first, c.last FROM {_UNINDEXED_CHUNKS}"
    ranges: list[tuple[int, int]] = []
    for first, last in db.execute(f"{unindexed} UNION SELECT first, last FROM removed_text ORDER BY 1, 2"):
        if ranges and (first <= ranges[-1][1] + 1 or not _has_indexed_between(db, ranges[-1][1], first)):
            ranges[-1] = ranges[-1][0], max(last, ranges[-1][1])
        else:
            ranges.append((first, last))
    return ranges


def _has_indexed_between(db: sqlite3.Connection, after: int, before: int) -> bool:
    query = "SELECT 1 FROM text_chunk WHERE first > ? AND first < ? LIMIT 1"
    return db.execute(query, (after, before)).fetchone() is not None


def update(db: sqlite3.Connection, folder: Path, on_progress: ProgressCallback | None = None) -> None:
    """Index the text that is not indexed yet, and remove what is stale. A damaged index is rebuilt."""
    if text_index_is_complete(db, folder):
        return
    if not text_index_exists(folder):
        _mark_all_unindexed(db)
    try:
        _update(db, folder, on_progress)
    except IndexUnreadable:
        rebuild(db, folder, on_progress)


def rebuild(db: sqlite3.Connection, folder: Path, on_progress: ProgressCallback | None = None) -> None:
    """Delete the index and make another one."""
    delete(db, folder)
    _update(db, folder, on_progress)


def delete(db: sqlite3.Connection, folder: Path) -> None:
    """Delete the files of the index. Raises OSError for one that cannot be deleted: it may hold erased text."""
    _mark_all_unindexed(db)
    if (folder / TEXT).exists():
        for path in (folder / TEXT).iterdir():
            # A search that ends meanwhile deletes its lock file.
            path.unlink(missing_ok=True)


def _mark_all_unindexed(db: sqlite3.Connection) -> None:
    with transaction(db):
        db.execute("INSERT OR IGNORE INTO unindexed_text SELECT first FROM text_chunk")
        db.execute("DELETE FROM removed_text")


def _update(db: sqlite3.Connection, folder: Path, on_progress: ProgressCallback | None) -> None:
    query = f"SELECT c.first, length(c.packed) FROM {_UNINDEXED_CHUNKS} ORDER BY first"
    sizes = db.execute(query).fetchall()
    total = sum(size for _, size in sizes)
    done = 0
    store = TextStore(db)
    writer = TextWriter(folder / TEXT, is_small=total <= SMALL_UPDATE_BYTES)
    try:
        writer.remove(stale_ranges(db))
        # One commit also where there is nothing to add: something may have to be removed.
        for chunks in list(batches_by_size(sizes, lambda chunk: chunk[1], COMMIT_BYTES)) or [[]]:
            for first, size in chunks:
                _add_chunk(db, store, writer, first)
                done += size
                if on_progress is not None:
                    on_progress(done, total)
            writer.commit()
            with transaction(db):
                db.executemany("DELETE FROM unindexed_text WHERE first = ?", [(first,) for first, _ in chunks])
                db.execute("DELETE FROM removed_text")
    except BaseException:
        # The writer holds a lock until it is closed.
        with suppress(OSError, ValueError):
            writer.close()
        raise
    writer.close()


_VISIBLE_BLOCKS = f"""
SELECT b.id, k.text, coalesce(m.ts_us, s.ended_us)
FROM block b JOIN session s ON s.id = b.id / {KEYS_PER_SOURCE} JOIN string k ON k.id = b.kind
  LEFT JOIN message m ON m.id = b.message
WHERE b.id BETWEEN ? AND ? AND b.chars > 0 AND {VISIBLE_BLOCK}
"""
"""Titles and names of files belong to no message: they are as new as their session."""


def _add_chunk(db: sqlite3.Connection, store: TextStore, writer: TextWriter, first: int) -> None:
    docs, texts = store.chunk(first)
    text_of = dict(zip(docs, texts, strict=True))
    for doc, kind, time_us in db.execute(_VISIBLE_BLOCKS, (docs[0], docs[-1])):
        text = text_of.get(doc)
        if isinstance(text, int):
            writer.add(doc, kind, time_us, store.get(text) or "")
        elif text:
            writer.add(doc, kind, time_us, text.decode("utf-8", "surrogatepass"))


class TextWriter:
    """Writes the index. Nothing is visible to searches before `commit`."""

    def __init__(self, folder: Path, *, is_small: bool = True) -> None:
        import tantivy

        private_folder(str(folder))
        self._folder = folder
        self._tantivy = tantivy
        threads = 1 if is_small else min(MAX_THREADS, os.cpu_count() or 1)
        heap = SMALL_HEAP_BYTES if is_small else HEAP_BYTES_PER_THREAD * threads
        try:
            self._index = open_index(folder)
            self._writer = self._index.writer(heap, threads)
        except (ValueError, OSError) as error:
            raise IndexUnreadable(str(error)) from error

    def add(self, doc: int, kind: str, time_us: int, text: str) -> None:
        """Add a block: its key, one of `KINDS`, microseconds since 1970, its text."""
        document = self._tantivy.Document()
        document.add_unsigned("doc", doc)
        document.add_unsigned("source", doc // KEYS_PER_SOURCE)
        document.add_unsigned("kind", _KIND_NUMBERS[kind])
        document.add_integer("when", time_us)
        document.add_text("text", normalize_text(text))
        for identifier in camel_case_parts(text):
            # A separate value: phrases do not match across values.
            document.add_text("text", identifier)
        if has_overlong_word(text):
            document.add_text("text", OVERLONG_MARKER)
        try:
            self._writer.add_document(document)
        except (ValueError, OSError) as error:
            raise IndexNotWritable(str(error)) from error

    def remove(self, ranges: Iterable[tuple[int, int]]) -> None:
        """Remove the blocks with keys in these ranges."""
        if not self._index.searcher().num_docs:
            return
        query, unsigned = self._tantivy.Query, self._tantivy.FieldType.Unsigned
        for first, last in ranges:
            self._writer.delete_documents_by_query(query.range_query(self._index.schema, "doc", unsigned, first, last))

    def commit(self) -> None:
        """Make everything so far durable and visible."""
        try:
            self._writer.commit()
        except (ValueError, OSError) as error:
            raise IndexNotWritable(str(error)) from error

    def close(self) -> None:
        """Close the index, after segments that are being merged."""
        self._writer.wait_merging_threads()
        # tantivy creates files with the mode that the umask gives; until now only the folder keeps others out.
        for path in self._folder.iterdir():
            with suppress(FileNotFoundError):
                if path.stat().st_mode & 0o077:
                    path.chmod(0o600)


def open_index(folder: Path | str) -> tantivy.Index:
    """Open the index in a folder, or create it."""
    import tantivy

    builder = tantivy.SchemaBuilder()
    builder.add_unsigned_field("doc", indexed=True, fast=True)
    builder.add_unsigned_field("source", indexed=True)
    builder.add_unsigned_field("kind", indexed=True)
    builder.add_integer_field("when", fast=True)
    builder.add_text_field("text", tokenizer_name=_TOKENIZER, index_option="position")
    index = tantivy.Index(builder.build(), str(folder))
    index.register_tokenizer(_TOKENIZER, tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple()).build())
    return index
