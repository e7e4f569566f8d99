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
from clew.web.charts import COLOURS, Bar, BarPart, HourCell, bars, hour_grid, ranked
from clew.web.date_range import MICROSECOND, DateRange, axis_slots, describe_range, preset_range, step_of
from clew.web.pages.usage import CHARTS, MAX_TABLE_ROWS
from clew.web.usage_charts import rank_colours
from tests.counting.homes import HAIKU, OTHER, SESSION, SONNET, claude, prompt, reply
from tests.web.shown import Shown, links, named, shown, words

FILTERS = ("", "agent=claude-code", "model=claude", "project=tide", "since=2026-10-20T10:03&until=2026-11-02")
SECONDS_OF_UNIT = {"s": 1, "min": 60, "h": 3600, "d": 86400}
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


def exact_rows(app: Shown, chart: str, query: str = "") -> list[Element]:
    """The rows of the table that a chart loads."""
    (table,) = named(app.part(f"/usage/table?chart={chart}&{query}"), "table")
    return named(table, "tr")[1:]


def section_of(tree: Element, name: str) -> Element:
    (found,) = [one for one in named(tree, "section") if one.get("aria-labelledby") == f"chart-{name}"]
    return found


def text_of(value: Any) -> str:
    return "" if value is None else str(value)


def tiny_home(home: Path) -> None:
    """Two sessions with five calls on three days.

    A million tokens cost with Sonnet $3 as input, $15 as output, $0.30 read from the cache and $3.75 written to it;
    with Haiku $1, $5, $0.10 and $1.25.
    """
    claude(
        home,
        prompt("Count the boats", timestamp="2026-11-02T09:00:00.000Z"),
        reply("m1", 100_000, 10_000, timestamp="2026-11-02T09:10:00.000Z"),
        reply("m2", 0, 20_000, number=2, read=1_000_000, timestamp="2026-11-02T09:20:00.000Z"),
        reply("m3", 200_000, 0, number=3, model=HAIKU, timestamp="2026-11-04T21:00:00.000Z"),
    )
    other: dict[str, Any] = {"sessionId": OTHER, "cwd": "/home/dev/mill"}
    claude(
        home,
        prompt("Grind", uuid="grind", timestamp="2026-11-05T09:00:00.000Z", **other),
        reply("n1", 0, 40_000, model=HAIKU, written=80_000, timestamp="2026-11-05T09:05:00.000Z", **other),
        reply("n2", 1_000, 1_000, number=2, model="nobody-knows-9", timestamp="2026-11-05T09:06:00.000Z", **other),
        session=OTHER,
    )


def test_figures_are_those_worked_out_by_hand(tmp_path: Path) -> None:
    tiny_home(tmp_path / "home")
    query = "since=2026-11-01&until=2026-11-10T23:59:59.999999"
    with shown(tmp_path / "home", tmp_path / "catalog") as app:
        tree = app.page(f"/usage?{query}")
        totals = {words(one[0]): words(one[1]) for one in named(named(tree, "dl", "totals")[0], "div")}
        # m1: 0.30 + 0.15, m2: 0.30 + 0.30, m3: 0.20, n1: 0.20 + 0.10
        assert totals == {
            "Cost": "≥ $1.55",
            "Cost per day": "≥ $0.1550",
            "Peak day, 2026-11-02": "$1.05",
            "Model calls": "5",
            "Sessions and sub-agents with calls": "2",
            "Input": "301,000",
            "Output": "71,000",
            "Cache read": "1,000,000",
            "Cache written": "80,000",
        }
        columns = ("sessions_with_calls", "calls", "input_tokens", "total_tokens", "cost", "cost_is_at_least")

        def figures(chart: str, *names: str, more: str = "") -> list[tuple[str, ...]]:
            return [tuple(row[name] for name in (*names, *columns)) for row in sheet(app, chart, query + more)]

        assert figures("time", "day", "model", more="&by=day") == [
            ("2026-11-05", "nobody-knows-9", "1", "1", "1000", "2000", "", "True"),
            ("2026-11-05", HAIKU, "1", "1", "0", "40000", "0.3", "False"),
            ("2026-11-04", HAIKU, "1", "1", "200000", "200000", "0.2", "False"),
            ("2026-11-02", SONNET, "1", "2", "100000", "130000", "1.05", "False"),
        ]
        weeks = [("2026-W45", "app", "1", "3", "300000", "330000", "1.25", "False")]
        weeks.insert(0, ("2026-W45", "mill", "1", "2", "1000", "42000", "0.3", "True"))
        assert figures("time", "week", "project", more="&by=week&split=project") == weeks
        assert figures("model", "model") == [
            (SONNET, "1", "2", "100000", "130000", "1.05", "False"),
            (HAIKU, "2", "2", "200000", "240000", "0.5", "False"),
            ("nobody-knows-9", "1", "1", "1000", "2000", "", "True"),
        ]
        assert [row[:3] for row in figures("hour", "weekday", "hour")] == [
            ("Monday", "09", "1"),
            ("Wednesday", "21", "1"),
            ("Thursday", "09", "1"),
        ]
        assert [(row["session"], row["duration_seconds"], row["cost"]) for row in sheet(app, "session", query)] == [
            ("Count the boats", "216000.0", "1.25"),
            ("Grind", "360.0", "0.3"),
        ]
        cache = [(row["model"], row["cache_hit_rate"], row["saved"]) for row in sheet(app, "cache", query)]
        # Of Sonnet 1,000,000 of 1,100,000 were read, for $2.70 less; of Haiku 80,000 were written, for $0.02 more.
        assert cache == [
            (SONNET, str(1_000_000 / 1_100_000), "2.7"),
            (HAIKU, "0.0", "-0.02"),
            ("nobody-knows-9", "0.0", ""),
        ]
        drawn = words(section_of(tree, "time"))
        assert f"{SONNET} $1.05" in drawn and f"{HAIKU} $0.5000" in drawn and "nobody-knows-9 unknown" in drawn


def test_the_chart_over_time_has_parts_by_project_or_agent(tmp_path: Path) -> None:
    tiny_home(tmp_path / "home")
    with shown(tmp_path / "home", tmp_path / "catalog") as app:
        tree = app.page("/usage?split=project&since=2026-11-01")
        section = section_of(tree, "time")
        assert [words(one) for one in named(named(section, "ul", "legend")[0], "li")] == ["app $1.25", "mill ≥ $0.3000"]
        assert "No price is known for nobody-knows-9" in words(section)
        (control,) = named(section, "nav", "splits")
        assert [words(one) for one in named(control, "a") if one.get("aria-current")] == ["By project"]
        assert {"name": "split", "value": "project"}.items() <= {
            key: value for one in named(tree, "input") if one.get("name") == "split" for key, value in one.items()
        }.items()
        agents = section_of(app.page("/usage?split=agent&since=2026-11-01"), "time")
        assert "Cost by day and agent" in words(agents) and "claude-code ≥ $1.55" in words(agents)


def test_sessions_are_ranked_by_duration(tmp_path: Path) -> None:
    tiny_home(tmp_path / "home")
    with shown(tmp_path / "home", tmp_path / "catalog") as app:
        figure = named(section_of(app.page("/usage"), "session"), "figure")[2]
        assert "Sessions by duration" in words(figure)
        found = [words(one) for one in named(figure, "li")]
        # Pauses of five minutes and more are not active.
        assert found == ["Count the boats2.5 d · 0 s active", "Grind6.0 min · 1.0 min active"]


def test_a_session_that_changed_its_branch_is_ranked_by_the_calls_on_each(tmp_path: Path) -> None:
    claude(
        tmp_path / "home",
        prompt("Count the boats", gitBranch="alpha", timestamp="2026-11-02T09:00:00.000Z"),
        reply("m1", 100, 10, gitBranch="alpha", timestamp="2026-11-02T09:01:00.000Z"),
        reply("m2", 200, 20, number=2, gitBranch="beta", timestamp="2026-11-02T09:03:00.000Z"),
    )
    with shown(tmp_path / "home", tmp_path / "catalog") as app:
        for branch, tokens in (("alpha", "110"), ("beta", "220")):
            (row,) = sheet(app, "session", f"branch={branch}")
            figures = (row["session"], row["total_tokens"], row["duration_seconds"])
            assert figures == ("Count the boats", tokens, "180.0")
            assert len(exact_rows(app, "session", f"branch={branch}")) == 1
            longest = named(section_of(app.page(f"/usage?branch={branch}"), "session"), "figure")[2]
            assert [words(one) for one in named(longest, "li")] == ["Count the boats3.0 min · 3.0 min active"]
        assert sheet(app, "session", "branch=gamma") == []


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
    for chart, query in [("time", "by=month"), ("time", "split=project"), *((chart, "") for chart in CHARTS)]:
        rows = sheet(demo, chart, query)
        found = exact_rows(demo, chart, query)
        assert len(found) == min(MAX_TABLE_ROWS, len(rows)) and rows, chart
        for element, row in zip(found, rows, strict=False):
            values = [value for name, value in row.items() if name != "cost_is_at_least"]
            for cell, value in zip(element, values, strict=True):
                assert same_value(words(cell), value), (chart, words(cell), value)


def test_every_chart_loads_its_table_or_links_to_it(demo: Shown) -> None:
    for path in ("/", "/usage", "/usage?by=agent&split=project&agent=codex"):
        for details in named(demo.page(path), "details", "exact"):
            address = str(details.get("data-load"))
            assert links(details) == [address]
            page = demo.page(address)
            assert named(page, "table") and links(named(page, "p", "trail")[0])[0].startswith("/usage")
    assert demo.get("/usage/table?chart=tide").status == 404


def test_the_chart_of_home_has_the_rows_of_its_days(tmp_path: Path) -> None:
    times = ["2026-10-03T23:59:59.999Z", "2026-10-04T00:00:00.000Z", "2026-11-02T23:59:59.999Z"]
    replies = [reply(f"m{n}", 10, 20, number=n, timestamp=time) for n, time in enumerate(times, 1)]
    claude(tmp_path / "home", prompt("a", timestamp=times[0]), *replies)
    with shown(tmp_path / "home", tmp_path / "catalog") as app:
        (details,) = named(app.page("/"), "details", "exact")
        rows = named(app.part(str(details.get("data-load"))), "tr")[1:]
        assert [words(row[0]) for row in rows] == ["2026-11-02", "2026-10-04"]


def test_a_day_of_the_heatmap_leads_to_the_sessions_with_calls_on_it(tmp_path: Path) -> None:
    late = reply("m1", 10, 20, timestamp="2026-11-01T23:59:59.900Z")
    claude(tmp_path / "home", prompt("a", timestamp="2026-10-30T10:00:00.000Z"), late)
    claude(tmp_path / "home", prompt("no answer", timestamp="2026-11-02T23:59:59.900Z"), session=OTHER)
    claude(tmp_path / "home", prompt("last day", timestamp="9999-12-31T12:00:00.000Z"), session=SESSION[:-1] + "9")
    with shown(tmp_path / "home", tmp_path / "catalog") as app:
        (heat,) = named(app.page("/"), "svg", "heat")
        found = {words(named(one, "title")): links(one)[0] for one in named(heat, "a")}
        counts = {title[:10]: count_of(app, place) for title, place in found.items()}
        assert counts["2026-11-01"] == 1 and "used.day=2026-11-01" in " ".join(found.values())
        assert counts["2026-11-02"] == 1


def same_value(cell: str, value: str) -> bool:
    """A cell of a table shows a value of CSV: with commas, to the cent, or to a tenth of a percent or of an hour."""
    number, _, unit = cell.partition(" ")
    if unit in SECONDS_OF_UNIT:
        return abs(float(number) - float(value) / SECONDS_OF_UNIT[unit]) <= (0.5 if unit == "s" else 0.06)
    if cell == "unknown":
        return value in ("", "unknown")
    plain = cell.replace(",", "").replace("≥ ", "").replace("−", "-").replace("$", "")
    if cell.endswith("%"):
        return abs(float(plain[:-1]) / 100 - float(value)) <= 0.0005
    if "$" in cell:
        return abs(float(plain) - float(value)) <= 0.005
    return value in (cell, plain)


@pytest.mark.parametrize("query", ["", "range=year", "split=agent", FILTERS[-1]])
def test_every_link_of_a_chart_leads_to_the_sessions_it_counts(demo: Shown, query: str) -> None:
    checked = 0
    for chart in ("time", "project", "model", "hour", "tool", "subagents"):
        rows = sheet(demo, chart, query)
        for element, row in list(zip(exact_rows(demo, chart, query), rows, strict=False))[:12]:
            (place,) = links(element)
            assert count_of(demo, place) == int(row["sessions_with_calls"]), (chart, place)
            checked += 1
    assert checked > 20
    drawn = {place for one in named(demo.page(f"/usage?{query}"), "svg") for place in links(one)}
    assert drawn and {urlsplit(place).path for place in drawn} == {"/sessions"}


def count_of(app: Shown, place: str) -> int:
    """The sessions and sub-agents that a list says it has."""
    count = words(named(app.page(place), "p", "count"))
    return sum(int(number.replace(",", "")) for number in re.findall(r"([\d,]+) (?:session|sub-agent)", count))


def test_a_list_says_which_calls_it_is_about(demo: Shown) -> None:
    tree = demo.page("/sessions?used.weekday=Monday&used.hour=09")
    assert "weekday Monday, hour 09" in words(named(tree, "p", "note"))
    hidden = {one.get("name"): one.get("value") for one in named(tree, "input") if one.get("type") == "hidden"}
    assert hidden == {"used.weekday": "Monday", "used.hour": "09"}
    for wrong, expected in (
        ("used.hour=25", "unknown hour '25'"),
        ("used.day=soon", "unknown day 'soon'"),
        ("used.tide=high", "tide: calls are not counted by this"),
    ):
        assert words(named(demo.page(f"/sessions?{wrong}", 400), "p", "bad")) == expected


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
        "90d": "2026-08-06T22:00",
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
    assert last.query_parameters() == {"since": "2026-10-01", "until": "2026-10-31T23:59:59.999999"}
    assert preset_range("all", now) == preset_range("tide", now) == DateRange(None, None, "all")
    twice = DateRange(datetime(2026, 10, 25, 1, 30, tzinfo=UTC))
    assert twice.query_parameters()["since"] == "2026-10-25T01:30:00Z"
    assert describe_range(None, None, date(2026, 11, 4)) == "the beginning to 2026-11-04 (today), CET"


def test_presets_are_links_that_keep_the_filters(demo: Shown) -> None:
    tree = demo.page("/usage?agent=claude-code&range=7d&by=model")
    (presets,) = named(tree, "nav", "presets")
    assert [words(one) for one in named(presets, "a")] == [
        "Today", "7 days", "30 days", "90 days", "This month", "Last month", "This year", "All",
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
    found = rank_colours(usage)
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
    bar = Bar(mean, [BarPart(0, 1.0)], mean, "/sessions?a=1&amp;b=2")
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
