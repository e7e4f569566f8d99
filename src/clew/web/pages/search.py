"""Search over everything, as one types."""

from __future__ import annotations

import re
from itertools import groupby
from typing import Any

from markupsafe import Markup
from starlette.responses import Response

from clew.catalog import browsing
from clew.catalog.browsing import Facets
from clew.catalog.keys import session_key
from clew.catalog.query import BadQuery
from clew.catalog.search import PLACES, Found, Hit, Request
from clew.errors import UsageError
from clew.filters import Filters
from clew.web.asking import Asked, page
from clew.web.drawing import session_address

SHOWN = 20
COUNTED = 200
"""Hits that facets are counted over."""
_LAST_WORD = re.compile(r"[^\W_]{3,}$")
_KINDS = {kind: place for place, kinds in PLACES.items() for kind in kinds}


def page_of(asked: Asked) -> Response:
    """The page, or the hits alone."""
    query, problem = asked.word("q") or "", None
    found: Found | None = None
    facets: Facets | None = None
    at = max(1, asked.number("page", 1, COUNTED // SHOWN))
    if query:
        try:
            found, facets = _search(asked, query, at)
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
        places=list(PLACES),
        order="newest" if asked.word("order") == "newest" else "best",
    )


def _pages(found: Found | None) -> int:
    return max(1, -(-min(found.total, COUNTED) // SHOWN)) if found is not None else 1


def _search(asked: Asked, query: str, at: int) -> tuple[Found, Facets]:
    filters = asked.filters()
    request = Request(
        # What is still being typed is the beginning of a word.
        query=f"{query}*" if asked.word("typed") and _LAST_WORD.search(query) else query,
        places=_places(asked),
        newest=asked.word("order") == "newest",
        limit=COUNTED,
        filters=filters if filters != Filters() else None,
    )
    searcher = asked.shelf.searcher(asked.profile)
    found = searcher.search(request)
    facets = browsing.facets(asked.shelf.db, [match.doc for match in found.matches])
    return found.part((at - 1) * SHOWN, at * SHOWN), facets


def _places(asked: Asked) -> tuple[str, ...]:
    return tuple(name for name in asked.words("in") if name in PLACES)


def _groups(hits: list[Hit]) -> list[dict[str, Any]]:
    """Hits of one session that stand side by side."""
    groups = []
    for (agent, session), members in groupby(hits, key=lambda hit: (hit.agent, hit.session)):
        found = list(members)
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
