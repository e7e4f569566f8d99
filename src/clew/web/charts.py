"""Charts as SVG without script or inline style: colours by class, exact values in the titles, and a table beside each.

`heatmap`, `bars` and `lanes` draw; `usage_chart` makes a stacked bar chart of usage with legend and table.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import date, timedelta
from typing import NamedTuple, TypeAlias

from markupsafe import Markup

from clew.catalog.stats import Row
from clew.render.text_safety import escape_line
from clew.web.templates import format_money, format_number

CELL_SIZE, CELL_GAP = 11, 3
HEATMAP_WEEKS = 53
HEATMAP_LEVELS = 4
COLOURS = 6
"""Series with a colour of their own; all others share one."""
BARS_HEIGHT, LABELS_HEIGHT = 180, 24
"""In pixels. Widths are percentages, so that text is as large on a phone as on a wide screen."""
LEFT_MARGIN_PERCENT = 12.0
MAX_LABELS, MAX_LABEL_CHARS = 4, 11
"""As many labels as fit on a phone side by side."""
LAST_LABEL_PERCENT = 85.0
"""A label behind this place ends at the edge of the chart."""
TICK_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
"""Steps of a scale, times a power of ten."""
TICKS = 4
MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()
LANES_WIDTH, LANE_HEIGHT, LANE_BINS = 300, 22, 150

Cells: TypeAlias = list[tuple[str, str, Row]]
"""Usage by a first name (a day or a project) and by model."""
MEASURES = {"cost_nano": "Cost by day and model", "total_tokens": "Tokens by day and model"}


class Day(NamedTuple):
    """The activity of a day: a number for the colour, and a description."""

    weight: int
    text: str


def heatmap(days: Mapping[date, Day], last: date) -> Markup:
    """A year of days, one column for each week."""
    first = last - timedelta(days=last.weekday() + 7 * (HEATMAP_WEEKS - 1))
    maximum = max((day.weight for day in days.values()), default=0)
    step = CELL_SIZE + CELL_GAP
    pieces = [f'<text x="0" y="{row * step + 25}">{name}</text>' for row, name in ((0, "Mon"), (4, "Fri"))]
    month = 0
    for offset in range((last - first).days + 1):
        at = first + timedelta(days=offset)
        x, y = offset // 7 * step + 30, at.weekday() * step + 16
        if at.day <= 7 and at.weekday() == 0 and at.month != month:
            month = at.month
            pieces.append(f'<text x="{x}" y="10">{MONTHS[month - 1]}</text>')
        day = days.get(at)
        level = 0 if day is None else _heat_level(day.weight, maximum)
        title = f"<title>{at.isoformat()}: {escape_line(day.text) if day is not None else 'no activity'}</title>"
        size = f'width="{CELL_SIZE}" height="{CELL_SIZE}"'
        pieces.append(f'<rect class="h{level}" x="{x}" y="{y}" {size} rx="2">{title}</rect>')
    label = f"Activity on each day from {first.isoformat()} to {last.isoformat()}"
    return _svg(_view_box(HEATMAP_WEEKS * step + 30, 7 * step + 16), label, "heat", "".join(pieces))


def _heat_level(weight: int, maximum: int) -> int:
    """The colour of a day, on a logarithmic scale: one very active day must not make all others look the same."""
    share = math.log1p(weight) / (math.log1p(maximum) or 1)
    return 1 + min(HEATMAP_LEVELS - 1, int(HEATMAP_LEVELS * share))


class Bar(NamedTuple):
    """One bar of stacked parts."""

    name: str
    parts: Sequence[tuple[int, float, str]]
    """Number of the series, value, description."""


def bars(stacks: Sequence[Bar], label: str, unit: str = "") -> Markup:
    """A chart of stacked bars."""
    if not stacks:
        return Markup("")
    maximum = max((sum(value for _, value, _ in bar.parts) for bar in stacks), default=0.0) or 1.0
    marks = ticks(maximum)
    step = (100 - LEFT_MARGIN_PERCENT) / len(stacks)
    width = min(6.0, step * 0.8)
    pieces = [_axis(marks, unit)]
    for number, bar in enumerate(stacks):
        x, y = LEFT_MARGIN_PERCENT + number * step + (step - width) / 2, float(BARS_HEIGHT)
        for series, value, text in bar.parts:
            height = value / marks[-1] * (BARS_HEIGHT - 10)
            y -= height
            pieces.append(
                f'<rect class="s{min(series, COLOURS)}" x="{x:.2f}%" y="{y:.1f}" width="{width:.2f}%" '
                f'height="{max(0.5, height):.1f}"><title>{escape_line(bar.name)}: {escape_line(text)}</title></rect>'
            )
    labelled = range(0, len(stacks), max(1, -(-len(stacks) // MAX_LABELS)))
    pieces += [_bar_label(stacks[number].name, LEFT_MARGIN_PERCENT + (number + 0.5) * step) for number in labelled]
    return _svg(f'width="100%" height="{BARS_HEIGHT + LABELS_HEIGHT}"', label, "bars", "".join(pieces))


def ticks(maximum: float) -> list[float]:
    """Round numbers from zero to the first that is not below the maximum."""
    power = 10.0 ** math.floor(math.log10(maximum / TICKS))
    step = power * next(step for step in TICK_STEPS if step * power * TICKS >= maximum * (1 - 1e-9))
    return [number * step for number in range(math.ceil(maximum / step - 1e-9) + 1)]


def _axis(marks: Sequence[float], unit: str) -> str:
    pieces = []
    for mark in marks:
        y = BARS_HEIGHT - mark / marks[-1] * (BARS_HEIGHT - 10)
        pieces.append(f'<line x1="{LEFT_MARGIN_PERCENT}%" x2="100%" y1="{y:.1f}" y2="{y:.1f}"></line>')
        text = f"{unit}{_short_number(mark)}"
        pieces.append(f'<text class="y" x="{LEFT_MARGIN_PERCENT - 1}%" y="{y + 4:.1f}" text-anchor="end">{text}</text>')
    return "".join(pieces)


def _short_number(value: float) -> str:
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.3g}{unit}"
    return f"{value:.3g}"


def _bar_label(name: str, middle: float) -> str:
    short = name if len(name) <= MAX_LABEL_CHARS else name[: MAX_LABEL_CHARS - 1] + "…"
    place = f'x="{middle:.2f}%"' if middle <= LAST_LABEL_PERCENT else 'x="100%"'
    anchor = "middle" if middle <= LAST_LABEL_PERCENT else "end"
    return f'<text {place} y="{BARS_HEIGHT + 19}" text-anchor="{anchor}">{escape_line(short)}</text>'


def lanes(times: Sequence[tuple[int, int]], names: Sequence[str], label: str) -> Markup:
    """Marks on parallel time lines; `times` are pairs of a time and the number of its lane."""
    if not times:
        return Markup("")
    first, last = times[0][0], max(time for time, _ in times)
    length = max(1, last - first)
    counts: dict[tuple[int, int], int] = {}
    for time, lane in times:
        column = max(0, min(LANE_BINS - 1, (time - first) * LANE_BINS // length))
        counts[lane, column] = counts.get((lane, column), 0) + 1
    maximum = max(counts.values())
    pieces = []
    for (lane, column), count in counts.items():
        height = 4 + 12 * count / maximum
        x, y = column * LANES_WIDTH / LANE_BINS, lane * LANE_HEIGHT + 10 - height / 2
        title = f"<title>{count} × {escape_line(names[lane])}</title>"
        pieces.append(f'<rect class="s{lane}" x="{x:.1f}" y="{y:.1f}" width="2" height="{height:.1f}">{title}</rect>')
    return _svg(_view_box(LANES_WIDTH, len(names) * LANE_HEIGHT), label, "lanes", "".join(pieces))


def _svg(size: str, label: str, kind: str, inner: str) -> Markup:
    return Markup(f'<svg class="chart {kind}" role="img" aria-label="{escape_line(label)}" {size}>{inner}</svg>')


def _view_box(width: int, height: int) -> str:
    return f'viewBox="0 0 {width} {height}"'


class Chart(NamedTuple):
    """A chart with its legend, and its values as a table."""

    title: str
    drawing: Markup
    """Empty if no value is known."""
    legend: list[tuple[int, str, str]]
    """Number of the colour, name, sum."""
    rows: list[tuple[str, str]]
    """Name and value of each bar."""


def usage_chart(
    cells: Cells, measure: str, title: str | None = None, names: Sequence[str] = (), *, is_timed: bool = True
) -> Chart:
    """Usage as bars with a part for each model.

    `names` are bars that come first, even without usage. If the bars are times, the table begins with the latest.
    """
    title = title or MEASURES[measure]
    order = _model_order(cells)
    parts: dict[str, list[tuple[int, float, str]]] = {name: [] for name in names}
    by_model: dict[str, list[Row]] = {}
    by_name: dict[str, list[Row]] = {}
    for name, model, used in sorted(cells, key=lambda cell: (cell[0], order[cell[1]])):
        bar_parts = parts.setdefault(name, [])
        if used[measure]:
            value = used[measure] / 1e9 if measure == "cost_nano" else float(used[measure])
            bar_parts.append((order[model], value, f"{model or 'unknown model'} {_format_sum([used], measure)}"))
        by_model.setdefault(model, []).append(used)
        by_name.setdefault(name, []).append(used)
    unit = "$" if measure == "cost_nano" else ""
    is_known = any(used[measure] is not None for _, _, used in cells)
    drawing = bars([Bar(name, bar_parts) for name, bar_parts in parts.items()] if is_known else [], title, unit)
    rows = [(name, _format_sum(by_name[name], measure)) for name in parts if name in by_name]
    return Chart(title, drawing, _legend(order, by_model, measure), rows[::-1] if is_timed else rows)


def mask_cell_names(cells: Cells, mask_names: Callable[[list[str]], list[str]]) -> Cells:
    """The cells with masked names."""
    names = list(dict.fromkeys(name for cell in cells for name in cell[:2]))
    masked = dict(zip(names, mask_names(names), strict=True))
    return [(masked[name], masked[model], used) for name, model, used in cells]


def _model_order(cells: Cells) -> dict[str, int]:
    """Number the models by their larger share, of tokens or of cost, so that each has one colour in both charts."""
    shares: dict[str, float] = {}
    for measure in MEASURES:
        sums: dict[str, int] = {}
        for _, model, used in cells:
            sums[model] = sums.get(model, 0) + (used[measure] or 0)
        total = sum(sums.values()) or 1
        shares = {model: max(shares.get(model, 0.0), value / total) for model, value in sums.items()}
    return {model: number for number, model in enumerate(sorted(shares, key=lambda model: (-shares[model], model)))}


def _legend(order: dict[str, int], by_model: dict[str, list[Row]], measure: str) -> list[tuple[int, str, str]]:
    legend = [
        (number, model or "unknown model", _format_sum(by_model[model], measure))
        for model, number in order.items()
        if number < COLOURS
    ]
    others = [used for model, number in order.items() if number >= COLOURS for used in by_model[model]]
    return [*legend, (COLOURS, "others", _format_sum(others, measure))] if others else legend


def _format_sum(rows: Sequence[Row], measure: str) -> str:
    """The sum of a measure; a lower bound if some costs are unknown."""
    known = [row[measure] for row in rows if row[measure] is not None]
    if not known:
        return "unknown"
    if measure != "cost_nano":
        return format_number(sum(known))
    return ("≥ " if any(row["cost_is_at_least"] for row in rows) else "") + format_money(sum(known))
