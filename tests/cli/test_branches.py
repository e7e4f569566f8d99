"""clew branches and clew branch: the ways of a conversation in clew's own store."""

from __future__ import annotations

from pathlib import Path

import pytest

from clew.store import Store
from tests.cli.running import LATEST, clew
from tests.store.support import assert_whole


@pytest.fixture
def place(tmp_path: Path) -> Path:
    with Store(tmp_path).session("tides") as session:
        session.user("how high is the tide?", uuid="q1")
        session.assistant("4 m", uuid="a1")
        session.user("and tomorrow?", uuid="q2")
        session.user("and at night?", uuid="q3", parent="a1")
        session.name_branch("q3", "night")
    return tmp_path


@pytest.mark.seed("S1-60")
def test_they_are_listed(place: Path) -> None:
    done = clew("branches", "tides", "--home", place)
    lines = [line.split() for line in done.out.splitlines()[1:]]
    assert lines == [["main", "3", "-", "q2"], ["*", "night", "1", "a1", "q3", "q3"]]
    rows = clew("branches", "tides", "--home", place, "--json").json
    assert [(row["name"], row["active"], row["parent"]) for row in rows] == [
        ("main", False, None),
        ("night", True, "a1"),
    ]


@pytest.mark.seed("S1-60")
def test_one_is_shown(place: Path) -> None:
    assert [line.split()[0] for line in clew("branch", "tides", "--home", place).out.splitlines()] == ["q1", "a1", "q3"]
    shown = clew("branch", "tides", "main", "--home", place, "--json").lines
    assert [record["uuid"] for record in shown] == ["q1", "a1", "q2"]
    assert clew("branch", "tides", "nowhere", "--home", place).code == 1


@pytest.mark.parametrize("detail", ["prompts", "conversation", "actions", "full"])
def test_a_session_shows_the_branch_that_it_stands_on(place: Path, detail: str) -> None:
    shown = clew("show", "tides", "--home", place, "--detail", detail).out.split("── ")
    night = next(part for part in shown if "and at night?" in part)
    assert "abandoned branch" not in night
    tomorrow = next(part for part in shown if "and tomorrow?" in part)
    assert "abandoned branch" in tomorrow


def test_a_branch_is_no_sub_agent(place: Path) -> None:
    messages = clew("export", "tides", "--home", place).json["messages"]
    assert [message["metadata"].get("is_branch") for message in messages] == [False, False, False, True]
    assert not any(message["metadata"].get("is_sidechain") for message in messages)
    assert clew("list", "--home", place, "--json").json[0]["turns"] == 3
    assert "and at night?" in clew("tail", "tides", "--home", place).out


@pytest.mark.seed("S1-60")
def test_two_are_compared(place: Path) -> None:
    done = clew("branch", "tides", "main", "--compare", "night", "--home", place, "--json").json
    assert done == {"base": "a1", "one": ["q2"], "other": ["q3"], "files": []}
    text = clew("branch", "tides", "main", "--compare", "night", "--home", place).out
    assert "shared up to a1" in text
    assert "and at night?" in text


@pytest.mark.seed("S1-60")
def test_one_is_switched_to_and_named(place: Path) -> None:
    assert clew("branch", "tides", "main", "--switch", "--name", "day", "--home", place).code == 0
    assert Store(place).get("tides").path() == ["q1", "a1", "q2"]
    rows = clew("branch", "tides", "#2", "--switch", "--home", place, "--json").json
    assert [(row["name"], row["active"]) for row in rows] == [("day", True), ("night", False)]
    assert Store(place).get("tides").head == "a1"
    assert_whole(place)
    assert clew("branch", "tides", "--switch", "--home", place).code == 2
    assert clew("branch", "tides", "main", "--name", "night", "--home", place).code == 2


def test_branches_belong_to_the_store(demo: Path, place: Path) -> None:
    assert clew("branches", LATEST, "--home", demo).code == 2
    assert clew("branches", "tides#2", "--home", place).code == 2


@pytest.mark.parametrize("content", ["5", "[1,null]", '[{"text":7}]', "null"])
def test_what_another_writer_left_is_shown_without_a_crash(place: Path, content: str) -> None:
    (log,) = place.rglob("messages.jsonl")
    record = f'{{"type":"user","uuid":"q4","parentUuid":"q3","message":{{"role":"user","content":{content}}}}}\n'
    with log.open("a") as stream:
        stream.write(record)
    done = clew("branch", "tides", "--home", place)
    assert done.code == 0
    assert "q3" in done.out


@pytest.mark.seed("S1-60")
def test_a_reference_may_name_one(place: Path) -> None:
    night = ["q1", "a1", "q3"]
    assert [message["uuid"] for message in clew("show", "tides@night", "--home", place, "--json").lines] == night
    assert [record["uuid"] for record in clew("branch", "tides@night", "--home", place, "--json").lines] == night
    raw = clew("show", "tides@main", "--home", place, "--raw").lines
    assert [record["uuid"] for record in raw] == ["q1", "a1", "q2"]
    assert "and tomorrow?" not in clew("show", "sage-agent:tides@night", "--home", place).out
    assert clew("show", "tides@night#4", "--home", place, "--json").json["uuid"] == "q3"
    assert "no message 3 on that branch" in clew("show", "tides@night#3", "--home", place).err
    assert clew("show", "tides@noon", "--home", place).code == 1
    refused = clew("export", "tides@night", "--home", place)
    assert (refused.code, refused.out) == (2, "")
    assert "names a branch" in refused.err
    assert_whole(place)


@pytest.mark.seed("S1-60")
def test_the_files_of_two_are_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    (work / "wall.txt").write_text("3 m\n")
    with Store(tmp_path).session("tides") as session:
        session.user("higher", uuid="q1")
        with session.watch(session.assistant("so", uuid="a1"), ["wall.txt"]):
            (work / "wall.txt").write_text("5 m\n")
        session.undo("q1")
        session.assistant("no", uuid="a2")
    text = clew("branch", "tides", "a2", "--compare", "a1", "--home", tmp_path).out
    assert "-3 m\n+5 m\n" in text
    rows = clew("branch", "tides", "a2", "--compare", "a1", "--home", tmp_path, "--json").json["files"]
    assert [row["file"] for row in rows] == ["wall.txt"] and "+5 m" in rows[0]["diff"]


@pytest.mark.seed("S1-53", "S1-60")
def test_what_was_said_in_the_older_form_is_shown(tmp_path: Path) -> None:
    log = tmp_path / ".sage" / "sessions" / "old" / "messages.jsonl"
    log.parent.mkdir(parents=True)
    log.write_text(
        '{"role":"user","content":"one"}\n{"role":"assistant","content":"two"}\n{"role":"user","content":"x"}\n'
    )
    with Store(tmp_path).session("old") as session:
        session.user("three", parent=session.path()[1])
    shown = clew("branch", "old", "--home", tmp_path).out
    assert [line.split()[-1] for line in shown.splitlines()] == ["one", "two", "three"]
    assert "x" in clew("branch", "old", "main", "--compare", session.head or "", "--home", tmp_path).out


def test_after_an_undo_every_command_knows_where_the_conversation_stands(tmp_path: Path) -> None:
    with Store(tmp_path).session("s") as session:
        for number in range(1, 5):
            (session.user if number % 2 else session.assistant)(f"words {number}", uuid=f"m{number}")
        session.undo("m2")
    (row,) = clew("--home", tmp_path, "branches", "s", "--json").json
    assert (row["head"], row["position"]) == ("m4", "m2")
    assert clew("--home", tmp_path, "branches", "s").out.splitlines()[1].split() == ["*", "main", "4", "-", "m4", "m2"]
    assert [line.split()[0] for line in clew("--home", tmp_path, "branch", "s").out.splitlines()] == ["m1", "m2"]
    shown = clew("--home", tmp_path, "show", "s").out
    assert "The conversation went back to here, and has not gone on:" in shown
    assert "message 3: abandoned branch" in shown
    heads = [line for line in shown.splitlines() if line.startswith("── ")]
    assert ["abandoned branch" in line for line in heads[1:]] == [False, False, True, True]
    with Store(tmp_path).session("s") as session:
        session.user("words 5", uuid="m5")
    assert "The conversation forks here:" in clew("--home", tmp_path, "show", "s").out


def test_without_a_branch_the_current_one_is_named(tmp_path: Path) -> None:
    with Store(tmp_path).session("s") as session:
        session.user("a")
        session.user("b")
    assert clew("--home", tmp_path, "branch", "s", "--name", "tide").code == 0
    assert [row["name"] for row in clew("--home", tmp_path, "branches", "s", "--json").json] == ["tide"]
    done = clew("--home", tmp_path, "branch", "s", "--switch")
    assert done.code == 2 and "which branch? `clew branches s` lists them" in done.err
    assert len(clew("--home", tmp_path, "branch", "s", "1", "--json").lines) == 1


def test_ids_and_types_of_messages_are_visible(place: Path) -> None:
    (path,) = place.rglob("messages.jsonl")
    path.write_text(path.read_text().replace('"q1"', '"\\u001b[31mq"'))
    out = clew("branch", "tides", "--home", place).out
    assert "␛[31mq" in out and "\x1b" not in out
