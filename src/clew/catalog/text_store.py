"""Stores the text of every block in compressed chunks, for snippets and for sessions whose source is deleted."""

from __future__ import annotations

import sqlite3
from array import array
from bisect import bisect_left
from collections.abc import Callable, Container, Iterable, Iterator
from hashlib import blake2b
from typing import NamedTuple

import zstandard

from clew.catalog.database import key_range
from clew.catalog.schema import KEYS_PER_SOURCE, SESSION_BLOCKS

CHUNK_BYTES = 64 << 10
"""Bytes of text that are compressed together: reading one text decompresses a chunk."""
ZSTD_LEVEL = 3
MIN_SHARED_CHARS = 64
"""Shorter texts are stored again instead of being looked up in another block."""
MAX_CACHED_CHUNKS = 4
FINGERPRINT_BYTES = 16


class PackedChunk(NamedTuple):
    """A row of the table `text_chunk`."""

    first: int
    last: int
    packed: bytes
    fingerprint: bytes


class Chunk(NamedTuple):
    """Blocks of one source: their keys, and the text of each; of a repeated text, the key of the block before."""

    docs: list[int]
    texts: list[bytes | int]


class ChunkPacker:
    """Packs texts into chunks, each of one source. A text that a source repeats is stored once.

    Chunks with a fingerprint that is `known` are stored already: they are passed on without their content.
    """

    def __init__(self, store: Callable[[PackedChunk], object], known: Container[bytes] = ()) -> None:
        self._store, self._known = store, known
        self._compress = zstandard.ZstdCompressor(level=ZSTD_LEVEL).compress
        self._first_with: dict[tuple[int, int], int] = {}
        self._region = -1, False
        self._docs: list[int] = []
        self._texts: list[bytes] = []
        self._shared: list[int] = []
        self._metadata: list[str] = []
        self._size = 0

    def add(self, doc: int, kind: str, time_us: int, text: str) -> None:
        """Store the text of a block; `doc` is larger than all before."""
        source, number = divmod(doc, KEYS_PER_SOURCE)
        if (source, number >= SESSION_BLOCKS) != self._region:
            self.flush()
            if source != self._region[0]:
                self._first_with.clear()
            self._region = source, number >= SESSION_BLOCKS
        first = doc
        if len(text) >= MIN_SHARED_CHARS:
            # By hash and length: that two different texts of a source agree in both is not expected to happen.
            first = self._first_with.setdefault((hash(text), len(text)), doc)
        self._docs.append(doc)
        self._shared.append(0 if first == doc else first % KEYS_PER_SOURCE)
        self._texts.append(text.encode("utf-8", "surrogatepass") if first == doc else b"")
        self._metadata.append(f"{kind}{time_us}")
        self._size += len(self._texts[-1])
        if self._size >= CHUNK_BYTES:
            self.flush()

    def flush(self) -> None:
        """Pack the texts that were added since the last chunk."""
        if not self._docs:
            return
        first, last = self._docs[0], self._docs[-1]
        head = array("I", [len(self._docs)])
        head.extend(doc - first for doc in self._docs)
        head.extend(map(len, self._texts))
        head.extend(self._shared)
        content = head.tobytes() + b"".join(self._texts)
        digest = blake2b(content, digest_size=FINGERPRINT_BYTES)
        digest.update(f"{first} {last} {' '.join(self._metadata)}".encode())
        fingerprint = digest.digest()
        packed = b"" if fingerprint in self._known else self._compress(content)
        self._store(PackedChunk(first, last, packed, fingerprint))
        self._docs, self._texts, self._shared, self._metadata, self._size = [], [], [], [], 0


class SourceTextWriter:
    """Writes the chunks of one source, and notes what the text index has to add or remove."""

    def __init__(self, db: sqlite3.Connection, source: int) -> None:
        self._db, self._source = db, source
        self._written: set[int] = set()

    def stored_fingerprints(self) -> set[bytes]:
        """The fingerprints of the chunks of the source."""
        query = "SELECT fingerprint FROM text_chunk WHERE first BETWEEN ? AND ?"
        return {fingerprint for (fingerprint,) in self._db.execute(query, key_range(self._source))}

    def write(self, chunks: Iterable[PackedChunk]) -> None:
        """Write chunks, except those that are stored already with the same fingerprint."""
        for chunk in chunks:
            self._written.add(chunk.first)
            query = "SELECT last, fingerprint FROM text_chunk WHERE first = ?"
            stored = self._db.execute(query, (chunk.first,)).fetchone()
            if stored is not None and stored[1] == chunk.fingerprint:
                continue
            if stored is not None:
                self._remove(chunk.first, stored[0])
            self._db.execute("INSERT OR REPLACE INTO text_chunk VALUES (?, ?, ?, ?)", chunk)
            self._db.execute("INSERT OR IGNORE INTO unindexed_text VALUES (?)", (chunk.first,))

    def finish(self) -> None:
        """Remove the chunks of the source that were not written again."""
        query = "SELECT first, last FROM text_chunk WHERE first BETWEEN ? AND ?"
        for first, last in self._db.execute(query, key_range(self._source)).fetchall():
            if first not in self._written:
                self._remove(first, last)
                self._db.execute("DELETE FROM text_chunk WHERE first = ?", (first,))
                self._db.execute("DELETE FROM unindexed_text WHERE first = ?", (first,))

    def _remove(self, first: int, last: int) -> None:
        query = "INSERT INTO removed_text VALUES (?, ?) ON CONFLICT DO UPDATE SET last = max(last, excluded.last)"
        self._db.execute(query, (first, last))


def mark_unindexed(db: sqlite3.Connection, messages: Iterable[int]) -> None:
    """Have the text of messages indexed again: other messages than before are visible."""
    by_source: dict[int, set[int]] = {}
    for message in messages:
        by_source.setdefault(message // KEYS_PER_SOURCE, set()).add(message)
    for source, changed in by_source.items():
        query = "SELECT id, message FROM block WHERE id BETWEEN ? AND ? AND chars > 0"
        span = (source * KEYS_PER_SOURCE, source * KEYS_PER_SOURCE + SESSION_BLOCKS)
        docs = [doc for doc, message in db.execute(query, span) if message in changed]
        # With `max(first)` SQLite would read all rows before the chunk.
        chunk = "SELECT first FROM text_chunk WHERE first <= ? ORDER BY first DESC LIMIT 1"
        db.executemany(f"INSERT OR IGNORE INTO unindexed_text {chunk}", [(doc,) for doc in docs])


def mark_session_unindexed(db: sqlite3.Connection, source: int) -> None:
    """Have all text of a session indexed again: its title and its files are visible now, or hidden."""
    query = "INSERT OR IGNORE INTO unindexed_text SELECT first FROM text_chunk WHERE first BETWEEN ? AND ?"
    db.execute(query, key_range(source))


class TextStore:
    """Reads stored texts."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._decompress = zstandard.ZstdDecompressor().decompress
        self._chunks: list[tuple[int, int, bytes]] = []

    def get(self, doc: int) -> str | None:
        """The text of a block; None where none is stored."""
        text = self._find(doc)
        if isinstance(text, int):
            text = self._find(text)
        return text.decode("utf-8", "surrogatepass") if isinstance(text, bytes) else None

    def _find(self, doc: int) -> bytes | int | None:
        for first, last, unpacked in self._chunks:
            if first <= doc <= last:
                return text_in(first, unpacked, doc)
        query = "SELECT first, last, packed FROM text_chunk WHERE first <= ? ORDER BY first DESC LIMIT 1"
        first, last, packed = self._db.execute(query, (doc,)).fetchone() or (0, -1, b"")
        if doc > last:
            return None
        unpacked = self._decompress(packed)
        self._chunks = [(first, last, unpacked), *self._chunks[: MAX_CACHED_CHUNKS - 1]]
        return text_in(first, unpacked, doc)

    def chunk(self, first: int) -> Chunk:
        """The chunk that begins with a block."""
        (packed,) = self._db.execute("SELECT packed FROM text_chunk WHERE first = ?", (first,)).fetchone()
        return cut(first, self._decompress(packed))

    def forget(self) -> None:
        """Empty the cache of chunks: they may have changed."""
        self._chunks = []

    def has_unindexed(self) -> bool:
        """True where the text index does not hold all texts."""
        return self._db.execute("SELECT 1 FROM unindexed_text LIMIT 1").fetchone() is not None

    def chunks(self, spans: Iterable[tuple[int, int]] | None = None) -> Iterator[tuple[int, bytes]]:
        """Every chunk, decompressed but not split into texts; with `spans`, those with keys in them."""
        query = "SELECT first, packed FROM text_chunk"
        found: Iterable[tuple[int, bytes]]
        if spans is None:
            found = self._db.execute(f"{query} ORDER BY first")
        else:
            found = (row for span in spans for row in self._db.execute(f"{query} WHERE first BETWEEN ? AND ?", span))
        for first, packed in found:
            yield first, self._decompress(packed)


def head_size(unpacked: bytes) -> int:
    """Where the texts of a chunk begin."""
    return 4 * (1 + 3 * array("I", unpacked[:4])[0])


def text_in(first: int, unpacked: bytes, doc: int) -> bytes | int | None:
    """The text of one block in a chunk, or the key of the block that has the same."""
    head = array("I", unpacked[: head_size(unpacked)])
    count = head[0]
    at = bisect_left(head, doc - first, 1, count + 1)
    if at > count or head[at] != doc - first:
        return None
    shared = head[2 * count + at]
    if shared:
        return first - first % KEYS_PER_SOURCE + shared
    start = 4 * len(head) + sum(head[count + 1 : count + at])
    return unpacked[start : start + head[count + at]]


def cut(first: int, unpacked: bytes) -> Chunk:
    """Split a chunk into its blocks."""
    head = array("I", unpacked[: head_size(unpacked)])
    count, place, base = head[0], 4 * len(head), first - first % KEYS_PER_SOURCE
    docs: list[int] = []
    texts: list[bytes | int] = []
    for offset, size, shared in zip(head[1 : count + 1], head[count + 1 :], head[2 * count + 1 :], strict=False):
        docs.append(first + offset)
        texts.append(base + shared if shared else unpacked[place : place + size])
        place += size
    return Chunk(docs, texts)
