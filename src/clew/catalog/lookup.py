"""Queries the text index: which blocks match, how many, and in what order."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from clew.catalog.query import Not, Or, Phrase, Query
from clew.catalog.text_index import KINDS, META, OVERLONG_MARKER
from clew.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    import tantivy

MAX_HITS = 100_000
"""Hits beyond this number cannot be shown."""


class Scope(NamedTuple):
    """The kinds of text and the sources to search; None means all."""

    kinds: frozenset[str] | None = None
    sources: frozenset[int] | None = None
    stale: Sequence[tuple[int, int]] = ()
    """Ranges of blocks whose text in the index may be outdated; they are left out."""


class Match(NamedTuple):
    """A block that matches. The larger the rank, the earlier it is shown."""

    rank: float
    when: int
    doc: int
    place: tuple[int, int] = (-1, 0)
    """Segment and document number in the index: a tie-break, so that pages agree on the order of equal hits."""


_MAX_EXPANSIONS = 1 << 14
"""tantivy's limit of words that the patterns of one phrase may match."""
_MAX_PATTERN_CHARS = 128
"""Longer words are not used as patterns: tantivy refuses patterns with more than 1000 states."""
_INVALID_ARGUMENT = "An invalid argument was passed"
"""The beginning of tantivy's errors about a query; any other error means that the index is damaged."""


class TextReader:
    """Reads the text index of a catalog, as it was at the last `refresh`."""

    def __init__(self, folder: Path | str | None = None) -> None:
        """Open the index in a folder; without one it is empty."""
        self._folder = folder
        self._index: _OpenIndex | None = None
        self.refresh()

    def refresh(self) -> None:
        """Load what was committed since the last refresh; without a commit, this is a single stat."""
        if self._folder is None or not os.path.exists(f"{self._folder}/{META}"):  # noqa: PTH110
            self._index = None
            return
        if self._index is not None:
            try:
                self._index.refresh()
                return
            except (OSError, ValueError):
                # Another process has rebuilt the index: the old files are gone.
                self._index = None
        try:
            self._index = _OpenIndex(str(self._folder))
        except FileNotFoundError:
            # It is being rebuilt at this moment.
            self._index = None

    def find(self, query: Query, scope: Scope, limit: int, *, newest: bool) -> tuple[int, list[Match]]:
        """How many blocks match, and the first of them."""
        if self._index is None:
            return 0, []
        total, found = self._index.find(self._index.compiled(query), scope, limit, newest)
        return total, sort_matches(found, newest)

    def candidates_containing(self, literals: Sequence[str], scope: Scope, most: int) -> list[int] | None:
        """The blocks that may contain all of these texts; every block that does is among them.

        None where they are more than `most`, or where the texts are too short to narrow the search.
        """
        pieces = [piece for literal in literals for piece in _literal_words(literal)]
        if not any(len(word) >= _MIN_LITERAL_CHARS for word, _, _ in pieces):
            return None
        if self._index is None:
            return []
        count, matches = self._index.find(self._index.containing(pieces), scope, most + 1, True)
        return [match.doc for match in matches] if count <= most else None


def sort_matches(matches: list[Match], newest: bool) -> list[Match]:
    """Sort matches, the best or the newest first."""
    if newest:
        return sorted(matches, key=lambda match: (-match.when, match.place, -match.doc))
    return sorted(matches, key=lambda match: (-match.rank, match.place, -match.when, -match.doc))


class _OpenIndex:
    def __init__(self, path: str) -> None:
        import tantivy

        self._tantivy = tantivy
        self._queries = tantivy.Query
        self._index = tantivy.Index.open(path)
        self._index.config_reader(reload_policy="manual")
        self._schema = self._index.schema
        self._meta = f"{path}/{META}"
        self._seen = self._stamp()
        self._index.reload()
        self._searcher = self._index.searcher()

    def _stamp(self) -> tuple[int, int]:
        found = os.stat(self._meta)
        return found.st_mtime_ns, found.st_ino

    def refresh(self) -> None:
        stamp = self._stamp()
        if stamp != self._seen:
            self._index.reload()
            self._searcher, self._seen = self._index.searcher(), stamp

    @property
    def size(self) -> int:
        return max(1, self._searcher.num_docs)

    def find(self, compiled: tantivy.Query, scope: Scope, limit: int, newest: bool) -> tuple[int, list[Match]]:
        tantivy, searcher = self._tantivy, self._searcher
        scoped = self._scoped(compiled, scope)
        limit = min(limit, self.size)
        order: dict[str, Any] = {"order_by_field": "when", "order": tantivy.Order.Desc} if newest else {}
        try:
            found = searcher.search(scoped, limit, **order)
        except ValueError as error:
            if str(error).startswith(_INVALID_ARGUMENT):
                raise UsageError(f"the text index cannot answer this query: {error}") from None
            raise
        places = [place for _, place in found.hits]
        docs, times = searcher.fast_field_values("doc", places), searcher.fast_field_values("when", places)
        matches = [
            Match(hit[0], int(when or 0), int(doc or 0), (hit[1].segment_ord, hit[1].doc))
            for hit, when, doc in zip(found.hits, times, docs, strict=True)
        ]
        return int(found.count), matches  # type: ignore[attr-defined]

    def _scoped(self, compiled: tantivy.Query, scope: Scope) -> tantivy.Query:
        """Limit a query to a scope, which does not change the ranks."""
        must, queries = self._tantivy.Occur.Must, self._queries
        limits = []
        if scope.kinds is not None:
            limits.append((must, self._any("kind", [KINDS.index(kind) for kind in scope.kinds])))
        if scope.sources is not None:
            limits.append((must, self._any("source", sorted(scope.sources))))
        if scope.stale:
            unsigned = self._tantivy.FieldType.Unsigned
            for first, last in scope.stale:
                stale = self._queries.range_query(self._schema, "doc", unsigned, first, last)
                limits.append((self._tantivy.Occur.MustNot, stale))
        return queries.boolean_query([(must, compiled), *limits]) if limits else compiled

    def _any(self, field: str, values: list[int]) -> tantivy.Query:
        if not values:
            return self._queries.empty_query()
        return self._queries.const_score_query(self._queries.term_set_query(self._schema, field, values), 0.0)

    def compiled(self, query: Query) -> tantivy.Query:
        """Build the query of tantivy from its parts; tantivy's own query parser is not used."""
        occur, queries = self._tantivy.Occur, self._queries
        if isinstance(query, Phrase):
            return self._phrase(query)
        if isinstance(query, Not):
            return queries.boolean_query(
                [(occur.Must, queries.all_query()), (occur.MustNot, self.compiled(query.part))]
            )
        if isinstance(query, Or):
            return queries.boolean_query([(occur.Should, self.compiled(part)) for part in query.parts])
        parts = [self._part(part) for part in query.parts]
        if all(isinstance(part, Not) for part in query.parts):
            # tantivy finds nothing with exclusions alone.
            parts.insert(0, (occur.Must, queries.all_query()))
        return queries.boolean_query(parts)

    def _part(self, part: Query) -> tuple[tantivy.Occur, tantivy.Query]:
        if isinstance(part, Not):
            return self._tantivy.Occur.MustNot, self.compiled(part.part)
        return self._tantivy.Occur.Must, self.compiled(part)

    def _phrase(self, phrase: Phrase) -> tantivy.Query:
        schema = self._schema
        words: list[str | tuple[int, str]] = list(phrase.words)
        *full, last = phrase.words
        if len(words) == 1 and phrase.is_prefix:
            return self._queries.fuzzy_term_query(schema, "text", last, 0, False, True)
        if len(words) == 1:
            return self._queries.term_query(schema, "text", last)
        if phrase.is_prefix:
            return self._prefix_phrase(full, last)
        return self._queries.phrase_query(schema, "text", words)

    def _prefix_phrase(self, full: list[str], last: str) -> tantivy.Query:
        """A phrase whose last word is a prefix."""
        schema, queries, should = self._schema, self._queries, self._tantivy.Occur.Should
        if max(map(len, (*full, last))) > _MAX_PATTERN_CHARS:
            # Few blocks have such a long word, so each word that completes the prefix in them becomes a phrase.
            must = self._tantivy.Occur.Must
            filter_query = queries.boolean_query([(must, queries.term_query(schema, "text", word)) for word in full])
            found = self._searcher.terms_with_prefix("text", last, filter_query)
            phrases = [queries.phrase_query(schema, "text", [*full, word]) for word, _ in found]
        else:
            # Words consist of letters and digits, so they need no escaping in a pattern.
            found = self._searcher.terms_with_prefix("text", last)
            patterns = prefix_patterns(last, [word for word, _ in found], _MAX_EXPANSIONS - len(full))
            phrases = [queries.regex_phrase_query(schema, "text", [*full, pattern]) for pattern in patterns]
        return phrases[0] if len(phrases) == 1 else queries.boolean_query([(should, each) for each in phrases])

    def containing(self, pieces: Sequence[tuple[str, bool, bool]]) -> tantivy.Query:
        occur, queries = self._tantivy.Occur, self._queries
        # Nearly every text contains the shorter words.
        musts = [(occur.Must, self._containing_word(piece)) for piece in pieces if len(piece[0]) >= _MIN_LITERAL_CHARS]
        giant = queries.term_query(self._schema, "text", OVERLONG_MARKER)
        return queries.boolean_query([(occur.Should, queries.boolean_query(musts)), (occur.Should, giant)])

    def _containing_word(self, piece: tuple[str, bool, bool]) -> tantivy.Query:
        word, begins, ends = piece
        if begins and ends:
            return self._queries.term_query(self._schema, "text", word)
        pattern = ("" if begins else ".*") + word + ("" if ends else ".*")
        return self._queries.regex_query(self._schema, "text", pattern)


_ASCII_WORD = re.compile("[A-Za-z0-9]+")
_MIN_LITERAL_CHARS = 3
"""Shorter words do not narrow a search."""


def _literal_words(literal: str) -> list[tuple[str, bool, bool]]:
    """The ASCII words of a literal, each with whether the literal shows that a word begins and ends there.

    Long words are cut: their beginning is enough to find the blocks that may contain them.
    """
    found = []
    for run in _ASCII_WORD.finditer(literal):
        before, behind = literal[: run.start()][-1:], literal[run.end() :][:1]
        begins, ends = before != "" and before.isascii(), behind != "" and behind.isascii()
        word = run[0].lower()
        found.append((word[:_MAX_PATTERN_CHARS], begins, ends and len(word) <= _MAX_PATTERN_CHARS))
    return found


def prefix_patterns(prefix: str, words: Sequence[str], most: int) -> Iterator[str]:
    """Patterns that together match these words, which all begin with the prefix; each matches at most `most` words."""
    if len(words) <= most:
        yield f"{prefix}.*"
        return
    groups: dict[str, list[str]] = {}
    for word in words:
        groups.setdefault(word[: len(prefix) + 1], []).append(word)
    for longer, group in groups.items():
        if longer == prefix:
            yield prefix
        else:
            yield from prefix_patterns(longer, group, most)
