"""Token usage and cost: charts over a range of dates, tables by day, model and so on, and both as CSV."""

from __future__ import annotations

import io
from typing import Any, NamedTuple

import msgspec
from starlette.responses import Response

from clew.catalog import queries
from clew.catalog.search import catalog_text_finder
from clew.catalog.stats import CLOCK_NAMES, Row, Stats, catalog_stats, report, with_names
from clew.errors import UsageError
from clew.filters import Filters
from clew.model.time import from_microseconds
from clew.render.csv import write_csv
from clew.timezone import local_time
from clew.web.date_range import PRESETS, DateRange, describe_range, preset_range, step_of
from clew.web.request import PageRequest, respond
from clew.web.usage_charts import (
    ChartSource,
    Section,
    TableRow,
    by_hour,
    by_name,
    cache_use,
    model_colours,
    over_time,
    sessions_url,
    subagent_share,
    tool_use,
    top_sessions,
)

MAX_TABLE_ROWS = 100
"""Of the table of a chart; its CSV has all rows."""
GROUPINGS = ("day", "week", "month", "weekday", "hour", "model", "agent", "project", "tool")
"""The tables that the page offers besides its charts."""
TIME_GROUPINGS = ("day", "week", "month")
OVERVIEW = ("time", "project", "model", "hour", "session", "tool", "cache", "subagents")
"""The charts of the page, in order."""
CHART_OF_GROUPING = {**dict.fromkeys(TIME_GROUPINGS, "time"), "weekday": "hour"}
"""The charts above a table that have another name than its grouping."""


class Usage(NamedTuple):
    """What the page shows."""

    totals: Row
    sections: list[Section]
    rows: list[TableRow]
    """Of the table; empty without one."""
    caption: str


def view(request: PageRequest) -> Response:
    """The page."""
    context, by, problem = request.context, _grouping(request), None
    try:
        filters, dates = _filters(request)
    except UsageError as error:
        filters, dates, problem = Filters(), DateRange(), str(error)
    today = local_time(context.now()).date()
    key = f"usage {by} {_to_the_minute(filters)} {request.profile} {today} {request.url()}"
    found = context.cached(key, lambda: _load(request, filters, dates, by))
    return respond(
        request,
        "usage.html",
        sync_progress=context.sync_progress(),
        status=400 if problem else 200,
        by=by,
        groupings=GROUPINGS,
        presets=PRESETS,
        dates=dates,
        found=found,
        problem=problem,
        given=request.filter_params,
        names=context.cached("names", lambda: queries.names(context.db)),
    )


def csv_view(request: PageRequest) -> Response:
    """The table of a chart, or the rows of a grouping, masked like the page."""
    filters, dates = _filters(request)
    chart = request.param("chart")
    if chart in OVERVIEW:
        source = _source(request, filters, dates)._replace(max_rows=None)
        name, rows = chart, _section(request, source, chart).csv_rows()
    else:
        name = _grouping(request) or "day"
        rows = with_names(report(_stats(request, filters), name), request.masking.names)["rows"]
    out = io.StringIO()
    write_csv(rows, out)
    headers = {"Content-Disposition": f'attachment; filename="usage-by-{name}.csv"'}
    return Response(out.getvalue(), media_type="text/csv", headers=headers)


def _grouping(request: PageRequest) -> str | None:
    by = request.param("by")
    return by if by in GROUPINGS else None


def _filters(request: PageRequest) -> tuple[Filters, DateRange]:
    """The filters with the range of dates: times that the user wrote come before a preset."""
    filters = request.filters()
    if filters.since is not None or filters.until is not None:
        return filters, DateRange(filters.since, filters.until)
    dates = preset_range(request.param("range") or "", request.context.now())
    return msgspec.structs.replace(filters, since=dates.since, until=dates.until), dates


def _to_the_minute(filters: Filters) -> Filters:
    """The filters with whole minutes: a relative time such as `3d` is another one in each microsecond."""
    since, until = (at and at.replace(second=0, microsecond=0) for at in (filters.since, filters.until))
    return msgspec.structs.replace(filters, since=since, until=until)


def _stats(request: PageRequest, filters: Filters) -> Stats:
    context = request.context
    return catalog_stats(context.db, filters, catalog_text_finder(context.db, context.folder))


def _load(request: PageRequest, filters: Filters, dates: DateRange, by: str | None) -> Usage:
    source = _source(request, filters, dates)
    if by is None:
        sections = [_section(request, source, name) for name in OVERVIEW]
        return Usage(_totals(source.stats), sections, [], source.caption)
    found = report(source.stats, by)
    if by in TIME_GROUPINGS:
        found["rows"].reverse()
    elif by not in CLOCK_NAMES:
        found["rows"].sort(key=_row_weight, reverse=True)
    urls = [source.sessions_url({by: row[by]}) if row["sessions_with_calls"] else "" for row in found["rows"]]
    masked = with_names(found, request.masking.names)
    section = _section(request, source, CHART_OF_GROUPING.get(by, by))
    return Usage(masked["totals"], [section], list(map(TableRow, masked["rows"], urls)), source.caption)


def _totals(stats: Stats) -> Row:
    return stats.usage().as_row()


def _row_weight(row: Row) -> tuple[int, int]:
    return row.get("cost_nano") or 0, row.get("total_tokens") or row.get("tool_calls") or 0


def _source(request: PageRequest, filters: Filters, dates: DateRange) -> ChartSource:
    context = request.context
    stats = _stats(request, filters)
    first_us = stats.usage().first_us
    first = from_microseconds(first_us) if first_us else None
    today = local_time(context.now()).date()
    changes: dict[str, Any] = {"by": None, "range": None, "chart": None, **dates.limits_in_words()}
    return ChartSource(
        stats,
        model_colours(context),
        request.masking.names,
        sessions_url(request.url("/sessions", **changes), request.masking),
        dates.axis_days(local_time(first).date() if first else None, today),
        describe_range(dates.since or first, dates.until, today),
        MAX_TABLE_ROWS,
    )


def _section(request: PageRequest, source: ChartSource, name: str) -> Section:
    """One chart with its table."""
    stats = source.stats
    if name == "time":
        by = _grouping(request)
        step = by if by in TIME_GROUPINGS else step_of(*source.days)
        return over_time(source, step, stats.usage_by(step, "model"))
    if name == "model":
        usage = {model: used for (model,), used in stats.usage_by("model").items()}
        return by_name(source, "model", usage, {(model, model): used for model, used in usage.items()})
    if name in ("project", "agent"):
        usage = {value: used for (value,), used in stats.usage_by(name).items()}
        return by_name(source, name, usage, stats.usage_by(name, "model"))
    if name == "session":
        return top_sessions(source, lambda keys: queries.by_keys(request.context.db, keys))
    return {"hour": by_hour, "tool": tool_use, "cache": cache_use, "subagents": subagent_share}[name](source)
