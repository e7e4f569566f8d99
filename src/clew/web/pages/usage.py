"""Token usage and cost: charts over a range of dates, tables by day, model and so on, and both as CSV."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import msgspec
from starlette.responses import Response

from clew.catalog import queries
from clew.catalog.search import catalog_text_finder
from clew.catalog.stats import CLOCK_NAMES, Row, Stats, catalog_stats, report, with_names
from clew.errors import UnknownReference, UsageError
from clew.filters import Filters
from clew.model.time import from_microseconds
from clew.render.csv import write_csv
from clew.timezone import local_time
from clew.web.date_range import PRESETS, DateRange, describe_range, preset_range, step_of
from clew.web.download import content_disposition
from clew.web.request import PageRequest, respond
from clew.web.usage_charts import (
    ChartSection,
    by_cache,
    by_hour,
    by_kind,
    by_name,
    by_session,
    by_tool,
    catalog_colours,
    over_time,
)
from clew.web.usage_tables import (
    DailyUse,
    TableRow,
    UsageSource,
    UsageTable,
    cache_table,
    daily_use,
    hour_table,
    kind_table,
    name_table,
    session_table,
    sessions_url,
    time_table,
    tool_table,
)

MAX_TABLE_ROWS = 200
"""Of the table of a chart; its CSV has all rows."""
GROUPINGS = ("day", "week", "month", "weekday", "hour", "model", "agent", "project", "tool")
"""The tables that the page offers besides its charts."""
TIME_GROUPINGS = ("day", "week", "month")
SPLITS = ("model", "project", "agent")
"""What the parts of a bar of the chart over time can stand for."""
OVERVIEW = ("time", "project", "model", "hour", "session", "tool", "cache", "subagents")
"""The charts of the page, in order."""


class Chart(NamedTuple):
    """The functions for a chart and for its exact values."""

    draw: Callable[[UsageSource], ChartSection]
    tabulate: Callable[[UsageSource], UsageTable]


def _named_chart(by: str) -> Chart:
    return Chart(partial(by_name, by=by), partial(name_table, by=by))


CHARTS: Mapping[str, Chart] = {
    "time": Chart(lambda source: over_time(source, source.stats.amounts_by(source.step, source.split)), time_table),
    **{by: _named_chart(by) for by in SPLITS},
    "hour": Chart(by_hour, hour_table),
    "session": Chart(by_session, session_table),
    "tool": Chart(by_tool, tool_table),
    "cache": Chart(by_cache, cache_table),
    "subagents": Chart(by_kind, kind_table),
}
"""By the value of the parameter `chart`."""
CHART_OF_GROUPING = {**dict.fromkeys(TIME_GROUPINGS, "time"), "weekday": "hour"}
"""The charts above a table that have another name than its grouping."""


class Usage(NamedTuple):
    """What the page shows."""

    totals: Row
    daily: DailyUse | None
    sections: list[ChartSection]
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
        split=_split(request),
        splits=SPLITS,
        presets=PRESETS,
        dates=dates,
        found=found,
        problem=problem,
        given=request.filter_params,
        names=context.cached("names", lambda: queries.names(context.db)),
    )


def table_view(request: PageRequest) -> Response:
    """The exact values of a chart."""
    chart = request.param("chart") or ""
    if chart not in CHARTS:
        raise UnknownReference("no such chart")
    source = _source(request, *_filters(request))
    return respond(
        request,
        "usage_table.html",
        title=f"Usage {'over time' if chart == 'time' else 'by ' + chart}",
        caption=source.caption,
        table=CHARTS[chart].tabulate(source),
        max_rows=MAX_TABLE_ROWS,
    )


def csv_view(request: PageRequest) -> Response:
    """The table of a chart, or the rows of a grouping, masked like the page."""
    filters, dates = _filters(request)
    chart = request.param("chart") or ""
    if chart in CHARTS:
        name, rows = chart, CHARTS[chart].tabulate(_source(request, filters, dates)).csv_rows()
    else:
        name = _grouping(request) or "day"
        rows = with_names(report(_stats(request, filters), name), request.masking.names)["rows"]
    out = io.StringIO()
    write_csv(rows, out)
    headers = {"Content-Disposition": content_disposition(f"usage-by-{name}", ".csv")}
    return Response(out.getvalue(), media_type="text/csv", headers=headers)


def _grouping(request: PageRequest) -> str | None:
    by = request.param("by")
    return by if by in GROUPINGS else None


def _split(request: PageRequest) -> str:
    split = request.param("split")
    return split if split in SPLITS else SPLITS[0]


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
    daily = daily_use(source)
    if by is None:
        sections = [CHARTS[name].draw(source) for name in OVERVIEW]
        return Usage(source.stats.usage().as_row(), daily, sections, [], source.caption)
    found = report(source.stats, by)
    if by in TIME_GROUPINGS:
        found["rows"].reverse()
    elif by not in CLOCK_NAMES:
        found["rows"].sort(key=_row_weight, reverse=True)
    urls = [source.sessions_url({by: row[by]}) if row["sessions_with_calls"] else "" for row in found["rows"]]
    masked = with_names(found, request.masking.names)
    section = CHARTS[CHART_OF_GROUPING.get(by, by)].draw(source)
    return Usage(masked["totals"], daily, [section], list(map(TableRow, masked["rows"], urls)), source.caption)


def _row_weight(row: Row) -> tuple[int, int]:
    return row.get("cost_nano") or 0, row.get("total_tokens") or row.get("tool_calls") or 0


def _source(request: PageRequest, filters: Filters, dates: DateRange) -> UsageSource:
    context = request.context
    stats = _stats(request, filters)
    first_us = stats.usage().first_us
    first = from_microseconds(first_us) if first_us else None
    today = local_time(context.now()).date()
    changes: dict[str, Any] = dict.fromkeys(("by", "range", "chart", "split")) | dates.query_parameters()
    days = dates.axis_days(local_time(first).date() if first else None, today)
    by = _grouping(request)
    return UsageSource(
        stats,
        request.masking.names,
        sessions_url(request.url("/sessions", **changes), request.masking),
        lambda keys: queries.by_keys(context.db, keys),
        lambda column: catalog_colours(context, column),
        days,
        by if by in TIME_GROUPINGS else step_of(*days),
        _split(request),
        describe_range(dates.since or first, dates.until, today),
    )
