"""The list of sessions, the latest or largest first, with sub-agents below the session that started them."""

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
SORT_TITLES = {
    "time": "latest first",
    "messages": "most messages",
    "tokens": "most tokens",
    "cost": "highest cost",
    "duration": "longest",
}


def view(request: PageRequest) -> Response:
    """The page, or the list alone."""
    context, problem = request.context, None
    try:
        filters = request.filters()
    except UsageError as error:
        filters, problem = Filters(), str(error)
    admitted = None
    project = request.param("exact_project")
    try:
        if filters != Filters() or request.usage_group or project is not None:
            key = f"matching {filters} {request.usage_group} {project!r}"
            admitted = context.cached(key, lambda: _matching_sources(request, filters, project))
    except UsageError as error:
        problem = str(error)
    sort = request.param("sort") or "time"
    if sort not in queries.PAGE_SORTS:
        sort, problem = "time", f"sort: unknown order {sort!r}; known: {', '.join(queries.PAGE_SORTS)}"
    page_number = max(1, request.number("page", 1))
    found = queries.page(context.db, admitted, SESSIONS_PER_PAGE, (page_number - 1) * SESSIONS_PER_PAGE, sort)
    return respond(
        request,
        "sessions.html" if not request.is_fragment else "list.html",
        status=400 if problem else 200,
        sync_progress=context.sync_progress(),
        found=found,
        problem=problem,
        given=request.filter_params,
        usage_group=request.usage_group,
        exact_project=project,
        is_filtered=admitted is not None,
        names=context.cached("names", lambda: queries.names(context.db)),
        has=HAS,
        labels=_offered_labels(request),
        sort=sort,
        sort_titles=SORT_TITLES,
        page_number=page_number,
        pages=max(1, -(-found.total // SESSIONS_PER_PAGE)),
        now=context.now(),
    )


def _offered_labels(request: PageRequest) -> list[str]:
    """Every label, and those of the address that nothing has."""
    known = list(request.annotations.labels)
    folded = set(map(str.casefold, known))
    return known + [label for label in request.params("label") if label.casefold() not in folded]


def _matching_sources(request: PageRequest, filters: Filters, project: str | None) -> Collection[int]:
    """The sessions that pass the filters, or those with calls of a group that pass them; of one project if it is given.

    The filter `project` finds every project whose name or folder contains a text; `project` here is a whole name.
    """
    context, group = request.context, request.usage_group
    if group:
        stats = catalog_stats(context.db, filters, catalog_text_finder(context.db, context.folder))
        found = queries.numbers_of(context.db, stats.session_keys(group))
    else:
        found = context.searcher(request.profile).matching_sources(filters)
    return found if project is None else found & queries.numbers_in_project(context.db, project)
