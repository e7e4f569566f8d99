"""Search over everything, as one types."""

from __future__ import annotations

import re
from typing import Any

from markupsafe import Markup
from starlette.responses import Response

from clew.catalog import queries
from clew.catalog.ids import session_key
from clew.catalog.queries import Entry, Facets
from clew.catalog.query import BadQuery
from clew.catalog.search import SEARCH_FIELDS, Found, Hit, Request
from clew.errors import UnknownReference, UsageError
from clew.filters import Filters
from clew.web.asking import Asked, page
from clew.web.drawing import session_address

SHOWN = 20
COUNTED = 200
"""Hits that facets are counted over."""
_LAST_WORD = re.compile(r"[^\W_]{3,}$")
_KINDS = {kind: place for place, kinds in SEARCH_FIELDS.items() for kind in kinds}


def page_of(asked: Asked) -> Response:
    """The page, or the hits alone."""
    query, problem, within = asked.word("q") or "", None, _within(asked)
    found: Found | None = None
    facets: Facets | None = None
    at = max(1, asked.number("page", 1, COUNTED // SHOWN))
    if query:
        try:
            found, facets = _search(asked, query, at, within)
        except (UsageError, BadQuery) as error:
            problem = str(error)
    return page(
        asked,
        "search.html" if not asked.is_fragment else "hits.html",
        query=query,
        problem=problem,
        found=found,
        groups=_groups(found.hits) if found is not None else [],
        facets=_chosen(asked, facets) if facets is not None else [],
        at=at,
        pages=_pages(found),
        counted=COUNTED,
        within=within,
        places=list(SEARCH_FIELDS),
        order="newest" if asked.word("order") == "newest" else "best",
    )


def _pages(found: Found | None) -> int:
    return max(1, -(-min(found.total, COUNTED) // SHOWN)) if found is not None else 1


def _within(asked: Asked) -> Entry | None:
    """The session that is searched alone, with those that it started."""
    key = asked.word("session")
    if key is None:
        return None
    entry = queries.by_key(asked.shelf.db, key)
    if entry is None:
        raise UnknownReference("the catalog knows of no such session")
    return queries.with_children(asked.shelf.db, [entry], None)[0]


def _numbers(entry: Entry) -> frozenset[int]:
    found, waiting = set[int](), [entry]
    while waiting:
        one = waiting.pop()
        found.add(one.number)
        waiting += one.children
    return frozenset(found)


def _search(asked: Asked, query: str, at: int, within: Entry | None) -> tuple[Found, Facets]:
    filters = asked.filters()
    request = Request(
        # What is still being typed is the beginning of a word.
        query=f"{query}*" if asked.word("typed") and _LAST_WORD.search(query) else query,
        places=_places(asked),
        newest=asked.word("order") == "newest",
        limit=COUNTED,
        filters=filters if filters != Filters() else None,
        sources=_numbers(within) if within is not None else None,
    )
    searcher = asked.shelf.searcher(asked.profile)
    found = searcher.search(request, slice((at - 1) * SHOWN, at * SHOWN))
    return found, queries.facets(asked.shelf.db, [match.doc for match in found.matches])


def _places(asked: Asked) -> tuple[str, ...]:
    return tuple(name for name in asked.words("in") if name in SEARCH_FIELDS)


def _groups(hits: list[Hit]) -> list[dict[str, Any]]:
    """The hits of each session together, where its first one stands."""
    sessions: dict[tuple[str, str], list[Hit]] = {}
    for hit in hits:
        sessions.setdefault((hit.agent, hit.session), []).append(hit)
    groups = []
    for (agent, session), found in sessions.items():
        groups.append(
            {
                "address": session_address(agent, session, session_key(agent, session)),
                "title": found[0].title or f"Session {session[:16]}",
                "agent": agent,
                "project": found[0].project,
                "hits": [(hit, (hit.timestamp or "")[:16].replace("T", " ")) for hit in found],
            }
        )
    return groups


def _chosen(asked: Asked, facets: Facets) -> list[tuple[str, list[tuple[str, int, bool, Markup]]]]:
    """For each facet its values: name, count, whether it is chosen, and the address that chooses it or lets it go."""
    shown = []
    for title, parameter, counts in (
        ("Agent", "agent", facets.agent),
        ("Project", "project", facets.project),
        ("Where", "in", _by_place(facets.kind)),
        ("Model", "model", facets.model),
    ):
        values = []
        for name, count in list(counts.items())[:12]:
            is_chosen = name in asked.words(parameter)
            address = asked.address(**{parameter: None if is_chosen else name, "page": None, "typed": None})
            values.append((name, count, is_chosen, address))
        shown.append((title, [value for value in values if value[0]]))
    return shown


def _by_place(kinds: dict[str, int]) -> dict[str, int]:
    """Counts by the words that `in` knows."""
    places: dict[str, int] = {}
    for kind, count in kinds.items():
        places[_KINDS[kind]] = places.get(_KINDS[kind], 0) + count
    return places
