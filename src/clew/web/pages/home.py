"""The home page: activity, usage, running and latest sessions."""

from __future__ import annotations

from datetime import date, timedelta
from typing import NamedTuple

from markupsafe import Markup
from starlette.responses import Response

from clew.catalog import queries
from clew.catalog.queries import Entry
from clew.catalog.stats import Row, catalog_stats
from clew.catalog.unknown_formats import unknown_formats
from clew.render.tables import counted
from clew.timezone import local_time
from clew.web.charts import Cells, Day, heatmap, mask_cell_names, usage_chart
from clew.web.context import AppContext, masking
from clew.web.request import PageRequest, respond
from clew.web.templates import render

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
    days: list[tuple[str, Day]]
    cells: Cells
    chart_days: list[str]


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
    overview = _load_overview(context, today)
    cells = mask_cell_names(overview.cells, masking(profile).names)
    charts = [usage_chart(cells, measure, names=overview.chart_days) for measure in ("cost_nano", "total_tokens")]
    has_usage = bool(overview.totals["calls"]) or not is_first_sync
    return Markup(render("overview.html", profile, overview=overview, charts=charts, has_usage=has_usage))


def _load_overview(context: AppContext, today: date) -> Overview:
    stats = catalog_stats(context.db)
    totals = stats.totals()
    usage = stats.usage_by("day", "model").items()
    cells = [(day, model, used.as_row()) for (day, model), used in usage if day]
    sessions_by_day = {day: row["sessions"] + row["subagents"] for day, row in stats.sessions_by("day").items() if day}
    days = _describe_days(cells, sessions_by_day)
    last = min(today, max(days, default=today))
    heat = heatmap(days, today if (today - last).days < HEATMAP_ENDS_TODAY_DAYS else last)
    latest_first = [(day.isoformat(), activity) for day, activity in sorted(days.items(), reverse=True)]
    chart_days = [(last - timedelta(days=ago)).isoformat() for ago in reversed(range(CHART_DAYS))]
    chart_cells = [cell for cell in cells if chart_days[0] <= cell[0] <= chart_days[-1]]
    return Overview(totals, heat, latest_first, chart_cells, chart_days)


def _describe_days(cells: Cells, sessions_by_day: dict[str, int]) -> dict[date, Day]:
    calls: dict[str, int] = {}
    tokens: dict[str, int] = {}
    for day, _, used in cells:
        calls[day] = calls.get(day, 0) + used["calls"]
        tokens[day] = tokens.get(day, 0) + (used["total_tokens"] or 0)
    days = {}
    for day in {*calls, *sessions_by_day}:
        sessions = sessions_by_day.get(day, 0)
        started = f"{counted(sessions, 'session')} started"
        text = f"{calls.get(day, 0):,} model calls, {tokens.get(day, 0):,} tokens, {started}"
        days[date.fromisoformat(day)] = Day(calls.get(day, 0), text)
    return days
