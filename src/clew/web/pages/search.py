"""Search over all text and the user's own titles, labels and notes, while the user types."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from markupsafe import Markup
from starlette.responses import JSONResponse, Response

from clew.annotations import Annotation
from clew.catalog import queries
from clew.catalog.annotated import AnnotatedItem, annotated_items
from clew.catalog.ids import session_key
from clew.catalog.queries import Entry, Facets
from clew.catalog.query import BadQuery, Query, matches, parse, required_phrases
from clew.catalog.search import SEARCH_FIELDS, Found, Hit, Request
from clew.catalog.snippets import Snippet, finder, snippet
from clew.catalog.tokenizer import words
from clew.errors import UnknownReference, UsageError
from clew.filters import Filters
from clew.render.tables import clock
from clew.render.text_safety import visible
from clew.web.request import PageRequest, respond
from clew.web.templates import session_name_of, session_url_of

HITS_PER_PAGE = 20
MAX_HITS = 200
"""Hits that are grouped into pages and facets."""
MAX_FACET_VALUES = 12
MAX_ANNOTATIONS = 20
_LONG_ENDING = re.compile(r"[^\W_]{3,}$")
FIELD_OF_KIND = {kind: field for field, kinds in SEARCH_FIELDS.items() for kind in kinds}


def view(request: PageRequest) -> Response:
    """The page, or the hits alone."""
    query, problem, within = request.param("q") or "", None, _searched_session(request)
    found: Found | None = None
    facets: Facets | None = None
    annotations: list[AnnotationHit] = []
    page_number = max(1, request.number("page", 1, MAX_HITS // HITS_PER_PAGE))
    if query:
        try:
            found, facets = _search(request, query, page_number, within)
            annotations = _matching_annotations(request, query, within) if page_number == 1 else []
        except BadQuery as error:
            problem = error.why
        except UsageError as error:
            problem = str(error)
    links = _facet_links(request, facets) if facets is not None else []
    return respond(
        request,
        "search.html" if not request.is_fragment else "hits.html",
        sync_progress=request.context.sync_progress(),
        query=query,
        problem=problem,
        found=found,
        groups=_group_by_session(found.hits, request.masking.text) if found is not None else [],
        annotations=annotations,
        facets=links,
        is_narrowed=any(is_chosen for _, values in links for _, _, is_chosen, _ in values),
        page_number=page_number,
        pages=max(1, -(-min(found.total, MAX_HITS) // HITS_PER_PAGE)) if found is not None else 1,
        max_hits=MAX_HITS,
        within=within,
        order="newest" if request.param("order") == "newest" else "best",
    )


def in_session(request: PageRequest) -> Response:
    """The messages of one session with the words of a query, and how they spell the words, as JSON."""
    context = request.context
    entry = request.entry()
    try:
        query = request.param("q")
        if query is None:
            raise UsageError("the query is empty")
        with request.masking_of(entry):
            found = context.searcher(request.profile).search_session(_completed(query), entry.number)
    except UsageError as error:
        problem = error.why if isinstance(error, BadQuery) else str(error)
        return JSONResponse({"problem": request.masking.text(problem)}, 400)
    return JSONResponse(found._asdict())


def _completed(query: str) -> str:
    """The query with its last word as the beginning of a word: the user may still be typing it.

    An address finds the same when it is typed and when it is loaded.
    """
    *before, last = query.split() or [""]
    is_excluded = last.startswith("-") or before[-1:] == ["NOT"]
    is_word = last not in ("AND", "NOT") and query.endswith(last) and _LONG_ENDING.search(last) is not None
    return f"{query}*" if is_word and not is_excluded else query


def _searched_session(request: PageRequest) -> Entry | None:
    """The session to which the search is limited, with its sub-agents."""
    key = request.param("session")
    if key is None:
        return None
    entry = queries.by_key(request.context.db, key)
    if entry is None:
        raise UnknownReference("no such session")
    return queries.with_children(request.context.db, [entry], None)[0]


def _with_subagents(entry: Entry) -> frozenset[int]:
    """The numbers of a session and of all sub-agents below it."""
    numbers, waiting = set[int](), [entry]
    while waiting:
        session = waiting.pop()
        numbers.add(session.number)
        waiting += session.children
    return frozenset(numbers)


def _search(request: PageRequest, query: str, page_number: int, within: Entry | None) -> tuple[Found, Facets]:
    filters = request.filters()
    search = Request(
        query=_completed(query),
        places=tuple(name for name in request.params("in") if name in SEARCH_FIELDS),
        newest=request.param("order") == "newest",
        limit=MAX_HITS,
        filters=filters if filters != Filters() else None,
        sources=_searched_sources(request, within),
    )
    first = (page_number - 1) * HITS_PER_PAGE
    found = request.context.searcher(request.profile).search(search, slice(first, first + HITS_PER_PAGE))
    return found, queries.facets(request.context.db, [match.doc for match in found.matches])


def _searched_sources(request: PageRequest, within: Entry | None) -> frozenset[int] | None:
    """The sources of the session and the project to which the search is limited; None without such a limit."""
    sources, project = _with_subagents(within) if within is not None else None, request.param("exact_project")
    if project is None:
        return sources
    in_project = queries.numbers_in_project(request.context.db, project)
    return in_project if sources is None else in_project & sources


class AnnotationHit(NamedTuple):
    """A session or message whose title, labels or note of the user have the words of a query."""

    url: Markup
    message: int | None
    snippet: Snippet


def _matching_annotations(request: PageRequest, query: str, within: Entry | None) -> list[AnnotationHit]:
    context, places, parsed = request.context, request.params("in"), parse(_completed(query))
    phrases = list(required_phrases(parsed))
    if not phrases or (places and "titles" not in places):
        return []
    found = [one for one in request.annotations.all if _has_words(one, parsed, is_title_only=bool(places))]
    if not found:
        return []
    sources, filters = _searched_sources(request, within), request.filters()
    if filters != Filters():
        passing = context.searcher(request.profile).matching_sources(filters)
        sources = passing if sources is None else passing & sources
    items = [item for item in annotated_items(context.db, found) if item.number is not None]
    shown = [
        (item, _annotation_text(item, request.masking.text))
        for item in items
        if sources is None or item.number in sources
    ]
    return [
        AnnotationHit(
            session_url_of(item.annotation.agent, item.annotation.session, item.key),
            item.message,
            snippet(text, finder(phrases), visible),
        )
        for item, text in shown
        # A secret that is masked is not found by its own words.
        if not request.masking.is_on or matches(parsed, [words(text)])
    ][:MAX_ANNOTATIONS]


def _has_words(annotation: Annotation, query: Query, *, is_title_only: bool) -> bool:
    texts = (annotation.title,) if is_title_only else (annotation.title, *annotation.labels, annotation.note)
    return matches(query, [words(text) for text in texts])


def _annotation_text(item: AnnotatedItem, mask: Callable[[str], str]) -> str:
    """The title of the session, and the labels and the note of the session or message."""
    annotation = item.annotation
    name = session_name_of(annotation.title or item.title, annotation.session, mask)
    return " · ".join(map(mask, filter(None, (name, *annotation.labels, annotation.note))))


def _group_by_session(hits: list[Hit], mask: Callable[[str], str]) -> list[dict[str, Any]]:
    """The hits of each session together, in the order of the first hit of each."""
    sessions: dict[tuple[str, str], list[Hit]] = {}
    for hit in hits:
        sessions.setdefault((hit.agent, hit.session), []).append(hit)
    return [
        {
            "url": session_url_of(agent, session, session_key(agent, session)),
            "title": session_name_of(found[0].title, session, mask),
            "agent": agent,
            "project": found[0].project,
            "hits": [(hit, clock(hit.timestamp)) for hit in found],
        }
        for (agent, session), found in sessions.items()
    ]


def _facet_links(request: PageRequest, facets: Facets) -> list[tuple[str, list[tuple[str, int, bool, Markup]]]]:
    """The values of each facet: name, count, whether it is chosen, and the address that toggles it."""
    fields: dict[str, int] = {}
    for kind, count in facets.kind.items():
        fields[FIELD_OF_KIND[kind]] = fields.get(FIELD_OF_KIND[kind], 0) + count
    links = []
    for title, parameter, counts in (
        ("Agent", "agent", facets.agent),
        ("Project", "exact_project", facets.project),
        ("Where", "in", fields),
        ("Model", "model", facets.model),
        ("Label", "label", _label_counts(request, facets)),
    ):
        values = []
        for name, count in list(counts.items())[:MAX_FACET_VALUES]:
            is_chosen = request.has_value(parameter, name)
            values.append((name, count, is_chosen, request.toggle_url(parameter, name)))
        links.append((title, [value for value in values if value[0]]))
    if starred := sum(hits for hits, marks in _marks_of_hits(request, facets) if marks.starred):
        is_chosen = request.is_starred
        url = request.url(starred=None if is_chosen else 1, page=None)
        links.append(("Star", [("starred", starred, is_chosen, url)]))
    return links


def _label_counts(request: PageRequest, facets: Facets) -> dict[str, int]:
    """The number of hits in sessions with each label, the largest first."""
    counts = Counter[str]()
    for hits, marks in _marks_of_hits(request, facets):
        counts.update(dict.fromkeys(marks.labels, hits))
    return dict(counts.most_common())


def _marks_of_hits(request: PageRequest, facets: Facets) -> Iterator[tuple[int, Annotation]]:
    """The number of hits in each session with annotations, and its star and labels."""
    for (agent, session), marks in request.annotations.marks.items():
        if hits := facets.session.get(session_key(agent, session)):
            yield hits, marks
