"""Search on a server. Its index finds candidates; the catalog's matcher decides. Hits are sorted newest first."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import psycopg

from clew.catalog.filters import POSTGRESQL, session_condition
from clew.catalog.lookup import Match
from clew.catalog.query import matches, parse, required_phrases
from clew.catalog.search import Found, Hit, Redact, Request, check, kinds_of, secrets_masked
from clew.catalog.snippets import Find, finder, snippet
from clew.catalog.text_scan import TextMatcher, regex, substring
from clew.catalog.tokenizer import camel_case_words, words
from clew.errors import TargetRefused
from clew.filters import Filters
from clew.render.text_safety import visible
from clew.warehouse.postgres.connection import Connection, connect, translate_errors
from clew.warehouse.postgres.engine import psycopg_placeholders
from clew.warehouse.postgres.schema import check_readable
from clew.warehouse.postgres.tsvector import TRUNCATED, to_tsquery
from clew.warehouse.urls import display_server

_TEXTS = "blocks_copies b JOIN sessions_copies s ON s.batch = b.batch WHERE b.shown AND b.words IS NOT NULL"
_TEXT_TIME = "CASE WHEN b.ts_us = 0 AND b.seq = 0 THEN s.ended_us ELSE b.ts_us END"
"""The time of a hit by words. Titles and file names (seq 0) have the time of the message that first held them."""
_MESSAGE_TIME = "CASE WHEN b.seq = 0 THEN s.ended_us ELSE b.ts_us END"
"""The time of a hit by substring or expression. Titles and file names have the end of the session."""
_NEWEST = "ORDER BY 1 DESC, s.session_id, b.batch, b.number"
_PAGE = """
SELECT b.batch, b.number, b.kind, b.seq, s.agent, s.native_id, s.title, s.project, b.text
FROM unnest(%s::text[], %s::bigint[]) AS k (batch, number)
JOIN blocks_copies b ON b.batch = k.batch AND b.number = k.number JOIN sessions_copies s ON s.batch = b.batch
"""
_FETCH_TEXTS = 500
"""Texts that are fetched together."""


class _Key(NamedTuple):
    """The key of a text that matches."""

    when: int
    session: str
    batch: str
    number: int

    @property
    def sort_key(self) -> tuple[int, str, str, int]:
        """Newest first."""
        return (-self.when, self.session, self.batch, self.number)


class _Scope:
    """Conditions on the texts to search."""

    def __init__(self, kinds: frozenset[str] | None = None, batches: set[str] | None = None) -> None:
        self.text, self.values = "", list[Any]()
        if kinds is not None:
            self.add("b.kind = ANY(%s)", sorted(kinds))
        if batches is not None:
            self.add("b.batch = ANY(%s)", sorted(batches))

    def add(self, condition: str, value: Any) -> None:
        """Add a condition."""
        self.text += f" AND {condition}"
        self.values.append(value)

    def plus(self, condition: str, value: Any) -> _Scope:
        """A copy with one more condition."""
        found = _Scope()
        found.text, found.values = self.text, list(self.values)
        found.add(condition, value)
        return found


class ServerSearcher:
    """Searches what was pushed to a server; has the interface of `catalog.search.Searcher`."""

    def __init__(self, url: str, redact: Redact = secrets_masked) -> None:
        self._url, self._redact = url, redact
        self._db: Connection = connect(url, read_only=True)
        try:
            with translate_errors(url):
                check_readable(self._db, url)
        except BaseException:
            self._db.close()
            raise

    def close(self) -> None:
        """Close the connection."""
        self._db.close()

    def textless(self) -> int:
        """The number of sessions that were pushed without text; raises TargetRefused if all were."""
        with translate_errors(self._url):
            query = "SELECT count(*) FILTER (WHERE level = 'metrics'), count(*) FROM batches WHERE is_current"
            without, everything = self._db.execute(query).fetchone() or (0, 0)
        if everything and without == everything:
            message = "only metrics were pushed there, no text; use `clew push --level redacted`"
            raise TargetRefused(f"{display_server(self._url)}: {message}")
        return int(without)

    def search(self, request: Request) -> Found:
        """One page of hits, newest first, and the number of all hits. The hits must be read before `close`."""
        check(request)
        with translate_errors(self._url), self._db.transaction():
            self._db.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            return self._search(request)

    def _search(self, request: Request) -> Found:
        scope = self._scope(request)
        end = request.offset + request.limit
        if request.mode == "words":
            query = parse(request.query)
            condition = to_tsquery(query)
            find = finder(required_phrases(query))

            def decide(text: str) -> bool:
                return matches(query, [words(text), *camel_case_words(text)])

            if condition.index_is_exact and condition.text is not None:
                total, keys = self._by_index(condition.text, scope, end, decide)
            else:
                narrowed = scope
                if condition.text is not None:
                    narrowed = scope.plus("b.words @@ %s::tsquery", f"({condition.text}) | '{TRUNCATED}'")
                keys = self._by_text(narrowed, decide)
                total = len(keys)
        else:
            wanted = regex(request.query) if request.mode == "regex" else substring(request.query)
            literals = _ascii_pieces(wanted.literals) if request.mode == "regex" else wanted.literals
            keys = self._by_text(_narrowed(scope, literals), lambda text: _has(wanted, text), _MESSAGE_TIME)
            find = wanted.find_span
            total = len(keys)
        page = sorted(keys, key=lambda key: key.sort_key)[request.offset : end]
        hits = self._hits(page, find)
        return Found(total, [Match(0.0, key.when, doc) for doc, key in enumerate(page)], hits)

    def _scope(self, request: Request) -> _Scope:
        kinds = kinds_of(request.places)
        if request.filters is None:
            return _Scope(kinds)
        return _Scope(kinds, self._batches_passing(request.filters))

    def _batches_passing(self, filters: Filters) -> set[str]:
        """The batches whose sessions pass all filters."""
        with_file = self._batches_with_text(filters.file, frozenset({"file"})) if filters.file is not None else None
        with_text = self._batches_with_text(filters.text, None) if filters.text is not None else None
        condition = session_condition(filters, POSTGRESQL, with_file=with_file, with_text=with_text)
        condition = POSTGRESQL.any_copy(condition)
        query = psycopg_placeholders(f"SELECT batch FROM sessions_copies WHERE {condition.text}")
        # Values are bound by the client: a condition may name more batches than a server takes parameters.
        cursor = psycopg.ClientCursor(self._db)
        return {batch for (batch,) in cursor.execute(query.encode(), condition.values).fetchall()}

    def _batches_with_text(self, text: str, kinds: frozenset[str] | None) -> set[str]:
        wanted = substring(text)
        scope = _narrowed(_Scope(kinds), wanted.literals)
        return {key.batch for key in self._by_text(scope, lambda candidate: _has(wanted, candidate))}

    def _by_index(
        self, condition: str, scope: _Scope, end: int, decide: Callable[[str], bool]
    ) -> tuple[int, list[_Key]]:
        """Matches of a condition that the index decides; only texts with words that it does not store are read."""
        plain = scope.plus("b.words @@ %s::tsquery", f"({condition}) & !'{TRUNCATED}'")
        row = self._db.execute(f"SELECT count(*) FROM {_TEXTS}{plain.text}".encode(), plain.values).fetchone()
        query = f"SELECT {_TEXT_TIME}, s.session_id, b.batch, b.number FROM {_TEXTS}{plain.text} {_NEWEST} LIMIT %s"
        keys = [_Key(*found) for found in self._db.execute(query.encode(), [*plain.values, end]).fetchall()]
        truncated = self._by_text(scope.plus("b.words @@ %s::tsquery", f"'{TRUNCATED}'"), decide)
        return (row[0] if row is not None else 0) + len(truncated), keys + truncated

    def _by_text(self, scope: _Scope, decide: Callable[[str], bool], time: str = _TEXT_TIME) -> list[_Key]:
        """Read every candidate, and keep those that match."""
        return [_Key(*row[:-1]) for row in self._texts(scope, time) if decide(row[-1])]

    def _texts(self, scope: _Scope, time: str) -> Iterator[tuple[Any, ...]]:
        query = f"SELECT {time}, s.session_id, b.batch, b.number, b.text FROM {_TEXTS}{scope.text}"
        with self._db.cursor(name="texts") as cursor:
            cursor.itersize = _FETCH_TEXTS
            yield from cursor.execute(query.encode(), scope.values)

    def _hits(self, page: Sequence[_Key], find: Find) -> list[Hit]:
        rows = self._db.execute(_PAGE, ([key.batch for key in page], [key.number for key in page])).fetchall()
        found = {row[:2]: row[2:] for row in rows}
        hits = []
        for key in page:
            kind, seq, agent, session, title, project, text = found[key.batch, key.number]
            # The whole text is redacted before the snippet is cut.
            cut = snippet(self._redact(text), find, visible)
            title, project = self._redact(title), self._redact(project)
            hits.append(Hit(agent, session, seq or None, kind, key.when, title, project, cut))
        return hits


def _has(wanted: TextMatcher, text: str) -> bool:
    return wanted.matches_bytes(text.encode(), 0)


def _ascii_pieces(literals: Sequence[str]) -> list[str]:
    """Pieces without k and s: ignoring case, an expression matches them outside ASCII too (Kelvin sign, long s)."""
    return [piece for literal in literals for piece in re.split("[kKsS]", literal) if piece]


def _narrowed(scope: _Scope, literals: Sequence[str]) -> _Scope:
    """Let the server look for strings that every match has. Its `lower` is only used for ASCII."""
    for piece in literals:
        if piece.isascii() and "\0" not in piece:
            scope = scope.plus("position(%s in lower(b.text)) > 0", piece.lower())
    return scope
