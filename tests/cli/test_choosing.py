"""Homes, filters and references: which sessions a command means."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from clew.render.tables import short_ids
from tests.cli.running import BELL, FORKED, LATEST, WITH_AGENTS, clew
from tests.demo_home import write_small_demo
from tests.unit.samples import SESSION, claude_line

EVERY = ("list", "show", "graph", "export", "verify", "validate")


def ids(demo: Path, *words: str) -> list[str]:
    """The sessions that a list with these words shows, without sub-agents."""
    rows = clew("--home", demo, "list", "--json", *words).json
    return sorted(row["id"][:8] for row in rows if not row["is_agent_session"])


# Filters


@pytest.mark.parametrize("command", ["list", "export", "validate", "stats", "search"])
def test_an_agent_that_nobody_knows_is_refused(demo: Path, command: str) -> None:
    words = ["bell"] if command == "search" else []
    ran = clew("--home", demo, command, *words, "--agent", "nope")
    assert ran.code == 2
    assert "nope" in ran.err and "claude-code" in ran.err


ALL_CLAUDE = [
    "38ed9768",
    "3c986c27",
    "4e27a2d4",
    "62cb0cb9",
    "71960fc3",
    "d75994b4",
    "d9f369f3",
    "f005c7db",
    "f701d073",
]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--agent", "claude-code"], ALL_CLAUDE),
        (["--agent", "sage-agent"], ["65e3e58a", "bea30fe7"]),
        (
            ["--agent", "sage-agent", "--agent", "sage-emacs"],
            ["65e3e58a", "71416589", "9c9386fe", "bea30fe7", "da4636b4"],
        ),
        (["--project", "MOON.phase"], ["f005c7db"]),
        (["--project", "-home-ada-src-moon-phase"], ["f005c7db"]),
        (["--since", "2026-11-01"], ["71416589", "bea30fe7", "d75994b4"]),
        (["--until", "2026-01-31"], ["2e9f6b04", "da4636b4"]),
        (
            ["--since", "2026-10-13", "--until", "2026-10-25"],
            ["3c986c27", "71416589", "71960fc3", "7c1e5f2a", "f005c7db"],
        ),
        (["--text", "Granville"], ["71416589"]),
        (["--text", "grANVILLE", "--agent", "claude-code"], []),
        (["--has", "subagent"], ["019cd3f0", "38ed9768", "62cb0cb9", "7c1e5f2a", "d9f369f3"]),
        (["--has", "error"], ["019c57c1", "019cb0d2", "019cb11e", "71416589", "71960fc3", "7c1e5f2a", "bea30fe7"]),
        (["--has", "error", "--has", "edit", "--agent", "claude-code"], ["71960fc3"]),
        (["--file", "moon.py"], ["f005c7db"]),
        (["--project", "moon.phase", "--tool", "wri"], ["f005c7db"]),
        (["--project", "moon.phase", "--tool", "Bash"], []),
        (["--project", "moon.phase", "--model", "OPUS-4-6"], ["f005c7db"]),
        (["--project", "moon.phase", "--branch", "main"], ["f005c7db"]),
        (["--project", "moon.phase", "--branch", "other"], []),
        (["--model", "no-such-model"], []),
    ],
)
def test_filters(demo: Path, words: list[str], expected: list[str]) -> None:
    assert ids(demo, *words) == expected


def test_thinking_is_a_filter(demo: Path) -> None:
    found = ids(demo, "--has", "thinking")
    assert found
    for session in found:
        blocks = [
            block["type"] for m in clew("--home", demo, "show", session, "--json").lines for block in m["content"]
        ]
        assert "thinking" in blocks


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["--has", "nothing"], "choose from error, thinking, subagent, edit"),
        (["--since", "soon"], "unknown time 'soon'"),
        (["--until", "9" * 30 + "d"], "unknown time"),
        (["--since", "99999999999d"], "unknown time"),
    ],
)
@pytest.mark.parametrize("command", ["list", "export", "verify", "validate"])
def test_filters_that_make_no_sense(demo: Path, command: str, words: list[str], hint: str) -> None:
    ran = clew("--home", demo, command, *words)
    assert ran.code == 2
    assert hint in ran.err
    assert len(ran.err.splitlines()) == 1


def test_every_command_takes_the_same_filters(demo: Path) -> None:
    assert len(clew("--home", demo, "export", "--to", "ndjson", "--project", "moon").raw.splitlines()) == 1
    assert clew("--home", demo, "verify", "--json", "--project", "moon").json["files"] == 1
    assert clew("--home", demo, "validate", "--project", "moon").code == 0


# References


@pytest.mark.parametrize(
    "reference",
    [FORKED, FORKED[:8], FORKED[:4], f"claude-code:{FORKED}", f"claude-code:{FORKED[:5]}", f"{FORKED[:6]}#1"],
)
def test_a_session_by_its_id(demo: Path, reference: str) -> None:
    first = clew("--home", demo, "show", reference, "--json").lines[0]
    assert first["content"][0]["text"].startswith("When is the first new moon")


def test_a_session_by_its_path(demo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (path,) = demo.rglob(f"{FORKED}.jsonl")
    expected = clew("--home", demo, "show", FORKED, "--json").lines
    assert clew("show", path, "--json").lines == expected
    assert clew("show", f"{path}#2", "--json").lines == expected[1:2]
    monkeypatch.chdir(path.parent)
    assert clew("show", path.name, "--json").lines == expected
    assert clew("show", f"./{path.name}", "--json").lines == expected
    monkeypatch.setenv("HOME", str(demo))
    assert clew("show", f"~/{path.relative_to(demo)}", "--json").lines == expected


def test_a_path_with_a_number_sign(tmp_path: Path) -> None:
    folder = tmp_path / "c#12"
    folder.mkdir()
    path = folder / f"{SESSION}.jsonl"
    path.write_text(json.dumps(claude_line("user", "u1", None)) + "\n" + json.dumps(claude_line("user", "u2", "u1")))
    assert len(clew("show", path, "--json").lines) == 2
    assert [message["uuid"] for message in clew("show", f"{path}#2", "--json").lines] == ["u2"]


def test_the_last_session_is_the_one_written_last(tmp_path: Path) -> None:
    home = tmp_path / "home"
    write_small_demo(home)
    for number, path in enumerate(sorted(path for path in home.rglob("*") if path.is_file())):
        os.utime(path, (number, number))
    (bell,) = home.rglob(f"{BELL}/messages.jsonl")
    os.utime(bell, (10**9, 10**9))
    # A sub-agent that wrote even later is not what a person means.
    for path in (*home.rglob("agent-*.jsonl"), *home.rglob("chats/*/*.jsonl")):
        os.utime(path, (10**9 + 1, 10**9 + 1))
    assert clew("--home", home, "show", "@last", "--json").raw == clew("--home", home, "show", BELL, "--json").raw
    assert [m["index"] for m in clew("--home", home, "show", "@last#2", "--json").lines] == [2]
    assert clew("--home", home, "show", "claude-code:@last").code == 0


@pytest.mark.parametrize("command", ["show", "graph", "export", "verify", "validate"])
def test_an_ambiguous_prefix_names_the_candidates(demo: Path, command: str) -> None:
    ran = clew("--home", demo, command, "f")
    assert ran.code == 2
    assert ran.out == ""
    assert ran.err.startswith("clew: 'f' is ambiguous: ")
    assert f"claude-code:{FORKED}" in ran.err
    assert "claude-code:f701d073" in ran.err


def test_an_ambiguous_prefix_may_be_settled_by_the_agent(demo: Path) -> None:
    assert clew("--home", demo, "show", "6").code == 2
    assert clew("--home", demo, "show", "sage-agent:6").code == 0
    shown = clew("--home", demo, "show", "agent-").err
    assert shown.count("claude-code:agent-") == 3


@pytest.mark.parametrize("command", ["show", "graph", "export", "verify", "validate"])
@pytest.mark.parametrize("reference", ["nobody", "sage-agent:f005", "claude-code:"])
def test_an_unknown_reference(demo: Path, command: str, reference: str) -> None:
    ran = clew("--home", demo, command, reference)
    assert ran.code == 1
    assert ran.out == ""
    assert "clew list" in ran.err


@pytest.mark.parametrize("reference", [" ", "#3", "f005#", "f005#x", ""])
def test_what_is_no_reference(demo: Path, reference: str) -> None:
    ran = clew("--home", demo, "show", reference)
    assert (ran.code, ran.out) == (2, "")
    assert "is not a session reference" in ran.err


@pytest.mark.parametrize("command", ["show", "graph", "export", "verify", "validate"])
@pytest.mark.parametrize("path", ["/no/such/file.jsonl", "./nothing.jsonl", "~nobody-of-this-name/x"])
def test_a_path_that_is_not_there(command: str, path: str) -> None:
    ran = clew(command, path)
    assert (ran.code, ran.out) == (3, "")
    assert ran.err == f"clew: {path}: no such file or folder\n"


def test_a_folder_holds_many_sessions(demo: Path) -> None:
    folder = demo / ".claude" / "projects" / "-home-ada-src-tidepool"
    assert clew("verify", folder, "--json").json["files"] == len(list(folder.rglob("*.jsonl"))) + 2


@pytest.mark.parametrize("command", [("show",), ("graph",), ("convert", "--to", "codex", "--home", "elsewhere")])
def test_where_a_folder_holds_many_sessions_and_one_is_meant_they_are_named(
    demo: Path, tmp_path: Path, command: tuple[str, ...]
) -> None:
    folder = tmp_path / "copies"
    folder.mkdir()
    archived = next((demo / ".codex" / "archived_sessions").iterdir())
    first, second = (shutil.copy(archived, folder / f"{letter}.jsonl") for letter in "ab")
    ran = clew(*command, folder)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == f"clew: {folder}: holds 2 sessions; name one by its file: {first}, {second}\n"
    many = clew(*command, demo / ".claude")
    assert many.code == 2
    assert re.fullmatch(r"clew: .*: holds \d+ sessions; name one by its file: (\S+, ){4}\S+ and \d+ more\n", many.err)


@pytest.mark.parametrize("command", [("show",), ("graph",), ("convert", "--to", "codex", "--home", "elsewhere")])
def test_a_folder_without_sessions_holds_nothing_to_find(tmp_path: Path, command: tuple[str, ...]) -> None:
    folder = tmp_path / "nothing @ all"
    folder.mkdir()
    ran = clew(*command, folder)
    assert (ran.code, ran.out, ran.err) == (1, "", f"clew: {folder}: contains no session\n")


def test_a_file_of_nobody(tmp_path: Path) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_text("hello\n")
    ran = clew("verify", notes)
    assert (ran.code, ran.err) == (3, f"clew: {notes}: not a session file of a known agent\n")


# Homes


@pytest.mark.slow
def test_the_home_may_stand_before_or_behind_the_command(demo: Path) -> None:
    expected = clew("--home", demo, "list", "--json").raw
    assert clew("list", "--home", demo, "--json").raw == expected
    assert clew("--json", "--home", demo, "list").raw == expected
    assert clew("--home", demo, "list", "--home", demo, "--json").raw == expected


def test_several_homes_are_read_together(demo: Path, tmp_path: Path) -> None:
    folder = tmp_path / ".claude" / "projects" / "-p"
    folder.mkdir(parents=True)
    (folder / f"{SESSION}.jsonl").write_text(json.dumps(claude_line("user", "u1", None)) + "\n")
    both = clew("--home", demo, "list", "--home", tmp_path, "--json").json
    assert {SESSION, LATEST} <= {row["id"] for row in both}
    assert clew("--home", demo, "--home", tmp_path, "show", SESSION[:8]).code == 0


@pytest.mark.parametrize("command", [[], *([name] for name in EVERY if name not in ("show", "graph"))])
def test_a_home_that_is_not_there(tmp_path: Path, command: list[str]) -> None:
    missing = tmp_path / "missing"
    ran = clew("--home", missing, *command)
    assert (ran.code, ran.out, ran.err) == (3, "", f"clew: {missing}: no such folder\n")


@pytest.mark.parametrize(
    ("command", "hint"),
    [([], "clew demo"), (["list"], "clew agents"), (["verify"], "clew agents"), (["validate"], "clew agents")],
)
def test_no_sessions_is_exit_1_with_a_hint(tmp_path: Path, command: list[str], hint: str) -> None:
    ran = clew("--home", tmp_path, *command)
    assert ran.code == 1
    assert ran.out == ""
    assert hint in ran.err


def test_no_sessions_to_export(tmp_path: Path, demo: Path) -> None:
    assert clew("--home", tmp_path, "export").code == 1
    ran = clew("--home", demo, "export", "--project", "no such project", "-o", tmp_path / "out")
    assert (ran.code, ran.err) == (1, "clew: no session to export\n")
    assert not (tmp_path / "out").exists()


def test_without_a_home_the_own_one_is_read(home: Path) -> None:
    assert clew("list").code == 1
    write_small_demo(home / "demo")
    (home / "demo" / ".claude").rename(home / ".claude")
    assert WITH_AGENTS[:8] in clew("list").out


def test_the_ids_of_a_list_are_unlike_each_other() -> None:
    ids = ["01a1dd88-b033-7e83-aa66", "01a1dd88-b195-7b02-bb80", "f005c7db-1dcc-4692", "agent-a6d43f5595a763917", "x"]
    assert short_ids(ids, [*ids, ids[0]]) == {
        ids[0]: "01a1dd88-b0",
        ids[1]: "01a1dd88-b1",
        ids[2]: "f005c7db",
        ids[3]: "agent-a6d43f55",
        "x": "x",
    }


def test_a_folder_with_a_session_and_its_sub_agents_holds_one(demo: Path, tmp_path: Path) -> None:
    source = next((demo / ".claude" / "projects").glob("*/*/subagents")).parent
    shutil.copytree(source, tmp_path / "one" / source.name)
    shutil.copy(source.with_suffix(".jsonl"), tmp_path / "one")
    assert clew("show", tmp_path / "one").out == clew("show", source.with_suffix(".jsonl")).out != ""
    assert "holds 2 sessions" in clew("show", tmp_path / "one" / source.name).err


# Projects and agents


@pytest.fixture
def two_projects(tmp_path: Path) -> Path:
    """A home with a session in each of two folders, which exist; the one of `moon` is the latest."""
    home = tmp_path / "home"
    for day, name in ((1, "tide"), (2, "moon")):
        folder = tmp_path / name
        folder.mkdir()
        path = home / ".claude" / "projects" / f"-{name}" / f"{name}-1.jsonl"
        path.parent.mkdir(parents=True)
        line = claude_line("user", "u1", None, f"Look at the {name}", cwd=str(folder))
        line |= {"sessionId": f"{name}-1", "timestamp": f"2026-01-0{day}T10:00:00.000Z"}
        path.write_text(json.dumps(line) + "\n")
    return home


def test_the_last_session_of_the_current_folder(
    two_projects: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def shown(*words: str) -> str:
        return str(clew("--home", two_projects, "show", "--json", *words).lines[0]["content"][0]["text"])

    monkeypatch.chdir(tmp_path / "tide")
    assert shown("@last") == "Look at the moon"
    assert shown("@2") == "Look at the tide"
    assert shown("@last", "--here") == "Look at the tide"
    assert shown("@last", "--project", ".") == "Look at the tide"
    assert shown("@last", "--project", "mo") == "Look at the moon"
    assert shown("look AT", "--here") == "Look at the tide"
    ran = clew("--home", two_projects, "show", "@2", "--here")
    assert (ran.code, ran.err) == (1, "clew: @2: there is only 1 session in this project\n")


@pytest.mark.parametrize("command", ["list", "stats", "export", "verify", "search"])
def test_every_command_with_filters_knows_the_current_folder(
    two_projects: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    query = ["look"] if command == "search" else []
    monkeypatch.chdir(tmp_path / "tide")
    found = [
        clew("--home", two_projects, command, *query, "--json", *words).raw
        for words in (["--here"], ["--project", "."], ["--project", str(tmp_path / "tide")])
    ]
    everything = clew("--home", two_projects, command, *query, "--json").raw
    if command == "export":
        found = [b"tide" if b"tide-1" in text and b"moon-1" not in text else text for text in found]
    assert found[0] == found[1] == found[2] != everything


def test_an_agent_by_the_beginning_of_its_name(demo: Path) -> None:
    assert ids(demo, "--agent", "claude") == ids(demo, "--agent", "claude-code")
    assert clew("--home", demo, "show", f"claude:{FORKED[:6]}").code == 0
    ran = clew("--home", demo, "list", "--agent", "sage")
    assert (ran.code, ran.err) == (2, "clew: agent 'sage' is ambiguous: sage-agent, sage-emacs\n")
    ran = clew("--home", demo, "list", "--agent", "cluade")
    assert ran.code == 2
    assert "did you mean claude-code?" in ran.err


# Lists


def test_lists_are_sorted(demo: Path) -> None:
    def listed(*words: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = clew("--home", demo, "list", "--json", *words).json
        return found

    columns = {"cost": "cost", "tokens": "total_tokens", "messages": "messages"}
    for sort, column in columns.items():
        values = [row[column] for row in listed("--sort", sort)]
        known = [value for value in values if value is not None]
        assert known == sorted(known, reverse=True)
        assert all(value is not None for value in values[: len(known)]), "what is unknown comes last"
        assert listed("--sort", sort, "--reverse") == listed("--sort", sort)[::-1]
        assert listed("--sort", sort, "-n", "2") == listed("--sort", sort)[:2]
    assert listed("--sort", "time") == listed()


def test_costs_of_a_list_are_those_of_statistics(demo: Path) -> None:
    rows = clew("--home", demo, "list", "--json").json
    stats = clew("--home", demo, "stats", "--by", "session", "--json").json
    counted = {row["session"]: row["cost"] for row in stats["rows"] if row["calls"] and row["cost"] is not None}
    assert {row["id"]: row["cost"] for row in rows if row["cost"] is not None} == counted
    assert any(row["cost"] is None for row in rows)


def test_a_list_of_files_needs_no_catalog(demo: Path, tmp_path: Path) -> None:
    (path,) = demo.rglob(f"{FORKED}.jsonl")
    everything = {row["id"]: row for row in clew("--home", demo, "list", "--json").json}
    assert clew("--home", tmp_path, "list", path, "--json").json == [everything[FORKED]]
    below = clew("--home", tmp_path, "list", demo / ".codex", "--json").json
    assert {row["id"] for row in below} == {row["id"] for row in everything.values() if row["agent"] == "codex"}
    assert clew("--home", tmp_path, "list", demo, "--agent", "codex", "--text", "tide", "--json").code == 0
    assert clew("--home", tmp_path, "list", demo, "--project", "no such").code == 1
    ran = clew("--home", tmp_path, "list", "tide")
    assert (ran.code, ran.out) == (3, "")
    assert ran.err == "clew: tide: no such file or folder; `--project tide` chooses sessions of a project\n"
    assert not list(tmp_path.rglob("catalog.db"))


def test_statistics_of_named_sessions(demo: Path, tmp_path: Path) -> None:
    (row,) = [row for row in clew("--home", demo, "list", "--json").json if row["id"] == FORKED]
    found = clew("--home", demo, "stats", FORKED[:6], "--json").json
    assert (found["totals"]["cost"], found["totals"]["sessions"]) == (row["cost"], 1)
    (path,) = demo.rglob(f"{FORKED}.jsonl")
    assert clew("--home", tmp_path, "stats", path, "--json").json == found
    assert clew("--home", demo, "stats", FORKED, "@last", "--by", "session", "--json").json["totals"]["sessions"] == 2
    assert clew("--home", demo, "stats", "nobody").code == 1
    assert clew("--home", demo, "stats", path, FORKED).code == 2


def test_statistics_of_a_session_with_its_sub_agents(demo: Path) -> None:
    parent = "62cb0cb9"
    alone = clew("--home", demo, "stats", parent, "--json").json["totals"]
    family = clew("--home", demo, "stats", parent, "--subagents", "--json").json["totals"]
    assert (alone["sessions"], alone["subagents"]) == (1, 0)
    assert (family["sessions"], family["subagents"]) == (1, 1)
    assert family["cost"] > alone["cost"]


def test_a_home_that_is_a_file_is_said(tmp_path: Path) -> None:
    (tmp_path / "gen.json").write_text("{}")
    ran = clew("--home", tmp_path / "gen.json", "list")
    assert ran.code == 3 and "gen.json is not a folder" in ran.err


def test_help_is_a_command_too() -> None:
    assert clew("help").out == clew("--help").out != ""


def test_a_project_without_sessions_may_have_been_moved(
    demo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "new.py").write_text("x = 1\n")
    assert "if the project was moved: `clew sources map OLD`" in clew("--home", demo, "list", "--here").err
    assert "no session names new.py; --as PATH" in clew("--home", demo, "blame", "new.py").err


def test_months_are_not_minutes(demo: Path) -> None:
    ran = clew("--home", demo, "clean", "--older-than", "6m")
    assert ran.code == 2
    assert "such as 90d or 6mo (6m is 6 minutes)" in ran.err
    assert "one day ago" not in clew("--home", demo, "clean", "--older-than", "6mo").err


@pytest.mark.parametrize("name", ["project", "branch", "model", "since", "until", "tool", "file", "text", "label"])
def test_an_empty_filter_is_refused(synced_demo: Path, tmp_path: Path, name: str) -> None:
    """It would choose every session, also for an export."""
    refused = clew("--home", synced_demo, "export", f"--{name}", "", "--to", "html", "-o", tmp_path / "out")
    assert (refused.code, "is a shell variable not set?" in refused.err) == (2, True)
    assert not (tmp_path / "out").exists()
