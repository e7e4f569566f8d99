"""Search on a server: its index says which texts can match, and what decides on a laptop decides here. Newest first."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from clew.catalog.lookup import Match
from clew.catalog.query import matches, parse, positive
from clew.catalog.search import Found, Hit, Redact, Request, check, kinds_of, secrets_masked
from clew.catalog.snippets import Find, finder, snippet
from clew.catalog.text_scan import Wanted, regex, substring
from clew.catalog.tokenizer import parts, words
from clew.errors import TargetRefused
from clew.render.text_safety import visible
from clew.warehouse.postgres.connection import connect, shown, told
from clew.warehouse.postgres.schema import check_readable
from clew.warehouse.postgres.words import GIANT, lookup

if TYPE_CHECKING:
    from clew.warehouse.postgres.connection import Connection

_TEXTS = "blocks_copies b JOIN sessions_copies s ON s.batch = b.batch WHERE b.shown AND b.words IS NOT NULL"
_WHEN = "CASE WHEN b.ts_us = 0 AND b.seq = 0 THEN s.ended_us ELSE b.ts_us END"
_ENDED = "CASE WHEN b.seq = 0 THEN s.ended_us ELSE b.ts_us END"
"""When it was said. What belongs to no message is found by its words where it came up, else where the session ended."""
_NEWEST = "ORDER BY 1 DESC, s.session_id, b.batch, b.number"
_PAGE = """
SELECT b.batch, b.number, b.kind, b.seq, s.agent, s.native_id, s.title, s.project, b.text
FROM unnest(%s::text[], %s::bigint[]) AS k (batch, number)
JOIN blocks_copies b ON b.batch = k.batch AND b.number = k.number JOIN sessions_copies s ON s.batch = b.batch
"""
_AT_ONCE = 500
"""Texts that are fetched together."""


class _Key(NamedTuple):
    """A text that was found, and where."""

    when: int
    session: str
    batch: str
    number: int

    @property
    def place(self) -> tuple[int, str, str, int]:
        """Its place in the order: the newest first."""
        return (-self.when, self.session, self.batch, self.number)


class _Scope:
    """Where to look, as conditions on texts."""

    def __init__(self, kinds: frozenset[str] | None = None, batches: set[str] | None = None) -> None:
        self.text, self.values = "", list[Any]()
        if kinds is not None:
            self.add("b.kind = ANY(%s)", sorted(kinds))
        if batches is not None:
            self.add("b.batch = ANY(%s)", sorted(batches))

    def add(self, condition: str, value: Any) -> None:
        """One more condition."""
        self.text += f" AND {condition}"
        self.values.append(value)

    def plus(self, condition: str, value: Any) -> _Scope:
        """This and one more condition."""
        found = _Scope()
        found.text, found.values = self.text, list(self.values)
        found.add(condition, value)
        return found


class ServerSearcher:
    """Answers requests from what was pushed to a server; has the face of `catalog.search.Searcher`."""

    def __init__(self, url: str, redact: Redact = secrets_masked) -> None:
        self._url, self._redact = url, redact
        self._db: Connection = connect(url, reads_only=True)
        try:
            with told(url):
                check_readable(self._db, url)
        except BaseException:
            self._db.close()
            raise

    def close(self) -> None:
        """Let go of the server."""
        self._db.close()

    def textless(self) -> int:
        """How many sessions were pushed without their text; raises where all were."""
        with told(self._url):
            query = "SELECT count(*) FILTER (WHERE level = 'metrics'), count(*) FROM batches WHERE is_current"
            without, everything = self._db.execute(query).fetchone() or (0, 0)
        if everything and without == everything:
            told_there = "only metrics were pushed there, and so no text that could be searched"
            raise TargetRefused(f"{shown(self._url)}: {told_there}; `clew push --level redacted` pushes it")
        return int(without)

    def search(self, request: Request) -> Found:
        """One page of hits, the newest first, and the number of all. Look at the hits before `close`."""
        check(request)
        with told(self._url), self._db.transaction():
            # One look at the rows, whatever others push meanwhile.
            self._db.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            return self._search(request)

    def _search(self, request: Request) -> Found:
        scope = self._scope(request)
        end = request.offset + request.limit
        if request.mode == "words":
            query = parse(request.query)
            asked = lookup(query)
            find = finder(positive(query))

            def decide(text: str) -> bool:
                return matches(query, [words(text), *parts(text)])

            if asked.is_exact and asked.text is not None:
                total, keys = self._by_index(asked.text, scope, end, decide)
            else:
                narrowed = scope if asked.text is None else scope.plus("b.words @@ %s::tsquery", _or_giant(asked.text))
                keys = self._by_text(narrowed, decide)
                total = len(keys)
        else:
            wanted = regex(request.query) if request.mode == "regex" else substring(request.query)
            literals = _folding(wanted.literals) if request.mode == "regex" else wanted.literals
            keys = self._by_text(_narrowed(scope, literals), lambda text: _has(wanted, text), _ENDED)
            find = wanted.places
            total = len(keys)
        page = sorted(keys, key=lambda key: key.place)[request.offset : end]
        hits = self._hits(page, find)
        return Found(total, [Match(0.0, key.when, doc) for doc, key in enumerate(page)], hits)

    def _scope(self, request: Request) -> _Scope:
        from clew.warehouse.postgres.choosing import chosen

        kinds = kinds_of(request.places)
        if request.filters is None:
            return _Scope(kinds)
        return _Scope(kinds, chosen(self._db, request.filters, self._holding))

    def _holding(self, text: str, kinds: frozenset[str] | None) -> set[str]:
        wanted = substring(text)
        scope = _narrowed(_Scope(kinds), wanted.literals)
        return {key.batch for key in self._by_text(scope, lambda said: _has(wanted, said))}

    def _by_index(self, asked: str, scope: _Scope, end: int, decide: Callable[[str], bool]) -> tuple[int, list[_Key]]:
        """Where the index decides; only texts that have words it could not keep are looked at."""
        plain = scope.plus("b.words @@ %s::tsquery", f"({asked}) & !'{GIANT}'")
        row = self._db.execute(f"SELECT count(*) FROM {_TEXTS}{plain.text}".encode(), plain.values).fetchone()
        query = f"SELECT {_WHEN}, s.session_id, b.batch, b.number FROM {_TEXTS}{plain.text} {_NEWEST} LIMIT %s"
        keys = [_Key(*found) for found in self._db.execute(query.encode(), [*plain.values, end]).fetchall()]
        giants = self._by_text(scope.plus("b.words @@ %s::tsquery", f"'{GIANT}'"), decide)
        return (row[0] if row is not None else 0) + len(giants), keys + giants

    def _by_text(self, scope: _Scope, decide: Callable[[str], bool], when: str = _WHEN) -> list[_Key]:
        """Every text is looked at that may match."""
        return [_Key(*row[:-1]) for row in self._texts(scope, when) if decide(row[-1])]

    def _texts(self, scope: _Scope, when: str) -> Iterator[tuple[Any, ...]]:
        query = f"SELECT {when}, s.session_id, b.batch, b.number, b.text FROM {_TEXTS}{scope.text}"
        with self._db.cursor(name="texts") as cursor:
            cursor.itersize = _AT_ONCE
            yield from cursor.execute(query.encode(), scope.values)

    def _hits(self, page: Sequence[_Key], find: Find) -> list[Hit]:
        rows = self._db.execute(_PAGE, ([key.batch for key in page], [key.number for key in page])).fetchall()
        found = {row[:2]: row[2:] for row in rows}
        hits = []
        for key in page:
            kind, seq, agent, session, title, project, text = found[key.batch, key.number]
            # The whole text is redacted before anything is cut from it.
            cut = snippet(self._redact(text), find, visible)
            title, project = self._redact(title), self._redact(project)
            hits.append(Hit(agent, session, seq or None, kind, key.when, title, project, cut))
        return hits


def _or_giant(asked: str) -> str:
    return f"({asked}) | '{GIANT}'"


def _has(wanted: Wanted, text: str) -> bool:
    return wanted.is_in(text.encode(), 0)


def _folding(literals: Sequence[str]) -> list[str]:
    """Pieces without letters that an expression in any case finds outside ASCII too: the Kelvin sign, the long s."""
    return [piece for literal in literals for piece in re.split("[kKsS]", literal) if piece]


def _narrowed(scope: _Scope, literals: Sequence[str]) -> _Scope:
    """The server looks for pieces that every match has. There only ASCII has cases, so only ASCII is asked for."""
    for piece in literals:
        if piece.isascii() and "\0" not in piece:
            scope = scope.plus("position(%s in lower(b.text)) > 0", piece.lower())
    return scope
