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
    assert done.out.splitlines()[1:] == ["   main           3  -     q2", "*  night          1  a1    q3"]
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


@pytest.mark.seed("S1-60")
def test_two_are_compared(place: Path) -> None:
    done = clew("branch", "tides", "main", "--compare", "night", "--home", place, "--json").json
    assert done == {"base": "a1", "one": ["q2"], "other": ["q3"]}
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
