"""Times for people are in the user's zone; JSON stays in UTC."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from tests.cli.running import LATEST, clew, run

KATHMANDU = "Asia/Kathmandu"


def shown_time(demo: Path, *words: str) -> str:
    """The time in the heading of the session."""
    return clew("--home", demo, *words, "show", LATEST).out.splitlines()[0].rpartition(" · ")[2]


def test_show_says_the_zone_once(demo: Path) -> None:
    assert shown_time(demo) == "2026-11-03 22:41 UTC"
    assert shown_time(demo, "--timezone", KATHMANDU) == "2026-11-04 04:26 UTC+05:45"
    assert shown_time(demo, "--timezone", "Europe/Berlin") == "2026-11-03 23:41 CET"
    text = clew("--home", demo, "show", LATEST, "--timezone", "Europe/Berlin").out
    assert text.count("CET") == 1


def test_the_option_ends_with_the_command(demo: Path) -> None:
    clew("--home", demo, "--timezone", KATHMANDU, "list")
    assert "CLEW_TIMEZONE" not in os.environ
    assert shown_time(demo).endswith("UTC")


def test_the_environment_names_the_zone(demo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLEW_TIMEZONE", "America/New_York")
    assert shown_time(demo) == "2026-11-03 17:41 EST"
    assert shown_time(demo, "--timezone", "UTC") == "2026-11-03 22:41 UTC"


def test_tz_names_the_zone_of_the_system(demo: Path) -> None:
    shown = run("--home", demo, "show", LATEST, env={**os.environ, "TZ": "Europe/Berlin"})
    assert "2026-11-03 23:41 CET" in shown.out.splitlines()[0]


@pytest.mark.parametrize("words", [("--timezone", "Berlin", "list"), ("list", "--timezone", "Berlin")])
def test_an_unknown_zone_is_a_usage_error(demo: Path, words: tuple[str, ...]) -> None:
    ran = clew("--home", demo, *words)
    assert ran.code == 2
    assert ran.err == "clew: unknown time zone 'Berlin'; did you mean Europe/Berlin?\n"


@pytest.mark.parametrize(
    "words", [("show", LATEST), ("list",), ("search", "tide"), ("export", LATEST), ("files", LATEST), ("graph", LATEST)]
)
def test_json_does_not_change(demo: Path, words: tuple[str, ...]) -> None:
    asked = words if words[0] == "export" else (*words, "--json")
    one, other = (clew("--home", demo, "--timezone", zone, *asked) for zone in ("UTC", KATHMANDU))
    drop = b"export_timestamp"
    assert [line for line in one.raw.split(b",") if drop not in line] == [
        line for line in other.raw.split(b",") if drop not in line
    ]


def test_markdown_and_html_are_in_the_zone(demo: Path, tmp_path: Path) -> None:
    for form, zone in (("markdown", 'timezone: "CET"'), ("html", " CET</dd>")):
        target = tmp_path / form
        clew("--home", demo, "--timezone", "Europe/Berlin", "export", LATEST, "--to", form, "--output", target)
        text = target.read_text() if target.is_file() else "".join(p.read_text() for p in target.rglob("*.*"))
        assert zone in text
        assert "2026-11-03 23:41" in text
        assert "2026-11-03 22:41" not in text


def test_search_shows_times_in_the_zone(demo: Path) -> None:
    utc = clew("--home", demo, "search", "tide").out
    assert clew("--home", demo, "--timezone", KATHMANDU, "search", "tide").out != utc


def test_a_day_begins_at_local_midnight(demo: Path) -> None:
    """The session began on the 3rd at 22:41 in UTC, which is the 4th in Kathmandu."""
    for zone, is_before in (("UTC", True), ("Europe/Berlin", True), (KATHMANDU, False)):
        rows = clew("--home", demo, "--timezone", zone, "list", "--json", "--until", "2026-11-04").json
        assert (LATEST in [row["id"] for row in rows]) is is_before, zone


def test_days_of_statistics_are_days_of_the_zone(demo: Path) -> None:
    days = {}
    for zone in ("UTC", KATHMANDU):
        found = clew("--home", demo, "--timezone", zone, "stats", "--json").json
        days[zone] = {row["day"]: row["calls"] for row in found["rows"] if row["calls"]}
    latest = [row for row in clew("--home", demo, "show", LATEST, "--json").lines if row["role"] == "assistant"]
    assert {row["timestamp"][:10] for row in latest} == {"2026-11-03"}
    assert days["UTC"] != days[KATHMANDU]
    assert sum(days["UTC"].values()) == sum(days[KATHMANDU].values())
    lines = clew("--home", demo, "--timezone", KATHMANDU, "stats").out.splitlines()
    assert lines[0].startswith("day (UTC+05:45)")


@pytest.mark.parametrize("by", ["day", "week", "month"])
@pytest.mark.parametrize("zone", ["America/Los_Angeles", KATHMANDU, "Pacific/Kiritimati"])
def test_statistics_agree_with_single_messages(demo: Path, by: str, zone: str) -> None:
    """The calls of each period, counted from the table of calls by Python's calendar."""
    clew("--home", demo, "sync")
    calls = clew("--home", demo, "sql", "SELECT ts_us, session_id FROM usage WHERE ts_us > 0", "--json").lines
    counts: dict[str, int] = {}
    sessions: dict[str, set[str]] = {}
    for call in calls:
        day = datetime.fromtimestamp(call["ts_us"] / 1e6, ZoneInfo(zone))
        name = day.strftime({"day": "%Y-%m-%d", "week": "%G-W%V", "month": "%Y-%m"}[by])
        counts[name] = counts.get(name, 0) + 1
        sessions.setdefault(name, set()).add(call["session_id"])
    found = clew("--home", demo, "--timezone", zone, "stats", "--by", by, "--json").json["rows"]
    assert {row[by]: row["calls"] for row in found if row["calls"] and row[by]} == counts
    assert {row[by]: row["sessions_with_calls"] for row in found if row["calls"] and row[by]} == {
        name: len(members) for name, members in sessions.items()
    }


def test_a_filter_by_day_selects_the_row_of_that_day(demo: Path) -> None:
    rows = clew("--home", demo, "--timezone", KATHMANDU, "stats", "--json").json["rows"]
    row = next(row for row in rows if row["day"] == "2026-11-04")
    limits = ("--since", "2026-11-04", "--until", "2026-11-04T23:59:59.999999")
    found = clew("--home", demo, "--timezone", KATHMANDU, "stats", *limits, "--json").json
    assert [found["totals"][name] for name in ("calls", "cost_nano")] == [row["calls"], row["cost_nano"]]
