"""Names of projects: given on the command line, they hold in lists, statistics, filters and search."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path

import pytest

from clew.io.paths import encode_claude
from clew.project_names import name_of, names_path
from tests.cli.running import clew
from tests.unit.samples import claude_line

MAIN = "/home/ada/tide"
WORKTREES = f"{MAIN}/.claude/worktrees"
FOLDERS = {
    "main": MAIN,
    "calm": f"{WORKTREES}/calm-otter",
    "bold": f"{WORKTREES}/bold-heron",
    "other": "/home/ada/moon",
}
HASH = sha256(b"/home/ada/lost").hexdigest()


@pytest.fixture(autouse=True)
def sessions(home: Path) -> None:
    """Four sessions: of a repository, of two of its worktrees, and of another project."""
    for identity, folder in FOLDERS.items():
        write_session(home, identity, folder)


def write_session(home: Path, identity: str, folder: str) -> None:
    path = home / ".claude" / "projects" / encode_claude(folder) / f"{identity}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [
        claude_line("user", f"u-{identity}", None, "When is high water", cwd=folder),
        claude_line("assistant", f"a-{identity}", f"u-{identity}", "At six", cwd=folder),
    ]
    path.write_text("".join(json.dumps({**line, "sessionId": identity}) + "\n" for line in lines))


def projects(*words: str) -> dict[str, str]:
    return {row["id"]: row["project"] for row in clew("list", "--json", *words).json}


def by_project() -> dict[str, int]:
    return {row["project"]: row["sessions"] for row in clew("stats", "--by", "project", "--json").json["rows"]}


def test_names_are_given_listed_and_removed() -> None:
    ran = clew("sources", "name")
    assert (ran.code, ran.err) == (1, "no project is named; `clew sources name PROJECT NAME` adds one\n")
    ran = clew("sources", "name", MAIN, "Tide tables")
    assert (ran.code, ran.err) == (0, f"{MAIN}: now Tide tables\n")
    assert clew("sources", "name", "--json").json == {MAIN: "Tide tables"}
    assert "Tide tables" in clew("sources").out
    assert "Tide tables" in clew("sources", "name").out
    ran = clew("sources", "unname", MAIN, "--json")
    assert ran.json == {"projects": [MAIN], "removed": True}
    assert clew("sources", "name", "--json").json == {}
    ran = clew("sources", "unname", MAIN)
    assert (ran.code, ran.err) == (1, f"clew: {MAIN}: no name was given to this project\n")


def test_worktrees_become_one_project_everywhere() -> None:
    assert projects() == {"main": "tide", "calm": "calm-otter", "bold": "bold-heron", "other": "moon"}
    ran = clew("sources", "name", WORKTREES, "tide", "--below", "--json")
    assert ran.json == {"projects": [f"{WORKTREES}/*"], "name": "tide"}
    assert projects() == {"main": "tide", "calm": "tide", "bold": "tide", "other": "moon"}
    assert by_project() == {"tide": 3, "moon": 1}
    assert clew("search", "water", "--project", "tide").out.count(" tide ") == 3
    rows = clew("sql", "SELECT project, count(*) AS sessions FROM sessions GROUP BY 1 ORDER BY 1", "--json").lines
    assert rows == [{"project": "moon", "sessions": 1}, {"project": "tide", "sessions": 3}]


def test_a_filter_finds_a_project_by_its_name_and_by_its_folder() -> None:
    clew("sources", "name", WORKTREES, "Springs", "--below")
    assert set(projects("--project", "springs")) == {"calm", "bold"}
    assert set(projects("--project", "calm-otter")) == {"calm"}
    assert set(projects("--project", MAIN)) == {"main", "calm", "bold"}
    assert clew("stats", "--project", "Springs", "--json").json["totals"]["sessions"] == 2


def test_sessions_that_come_later_have_the_name_too(home: Path) -> None:
    clew("sources", "name", f"{WORKTREES}/*", "tide")
    assert len(projects()) == 4
    write_session(home, "new", f"{WORKTREES}/new-tern")
    assert projects()["new"] == "tide"
    names_path().write_text("{")
    write_session(home, "later", f"{WORKTREES}/later-gull")
    assert projects() == {**dict.fromkeys(("main", "calm", "bold", "new", "later"), "tide"), "other": "moon"}


def test_names_of_folders_below_are_removed_as_they_are_listed() -> None:
    for words in ((WORKTREES, "--below"), (f"{WORKTREES}/*",)):
        clew("sources", "name", WORKTREES, "Springs", "--below")
        assert clew("sources", "unname", *words).code == 0
        assert projects()["calm"] == "calm-otter"
    assert clew("sources", "name", "moon", "Month", "--below").code == 2


def test_the_recorded_name_returns_with_the_end_of_the_given_one() -> None:
    clew("sources", "name", "moon", "Month")
    assert projects()["other"] == "Month"
    clew("sources", "unname", "moon")
    assert projects()["other"] == "moon"


def test_a_project_that_is_only_a_hash_gets_a_name(home: Path) -> None:
    folder = home / ".gemini" / "tmp" / HASH
    (folder / "chats").mkdir(parents=True)
    chat = {
        "sessionId": "0f0e0d0c-0000-4000-8000-000000000001",
        "projectHash": HASH,
        "startTime": "2026-11-01T10:00:00.000Z",
        "lastUpdated": "2026-11-01T10:01:00.000Z",
        "messages": [{"id": "m1", "timestamp": "2026-11-01T10:00:00.000Z", "type": "user", "content": "Hello"}],
    }
    (folder / "chats" / "session-2026-11-01T10-00-0f0e0d0c.json").write_text(json.dumps(chat))
    identity = chat["sessionId"]
    assert projects()[str(identity)] == HASH
    assert clew("sources", "name", HASH, "Lost").code == 0
    assert projects()[str(identity)] == "Lost"


@pytest.mark.parametrize("words", [("moon",), ("moon", " "), ("moon", "a\u202eb"), ("moon", "a" * 101), (" ", "a")])
def test_what_cannot_be_a_name_is_refused(words: tuple[str, ...]) -> None:
    assert clew("sources", "name", *words).code == 2
    assert not names_path().exists()


@pytest.mark.parametrize("text", ["{", "[]", '{"moon": 1}', '{"moon": "\\ud800"}', "[" * 100_000])
def test_a_broken_file_is_reported_and_changes_nothing(text: str) -> None:
    clew("sources", "name", "moon", "Month")
    assert projects()["other"] == "Month"
    names_path().write_text(text)
    assert projects()["other"] == "Month"
    ran = clew("sources", "name", "moon", "Luna")
    assert ran.code == 3
    assert "correct or delete the file" in ran.err
    assert names_path().read_text() == text
    checked = clew("doctor", "--json")
    assert checked.code == 1 and "damaged-settings" in {row["code"] for row in checked.json}


def test_the_nearest_folder_counts() -> None:
    names = {"/a/*": "outer", "/a/b/*": "inner", "/a/b/c": "exact", "z": "by name"}
    found = {
        folder: name_of(folder, folder.rpartition("/")[2], names) for folder in ("/a", "/a/b", "/a/b/c", "/a/b/c/d")
    }
    assert found == {"/a": "a", "/a/b": "outer", "/a/b/c": "exact", "/a/b/c/d": "inner"}
    assert name_of("/y/z", "z", names) == "by name"
    assert name_of("/a/z", "z", names) == "outer"
    assert name_of("", "", names) == ""
