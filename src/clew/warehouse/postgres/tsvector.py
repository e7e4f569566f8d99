"""Text to `tsvector`, and queries to `tsquery`. The server does not tokenize.

A row's `tsvector` has no positions: it says which words a text has, not where. So a single word is decided by the index
alone; for a phrase the index finds candidates, and the text decides. Words are letters and digits
(`catalog/tokenizer.py`), so no word has a meaning in the syntax of `tsvector` or `tsquery`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from clew.catalog.query import And, Not, Or, Phrase, Query
from clew.catalog.tokenizer import camel_case_words, words

TRUNCATED = "TRUNCATED"
"""Marks texts with more or longer words than the server can store. All other words are in lower case."""
MAX_WORD_BYTES = 2_000
"""The server accepts 2,046."""
MAX_TEXT_WORDS_BYTES = 1_000_000
"""All words of a text; the server accepts a mebibyte."""


def to_tsvector(text: str) -> str:
    """The words of a text, each once, as input of the type `tsvector`."""
    found = set(words(text))
    for identifier in camel_case_words(text):
        found.update(identifier)
    if not text.isascii() or len(text) > MAX_WORD_BYTES:
        found = _limit(found)
    return " ".join(sorted(found))


def _limit(found: Iterable[str]) -> set[str]:
    """The words that the server can store, and a mark if some are left out."""
    kept: set[str] = set()
    size, is_complete = 0, True
    for word in sorted(found):
        length = len(word.encode())
        if length > MAX_WORD_BYTES or size + length > MAX_TEXT_WORDS_BYTES:
            is_complete = False
        else:
            kept.add(word)
            size += length
    return kept if is_complete else kept | {TRUNCATED}


class IndexQuery(NamedTuple):
    """A condition that every matching text fulfils."""

    text: str | None
    """As a `tsquery`; None if any text may match."""
    index_is_exact: bool
    """True if all texts that fulfil it match, except those with the mark `TRUNCATED`."""


def to_tsquery(query: Query) -> IndexQuery:
    """The condition on the index for a query."""
    if isinstance(query, Phrase):
        return _phrase(query)
    if isinstance(query, Not):
        part = to_tsquery(query.part)
        return IndexQuery(f"!({part.text})", True) if part.index_is_exact else IndexQuery(None, False)
    found = [to_tsquery(part) for part in query.parts]
    is_exact = all(part.index_is_exact for part in found)
    if isinstance(query, And):
        return IndexQuery(_join(" & ", [part.text for part in found if part.text is not None]), is_exact)
    assert isinstance(query, Or)
    if any(part.text is None for part in found):
        return IndexQuery(None, False)
    return IndexQuery(_join(" | ", [part.text for part in found if part.text is not None]), is_exact)


def _join(operator: str, texts: list[str]) -> str | None:
    return f"({operator.join(texts)})" if len(texts) > 1 else texts[0] if texts else None


def _phrase(phrase: Phrase) -> IndexQuery:
    if any(len(word.encode()) > MAX_WORD_BYTES for word in phrase.words):
        # Only texts with the mark can have it, and these are always read.
        return IndexQuery(f"'{TRUNCATED}'", False)
    *full, last = phrase.words
    terms = [f"'{word}'" for word in full] + [f"'{last}':*" if phrase.is_prefix else f"'{last}'"]
    return IndexQuery(_join(" & ", terms), len(terms) == 1)
