"""Times for people are in the user's zone; JSON stays in UTC."""

from __future__ import annotations

import os
from pathlib import Path

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
