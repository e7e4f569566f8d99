"""The home page: what was done when, what it took, and what is going on now."""

from __future__ import annotations

from datetime import date, timedelta
from typing import NamedTuple

from markupsafe import Markup
from starlette.responses import Response

from clew.catalog import queries
from clew.catalog.queries import Entry
from clew.catalog.stats import Row, catalog_stats
from clew.web.asking import Asked, page
from clew.web.charts import Day, heatmap
from clew.web.drawing import drawn
from clew.web.figures import Cells, stacked, with_names
from clew.web.shelf import Shelf

RUNNING = timedelta(minutes=5)
"""A session that was written to within this time is said to run."""
SILENT = timedelta(hours=1)
"""So long may its last words be past: some agents write down when a turn began, and not when it ended."""
LAST = 8
DAYS = 30


class Overview(NamedTuple):
    """What the catalog comes to."""

    used: Row
    held: Row
    heat: Markup
    days: list[tuple[str, Day]]
    cells: Cells
    names: list[str]
    """The days that the charts show."""


def page_of(asked: Asked) -> Response:
    """The page."""
    shelf = asked.shelf
    today = shelf.now().date()
    overview = shelf.kept(f"home {today} {asked.profile}", lambda: _drawn(shelf, today, asked.profile))
    latest = queries.page(shelf.db, None, LAST)
    return page(
        asked,
        "home.html",
        overview=overview,
        latest=latest,
        running=_running(shelf),
        now=shelf.now(),
    )


def _drawn(shelf: Shelf, today: date, profile: str) -> Markup:
    """What only changes with the catalog."""
    overview = _overview(shelf, today)
    cells = with_names(overview.cells, shelf.masking(profile).names)
    charts = [stacked(cells, what, names=overview.names) for what in ("cost_nano", "total_tokens")]
    return Markup(drawn("overview.html", profile, overview=overview, charts=charts))


def running(asked: Asked) -> Response:
    """The part of it that says what is going on now."""
    return page(asked, "running.html", running=_running(asked.shelf), now=asked.shelf.now())


def _running(shelf: Shelf) -> list[Entry]:
    now = shelf.now()
    written, said = (now - RUNNING).timestamp(), (now - SILENT).timestamp()
    return queries.written_since(shelf.db, int(written * 1e9), int(said * 1e6), LAST)


def _overview(shelf: Shelf, today: date) -> Overview:
    stats = catalog_stats(shelf.db)
    usage = stats.usage_by("day", "model").items()
    cells = [(day, model, totals.as_row()) for (day, model), totals in usage if day]
    days = _days(cells, {day: row["all_sessions"] for day, row in stats.sessions_by("day").items() if day})
    last = min(today, max(days, default=today))
    heat = heatmap(days, today if (today - last).days < 300 else last)
    shown = [(day.isoformat(), words) for day, words in sorted(days.items(), reverse=True)]
    names = [(last - timedelta(days=ago)).isoformat() for ago in reversed(range(DAYS))]
    recent = [cell for cell in cells if names[0] <= cell[0] <= names[-1]]
    totals = stats.totals()
    return Overview(totals, totals, heat, shown, recent, names)


def _days(cells: Cells, begun: dict[str, int]) -> dict[date, Day]:
    calls: dict[str, int] = {}
    tokens: dict[str, int] = {}
    for name, _, used in cells:
        calls[name] = calls.get(name, 0) + used["calls"]
        tokens[name] = tokens.get(name, 0) + (used["total_tokens"] or 0)
    days = {}
    for name in {*calls, *begun}:
        sessions = begun.get(name, 0)
        began = f"{sessions} session{'s' * (sessions != 1)} begun"
        words = f"{calls.get(name, 0):,} model calls, {tokens.get(name, 0):,} tokens, {began}"
        days[date.fromisoformat(name)] = Day(calls.get(name, 0), words)
    return days
