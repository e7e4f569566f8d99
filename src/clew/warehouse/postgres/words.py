"""The words of a text as the server keeps them, and what a query asks of them. The server cuts no text itself.

A row's words are a `tsvector` without places: which words it has, not where. So a single word is decided by the index
alone; of a phrase it tells where the words are, and the text decides. Words are letters and digits
(`catalog/tokens.py`), so none of them means anything in the spelling of a `tsvector` or a `tsquery`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from clew.catalog.query import All, Not, Phrase, Query, Some
from clew.catalog.tokenizer import parts, words

GIANT = "GIANT"
"""Marks texts with more or longer words than the server can keep. All words are in lower case."""
LONGEST = 2_000
"""Bytes of a word; the server takes 2,046."""
MOST = 1_000_000
"""Bytes of all words of a text; the server takes a mebibyte."""


def vector(text: str) -> str:
    """The words of a text, each once, as the server reads them."""
    found = set(words(text))
    for identifier in parts(text):
        found.update(identifier)
    if not text.isascii() or len(text) > LONGEST:
        return " ".join(sorted(_fitting(found)))
    return " ".join(sorted(found))


def _fitting(found: Iterable[str]) -> set[str]:
    """Those words that the server can keep, and a mark where others are left out."""
    kept, size = {GIANT}, 0
    is_whole = True
    for word in sorted(found):
        length = len(word.encode())
        if length > LONGEST or size + length > MOST:
            is_whole = False
        else:
            kept.add(word)
            size += length
    return kept - {GIANT} if is_whole else kept


class Lookup(NamedTuple):
    """What the index is asked for: every text that matches has it."""

    text: str | None
    """As a `tsquery`; None where any text may match."""
    is_exact: bool
    """True where no other text has it, but for those with the mark."""


def lookup(query: Query) -> Lookup:
    """What texts must have to match."""
    if isinstance(query, Phrase):
        return _phrase(query)
    if isinstance(query, Not):
        part = lookup(query.part)
        return Lookup(f"!({part.text})", True) if part.is_exact else Lookup(None, False)
    found = [lookup(part) for part in query.parts]
    is_exact = all(part.is_exact for part in found)
    if isinstance(query, All):
        return Lookup(_joined(" & ", [part.text for part in found if part.text is not None]), is_exact)
    assert isinstance(query, Some)
    if any(part.text is None for part in found):
        return Lookup(None, False)
    return Lookup(_joined(" | ", [part.text for part in found if part.text is not None]), is_exact)


def _joined(sign: str, texts: list[str]) -> str | None:
    return f"({sign.join(texts)})" if len(texts) > 1 else texts[0] if texts else None


def _phrase(phrase: Phrase) -> Lookup:
    *full, last = phrase.words
    pieces = [f"'{word}'" for word in full] + [f"'{last}':*" if phrase.is_prefix else f"'{last}'"]
    if any(len(word.encode()) > LONGEST for word in phrase.words):
        # Only texts with the mark can have it, and they are looked at anyway.
        return Lookup(f"'{GIANT}'", False)
    return Lookup(_joined(" & ", pieces), len(pieces) == 1)
