"""The text index: what is searched for, in tantivy. One document for each block; nothing is stored in it.

Each process that writes has a shard of its own, a folder with a number. A shard that a kill left behind is whole: what
was not committed is not there.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

from clew.catalog.tokenizer import has_giant, humps, spelled
from clew.datadir import private_folder

if TYPE_CHECKING:
    from pathlib import Path

    import tantivy

KINDS = ("prompt", "answer", "thinking", "input", "output", "title", "file")
"""The kinds of text; their numbers are their places here."""
META = "meta.json"
"""What says which files belong to a shard; replaced with each commit."""
MIN_HEAP = 16_000_000
GIANT = "GIANT"
"""Marks blocks with a word that is too long for the index. All words of texts are in lower case."""
_NUMBERS = {kind: number for number, kind in enumerate(KINDS)}
_CUTTER = "letters and digits"


class TextWriter:
    """Writes one shard. Nothing is seen by others before `commit`."""

    def __init__(self, folder: Path, heap_bytes: int) -> None:
        import tantivy

        private_folder(str(folder))
        self._folder = folder
        self._document = tantivy.Document
        self._index = open_index(folder)
        self._writer = self._index.writer(max(heap_bytes, MIN_HEAP), 1)

    def add(self, doc: int, source: int, kind: str, when: int, text: str) -> None:
        """Add a block: its key, its source's, one of `KINDS`, microseconds since 1970."""
        document = self._document()
        document.add_unsigned("doc", doc)
        document.add_unsigned("source", source)
        document.add_unsigned("kind", _NUMBERS[kind])
        document.add_integer("when", when)
        document.add_text("text", spelled(text))
        for identifier in humps(text):
            # A value of its own: no phrase leads from one into another.
            document.add_text("text", identifier)
        if has_giant(text):
            document.add_text("text", GIANT)
        self._writer.add_document(document)

    def drop(self, source: int) -> None:
        """Remove all that was added for a source so far."""
        self._remove("source", [source])

    def drop_docs(self, docs: Iterable[int]) -> None:
        """Remove single blocks."""
        self._remove("doc", list(docs))

    def _remove(self, field: str, values: list[int]) -> None:
        import tantivy

        if values:
            # By a query, because by a term no number is ever found.
            query = tantivy.Query.term_set_query(self._index.schema, field, values)
            self._writer.delete_documents_by_query(query)

    def commit(self) -> None:
        """Make everything so far last, and be seen."""
        self._writer.commit()

    def rollback(self) -> None:
        """Forget what was not committed."""
        self._writer.rollback()

    def close(self) -> None:
        """Let go of the shard; small pieces that are being joined are waited for."""
        self._writer.wait_merging_threads()
        # tantivy creates files with the mode that the umask gives; until now only the folder keeps others out.
        for path in self._folder.iterdir():
            with suppress(FileNotFoundError):
                if path.stat().st_mode & 0o077:
                    path.chmod(0o600)


def open_index(folder: Path | str) -> tantivy.Index:
    import tantivy

    builder = tantivy.SchemaBuilder()
    builder.add_unsigned_field("doc", indexed=True, fast=True)
    builder.add_unsigned_field("source", indexed=True)
    builder.add_unsigned_field("kind", indexed=True)
    builder.add_integer_field("when", fast=True)
    builder.add_text_field("text", tokenizer_name=_CUTTER, index_option="position")
    index = tantivy.Index(builder.build(), str(folder))
    index.register_tokenizer(_CUTTER, tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple()).build())
    return index


def shards(folder: Path | str) -> list[str]:
    """The shards in the folder of a catalog's text, in order."""
    try:
        names = sorted((name for name in os.listdir(folder) if name.isdecimal()), key=int)
    except OSError:
        return []
    return [f"{folder}/{name}" for name in names if os.path.exists(f"{folder}/{name}/{META}")]  # noqa: PTH110 - pathlib is not light
