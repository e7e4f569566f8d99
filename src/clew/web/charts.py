"""Charts as SVG: no script, no inline style, colours by class, and the exact value of everything in its title."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from typing import NamedTuple

from markupsafe import Markup

from clew.render.page.escape import attribute, line

CELL, GAP = 11, 3
WEEKS = 53
LEVELS = 4
SERIES = 6
"""Kinds of colour; what comes behind is the rest."""
_WIDTH, _HEIGHT = 720, 180
_LEFT, _BELOW = 64, 24
_EDGE = 46
"""So far from the edges stands the middle of the outermost names."""
_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
"""What a scale counts by, times a power of ten."""
_LINES = 4
_MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()


class Day(NamedTuple):
    """How much was done on a day, and the same in words."""

    weight: int
    words: str


def heatmap(days: Mapping[date, Day], last: date) -> Markup:
    """A year of days, one column for each week."""
    first = last - timedelta(days=last.weekday() + 7 * (WEEKS - 1))
    most = max((day.weight for day in days.values()), default=0)
    pieces, month = list[str](), 0
    for offset in range((last - first).days + 1):
        at = first + timedelta(days=offset)
        x, y = offset // 7 * (CELL + GAP) + 30, at.weekday() * (CELL + GAP) + 16
        if at.day <= 7 and at.weekday() == 0 and at.month != month:
            month = at.month
            pieces.append(f'<text x="{x}" y="10">{_MONTHS[month - 1]}</text>')
        day = days.get(at)
        level = 0 if day is None else _level(day.weight, most)
        words = line(day.words) if day is not None else "nothing"
        title = f"<title>{at.isoformat()}: {words}</title>"
        pieces.append(f'<rect class="h{level}" x="{x}" y="{y}" width="{CELL}" height="{CELL}" rx="2">{title}</rect>')
    names = "".join(f'<text x="0" y="{n * (CELL + GAP) + 25}">{name}</text>' for n, name in ((0, "Mon"), (4, "Fri")))
    width, height = WEEKS * (CELL + GAP) + 30, 7 * (CELL + GAP) + 16
    about = f"Activity on each day from {first.isoformat()} to {last.isoformat()}"
    return _svg(width, height, about, "heat", names + "".join(pieces))


def _level(weight: int, most: int) -> int:
    """How dark a day is: by the logarithm, so that one day of very much leaves the others apart."""
    return 1 + min(LEVELS - 1, int(LEVELS * math.log1p(weight) / (math.log1p(most) or 1)))


class Stack(NamedTuple):
    """One bar: its name, and the height and the words of each of its parts."""

    name: str
    parts: Sequence[tuple[int, float, str]]
    """Number of the series, value, words."""


def bars(stacks: Sequence[Stack], about: str, unit: str = "") -> Markup:
    """Bars of stacked values."""
    if not stacks:
        return Markup("")
    most = max((sum(value for _, value, _ in stack.parts) for stack in stacks), default=0.0) or 1.0
    marks = ticks(most)
    step = (_WIDTH - _LEFT) / len(stacks)
    width = max(1.0, min(40.0, step * 0.8))
    pieces = [_scale(marks, unit)]
    for number, stack in enumerate(stacks):
        x, y = _LEFT + number * step + (step - width) / 2, float(_HEIGHT)
        for series, value, words in stack.parts:
            height = value / marks[-1] * (_HEIGHT - 10)
            y -= height
            pieces.append(
                f'<rect class="s{min(series, SERIES)}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" '
                f'height="{max(0.5, height):.1f}"><title>{line(stack.name)}: {line(words)}</title></rect>'
            )
    pieces += [_label(stacks, number, step) for number in _labelled(len(stacks))]
    return _svg(_WIDTH, _HEIGHT + _BELOW, about, "bars", "".join(pieces))


def ticks(most: float) -> list[float]:
    """Round numbers from zero to the first one that nothing is above."""
    power = 10.0 ** math.floor(math.log10(most / _LINES))
    step = power * next(step for step in _STEPS if step * power * _LINES >= most * (1 - 1e-9))
    return [number * step for number in range(math.ceil(most / step - 1e-9) + 1)]


def _scale(marks: Sequence[float], unit: str) -> str:
    lines = []
    for mark in marks:
        y = _HEIGHT - mark / marks[-1] * (_HEIGHT - 10)
        label = f"{unit}{short(mark)}"
        lines.append(f'<line x1="{_LEFT}" x2="{_WIDTH}" y1="{y:.1f}" y2="{y:.1f}"></line>')
        lines.append(f'<text class="y" x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{label}</text>')
    return "".join(lines)


def short(value: float) -> str:
    """A number with few digits, for an axis."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.3g}{unit}"
    return f"{value:.3g}"


def _labelled(count: int) -> list[int]:
    """Which bars have their name below: no more than there is room for."""
    step = max(1, -(-count // 6))
    return list(range(0, count, step))


def _label(stacks: Sequence[Stack], number: int, step: float) -> str:
    x = min(_WIDTH - _EDGE, max(_EDGE, _LEFT + number * step + step / 2))
    name = stacks[number].name
    words = name if len(name) <= 14 else name[:13] + "…"
    return f'<text x="{x:.1f}" y="{_HEIGHT + 19}" text-anchor="middle">{line(words)}</text>'


def lanes(times: Sequence[tuple[int, int]], names: Sequence[str], about: str) -> Markup:
    """Marks on lanes over time: the time and the lane of each."""
    if not times:
        return Markup("")
    first, last = times[0][0], max(time for time, _ in times)
    length, width, bins = max(1, last - first), 300, 150
    counts: dict[tuple[int, int], int] = {}
    for time, lane in times:
        place = max(0, min(bins - 1, (time - first) * bins // length))
        counts[lane, place] = counts.get((lane, place), 0) + 1
    most = max(counts.values())
    pieces = []
    for (lane, place), count in counts.items():
        height = 4 + 12 * count / most
        x, y = place * width / bins, lane * 22 + 10 - height / 2
        title = f"<title>{count} × {line(names[lane])}</title>"
        pieces.append(f'<rect class="s{lane}" x="{x:.1f}" y="{y:.1f}" width="2" height="{height:.1f}">{title}</rect>')
    return _svg(width, len(names) * 22, about, "lanes", "".join(pieces))


def _svg(width: int, height: int, about: str, kind: str, inside: str) -> Markup:
    return Markup(
        f'<svg class="chart {kind}" role="img" aria-label="{attribute(about)}" viewBox="0 0 {width} {height}">'
        f"{inside}</svg>"
    )
