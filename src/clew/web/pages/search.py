"""Search over all text, while the user types."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from markupsafe import Markup
from starlette.responses import JSONResponse, Response

from clew.catalog import queries
from clew.catalog.ids import session_key
from clew.catalog.queries import Entry, Facets
from clew.catalog.query import BadQuery
from clew.catalog.search import SEARCH_FIELDS, Found, Hit, Request
from clew.errors import UnknownReference, UsageError
from clew.filters import Filters
from clew.render.tables import clock
from clew.web.context import use_redactor
from clew.web.request import PageRequest, respond
from clew.web.templates import session_url_of

HITS_PER_PAGE = 20
MAX_HITS = 200
"""Hits that are grouped into pages and facets."""
MAX_FACET_VALUES = 12
UNFINISHED_WORD = re.compile(r"[^\W_]{3,}$")
FIELD_OF_KIND = {kind: field for field, kinds in SEARCH_FIELDS.items() for kind in kinds}


def view(request: PageRequest) -> Response:
    """The page, or the hits alone."""
    query, problem, within = request.param("q") or "", None, _searched_session(request)
    found: Found | None = None
    facets: Facets | None = None
    page_number = max(1, request.number("page", 1, MAX_HITS // HITS_PER_PAGE))
    if query:
        try:
            found, facets = _search(request, query, page_number, within)
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
        searched=_completed(request, query),
        problem=problem,
        found=found,
        groups=_group_by_session(found.hits) if found is not None else [],
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
    entry = context.entry(request.path_param("agent"), request.path_param("identity"))
    try:
        query = request.param("q")
        if query is None:
            raise UsageError("the query is empty")
        with use_redactor(context.session_redactor(entry, request.profile)):
            found = context.searcher(request.profile).search_session(_completed(request, query), entry.number)
    except UsageError as error:
        problem = error.why if isinstance(error, BadQuery) else str(error)
        return JSONResponse({"problem": request.masking.text(problem)}, 400)
    return JSONResponse(found._asdict())


def _completed(request: PageRequest, query: str) -> str:
    """The query. While the user types, its last word may be unfinished."""
    return f"{query}*" if request.param("typed") and UNFINISHED_WORD.search(query) else query


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
        query=_completed(request, query),
        places=tuple(name for name in request.params("in") if name in SEARCH_FIELDS),
        newest=request.param("order") == "newest",
        limit=MAX_HITS,
        filters=filters if filters != Filters() else None,
        sources=_with_subagents(within) if within is not None else None,
    )
    first = (page_number - 1) * HITS_PER_PAGE
    found = request.context.searcher(request.profile).search(search, slice(first, first + HITS_PER_PAGE))
    return found, queries.facets(request.context.db, [match.doc for match in found.matches])


def _group_by_session(hits: list[Hit]) -> list[dict[str, Any]]:
    """The hits of each session together, in the order of the first hit of each."""
    sessions: dict[tuple[str, str], list[Hit]] = {}
    for hit in hits:
        sessions.setdefault((hit.agent, hit.session), []).append(hit)
    return [
        {
            "url": session_url_of(agent, session, session_key(agent, session)),
            "title": found[0].title or f"Session {session[:16]}",
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
        ("Project", "project", facets.project),
        ("Where", "in", fields),
        ("Model", "model", facets.model),
        ("Label", "label", _label_counts(request, facets)),
    ):
        values = []
        for name, count in list(counts.items())[:MAX_FACET_VALUES]:
            is_chosen = name in request.params(parameter)
            url = request.url(**{parameter: None if is_chosen else name, "page": None, "typed": None})
            values.append((name, count, is_chosen, url))
        links.append((title, [value for value in values if value[0]]))
    if starred := sum(facets.session.get(key, 0) for key, marks in request.session_marks.items() if marks.starred):
        is_chosen = request.is_starred
        url = request.url(starred=None if is_chosen else 1, page=None, typed=None)
        links.append(("Star", [("starred", starred, is_chosen, url)]))
    return links


def _label_counts(request: PageRequest, facets: Facets) -> dict[str, int]:
    """The number of hits in sessions with each label, the largest first."""
    counts = Counter[str]()
    for key, marks in request.session_marks.items():
        for label in marks.labels if key in facets.session else ():
            counts[label] += facets.session[key]
    return dict(counts.most_common())
