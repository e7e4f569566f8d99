"""Charts: what their scales say, and that nothing is cut at their edges."""

from __future__ import annotations

import re
from datetime import date, timedelta
from itertools import pairwise

import pytest

from clew.web.charts import Bar, BarPart, Day, bars, heatmap, ticks

TICKS: dict[float, list[float]] = {
    0.276: [0, 0.1, 0.2, 0.3],
    21_900: [0, 10_000, 20_000, 30_000],
    22.7: [0, 10, 20, 30],
    1.0: [0, 0.25, 0.5, 0.75, 1.0],
    4.0: [0, 1, 2, 3, 4],
    1e-9: [0, 2.5e-10, 5e-10, 7.5e-10, 1e-9],
    6.66e6: [0, 2e6, 4e6, 6e6, 8e6],
}


def test_ticks_are_round_numbers() -> None:
    for maximum, expected in TICKS.items():
        assert ticks(maximum) == pytest.approx(expected), maximum


def test_no_bar_exceeds_the_scale_and_it_has_few_lines() -> None:
    for maximum in (number * 10.0**power for number in range(1, 100) for power in (-9, -3, 0, 3, 12)):
        marks = ticks(maximum)
        assert marks[0] == 0 and maximum * (1 - 1e-9) <= marks[-1] < maximum * 2 and 3 <= len(marks) <= 5, maximum


def test_bar_labels_stay_inside_the_chart() -> None:
    for count in (1, 2, 7, 13, 30, 90):
        svg = bars([Bar(f"2026-10-{number:02}", [BarPart(0, 1.0)]) for number in range(count)], "Cost by day")
        # On a phone a chart is 352 pixels wide or more, and a date seventy.
        found = re.findall(r'<text x="([\d.]+)%" y="\d+" text-anchor="(middle|end)">', svg)
        middles = [float(x) * 3.52 - (35 if anchor == "end" else 0) for x, anchor in found]
        assert middles and all(35 <= x <= 352 - 35 for x in middles), count
        assert all(other - one >= 70 for one, other in pairwise(middles)), count


def test_one_very_active_day_leaves_the_others_distinguishable() -> None:
    last = date(2026, 10, 28)
    weights = [5_000, 400, 30, 2, 0]
    days = {last - timedelta(days=ago): Day(weight, f"{weight} calls") for ago, weight in enumerate(weights)}
    drawn = heatmap(days, last)
    levels = [re.findall(rf'<rect class="h(\d)"[^>]*><title>[\d-]+: {weight} calls<', drawn) for weight in weights]
    assert levels == [["4"], ["3"], ["2"], ["1"], ["1"]]
