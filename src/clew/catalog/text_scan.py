"""Search the stored text itself, for substrings and for regular expressions in linear time. Matches are exact.

If every match must contain some literal text, the index names the blocks with it; else all blocks are read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any, NamedTuple

from clew.catalog.database import key_range
from clew.catalog.lookup import Scope, TextReader
from clew.catalog.schema import KEYS_PER_SOURCE
from clew.catalog.text_store import TextStore, cut, head_size
from clew.errors import UsageError

_ASSERTIONS = ("^", "$", r"\A", r"\z", r"\b", r"\B")
"""Everything in RE2 that depends on the text before or behind a match."""
_MEMORY_BYTES = 64 << 20
MAX_CANDIDATES = 2_000
"""Up to this many blocks are read one by one; for more, reading all chunks is faster."""


class TextMatcher(NamedTuple):
    """A substring or a regular expression, ready to be searched for."""

    matches_bytes: Callable[[bytes, int], bool]
    """True if UTF-8 text contains a match at or after an offset."""
    find_span: Callable[[str], list[tuple[int, int]]]
    """Returns the span of the first match in a text; none if there is no match."""
    literals: tuple[str, ...]
    """Substrings that every match contains, whatever their case."""
    can_prefilter_chunk: bool
    """True if a match in a text is also one in a longer text that contains it."""


def substring(text: str) -> TextMatcher:
    """A substring, whatever its case."""
    if not text:
        raise UsageError("the query is empty")
    folded = text.casefold()
    if text.isascii():
        letters = folded.encode()
        return TextMatcher(lambda found, at: found.lower().find(letters, at) >= 0, _finder(folded), (text,), True)

    def matches_bytes(found: bytes, at: int) -> bool:
        return folded in found[at:].decode("utf-8", "replace").casefold()

    return TextMatcher(matches_bytes, _finder(folded), (), True)


def _finder(folded: str) -> Callable[[str], list[tuple[int, int]]]:
    def find_span(text: str) -> list[tuple[int, int]]:
        lowered = text.lower() if text.isascii() else text.casefold()
        start = lowered.find(folded)
        # Casefolding can make a text longer; then the span is approximate.
        return [(start, start + len(folded))] if start >= 0 and start + len(folded) <= len(text) else []

    return find_span


def regex(pattern: str) -> TextMatcher:
    """A regular expression, in the syntax of RE2."""
    import re2

    if not pattern:
        raise UsageError("the query is empty")
    options = re2.Options()
    options.log_errors, options.never_capture, options.max_mem = False, True, _MEMORY_BYTES
    clean = pattern.encode("utf-8", "replace").decode()
    try:
        raw, readable = re2.compile(clean.encode(), options), re2.compile(clean, options)
    except re2.error as error:
        message = error.args[0] if error.args else error
        why = message.decode("utf-8", "replace") if isinstance(message, bytes) else str(message)
        raise UsageError(f"--regex: {why}") from None
    search: Any = raw.search
    can_prefilter_chunk = not any(assertion in pattern for assertion in _ASSERTIONS)
    return TextMatcher(
        lambda found, at: search(found, at) is not None, _matches(readable), literals_of(pattern), can_prefilter_chunk
    )


def _matches(compiled: Any) -> Callable[[str], list[tuple[int, int]]]:
    def find_span(text: str) -> list[tuple[int, int]]:
        found = compiled.search(text.encode("utf-8", "replace").decode())
        return [found.span()] if found and found.end() > found.start() else []

    return find_span


def literals_of(pattern: str) -> tuple[str, ...]:
    """Substrings that every match of an expression contains; none for an expression that is not simple."""
    if "|" in pattern or "(?" in pattern.removeprefix("(?i)"):
        return ()
    pieces, run, depth, at = list[str](), "", 0, len(pattern) - len(pattern.removeprefix("(?i)"))
    while at < len(pattern):
        char, size = pattern[at], 1
        if char == "\\":
            size, literal = 2, pattern[at + 1 : at + 2]
            if literal in ("b", "B"):
                literal = ""
            elif literal.isalnum():
                return () if literal in "QEpPx0123456789" else _nonempty(pieces, run)
        elif char == "[":
            return _nonempty(pieces, run)
        else:
            literal = "" if char in "(){}.*+?^$" else char
        if literal and not depth:
            run += literal
        else:
            # The character before ? * { may be missing.
            pieces.append(run[:-1] if char in "?*{" else run)
            run = ""
            depth += (char == "(") - (char == ")")
            if char in "({":
                return _nonempty(pieces, "")
        at += size
    return _nonempty(pieces, run)


def _nonempty(pieces: list[str], run: str) -> tuple[str, ...]:
    return tuple(piece for piece in (*pieces, run) if piece)


def scan(store: TextStore, reader: TextReader, wanted: TextMatcher, scope: Scope) -> Iterator[int]:
    """The ids of the blocks with a match, also of blocks that are outdated or not yet indexed."""
    docs = reader.candidates_containing(wanted.literals, scope, MAX_CANDIDATES)
    if docs is None:
        yield from _scan_sources(store, wanted, scope.sources)
        return
    stale = {
        source
        for first, last in scope.stale
        for source in range(first // KEYS_PER_SOURCE, last // KEYS_PER_SOURCE + 1)
        if scope.sources is None or source in scope.sources
    }
    yield from _scan_sources(store, wanted, stale)
    for doc in sorted(docs):
        found = store.get(doc) if doc // KEYS_PER_SOURCE not in stale else None
        if found is not None and _has(wanted, found):
            yield doc


def _has(wanted: TextMatcher, text: str) -> bool:
    return wanted.matches_bytes(text.encode("utf-8", "surrogatepass"), 0)


def _scan_sources(store: TextStore, wanted: TextMatcher, sources: Collection[int] | None) -> Iterator[int]:
    """The ids of the blocks with a match in some sources, or in all."""
    spans = [key_range(source) for source in sorted(sources)] if sources is not None else None
    found: set[int] = set()
    source = -1
    for first, unpacked in store.chunks(spans):
        if first // KEYS_PER_SOURCE != source:
            source = first // KEYS_PER_SOURCE
            found.clear()
        if wanted.can_prefilter_chunk and not found and not wanted.matches_bytes(unpacked, head_size(unpacked)):
            continue
        chunk = cut(first, unpacked)
        for doc, text in zip(chunk.docs, chunk.texts, strict=True):
            if text in found if isinstance(text, int) else wanted.matches_bytes(text, 0):
                found.add(doc)
                yield doc
