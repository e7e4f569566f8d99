"""Token usage and cost by day, model, agent or project, as a page and as CSV."""

from __future__ import annotations

import io
from collections.abc import Callable

from starlette.responses import Response

from clew.catalog import queries
from clew.catalog.search import catalog_text_finder
from clew.catalog.stats import BY, Row, Stats, catalog_stats, report, with_names
from clew.errors import UsageError
from clew.filters import Filters
from clew.render.csv import write_csv
from clew.web.charts import Chart, mask_cell_names, usage_chart
from clew.web.request import PageRequest, respond

GROUPINGS = ("day", "week", "month", "model", "agent", "project", "tool")
TIME_GROUPINGS = ("day", "week", "month")
MAX_TIME_BARS = 90
"""A chart over time shows the latest."""
MAX_OTHER_BARS = 20
"""Any other chart shows those with the most tokens, largest first."""


def view(request: PageRequest) -> Response:
    """The page."""
    context, by, problem = request.context, _grouping(request), None
    try:
        filters = request.filters()
    except UsageError as error:
        filters, problem = Filters(), str(error)
    found, charts = context.cached(f"usage {by} {filters} {request.profile}", lambda: _load(request, filters, by))
    return respond(
        request,
        "usage.html",
        sync_progress=context.sync_progress(),
        status=400 if problem else 200,
        by=by,
        groupings=GROUPINGS,
        totals=found["totals"],
        rows=found["rows"][::-1] if by in TIME_GROUPINGS else sorted(found["rows"], key=_row_weight, reverse=True),
        charts=charts,
        problem=problem,
        given=request.filter_params,
        names=context.cached("names", lambda: queries.names(context.db)),
        csv=request.url("/usage.csv"),
    )


def _row_weight(row: Row) -> tuple[int, int]:
    return row.get("cost_nano") or 0, row.get("total_tokens") or row.get("tool_calls") or 0


def _load(request: PageRequest, filters: Filters, by: str) -> tuple[Row, list[Chart]]:
    stats = _stats(request, filters)
    mask_names = request.masking.names
    return with_names(report(stats, by), mask_names), [] if by == "tool" else _charts(stats, by, mask_names)


def _charts(stats: Stats, by: str, mask_names: Callable[[list[str]], list[str]]) -> list[Chart]:
    usage = stats.usage_by(by, "model").items()
    cells = mask_cell_names([(name, model, used.as_row()) for (name, model), used in usage], mask_names)
    tokens: dict[str, int] = {}
    for name, _, used in cells:
        tokens[name] = tokens.get(name, 0) + (used["total_tokens"] or 0)
    is_timed = by in TIME_GROUPINGS
    if is_timed:
        shown = sorted(name for name in tokens if name)[-MAX_TIME_BARS:]
    else:
        shown = sorted(tokens, key=lambda name: (-tokens[name], name))[:MAX_OTHER_BARS]
    shown_cells = [(name or "unknown", model, used) for name, model, used in cells if name in set(shown)]
    names = [name or "unknown" for name in shown]
    return [
        usage_chart(shown_cells, measure, f"{title} by {by}", names, is_timed=is_timed)
        for measure, title in (("cost_nano", "Cost"), ("total_tokens", "Tokens"))
    ]


def csv_view(request: PageRequest) -> Response:
    """The rows as CSV, masked like the page."""
    by = _grouping(request)
    found = report(_stats(request, request.filters()), by)
    out = io.StringIO()
    write_csv(with_names(found, request.masking.names)["rows"], out)
    headers = {"Content-Disposition": f'attachment; filename="usage-by-{by}.csv"'}
    return Response(out.getvalue(), media_type="text/csv", headers=headers)


def _grouping(request: PageRequest) -> str:
    by = request.param("by") or "day"
    return by if by in GROUPINGS and by in BY else "day"


def _stats(request: PageRequest, filters: Filters) -> Stats:
    context = request.context
    return catalog_stats(context.db, filters, catalog_text_finder(context.db, context.folder))
