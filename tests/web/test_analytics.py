"""The usage page: its figures are those of `clew stats`, and its links lead to the sessions they count."""

from __future__ import annotations

import csv
import io
import re
from datetime import UTC, date, datetime, timedelta
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from xml.etree.ElementTree import Element

import pytest

from clew.catalog.database import open_reader
from clew.catalog.search import catalog_text_finder
from clew.catalog.stats import Row, Stats, UsageTotals, catalog_stats
from clew.filters import Filters
from clew.web.charts import COLOURS, Bar, HourCell, Part, bars, hour_grid, ranked
from clew.web.date_range import MICROSECOND, DateRange, axis_slots, describe_range, preset_range, step_of
from clew.web.pages.usage import OVERVIEW
from clew.web.usage_charts import colours_of_models
from tests.counting.homes import OTHER, SESSION, claude, prompt, reply
from tests.web.shown import Shown, links, named, shown, words

FILTERS = ("", "agent=claude-code", "model=claude", "project=tide", "since=2026-10-20T10:03&until=2026-11-02")
STATS_OF_CHART = {"project": ("project",), "model": ("model",), "hour": ("weekday", "hour"), "tool": ("tool",)}


def stats_of(app: Shown, query: str) -> Stats:
    """What `clew stats` counts with the filters of an address."""
    db = open_reader(app.context.folder)
    assert db is not None
    given = dict(pair.split("=") for pair in query.split("&") if pair)
    return catalog_stats(db, Filters.of(now=app.context.now(), **given), catalog_text_finder(db, app.context.folder))


def sheet(app: Shown, chart: str, query: str = "") -> list[dict[str, str]]:
    answer = app.get(f"/usage.csv?chart={chart}&{query}")
    assert answer.status == 200, (chart, query, answer.body[:300])
    return list(csv.DictReader(io.StringIO(answer.body.decode())))


def section_of(tree: Element, name: str) -> Element:
    (found,) = [one for one in named(tree, "section") if one.get("aria-labelledby") == f"chart-{name}"]
    return found


def text_of(value: Any) -> str:
    return "" if value is None else str(value)


@pytest.mark.parametrize("query", FILTERS)
def test_charts_have_the_figures_of_clew_stats(demo: Shown, query: str) -> None:
    stats = stats_of(demo, query)
    known: dict[tuple[str, ...], Row]
    names: tuple[str, ...]
    for chart, by in STATS_OF_CHART.items():
        found = {tuple(row[name] for name in by): row for row in sheet(demo, chart, query)}
        if chart == "tool":
            known = {(row["tool"] or "unnamed tool",): row for row in stats.rows("tool")}
            names = ("tool_calls", "errors", "error_rate", "sessions_with_calls")
        else:
            usage = {group: used for group, used in stats.usage_by(*by).items() if chart != "hour" or group[0]}
            unknown = {"project": "no project", "model": "unknown model"}.get(chart, "")
            known = {tuple(name or unknown for name in group): used.as_row() for group, used in usage.items()}
            names = ("calls", "sessions_with_calls", "input_tokens", "cache_read_tokens", "total_tokens", "cost")
        assert found.keys() == known.keys(), (chart, query)
        for name, row in known.items():
            assert [found[name][column] for column in names] == [text_of(row[column]) for column in names], name


@pytest.mark.parametrize("by", ["day", "week", "month"])
def test_the_chart_over_time_has_the_figures_of_clew_stats(demo: Shown, by: str) -> None:
    known = stats_of(demo, "").usage_by(by, "model")
    found = sheet(demo, "time", f"by={by}")
    figures = {(row[by], row["model"]): (row["calls"], row["cost"]) for row in found}
    assert figures == {
        (name or "unknown", model or "unknown model"): (str(used.calls), text_of(used.as_row()["cost"]))
        for (name, model), used in known.items()
    }
    assert sum(int(row["calls"]) for row in found) == stats_of(demo, "").usage().calls


def test_the_parts_of_sessions_caches_and_subagents_add_up(demo: Shown) -> None:
    stats = stats_of(demo, "")
    whole = stats.usage().as_row()
    kinds = {row["kind"]: row for row in sheet(demo, "subagents")}
    assert kinds.keys() == {"Sessions", "Sub-agents"}
    for column in ("calls", "total_tokens", "sessions_with_calls"):
        assert sum(int(row[column]) for row in kinds.values()) == whole[column], column
    cache = sheet(demo, "cache")
    assert sum(int(row["cache_read_tokens"] or 0) for row in cache) == whole["cache_read_tokens"]
    for row in cache:
        parts = [int(row[name] or 0) for name in ("cache_read_tokens", "cache_creation_tokens", "input_tokens")]
        assert float(row["cache_hit_rate"]) == pytest.approx(parts[0] / sum(parts))
    usage = stats.usage_by("session").values()
    top = [float(row["cost"] or 0) for row in sheet(demo, "session")]
    assert max(top) == max(used.cost_nano for used in usage) / 1e9


def test_a_table_has_the_rows_of_its_csv(demo: Shown) -> None:
    tree = demo.page("/usage?by=month")
    for chart in ("time", *OVERVIEW[1:]):
        query = "by=month" if chart == "time" else ""
        tree = demo.page(f"/usage?{query}")
        table = named(section_of(tree, chart), "table")[0]
        shown_rows = [[words(cell) for cell in row] for row in table.iter("tr")][1:]
        rows = sheet(demo, chart, query)
        assert len(shown_rows) == min(100, len(rows)) and rows, chart
        for cells, row in zip(shown_rows, rows, strict=False):
            values = [value for name, value in row.items() if name != "cost_is_at_least"]
            for cell, value in zip(cells, values, strict=True):
                assert same_value(cell, value), (chart, cell, value)


def same_value(cell: str, value: str) -> bool:
    """A cell of a table shows a value of CSV: with commas, to the cent, or to a tenth of a percent."""
    if cell == "unknown":
        return value in ("", "unknown")
    plain = cell.replace(",", "").replace("≥ ", "").replace("−", "-").replace("$", "")
    if cell.endswith("%"):
        return abs(float(plain[:-1]) / 100 - float(value)) <= 0.0005
    if "$" in cell:
        return abs(float(plain) - float(value)) <= 0.005
    return value in (cell, plain)


@pytest.mark.parametrize("query", ["", "range=30d", FILTERS[-1]])
def test_every_link_of_a_chart_leads_to_the_sessions_it_counts(demo: Shown, query: str) -> None:
    tree = demo.page(f"/usage?{query}")
    checked = 0
    for chart in ("time", "project", "model", "hour", "tool", "subagents"):
        rows = sheet(demo, chart, query)
        tables = named(section_of(tree, chart), "table")
        for element, row in list(zip(named(tables[0], "tr")[1:] if tables else [], rows, strict=False))[:12]:
            (place,) = links(element)
            assert count_of(demo, place) == int(row["sessions_with_calls"]), (chart, place)
            checked += 1
    assert checked > 20 or query == "range=30d"
    for place in {place for one in named(tree, "svg") for place in links(one)}:
        assert urlsplit(place).path == "/sessions"


def count_of(app: Shown, place: str) -> int:
    """The sessions and sub-agents that a list says it has."""
    count = words(named(app.page(place), "p", "count"))
    return sum(int(number.replace(",", "")) for number in re.findall(r"([\d,]+) (?:session|sub-agent)", count))


def test_a_list_says_which_calls_it_is_about(demo: Shown) -> None:
    tree = demo.page("/sessions?used.weekday=Monday&used.hour=09")
    assert "weekday Monday, hour 09" in words(named(tree, "p", "note"))
    hidden = {one.get("name"): one.get("value") for one in named(tree, "input") if one.get("type") == "hidden"}
    assert hidden == {"used.weekday": "Monday", "used.hour": "09"}
    for wrong in ("used.hour=25", "used.day=soon", "used.tide=high"):
        problem = words(named(demo.page(f"/sessions?{wrong}", 400), "p", "bad"))
        assert problem and "--" not in problem, wrong


def test_every_chart_states_its_range_and_zone(demo: Shown, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLEW_TIMEZONE", "Europe/Berlin")
    for path, expected in (
        ("/usage?since=2026-10-20&until=2026-10-30T12:00", "2026-10-20 00:00 to 2026-10-30 12:00, CEST and CET"),
        ("/usage?by=model&since=2026-10-27&until=2026-11-02T08:30", "2026-10-27 00:00 to 2026-11-02 08:30, CET"),
    ):
        captions = [words(one) for one in named(demo.page(path), "figcaption")]
        assert captions and all(caption.endswith(expected) for caption in captions), captions
    for path in ("/", "/usage"):
        captions = [words(one) for one in named(demo.page(path), "figcaption")]
        assert captions and all(re.search(r"\d{4}-\d\d-\d\d \d\d:\d\d to .*CES?T$", caption) for caption in captions)


def test_presets_are_whole_days_of_the_zone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLEW_TIMEZONE", "Europe/Berlin")
    now = datetime(2026, 11, 3, 23, 30, tzinfo=UTC)
    begins = {
        "today": "2026-11-03T23:00",
        "7d": "2026-10-28T23:00",
        "30d": "2026-10-05T22:00",
        "month": "2026-10-31T23:00",
        "year": "2025-12-31T23:00",
    }
    for name, begin in begins.items():
        assert preset_range(name, now) == DateRange(datetime.fromisoformat(begin).replace(tzinfo=UTC), None, name)
    last = preset_range("last-month", now)
    # The clocks went back in October: it was an hour longer.
    assert (last.since, last.until) == (
        datetime(2026, 9, 30, 22, tzinfo=UTC),
        datetime(2026, 10, 31, 23, tzinfo=UTC) - MICROSECOND,
    )
    assert last.limits_in_words() == {"since": "2026-10-01", "until": "2026-10-31T23:59:59.999999"}
    assert preset_range("all", now) == preset_range("tide", now) == DateRange(None, None, "all")
    twice = DateRange(datetime(2026, 10, 25, 1, 30, tzinfo=UTC))
    assert twice.limits_in_words()["since"] == "2026-10-25T01:30:00Z"
    assert describe_range(None, None, date(2026, 11, 4)) == "the beginning to 2026-11-04 (today), CET"


def test_presets_are_links_that_keep_the_filters(demo: Shown) -> None:
    tree = demo.page("/usage?agent=claude-code&range=7d&by=model")
    (presets,) = named(tree, "nav", "presets")
    assert [words(one) for one in named(presets, "a")] == [
        "Today", "7 days", "30 days", "This month", "Last month", "This year", "All",
    ]  # fmt: skip
    assert all("agent=claude-code" in place and "by=model" in place for place in links(presets))
    assert [words(one) for one in named(presets, "a") if one.get("aria-current")] == ["7 days"]
    custom = named(demo.page("/usage?since=2026-10-01"), "nav", "presets")[0]
    assert not [one for one in named(custom, "a") if one.get("aria-current")]


def test_days_without_use_are_gaps_of_the_axis(tmp_path: Path) -> None:
    today = datetime.now(UTC).replace(hour=9, minute=0, second=0, microsecond=0)
    times = [(today - timedelta(days=ago)).strftime("%Y-%m-%dT%H:%M:%S.000Z") for ago in (20, 19, 3)]
    replies = [reply(f"m{n}", 10, 20, number=n, timestamp=time) for n, time in enumerate(times, 1)]
    claude(tmp_path / "home", prompt("a", timestamp=times[0]), *replies)
    with shown(tmp_path / "home", tmp_path / "catalog") as app:
        drawing = named(app.page("/usage?range=30d"), "svg", "bars")[0]
    found = [float(one.get("x", "").rstrip("%")) for one in named(drawing, "rect", "hit")]
    step = 88 / 30
    assert found == pytest.approx([12 + (29 - ago) * step for ago in (20, 19, 3)], abs=0.02)


def test_an_axis_has_every_day_week_and_month() -> None:
    first, last = date(2026, 10, 24), date(2026, 11, 3)
    assert len(axis_slots("day", first, last)) == 11
    assert axis_slots("week", first, last) == ["2026-W43", "2026-W44", "2026-W45"]
    assert axis_slots("month", date(2025, 12, 31), date(2026, 3, 1)) == ["2025-12", "2026-01", "2026-02", "2026-03"]
    assert axis_slots("day", date.min, last)[-1] == "2026-11-03" and len(axis_slots("day", date.min, last)) == 400
    assert axis_slots("day", date.min, date.min) == ["0001-01-01"]
    steps = [step_of(last - timedelta(days=days - 1), last) for days in (1, 92, 93, 730, 731)]
    assert steps == ["day", "day", "week", "week", "month"]


def test_calls_off_the_axis_are_counted_in_words(tmp_path: Path) -> None:
    late = reply("m2", 1, 2, number=2, timestamp="2199-01-01T00:00:00.000Z")
    claude(tmp_path / "home", prompt("a"), reply("m1", 1, 2, timestamp="soon"), late)
    with shown(tmp_path / "home", tmp_path / "catalog") as app:
        said = words(section_of(app.page("/usage"), "time"))
        assert "In the table only: 1 call without a known time." in said
        assert "In the table only: 1 call of days outside of the axis." in said
        assert {row["calls"] for row in sheet(app, "time")} == {"1"}


def test_hours_are_local_and_two_at_the_end_of_summer_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLEW_TIMEZONE", "Europe/Berlin")
    times = ["2026-10-25T00:30:00", "2026-10-25T01:30:00", "2026-10-25T02:30:00"]
    replies = [reply(f"m{n}", 1, 1, number=n, timestamp=f"{time}.000Z") for n, time in enumerate(times, 1)]
    claude(tmp_path / "home", prompt("a"), *replies)
    with shown(tmp_path / "home", tmp_path / "catalog") as app:
        found = [(row["weekday"], row["hour"], row["calls"]) for row in sheet(app, "hour")]
        assert found == [("Sunday", "02", "2"), ("Sunday", "03", "1")]
        assert count_of(app, "/sessions?used.weekday=Sunday&used.hour=02") == 1
        assert count_of(app, "/sessions?used.weekday=Sunday&used.hour=01") == 0


def test_a_model_has_one_colour_everywhere(demo: Shown) -> None:
    colours: dict[str, set[str]] = {}
    for path in ("/", "/usage", "/usage?by=day", "/usage?agent=codex", "/usage?model=claude", "/usage?range=year"):
        for item in [one for legend in named(demo.page(path), "ul", "legend") for one in named(legend, "li")]:
            name = words(item).rsplit(" ", 1)[0].removesuffix(" ≥")
            if "other models" not in name and "error" not in name:
                colours.setdefault(name, set()).add(named(item, "span", "dot")[0].get("class", ""))
    assert len(colours) >= COLOURS
    assert all(len(found) == 1 for found in colours.values()), colours


def test_colours_belong_to_the_models_that_are_used_most() -> None:
    usage = {f"model-{number}": UsageTotals(calls=1, input_tokens=number) for number in range(9)}
    usage["dear"] = UsageTotals(calls=1, priced_calls=1, input_tokens=0, cost_nano=1)
    found = colours_of_models(usage)
    assert list(found) == ["dear", "model-8", "model-7", "model-6", "model-5", "model-4"]
    assert list(found.values()) == list(range(COLOURS))


def test_what_has_no_price_is_named_at_every_chart_of_cost(tmp_path: Path) -> None:
    claude(tmp_path / "home", reply("m1", 1000, 10, model="nobody-knows-9"), session=OTHER)
    claude(tmp_path / "home", prompt("a"), reply("m2", 1000, 10))
    with shown(tmp_path / "home", tmp_path / "catalog") as app:
        tree = app.page("/usage")
        for chart in ("time", "project", "model", "hour", "session", "subagents"):
            assert "No price is known for nobody-knows-9" in words(section_of(tree, chart)), chart
        assert "≥" in words(section_of(tree, "time"))
        (row,) = [row for row in sheet(app, "model") if row["model"] == "nobody-knows-9"]
        assert (row["cost"], row["cost_is_at_least"]) == ("", "True")


def test_savings_are_left_out_where_they_cannot_be_computed(tmp_path: Path) -> None:
    claude(tmp_path / "home", prompt("a"), reply("m1", 10, 20, read=1_000_000, written=100_000))
    claude(tmp_path / "home", prompt("b"), reply("m2", 1, 2, read=5, model="gemini-2.5-pro"), session=OTHER)
    claude(tmp_path / "home", reply("m3", 1, 2, read=5, model="nobody-knows-9"), session=SESSION[:-1] + "9")
    with shown(tmp_path / "home", tmp_path / "catalog") as app:
        said = words(section_of(app.page("/usage"), "cache"))
        assert "Not computed for gemini-2.5-pro: the price depends" in said
        assert "Not computed for nobody-knows-9: no price" in said
        saved = {row["model"]: row["saved"] for row in sheet(app, "cache")}
        assert sorted(saved.values()) == ["", "", "2.625"]


def test_a_range_without_use_says_so(demo: Shown) -> None:
    assert "No usage matches these filters" in words(demo.page("/usage?since=2020-01-01&until=2020-02-01"))
    assert demo.page("/usage?since=2199-01-01") is not None


def test_names_with_markup_are_text() -> None:
    mean = "<script>alert(1)</script>\n\u202e"
    bar = Bar(mean, [Part(0, 1.0)], mean, "/sessions?a=1&amp;b=2")
    grid = hour_grid({("Monday", "09"): HourCell(1.0, mean, ""), ("Monday", "10"): HourCell(None, mean, "")}, mean)
    for drawn in (bars([bar], mean), ranked([bar]), grid):
        assert "<script" not in drawn and "\u202e" not in drawn and "alert(1)" in unescape(drawn)


def test_the_panel_of_a_session_has_the_colours_of_the_usage_page(demo: Shown) -> None:
    entries = [place for place in links(demo.page("/sessions")) if place.startswith("/session/claude-code/")]
    legend = named(section_of(demo.page("/usage"), "time"), "ul", "legend")[0]
    known = {words(item).rsplit(" ", 1)[0]: named(item, "span", "dot")[0].get("class") for item in named(legend, "li")}
    (panel,) = named(demo.part(f"{entries[0]}/panel/usage"), "ul", "legend")
    for item in named(panel, "li"):
        name = words(item).partition(" $")[0]
        assert known.get(name, "dot s6") == named(item, "span", "dot")[0].get("class"), name
