"""clew stats: JSON, CSV, tables with bars, and where the numbers come from."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from clew.cli.command_stats import print_stats
from clew.render.tables import cost
from clew.store import Store
from tests.cli.running import COMMAND, clew, run
from tests.cli.running import FORKED as SHOWN
from tests.counting.homes import SESSION, SONNET, claude, prompt, reply
from tests.demo_home import write_small_demo
from tests.redact.planted import Planter

COUNTS = "input_tokens output_tokens cache_read_tokens cache_creation_tokens reasoning_tokens cost".split()


def synced(home: Path) -> None:
    """Make a catalog. What was written a moment ago may change again under the same time, so it has to lie a while."""
    time.sleep(0.2)
    assert clew("sync", "--home", home).code == 0


def test_json_has_totals_models_and_rows(demo: Path) -> None:
    found = clew("stats", "--home", demo, "--json").json
    assert list(found) == ["totals", "by_model", "rows"]
    for told in (found["totals"], *found["by_model"].values(), *found["rows"]):
        assert set(COUNTS) <= set(told)
    assert all("day" in row for row in found["rows"])


@pytest.mark.parametrize("part", ["src/tidepool", "SRC/Tide", "tidepool", "/home/", "nowhere/else"])
def test_a_part_of_the_projects_path_chooses_what_list_shows(demo: Path, part: str) -> None:
    listed = clew("list", "--home", demo, "--project", part, "--json").json
    wanted = {session["id"] for session in listed}
    quick = clew("stats", "--home", demo, "--project", part, "--by", "session", "--json").json
    assert {row["session"] for row in quick["rows"]} <= wanted
    synced(demo)
    found = clew("stats", "--home", demo, "--project", part, "--by", "session", "--json").json
    assert {row["session"] for row in found["rows"]} == wanted
    assert found["totals"]["sessions"] + found["totals"]["subagents"] == len(wanted)
    assert found["totals"]["calls"] == quick["totals"]["calls"]
    assert bool(wanted) == (part != "nowhere/else")
    tools = clew("stats", "--home", demo, "--project", part, "--by", "tool", "--json").json
    assert bool(tools["rows"]) == bool(wanted)


def test_the_name_that_agents_give_a_projects_folder_chooses_it_too(demo: Path) -> None:
    synced(demo)
    found = [clew("stats", "--home", demo, "--project", part, "--json").json for part in ("src/tide", "-src-tide")]
    assert found[0] == found[1]
    assert found[0]["rows"]


@pytest.mark.slow
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_who_reads_no_further_gets_no_more(unbuffered: str, tmp_path: Path) -> None:
    said = [prompt(f"shuttle {number} of the loom", uuid=f"u{number}") for number in range(1500)]
    claude(tmp_path, *said)
    synced(tmp_path)
    words = [sys.executable, "-c", "from clew.cli.main import run; run()", "search", "--home", str(tmp_path)]
    child = subprocess.Popen(
        [*words, "--no-sync", "-n", "1500", "shuttle"],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
    )
    assert child.stdout is not None and child.stdout.read(1)
    child.stdout.close()
    assert child.wait() == 141


def test_a_catalog_that_is_stale_is_brought_up_to_date(tmp_path: Path) -> None:
    claude(tmp_path, prompt("a"), reply("m1", 1, 2))
    clew("sync", "--home", tmp_path)
    claude(tmp_path, prompt("a"), reply("m1", 1, 2), reply("m2", 5, 6, number=2))
    found = clew("stats", "--home", tmp_path, "--json").json
    assert found["by_model"][SONNET]["input_tokens"] == 6


@pytest.mark.parametrize("by", ["day", "week", "month", "agent", "model", "project", "branch", "tool", "session"])
def test_rows_stand_for_what_was_asked(by: str, demo: Path) -> None:
    rows = clew("stats", "--home", demo, "--by", by, "--json").json["rows"]
    assert rows and all(by in row for row in rows)


@pytest.mark.parametrize(("by", "first"), [("day", "2026-10-20"), ("week", "2026-W43"), ("month", "2026-10")])
def test_a_session_that_began_before_since_counts_on_the_first_day(by: str, first: str, demo: Path) -> None:
    report = json.loads(clew("--home", demo, "stats", "--by", by, "--since", "2026-10-20", "--json").out)
    assert min(row[by] for row in report["rows"]) == first
    assert sum(row["sessions"] for row in report["rows"]) == report["totals"]["sessions"]


def test_a_tool_is_a_filter(demo: Path) -> None:
    found = clew("stats", "--home", demo, "--tool", "Bash", "--json").json
    assert found["totals"]["tool_calls"] > 0


def test_a_table_has_bars_and_a_last_row(demo: Path) -> None:
    ran = clew("stats", "--home", demo, "--by", "agent")
    first, *rows = ran.out.splitlines()
    assert first.split()[:2] == ["agent", "sessions"]
    assert rows[-1].startswith("total")
    assert "█" in ran.out and "\x1b" not in ran.out


def test_blocks_are_rows(demo: Path) -> None:
    rows = clew("stats", "--home", demo, "--blocks", "--json").json["rows"]
    assert rows and all(row["block"].endswith(":00:00Z") for row in rows)


def test_csv_has_a_row_for_each(demo: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(clew("stats", "--home", demo, "--by", "month", "--csv").out)))
    found = clew("stats", "--home", demo, "--by", "month", "--json").json["rows"]
    assert [row["month"] for row in rows] == [row["month"] for row in found]
    assert [int(row["input_tokens"] or 0) for row in rows] == [row["input_tokens"] or 0 for row in found]


@pytest.mark.parametrize("name", ["=1+1", "+cmd", "-2", "@SUM(A1)", "\tx"])
def test_H10_a_cell_of_csv_is_no_formula(name: str, tmp_path: Path) -> None:
    claude(tmp_path, prompt("a"), reply("m1", 1, 2, model=name))
    (row,) = csv.DictReader(io.StringIO(clew("stats", "--home", tmp_path, "--by", "model", "--csv").out))
    assert row["model"] == f"'{name}"


def test_H08_names_cannot_steer_the_terminal(tmp_path: Path) -> None:
    claude(tmp_path, prompt("a"), reply("m1", 1, 2, model="\x1b]0;x\x07evil"))
    ran = clew("stats", "--home", tmp_path, "--by", "model")
    assert "\x1b" not in ran.out + ran.err and "evil" in ran.out


def test_unpriced_models_are_named_and_totals_say_at_least(tmp_path: Path) -> None:
    claude(tmp_path, prompt("a"), reply("m1", 1_000_000, 0), reply("m2", 1, 2, number=2, model="nobody-knows-9"))
    ran = clew("stats", "--home", tmp_path)
    assert "≥ $3.00" in ran.out
    assert "nobody-knows-9" in ran.err


def test_nothing_there_is_exit_code_1(tmp_path: Path) -> None:
    assert clew("stats", "--home", tmp_path, "--json").code == 1


@pytest.mark.parametrize(
    ("words", "missing"),
    [(("--by", "model"), "token usage"), (("--blocks",), "token usage"), (("--by", "tool"), "tool calls")],
)
def test_sessions_without_usage_are_not_denied(words: tuple[str, ...], missing: str, tmp_path: Path) -> None:
    claude(tmp_path, prompt("hello"))
    ran = clew("--home", tmp_path, "stats", *words)
    assert (ran.code, ran.err) == (1, f"no sessions with {missing} found\n")


@pytest.mark.parametrize("words", [("--has", "luck"), ("--since", "someday"), ("--by", "moon")])
def test_what_it_cannot_do_is_said(words: tuple[str, str], demo: Path) -> None:
    ran = run("stats", "--home", demo, *words)
    assert ran.code == 2 and words[0].strip("-") in ran.err + " since"


def test_rows_sum_up_one_thing(demo: Path) -> None:
    ran = clew("stats", "--home", demo, "--by", "project", "--by", "agent")
    assert ran.code == 2 and "choose --by project or --by agent" in ran.err
    ran = clew("stats", "--home", demo, "--by", "day", "--blocks")
    assert ran.code == 2 and "choose --by day or --blocks" in ran.err


def test_sources_that_are_named_are_asked_of_their_catalog_too(tmp_path: Path) -> None:
    demo = tmp_path / "demo"
    write_small_demo(demo)
    assert clew("--home", demo, "archive").code == 0
    gone = min(demo.glob(".claude/projects/*/*.jsonl"))
    gone.unlink()
    totals = clew("stats", "--source", "archive", "--json").json["totals"]
    assert totals["turns"] > 0 and totals["sessions"] == 1


def named_password(home: Path) -> Path:
    """A home with a session in a folder whose name says that a secret may follow."""
    for number, name in enumerate(("attic", "password", "tide"), 1):
        session = SESSION.replace("1", str(number))
        more: dict[str, Any] = {"cwd": f"/home/ada/src/{name}", "sessionId": session}
        more["timestamp"] = f"2026-11-0{number}T10:00:00.000Z"
        claude(home, prompt("Where is the tide?", **more), reply(f"c{number}", 10, 2, **more), session=session)
    return home


@pytest.mark.parametrize("by", ["session", "project", "model", "day"])
def test_a_name_makes_no_secret_of_the_figure_beside_it(tmp_path: Path, by: str) -> None:
    home = named_password(tmp_path)
    plain = clew("stats", "--home", home, "--by", by, "--json").json
    masked = clew("stats", "--home", home, "--by", by, "--json", "--redact", "secrets")
    assert masked.json == plain and "masked" not in masked.err


@pytest.mark.parametrize("words", [("list",), ("stats", "--by", "session"), ("stats", "--by", "project")], ids=" ".join)
def test_a_cell_makes_no_secret_of_the_cell_beside_it(tmp_path: Path, words: tuple[str, ...]) -> None:
    done = clew("--home", named_password(tmp_path), *words)
    assert done.code == 0 and ("password" in done.out or "session" in words)
    assert "REDACTED" not in done.out and "masked" not in done.err


def test_two_models_that_are_masked_alike_are_two(tmp_path: Path) -> None:
    plant = Planter("models")
    claude(tmp_path, prompt("Hello"), *(reply(f"c{n}", 10 * n, n, model=plant.github(), number=n) for n in (1, 2)))
    found = clew("stats", "--home", tmp_path, "--by", "model", "--json", "--redact", "secrets", "--redact-plain").json
    assert list(found["by_model"]) == ["[REDACTED]", "[REDACTED] (2)"]
    assert sorted(used["input_tokens"] for used in found["by_model"].values()) == [10, 20]
    assert [row["model"] for row in found["rows"]] == found["totals"]["unpriced_models"] == list(found["by_model"])


def test_the_overview_keeps_models_that_are_masked_alike(tmp_path: Path) -> None:
    plant = Planter("models")
    claude(tmp_path, prompt("Hello"), *(reply(f"c{n}", 10 * n, n, model=plant.github(), number=n) for n in (1, 2)))
    found = clew("--home", tmp_path, "--json").json["tokens"]
    assert len(found) == 2 and all(name.startswith("[REDACTED") for name in found)


def _on_terminal(*words: str | Path) -> bytes:
    """What a command prints where its output is a terminal."""
    main, other = os.openpty()
    try:
        done = subprocess.run([*COMMAND, *map(str, words)], stdout=other, stderr=subprocess.PIPE, check=False)
        assert done.returncode == 0, done.stderr
        return os.read(main, 1 << 16)
    finally:
        os.close(main)
        os.close(other)


@pytest.mark.slow
def test_csv_sends_no_control_sequences_to_a_terminal(tmp_path: Path) -> None:
    home, model = tmp_path / "home", "so\x1b]0;owned\x07n\x9b31met"
    claude(home, prompt("hello"), reply("m1", 5, 7, model=model))
    synced(home)
    questions: list[tuple[str | Path, ...]] = [
        ("stats", "--home", home, "--by", "model", "--csv"),
        ("sql", "--home", home, "select model, 'a,b' as \"x\x1b[1m\" from usage", "--csv"),
    ]
    for words in questions:
        piped, shown = run(*words).out, _on_terminal(*words).decode()
        # SQL gives programs the very value; statistics are for spreadsheets.
        assert (model if "sql" in words else "so␛]0;owned␇n\\x9b31met") in piped
        assert "so␛]0;owned␇n\\x9b31met" in shown
        assert not {"\x1b", "\x07", "\x9b", "␍"} & set(shown)


@pytest.mark.slow
@pytest.mark.parametrize("words", [("list",), ("show", SHOWN), ("stats", "--by", "session"), ("graph", SHOWN)])
def test_a_terminal_without_unicode_gets_ascii(
    demo: Path, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAGER", "cat")
    assert any(byte > 127 for byte in _on_terminal("--home", demo, *words))
    monkeypatch.setenv("LC_ALL", "C")
    assert not any(byte > 127 for byte in _on_terminal("--home", demo, *words))


@pytest.mark.slow
def test_a_narrow_table_keeps_what_it_is_grouped_or_sorted_by(demo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    heads = [
        _on_terminal("--home", demo, *words).decode().splitlines()[0]
        for words in (("stats", "--by", "project"), ("list", "--sort", "cost"), ("list", "--sort", "tokens"))
    ]
    assert "project" in heads[0] and "cost" in heads[1] and "tokens" in heads[2]


def test_a_masked_id_is_not_cut_in_its_mask(tmp_path: Path) -> None:
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    path = tmp_path / ".claude" / "projects" / "-p" / f"{token}.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(prompt("a") | {"sessionId": token}) + "\n")
    shown = clew("stats", "--home", tmp_path, "--by", "session").out.splitlines()[1]
    assert re.match(r"\[REDACTED:[a-z0-9_.-]+:[a-z2-7]{8}\] ", shown), shown


def test_a_project_that_is_a_hash_is_short_in_tables_only(tmp_path: Path) -> None:
    name = "5f" * 32
    path = tmp_path / ".gemini" / "tmp" / name / "chats" / "session-2026-11-01T10-00-0a6c1f5e.json"
    path.parent.mkdir(parents=True)
    message = {"id": "m1", "timestamp": "2026-11-01T10:00:00Z", "type": "user", "content": "Hello"}
    session = {"sessionId": "0a6c1f5e-0000-4000-8000-00000000000a", "projectHash": name, "messages": [message]}
    path.write_text(json.dumps(session | {"startTime": message["timestamp"], "lastUpdated": message["timestamp"]}))
    for words in (("list",), ("stats", "--by", "project"), ("stats", "--by", "session")):
        shown = clew(*words, "--home", tmp_path).out
        assert name[:12] in shown and name[:13] not in shown, words
    assert clew("list", "--home", tmp_path, "--json").json[0]["project"] == name


def test_what_is_unknown_is_not_zero(demo: Path) -> None:
    """sage-emacs records no tokens: what its sessions cost is unknown."""
    found = clew("stats", "--by", "agent", "--json", "--home", demo).json["rows"]
    (row,) = [row for row in found if row["agent"] == "sage-emacs"]
    assert (row["cost"], row["cost_nano"], row["input_tokens"]) == (None, None, None)
    (line,) = [line for line in clew("stats", "--by", "agent", "--home", demo).out.splitlines() if "sage-emacs" in line]
    assert "$" not in line and line.split()[3:8] == ["-"] * 5


def test_a_row_of_a_session_has_its_title_and_its_project(demo: Path) -> None:
    header, *lines = clew("stats", "--by", "session", "--home", demo).out.splitlines()
    title, project = header.index("title"), header.index("project")
    shown = {line.split()[0]: (line[title:project].strip(), line[project:].split()[0]) for line in lines}
    assert shown["f005c7db"] == ("new-moon-in-python", "moon.phase")
    task = "List every line that assumes UTC. Report file and line only."
    assert shown["agent-a6d43f55"] == (task, "tidepool")


def test_a_session_that_grew_since_the_last_sync_costs_no_column(tmp_path: Path) -> None:
    home = tmp_path / "home"
    write_small_demo(home)
    assert clew("--home", home, "sync").code == 0
    before = clew("--home", home, "stats").out.splitlines()[0]
    path = max(home.glob(".claude/projects/*/*.jsonl"))
    path.write_bytes(path.read_bytes() + path.read_bytes().splitlines(keepends=True)[-1])
    assert clew("--home", home, "stats").out.splitlines()[0] == before
    assert {"turns", "tools", "errors", "active", "files"} <= set(before.split())


def test_a_small_cost_is_not_shown_as_nothing() -> None:
    shown = [cost({"cost": dollars, "cost_is_at_least": False}) for dollars in (None, 0.0, 0.0012, 0.006, 1234.5)]
    assert shown == ["-", "$0.00", "$0.0012", "$0.01", "$1,234.50"]


def test_the_total_of_projects_has_a_name(demo: Path) -> None:
    assert clew("stats", "--home", demo, "--by", "project").out.splitlines()[-1].startswith("total")


def test_costs_that_are_lower_bounds_are_explained(capsys: pytest.CaptureFixture[str], demo: Path) -> None:
    found = clew("stats", "--home", demo, "--json").json
    model = next(iter(found["by_model"]))
    found["totals"]["cost_is_at_least"] = found["by_model"][model]["cost_is_at_least"] = True
    print_stats(found, "day")
    assert capsys.readouterr().err == "costs are lower bounds: the tokens of some calls are unknown\n"
    found["totals"]["unpriced_models"] = [model]
    print_stats(found, "day")
    assert capsys.readouterr().err == f"costs are lower bounds: no price is known for: {model}\n"


def test_ids_of_sessions_are_long_enough_to_tell_them_apart(tmp_path: Path) -> None:
    with Store(tmp_path).session("tides-of-may") as session:
        session.user("one")
    with Store(tmp_path).session("tides-of-june") as session:
        session.user("two")
    lines = clew("stats", "--by", "session", "--home", tmp_path).out.splitlines()[1:]
    assert sorted(line.split()[0] for line in lines) == ["tides-of-j", "tides-of-m", "total"]
