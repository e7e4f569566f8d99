"""What was used and what it cost, by day, model, agent or project."""

from __future__ import annotations

import io
from collections.abc import Callable

from starlette.responses import Response

from clew.catalog import queries
from clew.catalog.search import catalog_text_finder
from clew.catalog.stats import BY, Row, Stats, catalog_stats, report, with_names
from clew.errors import UsageError
from clew.filters import Filters
from clew.render.sheet import write_csv
from clew.web import figures
from clew.web.asking import Asked, page
from clew.web.figures import Chart, stacked

WAYS = ("day", "week", "month", "model", "agent", "project", "tool")
"""What can be told apart here."""
CHARTED = 90
"""Bars of a chart over time; the latest are shown."""
LARGEST = 20
"""Bars of any other; those with the most tokens are shown, the largest first."""
_TIMED = ("day", "week", "month")


def page_of(asked: Asked) -> Response:
    """The page."""
    by, problem = _by(asked), None
    try:
        filters = asked.filters()
    except UsageError as error:
        filters, problem = Filters(), str(error)
    found, charts = asked.shelf.kept(f"usage {by} {filters} {asked.profile}", lambda: _figures(asked, filters, by))
    return page(
        asked,
        "usage.html",
        status=400 if problem else 200,
        by=by,
        ways=WAYS,
        totals=found["totals"],
        rows=found["rows"][::-1] if by in _TIMED else sorted(found["rows"], key=_weight, reverse=True),
        charts=charts,
        problem=problem,
        given=asked.given,
        names=asked.shelf.kept("names", lambda: queries.names(asked.shelf.db)),
        csv=asked.address("/usage.csv"),
    )


def _weight(row: Row) -> tuple[int, int]:
    return row.get("cost_nano") or 0, row.get("total_tokens") or row.get("tool_calls") or 0


def _figures(asked: Asked, filters: Filters, by: str) -> tuple[Row, list[Chart]]:
    stats = _stats(asked, filters)
    mask = asked.shelf.masking(asked.profile).names
    return with_names(report(stats, by), mask), [] if by == "tool" else _charts(stats, by, mask)


def _charts(stats: Stats, by: str, mask: Callable[[list[str]], list[str]]) -> list[Chart]:
    usage = stats.usage_by(by, "model").items()
    cells = figures.with_names([(name, model, totals.as_row()) for (name, model), totals in usage], mask)
    sums: dict[str, int] = {}
    for name, _, used in cells:
        sums[name] = sums.get(name, 0) + (used["total_tokens"] or 0)
    is_timed = by in _TIMED
    if is_timed:
        kept = sorted(name for name in sums if name)[-CHARTED:]
    else:
        kept = sorted(sums, key=lambda name: (-sums[name], name))[:LARGEST]
    chosen, names = set(kept), [name or "unknown" for name in kept]
    shown = [(name or "unknown", model, used) for name, model, used in cells if name in chosen]
    return [
        stacked(shown, what, f"{word} by {by}", names, is_timed=is_timed)
        for what, word in (("cost_nano", "Cost"), ("total_tokens", "Tokens"))
    ]


def sheet(asked: Asked) -> Response:
    """The rows as CSV."""
    by = _by(asked)
    found = report(_stats(asked, asked.filters()), by)
    out = io.StringIO()
    write_csv(with_names(found, asked.shelf.masking(asked.profile).names)["rows"], out)
    headers = {"Content-Disposition": f'attachment; filename="usage-by-{by}.csv"'}
    return Response(out.getvalue(), media_type="text/csv", headers=headers)


def _by(asked: Asked) -> str:
    said = asked.word("by") or "day"
    return said if said in WAYS and said in BY else "day"


def _stats(asked: Asked, filters: Filters) -> Stats:
    shelf = asked.shelf
    return catalog_stats(shelf.db, filters, catalog_text_finder(shelf.db, shelf.folder))
