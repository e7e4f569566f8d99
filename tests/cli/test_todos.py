"""clew todos: the task list of any agent's session, as it changed and at any message."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from clew.agents.sage_agent.written_records import Status
from clew.store import Store, Thinking, TodoItem
from tests.cli.running import clew

QUIET = "38ed9768-3187-478b-a81f-4c75a5724c22"
"""A session of the demo that neither planned nor touched anything."""


def item(content: str, status: str) -> TodoItem:
    return TodoItem(content=content, status=status, active_form=f"doing {content}")  # type: ignore[arg-type]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    with Store(tmp_path).session("tides") as session:
        session.user("plan", uuid="q1", thinking=Thinking(level="high"))
        session.assistant("so", uuid="a1", todos=[item("measure", "in_progress"), item("draw", "pending")])
        session.user("go on", uuid="q2")
        session.assistant("done", uuid="a2", todos=[item("measure", "completed"), item("draw", "pending")])
        session.user("no, otherwise", parent="a1", thinking=Thinking(level="low", disabled=True))
        session.assistant("well", todos=[item("measure", "in_progress")])
    return tmp_path


@pytest.mark.seed("S1-46", "S1-49", "S1-5")
def test_the_list_as_it_changed_on_the_way_to_where_it_stands(place: Path) -> None:
    done = clew("todos", "tides", "--home", place)
    assert done.out.splitlines() == [
        "message 2: [>.] 0 of 2 done, thinking high",
        "  [>] measure",
        "  [ ] draw",
        "message 6: [>] 0 of 1 done, thinking off",
        "  removed: draw",
    ]
    rows = clew("todos", "tides", "--home", place, "--json").json
    assert [(row["index"], len(row["todos"]), row["thinking"]) for row in rows] == [(2, 2, "high"), (6, 1, "off")]


@pytest.mark.seed("S1-46", "S1-4")
def test_the_list_at_a_message(place: Path) -> None:
    assert clew("todos", "tides#4", "--home", place).out == "thinking: high\n[x] measure\n[ ] draw\n"
    at = clew("todos", "tides#3", "--home", place, "--json").json
    assert (at["index"], at["thinking"]) == (3, "high")
    assert [todo["status"] for todo in at["todos"]] == ["in_progress", "pending"]
    assert clew("todos", "tides#99", "--home", place).code == 1


def test_other_agents_have_lists_too(tmp_path: Path) -> None:
    folder = tmp_path / ".claude" / "projects" / "-home-ada"
    folder.mkdir(parents=True)
    todos = [{"content": "measure", "status": "pending", "activeForm": "measuring"}]
    record = {
        "parentUuid": None,
        "type": "user",
        "uuid": "u",
        "sessionId": "c",
        "timestamp": "2026-10-01T08:00:00.000Z",
        "message": {"role": "user", "content": "x"},
        "todos": todos,
    }
    (folder / "c.jsonl").write_text(json.dumps(record) + "\n")
    assert clew("todos", "c", "--home", tmp_path).out == "message 1: [.] 0 of 1 done\n  [ ] measure\n"


@pytest.mark.seed("S1-48")
@pytest.mark.parametrize(
    ("states", "drawn"),
    [
        ("", "[]"),
        ("c", "[#]"),
        ("pci", "[#>.]"),
        ("c" * 50 + "i" * 25 + "p" * 25, "[##########>>>>>.....]"),
    ],
)
def test_how_far_the_list_has_come_is_drawn(tmp_path: Path, states: str, drawn: str) -> None:
    words: dict[str, Status] = {"c": "completed", "i": "in_progress", "p": "pending"}
    with Store(tmp_path).session("s") as session:
        session.assistant("begin", todos=[item("x", "pending")])
        session.assistant("so far", todos=[item(f"{at}", words[state]) for at, state in enumerate(states)])
    last = [line for line in clew("todos", "s", "--home", tmp_path).out.splitlines() if line.startswith("message")][-1]
    assert last == f"message 2: {drawn} {states.count('c')} of {len(states)} done"


def test_no_list_is_exit_code_one(tmp_path: Path) -> None:
    with Store(tmp_path).session("s") as session:
        session.user("x")
    done = clew("todos", "s", "--home", tmp_path)
    assert (done.code, done.out) == (1, "")


def test_where_there_is_nothing_to_show_it_is_said(demo: Path) -> None:
    said = {"todos": "this session never had a task list", "files": "no file was used"}
    for command, words in said.items():
        done = clew(command, QUIET, "--home", demo)
        assert (done.code, done.out, done.err) == (1, "", f"clew: {words}\n")
        assert clew(command, QUIET, "--home", demo, "--json").json == []


def test_the_level_of_thinking_is_one_visible_line(tmp_path: Path) -> None:
    with Store(tmp_path).session("tides") as session:
        session.user("plan", thinking=Thinking(level="high"))
        session.assistant("so", todos=[item("measure", "pending")])
    (path,) = tmp_path.rglob("messages.jsonl")
    path.write_text(path.read_text().replace('"high"', r'"\u001b]0;owned\u0007high\n"'))
    for reference in ("tides", "tides#2"):
        done = clew("todos", reference, "--home", tmp_path)
        assert "high" in done.out and "\x1b" not in done.out and "\x07" not in done.out
