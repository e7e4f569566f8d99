"""The home page: activity, usage, running and latest sessions."""

from __future__ import annotations

from datetime import date, timedelta
from typing import NamedTuple

from markupsafe import Markup
from starlette.responses import Response

from clew.catalog import queries
from clew.catalog.queries import Entry
from clew.catalog.running import running_sessions
from clew.catalog.stats import Row, Stats, catalog_stats
from clew.catalog.unknown_formats import unknown_formats
from clew.filters import point_in_time
from clew.render.tables import counted
from clew.timezone import local_time
from clew.web.charts import Day, heatmap, heatmap_begin
from clew.web.context import AppContext, masking
from clew.web.date_range import DateRange, describe_range, end_of_day
from clew.web.request import PageRequest, respond
from clew.web.templates import link, render
from clew.web.usage_charts import AmountsByPair, ChartSection, catalog_colours, over_time
from clew.web.usage_tables import UsageSource, sessions_url

MAX_LISTED = 8
CHART_DAYS = 30
HEATMAP_ENDS_TODAY_DAYS = 300
"""The heatmap ends today, unless the last activity is older than this."""


class Overview(NamedTuple):
    """Sums of the whole catalog."""

    totals: Row
    heat: Markup
    heat_range: str
    days: list[tuple[str, Day]]
    usage: ChartSection
    usage_table: str
    """The address of the exact values of the usage."""
    has_usage: bool


def view(request: PageRequest) -> Response:
    """The page."""
    context, profile = request.context, request.profile
    today = local_time(context.now()).date()
    progress = context.sync_progress()
    key = f"home {today} {profile} {progress.is_first}"
    overview = context.cached(key, lambda: _render_overview(context, today, profile, progress.is_first))
    return respond(
        request,
        "home.html",
        sync_progress=progress,
        unknown_formats=request.masking.value([str(each) for each in unknown_formats(context.db)]),
        overview=overview,
        latest=queries.page(context.db, None, MAX_LISTED),
        running=_latest_running(context),
        now=context.now(),
    )


def running(request: PageRequest) -> Response:
    """The list of running sessions alone."""
    context = request.context
    return respond(request, "running.html", running=_latest_running(context), now=context.now())


def _latest_running(context: AppContext) -> list[Entry]:
    return queries.entries(context.db, list(running_sessions(context.db, context.now()))[:MAX_LISTED])


def _render_overview(context: AppContext, today: date, profile: str, is_first_sync: bool) -> Markup:
    """The part of the page that depends on the catalog alone. A first sync reads sessions before their usage."""
    stats = catalog_stats(context.db)
    totals = {**stats.sessions(), **stats.usage().as_row()}
    cells = {cell: used for cell, used in stats.amounts_by("day", "model").items() if cell[0]}
    days = _activity_by_day(cells, stats, context, profile)
    last = min(today, max(days, default=today))
    first = last - timedelta(days=CHART_DAYS - 1)
    heat_end = today if (today - last).days < HEATMAP_ENDS_TODAY_DAYS else last
    overview = Overview(
        totals,
        heatmap(days, heat_end),
        _describe_day_range(heatmap_begin(heat_end), heat_end, context),
        [(day.isoformat(), activity) for day, activity in sorted(days.items(), reverse=True)],
        _usage_section(context, stats, cells, (first, last), profile),
        link("/usage/table", profile, chart="time", by="day", **_day_range(first, last, context).query_parameters()),
        bool(totals["calls"]) or not is_first_sync,
    )
    return Markup(render("overview.html", profile, overview=overview))


def _usage_section(
    context: AppContext, stats: Stats, cells: AmountsByPair, days: tuple[date, date], profile: str
) -> ChartSection:
    """Cost and tokens of some days."""
    source = UsageSource(
        stats,
        masking(profile).names,
        sessions_url(Markup("/sessions"), masking(profile)),
        lambda keys: queries.by_keys(context.db, keys),
        lambda column: catalog_colours(context, column),
        days,
        "day",
        "model",
        _describe_day_range(*days, context),
    )
    first, last = map(str, days)
    shown = {cell: used for cell, used in cells.items() if first <= cell[0] <= last}
    return over_time(source, shown)._replace(title="Usage")


def _day_range(first: date, last: date, context: AppContext) -> DateRange:
    """The exact limits of whole days."""
    now = context.now()
    since = point_in_time(first.isoformat(), now)
    return DateRange(since) if last == date.max else DateRange(since, end_of_day(last, now))


def _describe_day_range(first: date, last: date, context: AppContext) -> str:
    """A range of whole days in words."""
    today, (since, until, _) = local_time(context.now()).date(), _day_range(first, last, context)
    return describe_range(since, None if last >= today else until, today)


def _activity_by_day(cells: AmountsByPair, stats: Stats, context: AppContext, profile: str) -> dict[date, Day]:
    calls: dict[str, int] = {}
    tokens: dict[str, int] = {}
    for (day, _), used in cells.items():
        calls[day] = calls.get(day, 0) + used.calls
        tokens[day] = tokens.get(day, 0) + (used.total_tokens or 0)
    started = {day: row["sessions"] + row["subagents"] for day, row in stats.sessions_by("day").items() if day}
    with_calls = sessions_url(Markup("/sessions"), masking(profile))
    days = {}
    for day in {*calls, *started}:
        at = date.fromisoformat(day)
        sessions = f"{counted(started.get(day, 0), 'session')} started"
        text = f"{calls.get(day, 0):,} model calls, {tokens.get(day, 0):,} tokens, {sessions}"
        if day in calls:
            url = with_calls({"day": day})
        else:
            # Some agents record no calls.
            url = link("/sessions", profile, **_day_range(at, at, context).query_parameters())
        days[at] = Day(calls.get(day, 0), text, url)
    return days
