"""Arbitrary JSON for property tests: objects that use an agent's own keys, with any value behind them."""

from __future__ import annotations

import json
from collections.abc import Sequence

from hypothesis import strategies as st

from clew.model.json import JSON

Line = tuple[dict[str, JSON], int]
"""A record, and the number of its spelling."""

NUMBERS = st.integers(-(10**12), 10**12) | st.floats(allow_nan=False, allow_infinity=False)
SCALARS = st.none() | st.booleans() | NUMBERS | st.text()
TIMES = st.sampled_from(["2026-01-11T22:00:00Z", "2026-01-11T17:00:00-0500", "2026-01-11T22:00:00.000Z", "soon", ""])


def words(text: str) -> list[str]:
    """The words of a text, for long lists of keys."""
    return text.split()


def values(keys: Sequence[str], texts: Sequence[str]) -> st.SearchStrategy[JSON]:
    """Any JSON value whose objects prefer the given keys, and whose strings prefer the given texts."""
    names = st.sampled_from(list(keys)) | st.text(max_size=3)
    leaves = SCALARS | st.sampled_from(list(texts)) | TIMES

    def nest(inner: st.SearchStrategy[JSON]) -> st.SearchStrategy[JSON]:
        return st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=6)

    return st.recursive(leaves, nest, max_leaves=15)


def records(keys: Sequence[str], texts: Sequence[str]) -> st.SearchStrategy[dict[str, JSON]]:
    """Any JSON object of that sort."""
    return st.dictionaries(st.sampled_from(list(keys)), values(keys, texts), max_size=8)


def spell(record: JSON, dialect: int) -> bytes:
    """A record on a line of its own, in one of several spellings."""
    compact = {"separators": (",", ":")}
    options: list[dict[str, JSON]] = [{**compact, "ensure_ascii": False}, {"ensure_ascii": False}, compact, {}]
    ends = [b"\n", b"\r\n", b"\n\n", b" \n"]
    return json.dumps(record, **options[dialect % 4]).encode() + ends[dialect // 4 % 4]
