"""Charts as SVG without script or inline style: colours by class, exact values in the titles, and a table beside each.

Widths are percentages and heights are pixels, so that text is as large on a phone as on a wide screen. A link in a
drawing is not a stop of the tab key: the table beside the chart has the same links.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from typing import NamedTuple

from markupsafe import Markup

from clew.catalog.local_days import HOURS, WEEKDAYS
from clew.render.text_safety import escape_line

CELL_SIZE, CELL_GAP = 11, 3
HEATMAP_WEEKS = 53
HEAT_LEVELS = 4
COLOURS = 6
"""Names with a colour of their own, such as models: the style classes s0 to s5 of analytics.css."""
OTHER_COLOUR, PLAIN_COLOUR, ERROR_COLOUR = COLOURS, COLOURS + 1, COLOURS + 2
"""The colours of all other names, of what has no name, and of errors."""
BARS_HEIGHT, LABELS_HEIGHT = 180, 24
LEFT_MARGIN_PERCENT = 12.0
MAX_BAR_PERCENT = 6.0
MAX_LABELS, MAX_LABEL_CHARS = 4, 11
"""As many labels as fit on a phone side by side."""
LAST_LABEL_PERCENT = 85.0
"""A label behind this place ends at the edge of the chart."""
TICK_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
"""Steps of a scale, times a power of ten."""
TICKS = 4
MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()
LANES_WIDTH, LANE_HEIGHT, LANE_BINS = 300, 22, 150
HOUR_CELL_HEIGHT, HOUR_LABELS_HEIGHT, HOURS_LEFT_PERCENT = 20, 20, 9.0
HOURS_BETWEEN_LABELS = 3
RANKED_BAR_HEIGHT = 10


class Day(NamedTuple):
    """The activity of a day: a number for the colour, a description, and the address of its sessions."""

    weight: int
    text: str
    url: str = ""


def heatmap(days: Mapping[date, Day], last: date) -> Markup:
    """A year of days, one column for each week."""
    first = heatmap_begin(last)
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
        day = days.get(at, Day(-1, "no activity"))
        size = f'width="{CELL_SIZE}" height="{CELL_SIZE}"'
        cell = f'<rect class="h{heat_level(day.weight, maximum)}" x="{x}" y="{y}" {size} rx="2">'
        pieces.append(_linked(day.url, f"{cell}<title>{at.isoformat()}: {escape_line(day.text)}</title></rect>"))
    label = f"Activity on each day from {first.isoformat()} to {last.isoformat()}"
    return _svg(_view_box(HEATMAP_WEEKS * step + 30, 7 * step + 16), label, "heat", "".join(pieces))


def heatmap_begin(last: date) -> date:
    """The first day of a heatmap: a Monday."""
    return last - timedelta(days=last.weekday() + 7 * (HEATMAP_WEEKS - 1))


def heat_level(weight: float, maximum: float) -> int:
    """The colour of a cell, on a logarithmic scale: one very large value must not make all others look the same.

    0 is the colour of nothing; a weight below zero stands for it.
    """
    if weight < 0:
        return 0
    share = math.log1p(weight) / (math.log1p(maximum) or 1)
    return 1 + min(HEAT_LEVELS - 1, int(HEAT_LEVELS * share))


class BarPart(NamedTuple):
    """A part of a bar."""

    colour: int
    value: float


class Bar(NamedTuple):
    """A bar of stacked parts, with what a reader sees of it on hover, and the address of the sessions behind it."""

    name: str
    parts: Sequence[BarPart]
    text: str = ""
    url: str = ""

    @property
    def value(self) -> float:
        """The length of the whole bar."""
        return sum(part.value for part in self.parts)


def bars(slots: Sequence[Bar], label: str, unit: str = "") -> Markup:
    """Stacked bars on an axis of time, with a slot for each day, week or month; a slot without parts stays empty."""
    if not slots:
        return Markup("")
    marks = ticks(max(bar.value for bar in slots) or 1.0)
    step = (100 - LEFT_MARGIN_PERCENT) / len(slots)
    width = min(MAX_BAR_PERCENT, step * 0.8)
    pieces = [_axis(marks, unit)]
    for number, bar in enumerate(slots):
        if bar.parts or bar.text:
            left = LEFT_MARGIN_PERCENT + number * step
            pieces.append(_bar(bar, marks[-1], left, step, width))
    labelled = range(0, len(slots), max(1, -(-len(slots) // MAX_LABELS)))
    pieces += [_bar_label(slots[number].name, LEFT_MARGIN_PERCENT + (number + 0.5) * step) for number in labelled]
    return _svg(f'width="100%" height="{BARS_HEIGHT + LABELS_HEIGHT}"', label, "bars", "".join(pieces))


def _bar(bar: Bar, maximum: float, left: float, step: float, width: float) -> str:
    """One bar, below a transparent rectangle as high as the chart: a thin bar is hard to point at."""
    x, y = left + (step - width) / 2, float(BARS_HEIGHT)
    pieces = []
    for part in bar.parts:
        height = part.value / maximum * (BARS_HEIGHT - 10)
        y -= height
        place = f'x="{x:.2f}%" y="{y:.1f}" width="{width:.2f}%" height="{max(0.5, height):.1f}"'
        pieces.append(f'<rect class="s{part.colour}" {place}></rect>')
    place = f'x="{left:.2f}%" y="10" width="{step:.2f}%" height="{BARS_HEIGHT - 10}"'
    title = f"<title>{escape_line(f'{bar.name}: {bar.text}')}</title>"
    return _linked(bar.url, f'{"".join(pieces)}<rect class="hit" {place}>{title}</rect>')


def _linked(url: str, inner: str) -> str:
    return f'<a href="{url}" tabindex="-1">{inner}</a>' if url else inner


def ranked(rows: Sequence[Bar], maximum: float | None = None) -> Markup:
    """A list of names, each with a value and a bar as long as its share of the maximum, or of the longest."""
    maximum = maximum or max((row.value for row in rows), default=0.0) or 1.0
    items = []
    for row in rows:
        name = escape_line(row.name)
        title = f'<a href="{row.url}">{name}</a>' if row.url else f"<span>{name}</span>"
        items.append(f"<li>{title}{_horizontal_bar(row.parts, maximum)}<b>{escape_line(row.text)}</b></li>")
    return Markup(f'<ol class="ranked">{"".join(items)}</ol>') if rows else Markup("")


def _horizontal_bar(parts: Sequence[BarPart], maximum: float) -> str:
    pieces, x = [], 0.0
    for part in parts:
        width = part.value / maximum * 100
        pieces.append(f'<rect class="s{part.colour}" x="{x:.2f}%" y="0" width="{width:.2f}%" height="100%"></rect>')
        x += width
    size = f'width="100%" height="{RANKED_BAR_HEIGHT}"'
    return f'<svg class="rank" aria-hidden="true" {size}>{"".join(pieces)}</svg>'


def _hour_level(value: float, maximum: float) -> int:
    """The colour of an hour, by the square root of its share of the largest; 0 for nothing."""
    if value < 0 or not maximum:
        return 0
    return 1 + min(HEAT_LEVELS - 1, int(HEAT_LEVELS * math.sqrt(value / maximum)))


class HourCell(NamedTuple):
    """The use in one hour of the week."""

    value: float | None
    """None where it is unknown."""
    text: str
    url: str


def hour_grid(cells: Mapping[tuple[str, ...], HourCell], label: str) -> Markup:
    """The hours of a week, a row for each weekday; cells by the names of weekday and hour."""
    maximum = max((cell.value or 0 for cell in cells.values()), default=0)
    step = (100 - HOURS_LEFT_PERCENT) / len(HOURS)
    pieces = []
    for row, weekday in enumerate(WEEKDAYS):
        y = row * HOUR_CELL_HEIGHT
        pieces.append(f'<text x="0" y="{y + 14}">{weekday[:3]}</text>')
        for column, hour in enumerate(HOURS):
            cell = cells.get((weekday, hour), HourCell(-1, "no use", ""))
            x = HOURS_LEFT_PERCENT + column * step
            level = 0 if cell.value is None else _hour_level(cell.value, maximum)
            title = f"<title>{weekday} {hour}:00 to {hour}:59: {escape_line(cell.text)}</title>"
            size = f'width="{step - 0.35:.2f}%" height="{HOUR_CELL_HEIGHT - 2}"'
            drawn = f'<rect class="h{level}" x="{x:.2f}%" y="{y}" {size} rx="2">{title}</rect>'
            if cell.value is None:
                drawn += f'<text x="{x + step / 2:.2f}%" y="{y + 14}" text-anchor="middle">?{title}</text>'
            pieces.append(_linked(cell.url, drawn))
    bottom = len(WEEKDAYS) * HOUR_CELL_HEIGHT + 14
    pieces += [
        f'<text x="{HOURS_LEFT_PERCENT + column * step:.2f}%" y="{bottom}">{HOURS[column]}</text>'
        for column in range(0, len(HOURS), HOURS_BETWEEN_LABELS)
    ]
    height = len(WEEKDAYS) * HOUR_CELL_HEIGHT + HOUR_LABELS_HEIGHT
    return _svg(f'width="100%" height="{height}"', label, "hours", "".join(pieces))


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
    # An image must not hold links.
    role = "group" if "<a " in inner else "img"
    return Markup(f'<svg class="chart {kind}" role="{role}" aria-label="{escape_line(label)}" {size}>{inner}</svg>')


def _view_box(width: int, height: int) -> str:
    return f'viewBox="0 0 {width} {height}"'
