"""Reading the text index: which blocks match, how many, and in what order."""

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
"""How far a page of hits may lie from the first."""


class Scope(NamedTuple):
    """Where to look; None means everywhere."""

    kinds: frozenset[str] | None = None
    sources: frozenset[int] | None = None
    stale: Sequence[tuple[int, int]] = ()
    """Ranges of blocks of which the index may hold another text."""


class Match(NamedTuple):
    """A block that matches. The larger the rank, the earlier it is shown."""

    rank: float
    when: int
    doc: int
    place: tuple[int, int] = (-1, 0)
    """Where it stands in the index: among equals, pages must agree on an order."""


_MAX_EXPANSIONS = 1 << 14
"""Words that tantivy lets the patterns of one phrase match."""
_MAX_PATTERN_CHARS = 128
"""Longer words are not made patterns: tantivy refuses those with more than 1000 states."""
_INVALID_ARGUMENT = "An invalid argument was passed"
"""How tantivy's errors begin that blame the query; any other means that the index is damaged."""


class TextReader:
    """Reads the text index of a catalog. What is written later is seen after `refresh`."""

    def __init__(self, folder: Path | str | None = None) -> None:
        """Open the index in a folder; without one it is empty."""
        self._folder = folder
        self._index: _OpenIndex | None = None
        self.refresh()

    def refresh(self) -> None:
        """See what was committed since; costs next to nothing where that is nothing."""
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
        total, found = self._index.find(self._index.asked(query), scope, limit, newest)
        return total, in_order(found, newest)

    def candidates_containing(self, literals: Sequence[str], scope: Scope, most: int) -> list[int] | None:
        """Every block that can hold these pieces of text, none of which is missing from any that does.

        None where they are more than `most`, or where the pieces tell too little.
        """
        pieces = [piece for literal in literals for piece in _pieces(literal)]
        if not any(len(word) >= _TELLING for word, _, _ in pieces):
            return None
        if self._index is None:
            return []
        count, matches = self._index.find(self._index.holding(pieces), scope, most + 1, True)
        return [match.doc for match in matches] if count <= most else None


def in_order(matches: list[Match], newest: bool) -> list[Match]:
    """The best first, or the newest."""
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

    def find(self, asked: tantivy.Query, scope: Scope, limit: int, newest: bool) -> tuple[int, list[Match]]:
        tantivy, searcher = self._tantivy, self._searcher
        scoped = self._scoped(asked, scope)
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

    def _scoped(self, asked: tantivy.Query, scope: Scope) -> tantivy.Query:
        """The query with what limits it; that has no part in the rank."""
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
        return queries.boolean_query([(must, asked), *limits]) if limits else asked

    def _any(self, field: str, values: list[int]) -> tantivy.Query:
        if not values:
            return self._queries.empty_query()
        return self._queries.const_score_query(self._queries.term_set_query(self._schema, field, values), 0.0)

    def asked(self, query: Query) -> tantivy.Query:
        """The query as the index understands it; words are never parsed again."""
        occur, queries = self._tantivy.Occur, self._queries
        if isinstance(query, Phrase):
            return self._phrase(query)
        if isinstance(query, Not):
            return queries.boolean_query([(occur.Must, queries.all_query()), (occur.MustNot, self.asked(query.part))])
        if isinstance(query, Or):
            return queries.boolean_query([(occur.Should, self.asked(part)) for part in query.parts])
        parts = [self._part(part) for part in query.parts]
        if all(isinstance(part, Not) for part in query.parts):
            # Something must be there for anything to be taken away from.
            parts.insert(0, (occur.Must, queries.all_query()))
        return queries.boolean_query(parts)

    def _part(self, part: Query) -> tuple[tantivy.Occur, tantivy.Query]:
        if isinstance(part, Not):
            return self._tantivy.Occur.MustNot, self.asked(part.part)
        return self._tantivy.Occur.Must, self.asked(part)

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
        """A phrase whose last word need only begin so."""
        schema, queries, should = self._schema, self._queries, self._tantivy.Occur.Should
        if max(map(len, (*full, last))) > _MAX_PATTERN_CHARS:
            # Few blocks have such a word: each word that can follow there becomes a phrase of its own.
            must = self._tantivy.Occur.Must
            filter_query = queries.boolean_query([(must, queries.term_query(schema, "text", word)) for word in full])
            found = self._searcher.terms_with_prefix("text", last, filter_query)
            phrases = [queries.phrase_query(schema, "text", [*full, word]) for word, _ in found]
        else:
            # Words are letters and digits, so none of them means anything in an expression.
            found = self._searcher.terms_with_prefix("text", last)
            patterns = prefix_patterns(last, [word for word, _ in found], _MAX_EXPANSIONS - len(full))
            phrases = [queries.regex_phrase_query(schema, "text", [*full, pattern]) for pattern in patterns]
        return phrases[0] if len(phrases) == 1 else queries.boolean_query([(should, each) for each in phrases])

    def holding(self, pieces: Sequence[tuple[str, bool, bool]]) -> tantivy.Query:
        occur, queries = self._tantivy.Occur, self._queries
        # Short pieces stand in nearly every text.
        musts = [(occur.Must, self._holding(piece)) for piece in pieces if len(piece[0]) >= _TELLING]
        giant = queries.term_query(self._schema, "text", OVERLONG_MARKER)
        return queries.boolean_query([(occur.Should, queries.boolean_query(musts)), (occur.Should, giant)])

    def _holding(self, piece: tuple[str, bool, bool]) -> tantivy.Query:
        word, begins, ends = piece
        if begins and ends:
            return self._queries.term_query(self._schema, "text", word)
        pattern = ("" if begins else ".*") + word + ("" if ends else ".*")
        return self._queries.regex_query(self._schema, "text", pattern)


_RUN = re.compile("[A-Za-z0-9]+")
_TELLING = 3
"""Letters that must stand together for the index to be of use."""


def _pieces(literal: str) -> list[tuple[str, bool, bool]]:
    """The words in a piece of text, each with whether it begins and ends there; what is not ASCII tells nothing.

    Of a long word, its beginning is enough to find the blocks that can hold it.
    """
    found = []
    for run in _RUN.finditer(literal):
        before, behind = literal[: run.start()][-1:], literal[run.end() :][:1]
        begins, ends = before != "" and before.isascii(), behind != "" and behind.isascii()
        word = run[0].lower()
        found.append((word[:_MAX_PATTERN_CHARS], begins, ends and len(word) <= _MAX_PATTERN_CHARS))
    return found


def prefix_patterns(prefix: str, words: Sequence[str], most: int) -> Iterator[str]:
    """Expressions that together match these words, which all begin with the prefix; none matches more than `most`."""
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
