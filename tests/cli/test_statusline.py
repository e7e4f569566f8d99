"""The status line of Claude Code: one line, whatever is wrong."""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from clew.cli import command_statusline
from clew.cli.main import main
from tests.cli.running import COMMAND, clew
from tests.counting.homes import SESSION, claude, prompt, reply

GIVEN: dict[str, Any] = {
    "hook_event_name": "Status",
    "session_id": SESSION,
    "model": {"id": "claude-sonnet-4-5", "display_name": "Sonnet 4.5"},
    "cost": {"total_cost_usd": 0.384},
}


@pytest.fixture(autouse=True)
def started(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The processes that were to be started in the background."""
    found: list[list[str]] = []
    monkeypatch.setattr(command_statusline, "Popen", lambda words, **_: found.append(words))
    return found


def line(given: object, *words: str | Path) -> str:
    text = given if isinstance(given, str) else json.dumps(given)
    ran = CliRunner().invoke(main, [*map(str, words), "statusline"], input=text)
    assert ran.exit_code == 0 and ran.stderr == ""
    assert ran.stdout.count("\n") == 1
    return ran.stdout.rstrip("\n")


@pytest.fixture
def working(tmp_path: Path) -> Path:
    """A home with a call two minutes ago and one an hour before, of a dollar and a half each."""
    now = datetime.now(UTC)
    times = [now - timedelta(minutes=62), now - timedelta(minutes=2)]
    replies = [
        reply(f"m{n}", 500_000, 0, number=n, timestamp=f"{stamp:%Y-%m-%dT%H:%M:%S}.000Z")
        for n, stamp in enumerate(times, 1)
    ]
    home = tmp_path / "working"
    claude(home, prompt("a"), *replies)
    CliRunner().invoke(main, ["--home", str(home), "stats"])
    return home


def test_costs_of_session_day_and_block(working: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # In this zone it is noon now, give or take half an hour, so that both calls are of today.
    monkeypatch.setenv("CLEW_TIMEZONE", f"Etc/GMT{datetime.now(UTC).hour - 12:+d}")
    shown = line(GIVEN, "--home", working)
    assert shown.startswith("Sonnet 4.5 · $0.38 session · $3.00 today · $3.00 block · ")
    assert shown.endswith(" min left")


def test_without_input_the_catalog_tells_the_cost(working: Path) -> None:
    assert line({"session_id": SESSION}, "--home", working).startswith("$3.00 session · ")
    assert "today" in line("", "--home", working)


@pytest.mark.parametrize(
    "given",
    [
        *("", "{", "[]", "null", '"x"', "[" * 100_000),
        '{"model": 3, "cost": "much", "session_id": {}}',
        '{"model": {"display_name": null}, "cost": {"total_cost_usd": true}}',
    ],
)
def test_any_input_gives_a_line(given: str, tmp_path: Path) -> None:
    assert line(given, "--home", tmp_path) == "clew: no catalog yet, run `clew stats` once"


def test_a_model_is_one_short_visible_line(tmp_path: Path) -> None:
    shown = line({"model": {"display_name": "a\nb\x1b[31m" + "c" * 500}}, "--home", tmp_path)
    assert "\x1b" not in shown and len(shown) < 120


def test_a_damaged_catalog_and_an_unknown_zone_fail_nothing(working: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLEW_TIMEZONE", "Mars/Phobos")
    shown = line(GIVEN, "--home", working)
    assert shown.startswith("Sonnet 4.5 · $0.38 session · clew: unknown time zone 'Mars/Phobos'")
    monkeypatch.delenv("CLEW_TIMEZONE")
    for database in Path(os.environ["CLEW_DATA_DIR"]).rglob("catalog.sqlite*"):
        database.write_bytes(b"no database" * 1000)
    assert line(GIVEN, "--home", working).startswith("Sonnet 4.5 · $0.38 session")
    assert line(GIVEN, "--home", working / "nowhere").startswith("Sonnet 4.5 · $0.38 session")


def test_the_catalog_is_brought_up_to_date_behind_it(working: Path, started: list[list[str]]) -> None:
    line(GIVEN, "--home", working)
    line(GIVEN, "--home", working)
    assert [words[-6:] for words in started] == [["--home", str(working), "stats", "--since", "today", "--json"]]


def test_without_sync_no_process_is_started(working: Path, started: list[list[str]]) -> None:
    assert "session" in line(GIVEN, "--home", working, "--no-sync")
    assert started == []


def test_a_source_is_read_and_brought_up_to_date(working: Path, started: list[list[str]]) -> None:
    clew("sources", "add", working, "--name", "desk")
    clew("stats", "--source", "desk")
    assert line({"session_id": SESSION}, "--source", "desk").startswith("$3.00 session · ")
    assert [words[-6:] for words in started] == [["--source", "desk", "stats", "--since", "today", "--json"]]


def test_json_may_be_given_before_the_command(working: Path) -> None:
    facts = json.loads(line(GIVEN, "--home", working, "--json"))
    assert (facts["model"], facts["session_cost"], facts["problem"]) == ("Sonnet 4.5", 0.384, None)


def test_json_has_the_same_keys_without_a_catalog(working: Path, tmp_path: Path) -> None:
    facts = json.loads(line("", "--home", tmp_path / "empty", "--json"))
    assert facts.keys() == json.loads(line(GIVEN, "--home", working, "--json")).keys()
    assert "no catalog yet" in facts["problem"]


def test_a_block_without_a_known_cost_is_named(tmp_path: Path) -> None:
    now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S}.000Z"
    claude(tmp_path, prompt("a"), reply("m1", 5, 7, model="unheard-of", timestamp=now))
    clew("--home", tmp_path, "stats")
    shown = line(GIVEN, "--home", tmp_path)
    assert re.fullmatch(r"Sonnet 4\.5 · \$0\.38 session · block: (\d h )?\d+ min left", shown), shown


def test_without_a_block_nothing_is_said_of_one(tmp_path: Path) -> None:
    claude(tmp_path, prompt("a"), reply("m1", 5, 7, timestamp="2026-01-01T10:00:00.000Z"))
    clew("--home", tmp_path, "stats")
    assert line(GIVEN, "--home", tmp_path) == "Sonnet 4.5 · $0.38 session · $0.00 today"


def test_a_cost_that_is_only_a_lower_bound_is_marked(tmp_path: Path) -> None:
    now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S}.000Z"
    replies = [
        reply("m1", 500_000, 0, timestamp=now),
        reply("m2", 5, 7, number=2, model="unheard-of", timestamp=now),
    ]
    claude(tmp_path, prompt("a"), *replies)
    clew("--home", tmp_path, "stats")
    assert "≥ $1.50 today · ≥ $1.50 block · " in line(GIVEN, "--home", tmp_path)


def test_a_small_cost_does_not_look_like_nothing(tmp_path: Path) -> None:
    assert line({"cost": {"total_cost_usd": 0.0012}}, "--home", tmp_path).startswith("$0.0012 session · ")


@pytest.mark.slow
def test_it_is_quick_as_a_process(working: Path) -> None:
    """Processor time, as the machine may be busy: 0.15 s where it is not."""
    command = [*COMMAND, "--home", str(working), "statusline"]
    spent = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        done = subprocess.run(command, input=json.dumps(GIVEN), capture_output=True, text=True, check=True, timeout=60)
        spent.append(resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before)
    assert done.stdout.startswith("Sonnet 4.5")
    assert min(spent) < 0.5
