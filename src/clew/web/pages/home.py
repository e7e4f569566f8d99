"""The home page: activity, usage, running and latest sessions."""

from __future__ import annotations

from datetime import date, timedelta
from typing import NamedTuple

from markupsafe import Markup
from starlette.responses import Response

from clew.catalog import queries
from clew.catalog.queries import Entry
from clew.catalog.stats import Row, Stats, catalog_stats
from clew.catalog.unknown_formats import unknown_formats
from clew.filters import point_in_time
from clew.render.tables import counted
from clew.timezone import local_time
from clew.web.charts import Day, heatmap, heatmap_begin
from clew.web.context import AppContext, masking
from clew.web.date_range import MICROSECOND, describe_range
from clew.web.request import PageRequest, respond
from clew.web.templates import link, render
from clew.web.usage_charts import Cells, ChartSource, Section, model_colours, over_time, sessions_url

RUNNING = timedelta(minutes=5)
"""A session whose file was written to within this time is listed as running."""
RUNNING_MESSAGE_AGE = timedelta(hours=1)
"""Its last message may be this old: some agents record when a turn began, and not when it ended."""
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
    usage: Section
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
        running=running_sessions(context, MAX_LISTED),
        now=context.now(),
    )


def running(request: PageRequest) -> Response:
    """The list of running sessions alone."""
    context = request.context
    return respond(request, "running.html", running=running_sessions(context, MAX_LISTED), now=context.now())


def running_sessions(context: AppContext, limit: int) -> list[Entry]:
    """The sessions that an agent is writing to, the latest first."""
    now = context.now()
    written_since, message_since = (now - RUNNING).timestamp(), (now - RUNNING_MESSAGE_AGE).timestamp()
    return queries.written_since(context.db, int(written_since * 1e9), int(message_since * 1e6), limit)


def _render_overview(context: AppContext, today: date, profile: str, is_first_sync: bool) -> Markup:
    """The part of the page that depends on the catalog alone. A first sync reads sessions before their usage."""
    stats = catalog_stats(context.db)
    totals = stats.totals()
    cells = {cell: used for cell, used in stats.usage_by("day", "model").items() if cell[0]}
    days = _describe_days(cells, stats, profile)
    last = min(today, max(days, default=today))
    heat_end = today if (today - last).days < HEATMAP_ENDS_TODAY_DAYS else last
    overview = Overview(
        totals,
        heatmap(days, heat_end),
        _describe_days_of(heatmap_begin(heat_end), heat_end, context),
        [(day.isoformat(), activity) for day, activity in sorted(days.items(), reverse=True)],
        _usage_section(context, stats, cells, last, profile),
        bool(totals["calls"]) or not is_first_sync,
    )
    return Markup(render("overview.html", profile, overview=overview))


def _usage_section(context: AppContext, stats: Stats, cells: Cells, last: date, profile: str) -> Section:
    """Cost and tokens of the last days."""
    first = last - timedelta(days=CHART_DAYS - 1)
    names, mask = {first + timedelta(days=number) for number in range(CHART_DAYS)}, masking(profile)
    source = ChartSource(
        stats,
        model_colours(context),
        mask.names,
        sessions_url(Markup("/sessions"), mask),
        (first, last),
        _describe_days_of(first, last, context),
    )
    shown = {cell: used for cell, used in cells.items() if date.fromisoformat(cell[0]) in names}
    return over_time(source, "day", shown)._replace(title="Usage")


def _describe_days_of(first: date, last: date, context: AppContext) -> str:
    """A range of whole days in words."""
    now = context.now()
    today = local_time(now).date()
    end = None if last >= today else point_in_time((last + timedelta(days=1)).isoformat(), now) - MICROSECOND
    return describe_range(point_in_time(first.isoformat(), now), end, today)


def _describe_days(cells: Cells, stats: Stats, profile: str) -> dict[date, Day]:
    calls: dict[str, int] = {}
    tokens: dict[str, int] = {}
    for (day, _), used in cells.items():
        calls[day] = calls.get(day, 0) + used.calls
        tokens[day] = tokens.get(day, 0) + (used.total_tokens or 0)
    started = {day: row["sessions"] + row["subagents"] for day, row in stats.sessions_by("day").items() if day}
    days = {}
    for day in {*calls, *started}:
        sessions = f"{counted(started.get(day, 0), 'session')} started"
        text = f"{calls.get(day, 0):,} model calls, {tokens.get(day, 0):,} tokens, {sessions}"
        url = link("/sessions", profile, since=day, until=f"{day}T23:59:59")
        days[date.fromisoformat(day)] = Day(calls.get(day, 0), text, url)
    return days
