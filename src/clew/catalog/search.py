"""Searches for words in the text index, and for substrings and patterns in the stored text; cuts snippets."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from clew.catalog import database
from clew.catalog.lookup import MAX_HITS, Match, Scope, TextReader, sort_matches
from clew.catalog.query import (
    And,
    Or,
    Phrase,
    Query,
    has_alternatives,
    matches,
    parse,
    required_phrases,
    without_negations,
)
from clew.catalog.schema import KEYS_PER_SOURCE, VISIBLE_BLOCK
from clew.catalog.snippets import Find, Snippet, finder, snippet, spellings
from clew.catalog.text_index import KINDS, stale_ranges
from clew.catalog.text_store import TextStore
from clew.catalog.tokenizer import camel_case_words, words
from clew.errors import UsageError
from clew.render.text_safety import unmasked_parts, visible

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
"""The values of `--in`, and the kinds of text that they stand for."""
LIMIT = 20

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


_MESSAGES_OF_BLOCKS = f"""
SELECT b.id, b.message % {KEYS_PER_SOURCE} AS number, b.chars FROM block b
WHERE b.id IN (SELECT value FROM json_each(?)) AND number > 0 ORDER BY number, b.id
"""
MAX_SPELLED_BLOCKS = 200
"""Blocks of a session that are read to find out how they spell the words of a query."""
MAX_SPELLED_CHARS = 1_000_000
"""Their characters: all of them may have to be masked on each key stroke. A longer block is not read."""
MAX_SPELLINGS = 200
_FIRST_CANDIDATES = 100
"""Blocks that are masked at first to find a page of hits in masked text."""


class Request(NamedTuple):
    """A search."""

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
    """Microseconds since 1970; 0 where unknown."""
    title: str
    project: str
    snippet: Snippet

    @property
    def reference(self) -> str:
        """The reference that `clew show` opens."""
        return f"{self.agent}:{self.session}" + (f"#{self.message}" if self.message is not None else "")

    @property
    def timestamp(self) -> str | None:
        """The time in ISO 8601, as in the unified document; None where unknown."""
        from clew.model.time import format_utc

        return format_utc(self.when) if self.when else None


class Found(NamedTuple):
    """A page of hits, and the number of all hits."""

    total: int
    matches: list[Match]
    """The matches of the page."""
    hits: list[Hit]
    """The matches for which texts were requested, with snippets."""
    is_total_known: bool = True
    """False where `total` counts only the hits up to the end of the page, and one more."""


class SessionMatches(NamedTuple):
    """What a query finds inside of one session."""

    messages: list[int]
    """The numbers of the messages that match, in order."""
    spellings: list[str]
    """The words that were found, as the texts spell them."""


def kinds_of(places: Iterable[str]) -> frozenset[str] | None:
    """The kinds of text that `--in` names; None for all."""
    found: set[str] = set()
    for name in places:
        if name not in SEARCH_FIELDS:
            raise UsageError(f"--in {name}: choose from {', '.join(SEARCH_FIELDS)}")
        found.update(SEARCH_FIELDS[name])
    return frozenset(found) or None


def check(request: Request) -> None:
    """Raise UsageError for a request that is invalid for any catalog."""
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
    """Searches one catalog. It can be kept open: each search sees what the last sync wrote."""

    def __init__(self, folder: Path | str, redact: Redact = secrets_masked, *, finds_masked_text: bool = True) -> None:
        """Without `finds_masked_text`, only what the masked texts show is found.

        This is for callers who may see masked text only: else they could guess a masked value piece by piece.
        """
        self._finds_masked_text = finds_masked_text
        self._reader = TextReader(f"{folder}/{database.TEXT}")
        db = database.open_reader(folder)
        if db is None:
            raise UsageError("there is no catalog yet; run `clew sync`")
        self._db: sqlite3.Connection = db
        self._store: TextStore | None = None
        self._redact = redact

    def close(self) -> None:
        """Close the database."""
        self._db.close()

    @property
    def store(self) -> TextStore:
        """The stored text, opened when it is first needed."""
        if self._store is None:
            self._store = TextStore(self._db)
        return self._store

    def search(self, request: Request, shown: slice = slice(None)) -> Found:
        """Find one page of hits, the best or the newest first. Only the part `shown` of the page gets snippets."""
        check(request)
        self._reader.refresh()
        if self._store is not None:
            self._store.forget()
        # One transaction: all queries of a search see the same state while a sync writes.
        self._db.execute("BEGIN")
        try:
            return self._search(request, shown)
        finally:
            self._db.execute("ROLLBACK")

    def _search(self, request: Request, shown: slice) -> Found:
        if not self._finds_masked_text:
            return self._search_masked(request, shown)
        if request.mode == "words":
            query = parse(request.query)
            last = max(1, request.offset + request.limit)
            total, found = self._reader.find(query, self._scope(request), last, newest=request.newest)
            find = finder(required_phrases(query))
        else:
            wanted = self._wanted(request)
            found = self._by_text(wanted, self._scope(request))
            total, find = len(found), wanted.find_span
        page = found[request.offset : request.offset + request.limit]
        return Found(total, page, self._hits(page[shown], find))

    def _search_masked(self, request: Request, shown: slice) -> Found:
        """Search masked texts. What is masked affects neither the hits, nor their order, nor their number."""
        candidates: Iterable[Match]
        if request.mode == "words":
            query = parse(request.query)
            find, candidates = finder(required_phrases(query)), self._candidates(query, request)

            def is_match(parts: list[str]) -> bool:
                return matches(query, [value for part in parts for value in (words(part), *camel_case_words(part))])

        else:
            wanted = self._wanted(request)
            find, candidates = wanted.find_span, self._by_text(wanted, self._scope(request))

            def is_match(parts: list[str]) -> bool:
                return any(find(part) for part in parts)

        last, found, texts = request.offset + request.limit, list[Match](), dict[int, str]()
        for match in candidates:
            text = self._masked_text(match.doc)
            if is_match(list(unmasked_parts(text))):
                found.append(match)
                texts[match.doc] = text
                if len(found) > last:
                    break
        page = found[request.offset : last]
        return Found(len(found), page, self._hits(page[shown], find, texts), is_total_known=len(found) <= last)

    def _candidates(self, query: Query, request: Request) -> Iterator[Match]:
        """The blocks whose unmasked text may match a query."""
        # The rank of a block would tell which alternatives its masked text has.
        newest, scope = request.newest or has_alternatives(query), self._scope(request)
        limit, checked, total = _FIRST_CANDIDATES, 0, 1
        while checked < min(total, MAX_HITS):
            total, found = self._reader.find(without_negations(query), scope, limit, newest=newest)
            yield from found[checked:]
            checked, limit = max(checked + 1, len(found)), min(4 * limit, MAX_HITS)

    def _masked_text(self, doc: int) -> str:
        return self._redact(self.store.get(doc) or "", self._credential_calls(doc // KEYS_PER_SOURCE))

    def search_session(self, query: str, source: int) -> SessionMatches:
        """Find words in one session, by the number of its source."""
        parsed = parse(query)
        self._reader.refresh()
        if self._store is not None:
            self._store.forget()
        self._db.execute("BEGIN")
        try:
            scope = Scope(None, frozenset({source}), stale_ranges(self._db))
            _, found = self._reader.find(parsed, scope, MAX_HITS, newest=False)
            docs = json.dumps([match.doc for match in found])
            rows = self._db.execute(_MESSAGES_OF_BLOCKS, (docs,)).fetchall()
            find, calls = finder(required_phrases(parsed), everywhere=True), self._credential_calls(source)
            spelled: dict[str, None] = {}
            chars_left = MAX_SPELLED_CHARS
            for doc, _, chars in rows[:MAX_SPELLED_BLOCKS]:
                if chars > chars_left:
                    continue
                chars_left -= chars
                text = self._redact(self.store.get(doc) or "", calls)
                spelled.update(dict.fromkeys(islice(spellings(text, find), MAX_SPELLINGS)))
            return SessionMatches(list(dict.fromkeys(message for _, message, _ in rows)), list(spelled)[:MAX_SPELLINGS])
        finally:
            self._db.execute("ROLLBACK")

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

        mask = None if self._finds_masked_text else self._redact
        return matching_sources(self._db, filters, self.sources_with_text, mask)

    def sources_with_text(self, text: str, kinds: frozenset[str] | None) -> set[int]:
        """The ids of the sources with a text, for filters."""
        if self._finds_masked_text:
            return sources_with_text(self._db, self._reader)(text, kinds)
        from clew.catalog.text_scan import scan, substring

        wanted, found = substring(text), set[int]()
        docs = scan(self.store, self._reader, wanted, Scope(kinds, None, stale_ranges(self._db)))
        for doc in _visible_blocks(self._db, docs, kinds):
            source = doc // KEYS_PER_SOURCE
            if source not in found and any(map(wanted.find_span, unmasked_parts(self._masked_text(doc)))):
                found.add(source)
        return found

    def _by_text(self, wanted: TextMatcher, scope: Scope) -> list[Match]:
        """The blocks that contain a match, the newest first."""
        from clew.catalog.text_scan import scan

        found = []
        for doc in scan(self.store, self._reader, wanted, scope):
            row = self._row(doc, scope)
            if row is not None:
                found.append(Match(0.0, row[1], doc))
        return sort_matches(found, newest=True)

    def _row(self, doc: int, scope: Scope) -> tuple[Any, ...] | None:
        """The row of a block; None where it is hidden or outside of the scope."""
        row: tuple[Any, ...] | None = self._db.execute(_ROW, (doc,)).fetchone()
        if row is None or not row[7]:
            return None
        if scope.kinds is not None and row[0] not in scope.kinds:
            return None
        return row if scope.sources is None or doc // KEYS_PER_SOURCE in scope.sources else None

    def _hits(self, page: list[Match], find: Find, masked_texts: Mapping[int, str] = MappingProxyType({})) -> list[Hit]:
        hits = []
        for match in page:
            row = self._db.execute(_ROW, (match.doc,)).fetchone()
            if row is not None:
                kind, when, message, agent, session, title, project, _ = row
                calls = self._credential_calls(match.doc // KEYS_PER_SOURCE)
                # Redact the whole text before cutting: a cut secret would not be recognized.
                text = masked_texts.get(match.doc) or self._masked_text(match.doc)
                shown = snippet(text, find, visible)
                title, project = self._redact(title, calls), self._redact(project)
                hits.append(Hit(agent, session, message or None, kind, match.when or when, title, project, shown))
        return hits

    def masked(self, number: int, text: str) -> str:
        """A text about a source, such as a note of the user, masked as the texts of the source are."""
        return self._redact(text, self._credential_calls(number))

    def message_text(self, number: int, message: int) -> str:
        """The first text of a message of a source, masked; empty if it has none."""
        query = "SELECT b.id FROM block b WHERE b.id BETWEEN ? AND ? AND b.message = ? AND b.chars > 0 ORDER BY b.id"
        first, last = database.key_range(number)
        row = self._db.execute(f"{query} LIMIT 1", (first, last, first + message)).fetchone()
        return self.masked(number, self.store.get(row[0]) or "") if row is not None else ""

    def _credential_calls(self, number: int) -> Sequence[JSON]:
        """Return the calls of a session that read credential files, with their outputs, if masking needs them."""
        query = "SELECT c.call_id FROM credential_call k JOIN call c USING (id) WHERE k.id BETWEEN ? AND ?"
        if self._redact is unmasked or not (rows := self._db.execute(query, database.key_range(number)).fetchall()):
            return ()
        from clew.catalog.sessions import calls_with_output

        return calls_with_output(self._db, self.store, number, [call for (call,) in rows])


def sources_with_text(db: sqlite3.Connection, reader: TextReader) -> Callable[[str, frozenset[str] | None], set[int]]:
    """Make the function that finds the ids of the sources with a text, for filters."""

    def find(text: str, kinds: frozenset[str] | None) -> set[int]:
        from clew.catalog.text_scan import scan, substring

        docs = scan(TextStore(db), reader, substring(text), Scope(kinds, None, stale_ranges(db)))
        return _sources_of_blocks(db, docs, kinds)

    return find


def catalog_text_finder(db: sqlite3.Connection, folder: Path | str) -> Callable[[str, frozenset[str] | None], set[int]]:
    """Make the function `sources_with_text` of an open catalog; it opens the text index when it is called."""
    return lambda text, kinds: sources_with_text(db, TextReader(f"{folder}/{database.TEXT}"))(text, kinds)


def sources_with_phrases(
    db: sqlite3.Connection, folder: Path | str, alternatives: Sequence[Sequence[str]], kinds: frozenset[str]
) -> set[int] | None:
    """The ids of the sources with a block that has all texts of one alternative, each as a phrase of words.

    None where the text index cannot tell: it is not complete, a text has no words, or too many blocks match.
    """
    phrases = [[Phrase(tuple(words(text))) for text in texts] for texts in alternatives]
    if TextStore(db).has_unindexed() or not all(phrase.words for texts in phrases for phrase in texts):
        return None
    query, scope = Or(tuple(And(tuple(texts)) for texts in phrases)), Scope(kinds, None, stale_ranges(db))
    count, matches = TextReader(f"{folder}/{database.TEXT}").find(query, scope, MAX_HITS, newest=True)
    return _sources_of_blocks(db, (match.doc for match in matches), kinds) if count <= MAX_HITS else None


def _visible_blocks(db: sqlite3.Connection, docs: Iterable[int], kinds: frozenset[str] | None) -> list[int]:
    """The visible blocks of some kinds among these."""
    rows = db.execute(_VISIBLE_BLOCKS, (json.dumps(list(docs)),))
    return [doc for doc, kind in rows if kinds is None or kind in kinds]


def _sources_of_blocks(db: sqlite3.Connection, docs: Iterable[int], kinds: frozenset[str] | None) -> set[int]:
    """The ids of the sources of the visible blocks of some kinds among these."""
    return {doc // KEYS_PER_SOURCE for doc in _visible_blocks(db, docs, kinds)}


assert {kind for kinds in SEARCH_FIELDS.values() for kind in kinds} == set(KINDS)
