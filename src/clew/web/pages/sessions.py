"""The list of sessions, latest first, with sub-agents below the session that started them."""

from __future__ import annotations

from collections.abc import Collection

from starlette.responses import Response

from clew.catalog import queries
from clew.catalog.search import catalog_text_finder
from clew.catalog.stats import catalog_stats
from clew.errors import UsageError
from clew.filters import HAS, Filters
from clew.web.request import PageRequest, respond

SESSIONS_PER_PAGE = 50


def view(request: PageRequest) -> Response:
    """The page, or the list alone."""
    context, problem = request.context, None
    try:
        filters = request.filters()
    except UsageError as error:
        filters, problem = Filters(), str(error)
    admitted = None
    try:
        if filters != Filters() or request.usage_group:
            key = f"matching {filters} {request.usage_group}"
            admitted = context.cached(key, lambda: _matching_sources(request, filters))
    except UsageError as error:
        problem = str(error)
    page_number = max(1, request.number("page", 1))
    found = queries.page(context.db, admitted, SESSIONS_PER_PAGE, (page_number - 1) * SESSIONS_PER_PAGE)
    return respond(
        request,
        "sessions.html" if not request.is_fragment else "list.html",
        status=400 if problem else 200,
        sync_progress=context.sync_progress(),
        found=found,
        problem=problem,
        given=request.filter_params,
        usage_group=request.usage_group,
        is_filtered=admitted is not None,
        names=context.cached("names", lambda: queries.names(context.db)),
        has=HAS,
        labels=request.known_labels,
        page_number=page_number,
        pages=max(1, -(-found.total // SESSIONS_PER_PAGE)),
        now=context.now(),
    )


def _matching_sources(request: PageRequest, filters: Filters) -> Collection[int]:
    """The sessions that pass the filters, or those with calls of a group that pass them."""
    context, group = request.context, request.usage_group
    if not group:
        return context.searcher(request.profile).matching_sources(filters)
    stats = catalog_stats(context.db, filters, catalog_text_finder(context.db, context.folder))
    return queries.numbers_of(context.db, stats.session_keys(group))
