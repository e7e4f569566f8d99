"""The stored text of every block, in packed chunks. It gives snippets, and it stays when a source is gone."""

from __future__ import annotations

import sqlite3
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from clew.catalog.schema import KEYS_PER_SOURCE

CHUNK = 64 << 10
"""Bytes of text that are packed together: about what one look costs."""
LEVEL = 1
"""Higher levels cost several times as much and save a tenth."""
WORTH_SHARING = 64
"""Shorter texts are stored again rather than looked up elsewhere."""
_KEPT = 4
"""Chunks that a reader keeps at hand."""


class Chunk(NamedTuple):
    """Some blocks of one source: their keys, and the text of each as bytes; of a text that stands before, its key."""

    docs: list[int]
    texts: list[bytes | int]


class Packer:
    """Packs texts in order: `store` is given chunks as rows of the table `text`, each of one source.

    A text that a source repeats is stored once.
    """

    def __init__(self, store: Callable[[int, int, bytes], object]) -> None:
        import zstandard

        self._store = store
        self._compress = zstandard.ZstdCompressor(level=LEVEL).compress
        self._seen: dict[tuple[int, int], int] = {}
        self._source = -1
        self._docs: list[int] = []
        self._texts: list[bytes] = []
        self._shared: list[int] = []
        self._size = 0

    def add(self, doc: int, text: str) -> None:
        """Store a text; `doc` is larger than any before."""
        if doc // KEYS_PER_SOURCE != self._source:
            self.flush()
            self._seen.clear()
            self._source = doc // KEYS_PER_SOURCE
        first = doc
        if len(text) >= WORTH_SHARING:
            # Text and length: two texts that differ and agree in both will not be met.
            first = self._seen.setdefault((hash(text), len(text)), doc)
        self._docs.append(doc)
        self._shared.append(0 if first == doc else first % KEYS_PER_SOURCE)
        self._texts.append(text.encode("utf-8", "surrogatepass") if first == doc else b"")
        self._size += len(self._texts[-1])
        if self._size >= CHUNK:
            self.flush()

    def flush(self) -> None:
        """Pack what is waiting."""
        if not self._docs:
            return
        first, last = self._docs[0], self._docs[-1]
        head = array("I", [len(self._docs)])
        head.extend(doc - first for doc in self._docs)
        head.extend(map(len, self._texts))
        head.extend(self._shared)
        packed = self._compress(head.tobytes() + b"".join(self._texts))
        self._store(first, last, packed)
        self._docs, self._texts, self._shared, self._size = [], [], [], 0


class TextStore:
    """Reads stored texts."""

    def __init__(self, db: sqlite3.Connection) -> None:
        import zstandard

        self._db = db
        self._decompress = zstandard.ZstdDecompressor().decompress
        self._chunks: list[tuple[int, int, bytes]] = []

    def get(self, doc: int) -> str | None:
        """The text of a block; None where none is stored."""
        found = self._db.execute("SELECT text FROM pending WHERE doc = ?", (doc,)).fetchone()
        return str(found[0]) if found is not None else self.stored(doc)

    def stored(self, doc: int) -> str | None:
        """The same for a block that does not wait for the index."""
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
        self._chunks = [(first, last, unpacked), *self._chunks[: _KEPT - 1]]
        return text_in(first, unpacked, doc)

    def forget(self) -> None:
        """Let go of what is kept at hand: it may have changed."""
        self._chunks = []

    def chunks(self, spans: Iterable[tuple[int, int]] | None = None) -> Iterator[tuple[int, bytes]]:
        """Every chunk, unpacked but not cut; with `spans`, those with keys in them."""
        query = "SELECT first, packed FROM text_chunk"
        found: Iterable[tuple[int, bytes]]
        if spans is None:
            found = self._db.execute(f"{query} ORDER BY first")
        else:
            found = (row for span in spans for row in self._db.execute(f"{query} WHERE first BETWEEN ? AND ?", span))
        for first, packed in found:
            yield first, self._decompress(packed)

    def pending(self) -> Iterator[tuple[int, str]]:
        """What is not in the index yet."""
        yield from self._db.execute("SELECT doc, text FROM pending ORDER BY doc")


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
    """A chunk in its blocks."""
    head = array("I", unpacked[: head_size(unpacked)])
    count, place, base = head[0], 4 * len(head), first - first % KEYS_PER_SOURCE
    docs: list[int] = []
    texts: list[bytes | int] = []
    for offset, size, shared in zip(head[1 : count + 1], head[count + 1 :], head[2 * count + 1 :], strict=False):
        docs.append(first + offset)
        texts.append(base + shared if shared else unpacked[place : place + size])
        place += size
    return Chunk(docs, texts)
