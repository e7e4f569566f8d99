"""Statistics as charts with their exact values: which model has which colour, and what stands in a table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from markupsafe import Markup

from clew.catalog.stats import Row
from clew.web.charts import SERIES, Stack, bars
from clew.web.drawing import money, number

Cells: TypeAlias = list[tuple[str, str, Row]]
"""What was used: by day or project, by model, and how much."""

_TITLES = {"cost_nano": "Cost by day and model", "total_tokens": "Tokens by day and model"}
_REST = "others"


class Chart(NamedTuple):
    """A chart, its legend, and its values in words."""

    title: str
    drawing: Markup
    legend: list[tuple[int, str, str]]
    """Number of the colour, name, sum."""
    rows: list[tuple[str, str]]
    """Each bar, and its value."""


def stacked(
    cells: Cells, what: str, title: str | None = None, names: Sequence[str] = (), *, is_timed: bool = True
) -> Chart:
    """What was used, as bars with a part for each model; `names` are bars that come first, even if they are empty.

    Of times, the latest come first in the table.
    """
    title = title or _TITLES[what]
    order = _colours(cells)
    parts: dict[str, list[tuple[int, float, str]]] = {name: [] for name in names}
    by_model: dict[str, list[Row]] = {}
    by_name: dict[str, list[Row]] = {}
    for name, model, used in sorted(cells, key=lambda cell: (cell[0], order[cell[1]])):
        found = parts.setdefault(name, [])
        if used[what]:
            words = f"{model or 'unknown model'} {_sum([used], what)}"
            found.append((order[model], _scaled(used[what], what), words))
        by_model.setdefault(model, []).append(used)
        by_name.setdefault(name, []).append(used)
    drawing = bars([Stack(name, found) for name, found in parts.items()], title, "$" if what == "cost_nano" else "")
    rows = [(name, _sum(by_name[name], what)) for name in parts if name in by_name]
    return Chart(title, drawing, _legend(order, by_model, what), rows[::-1] if is_timed else rows)


def with_names(cells: Cells, mask: Callable[[list[str]], list[str]]) -> Cells:
    """The same with all names as they may be shown."""
    known = list(dict.fromkeys(name for cell in cells for name in cell[:2]))
    names = dict(zip(known, mask(known), strict=True))
    return [(names[name], names[model], used) for name, model, used in cells]


def _colours(cells: Cells) -> dict[str, int]:
    """The place of each model: by its share of tokens or of cost, so that it has the same colour in every chart."""
    shares: dict[str, float] = {}
    for what in _TITLES:
        sums: dict[str, int] = {}
        for _, model, used in cells:
            sums[model] = sums.get(model, 0) + (used[what] or 0)
        whole = sum(sums.values()) or 1
        shares = {model: max(shares.get(model, 0.0), value / whole) for model, value in sums.items()}
    return {model: at for at, model in enumerate(sorted(shares, key=lambda model: (-shares[model], model)))}


def _legend(order: dict[str, int], by_model: dict[str, list[Row]], what: str) -> list[tuple[int, str, str]]:
    shown = [(at, model or "unknown model", _sum(by_model[model], what)) for model, at in order.items() if at < SERIES]
    rest = [used for model, at in order.items() if at >= SERIES for used in by_model[model]]
    return [*shown, (SERIES, _REST, _sum(rest, what))] if rest else shown


def _sum(rows: Sequence[Row], what: str) -> str:
    """The sum in words; what has no price is unknown, and no sum with it is exact."""
    known = [row[what] for row in rows if row[what] is not None]
    if not known:
        return "unknown"
    if what != "cost_nano":
        return number(sum(known))
    return ("≥ " if any(row["cost_is_at_least"] for row in rows) else "") + money(sum(known))


def _scaled(value: int, what: str) -> float:
    return value / 1e9 if what == "cost_nano" else float(value)
