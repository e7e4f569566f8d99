"""The list of sessions: filtered by what stands in the address, the latest first, sub-agents below their session."""

from __future__ import annotations

from starlette.responses import Response

from clew.catalog import queries
from clew.errors import UsageError
from clew.filters import HAS, Filters
from clew.web.asking import Asked, page

SHOWN = 50
"""Sessions on a page."""


def page_of(asked: Asked) -> Response:
    """The page, or the list alone."""
    shelf, problem = asked.shelf, None
    try:
        filters = asked.filters()
    except UsageError as error:
        filters, problem = Filters(), str(error)
    chosen = None
    if filters != Filters():
        chosen = shelf.kept(f"chosen {filters}", lambda: shelf.searcher(asked.profile).matching_sources(filters))
    at = asked.number("page", 1)
    found = queries.page(shelf.db, chosen, SHOWN, (at - 1) * SHOWN if at > 0 else 0)
    return page(
        asked,
        "sessions.html" if not asked.is_fragment else "list.html",
        status=400 if problem else 200,
        found=found,
        problem=problem,
        given=asked.given,
        is_filtered=chosen is not None,
        names=shelf.kept("names", lambda: queries.names(shelf.db)),
        has=HAS,
        at=max(1, at),
        pages=max(1, -(-found.total // SHOWN)),
        now=shelf.now(),
    )
