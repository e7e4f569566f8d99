"""Search: what was asked for, found in the text index or the stored text, with a snippet for each hit."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from time import gmtime, strftime
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from clew.catalog import database
from clew.catalog.lookup import MAX_HITS, Match, Scope, TextReader, in_order
from clew.catalog.query import parse, required_phrases
from clew.catalog.schema import KEYS_PER_SOURCE, VISIBLE_BLOCK
from clew.catalog.snippets import Find, Snippet, finder, snippet
from clew.catalog.text_index import KINDS, stale_ranges
from clew.catalog.text_store import TextStore
from clew.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from clew.catalog.text_scan import TextMatcher
    from clew.filters import Filters
    from clew.model.json import JSON

Mode = Literal["words", "substring", "regex"]
SEARCH_FIELDS = {
    "prompts": ("prompt",),
    "answers": ("answer",),
    "thinking": ("thinking",),
    "tools": ("input", "output"),
    "titles": ("title",),
    "files": ("file",),
}
"""What `--in` can name, and the kinds of text that are meant."""
LIMIT = 20
_MAPPED = 1 << 30
"""So much of the rows is read without a copy."""

_ROW = f"""
SELECT k.text, coalesce(m.ts_us, s.ended_us), b.message % {KEYS_PER_SOURCE}, s.agent, s.native_id, s.title, s.project,
  {VISIBLE_BLOCK}
FROM block b JOIN session s ON s.id = b.id / {KEYS_PER_SOURCE} JOIN string k ON k.id = b.kind LEFT JOIN message m
  ON m.id = b.message
WHERE b.id = ?
"""
_VISIBLE_BLOCKS = f"""
SELECT b.id, k.text FROM block b JOIN session s ON s.id = b.id / {KEYS_PER_SOURCE} JOIN string k ON k.id = b.kind
LEFT JOIN message m ON m.id = b.message
WHERE b.id IN (SELECT value FROM json_each(?)) AND {VISIBLE_BLOCK}
"""


class Request(NamedTuple):
    """What is asked for."""

    query: str
    mode: Mode = "words"
    places: tuple[str, ...] = ()
    newest: bool = False
    limit: int = LIMIT
    offset: int = 0
    filters: Filters | None = None
    sources: frozenset[int] | None = None
    """Only in these sources, by their numbers in the catalog."""


class Hit(NamedTuple):
    """A block that was found."""

    agent: str
    session: str
    message: int | None
    """Its number in the session; None for a title or a file's name."""
    kind: str
    when: int
    """Microseconds since 1970; 0 where nobody knows."""
    title: str
    project: str
    snippet: Snippet

    @property
    def reference(self) -> str:
        """What opens it."""
        return f"{self.agent}:{self.session}" + (f"#{self.message}" if self.message is not None else "")

    @property
    def timestamp(self) -> str | None:
        """The time as documents spell it."""
        if not self.when:
            return None
        return strftime("%Y-%m-%dT%H:%M:%S", gmtime(self.when // 1_000_000)) + f".{self.when // 1000 % 1000:03}Z"


class Found(NamedTuple):
    """One page of what was found, and how much there is in all."""

    total: int
    matches: list[Match]
    """What is on the page."""
    hits: list[Hit]
    """The same with texts, as far as they were asked for."""


def kinds_of(places: Iterable[str]) -> frozenset[str] | None:
    """The kinds of text that `--in` names; None for all."""
    found: set[str] = set()
    for name in places:
        if name not in SEARCH_FIELDS:
            raise UsageError(f"--in {name}: choose from {', '.join(SEARCH_FIELDS)}")
        found.update(SEARCH_FIELDS[name])
    return frozenset(found) or None


def check(request: Request) -> None:
    """Raise where a request makes no sense, whatever the catalog holds."""
    from clew.catalog.text_scan import regex, substring

    {"words": parse, "substring": substring, "regex": regex}[request.mode](request.query)
    kinds_of(request.places)
    if request.offset + request.limit > MAX_HITS:
        raise UsageError(f"only the first {MAX_HITS} hits can be shown; narrow the search")


class Redact(Protocol):
    """Masks a text. `calls` are the calls of its session that read credential files, with their outputs."""

    def __call__(self, text: str, calls: Sequence[JSON] = (), /) -> str: ...


def unmasked(text: str, _calls: Sequence[JSON] = (), /) -> str:
    """Return a text as it is."""
    return text


def secrets_masked(text: str, calls: Sequence[JSON] = (), /) -> str:
    """Mask secrets by the built-in rules and the user's own."""
    from clew.redact.redactor import Redactor
    from clew.redact.settings import load_settings

    redactor = Redactor(load_settings("secrets", plain=True))
    redactor.learn(calls)
    return str(redactor.learn_and_mask(text))


class Searcher:
    """Answers requests from one catalog; may live long, and sees what later syncs add."""

    def __init__(self, folder: Path | str, redact: Redact = secrets_masked) -> None:
        self._reader = TextReader(f"{folder}/{database.TEXT}")
        db = database.open_reader(folder)
        if db is None:
            raise UsageError("there is no catalog yet; run `clew sync`")
        self._db: sqlite3.Connection = db
        db.execute(f"PRAGMA mmap_size = {_MAPPED}")
        self._store: TextStore | None = None
        self._redact = redact

    def close(self) -> None:
        """Close the catalog."""
        self._db.close()

    @property
    def store(self) -> TextStore:
        """The stored text; what unpacks it is loaded when it is first needed."""
        if self._store is None:
            self._store = TextStore(self._db)
        return self._store

    def search(self, request: Request, shown: slice = slice(None)) -> Found:
        """One page of hits, best or newest first, and the number of all. Texts are read for the `shown` part alone."""
        check(request)
        self._reader.refresh()
        if self._store is not None:
            self._store.forget()
        # One look at the rows, whatever others write meanwhile.
        self._db.execute("BEGIN")
        try:
            return self._search(request, shown)
        finally:
            self._db.execute("ROLLBACK")

    def _search(self, request: Request, shown: slice) -> Found:
        if request.mode == "words":
            query = parse(request.query)
            last = max(1, request.offset + request.limit)
            total, found = self._reader.find(query, self._scope(request), last, newest=request.newest)
            find = finder(required_phrases(query))
        else:
            wanted = self._wanted(request)
            total, found = self._by_text(wanted, self._scope(request), request)
            find = wanted.find_span
        page = found[request.offset : request.offset + request.limit]
        return Found(total, page, self._hits(page[shown], find))

    def _wanted(self, request: Request) -> TextMatcher:
        from clew.catalog.text_scan import regex, substring

        return substring(request.query) if request.mode == "substring" else regex(request.query)

    def _scope(self, request: Request) -> Scope:
        sources = request.sources
        if request.filters is not None:
            passing = self.matching_sources(request.filters)
            sources = passing if sources is None else passing & sources
        return Scope(kinds_of(request.places), sources, stale_ranges(self._db))

    def matching_sources(self, filters: Filters) -> frozenset[int]:
        """The ids of the sources whose sessions pass all filters."""
        from clew.catalog.filters import matching_sources

        return matching_sources(self._db, filters, sources_with_text(self._db, self._reader))

    def _by_text(self, wanted: TextMatcher, scope: Scope, request: Request) -> tuple[int, list[Match]]:
        from clew.catalog.text_scan import scan

        found = []
        for doc in scan(self.store, self._reader, wanted, scope):
            row = self._row(doc, scope)
            if row is not None:
                found.append(Match(0.0, row[1], doc))
        return len(found), in_order(found, newest=True)[: request.offset + request.limit]

    def _row(self, doc: int, scope: Scope) -> tuple[Any, ...] | None:
        """What is known of a block; None where it is not to be shown."""
        row: tuple[Any, ...] | None = self._db.execute(_ROW, (doc,)).fetchone()
        if row is None or not row[7]:
            return None
        if scope.kinds is not None and row[0] not in scope.kinds:
            return None
        return row if scope.sources is None or doc // KEYS_PER_SOURCE in scope.sources else None

    def _hits(self, page: list[Match], find: Find) -> list[Hit]:
        hits = []
        for match in page:
            row = self._db.execute(_ROW, (match.doc,)).fetchone()
            if row is not None:
                kind, when, message, agent, session, title, project, _ = row
                calls = self._credential_calls(match.doc // KEYS_PER_SOURCE)
                # The whole text is redacted before anything is cut from it.
                text = self._redact(self.store.get(match.doc) or "", calls)
                shown = snippet(text, find, _visible)
                title, project = self._redact(title, calls), self._redact(project)
                hits.append(Hit(agent, session, message or None, kind, match.when or when, title, project, shown))
        return hits

    def _credential_calls(self, number: int) -> Sequence[JSON]:
        """Return the calls of a session that read credential files, with their outputs, if masking needs them."""
        query = "SELECT c.call_id FROM credential_call k JOIN call c USING (id) WHERE k.id BETWEEN ? AND ?"
        if self._redact is unmasked or not (rows := self._db.execute(query, database.key_range(number)).fetchall()):
            return ()
        from clew.catalog.sessions import calls_with_output

        return calls_with_output(self._db, self.store, number, [call for (call,) in rows])


def sources_with_text(db: sqlite3.Connection, reader: TextReader) -> Callable[[str, frozenset[str] | None], set[int]]:
    """The function that finds the ids of the sources with a piece of text, for filters."""

    def find(text: str, kinds: frozenset[str] | None) -> set[int]:
        from clew.catalog.text_scan import scan, substring

        docs = scan(TextStore(db), reader, substring(text), Scope(kinds, None, stale_ranges(db)))
        rows = db.execute(_VISIBLE_BLOCKS, (json.dumps(list(docs)),))
        return {doc // KEYS_PER_SOURCE for doc, kind in rows if kinds is None or kind in kinds}

    return find


def catalog_text_finder(db: sqlite3.Connection, folder: Path | str) -> Callable[[str, frozenset[str] | None], set[int]]:
    """The same for an open catalog; its text index is opened when it is first needed."""
    return lambda text, kinds: sources_with_text(db, TextReader(f"{folder}/{database.TEXT}"))(text, kinds)


def _visible(text: str) -> str:
    """The text with what would steer a terminal spelled out. Most needs no look at what that could be."""
    if text.isascii() and text.isprintable():
        return text
    from clew.render.text_safety import visible

    return visible(text)


assert {kind for kinds in SEARCH_FIELDS.values() for kind in kinds} == set(KINDS)
