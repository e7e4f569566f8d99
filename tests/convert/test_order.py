"""What goes over stands in the order in which it was said, wherever its lines stand in the file."""

from __future__ import annotations

import json
import random
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from clew.convert.history import BranchSelection
from clew.convert.prepare import prepare
from tests.agents import gemini_worlds as bell
from tests.convert.said import only
from tests.convert.transcripts import spoke, transcript
from tests.receivers import RECEIVERS

OTHERS = [name for name in RECEIVERS if name not in ("gemini", "claude-code")]


def words(path: Path, target: str, home: Path, branch: str | None = None) -> list[str]:
    """The texts that go over, in their order."""
    found = only(path)
    written = prepare(found.agent, found.source, target, branch).write(home, allow_loss=True)
    copy = only(Path(written.files[0]))
    units = copy.agent.units(copy.source)
    messages = [unit.value for unit in units if unit.is_message and unit.value["role"] != "system"]
    return [block["text"] for message in messages for block in message["content"] if block["type"] == "text"]


def chat(home: Path, *events: dict[str, Any]) -> Path:
    path = home / f".gemini/tmp/bell/chats/{bell.NAME}.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text("".join(json.dumps(event) + "\n" for event in (bell.header(kind="main"), *events)))
    return path


@pytest.mark.parametrize("target", [*OTHERS, "claude-code"])
def test_a_chat_that_was_compacted_begins_with_the_summary(tmp_path: Path, target: str) -> None:
    said = [bell.user("m1", "one"), bell.gemini("m2", "two"), bell.user("m3", "three"), bell.gemini("m4", "four")]
    kept = [bell.user("s1", "summary"), bell.gemini("s2", "understood"), *said[2:]]
    path = chat(tmp_path, *said, {"$set": {"messages": kept}}, bell.user("m5", "five"), bell.gemini("m6", "six"))
    expected = ["summary", "understood", "three", "four", "five", "six"]
    assert words(path, target, tmp_path / "there") == expected
    found = only(path)
    losses = prepare(found.agent, found.source, target).losses
    assert [loss.what for loss in losses if loss.is_note] == ["2 messages before the compaction"]
    assert [loss.what for loss in losses if not loss.is_note] == []


@pytest.mark.parametrize("target", [*OTHERS, "gemini"])
def test_an_answer_that_stands_before_its_question_comes_after_it(tmp_path: Path, target: str) -> None:
    path = transcript(
        tmp_path,
        spoke("user", "one", uuid="u1", parentUuid=None),
        spoke("user", "three", uuid="u3", parentUuid="u2"),
        spoke("assistant", "two", uuid="u2", parentUuid="u1"),
        spoke("assistant", "four", uuid="u4", parentUuid="u3"),
    )
    assert words(path, target, tmp_path / "there") == ["one", "two", "three", "four"]


@pytest.mark.parametrize("branch", ["1", "u2", "u4"])
@pytest.mark.parametrize("order", [(0, 2, 1, 3), (0, 3, 2, 1), (3, 1, 2, 0), (0, 1, 3, 2)])
def test_a_branch_has_all_messages_wherever_its_lines_stand(
    tmp_path: Path, order: tuple[int, ...], branch: str
) -> None:
    records = [
        spoke("user", "one", uuid="u1", parentUuid=None),
        spoke("assistant", "two", uuid="u2", parentUuid="u1"),
        spoke("user", "three", uuid="u3", parentUuid="u2"),
        spoke("assistant", "four", uuid="u4", parentUuid="u3"),
    ]
    path = transcript(tmp_path, *(records[at] for at in order))
    assert words(path, "codex", tmp_path / "there", branch) == ["one", "two", "three", "four"]


def test_what_lost_its_parent_does_not_follow_what_follows_it(tmp_path: Path) -> None:
    path = transcript(
        tmp_path,
        spoke("assistant", "two", uuid="u2", parentUuid="u1"),
        spoke("user", "one", uuid="u1", parentUuid="gone"),
        spoke("user", "three", uuid="u3", parentUuid="u2"),
    )
    assert words(path, "codex", tmp_path / "there") == ["one", "two", "three"]


def test_a_beginning_without_a_name_does_not_follow_what_follows_it(tmp_path: Path) -> None:
    path = transcript(
        tmp_path,
        spoke("assistant", "two", parentUuid="u1"),
        spoke("user", "one", uuid="u1", parentUuid=None),
        spoke("user", "three", uuid="u3", parentUuid="u1"),
    )
    assert words(path, "codex", tmp_path / "there")[:1] == ["one"]


@pytest.mark.parametrize("seed", range(25))
def test_any_order_of_the_lines_gives_the_order_of_the_words(tmp_path: Path, seed: int) -> None:
    """One path, shuffled; the last line stays, because it tells where the conversation stands."""
    chance = random.Random(seed)
    roles = ("user", "assistant")
    lines = [
        spoke(roles[number % 2], f"word {number}", uuid=f"u{number}", parentUuid=f"u{number - 1}" if number else None)
        for number in range(12)
    ]
    first = lines[:-1]
    chance.shuffle(first)
    path = transcript(tmp_path, *first, lines[-1])
    assert words(path, "codex", tmp_path / "there") == [f"word {number}" for number in range(12)]


def test_calls_at_the_same_time_keep_the_order_of_the_file(tmp_path: Path) -> None:
    def call(name: str) -> list[dict[str, Any]]:
        return [{"type": "tool_use", "id": name, "name": "Bash", "input": {"command": "true"}}]

    def result(name: str) -> list[dict[str, Any]]:
        return [{"type": "tool_result", "tool_use_id": name, "content": name}]

    path = transcript(
        tmp_path,
        spoke("user", "go", uuid="u1", parentUuid=None),
        spoke("assistant", call("c1"), uuid="u2", parentUuid="u1"),
        spoke("assistant", call("c2"), uuid="u3", parentUuid="u2"),
        spoke("user", result("c1"), uuid="u4", parentUuid="u2"),
        spoke("user", result("c2"), uuid="u5", parentUuid="u3"),
    )
    found = only(path)
    facts = found.agent.facts(found.source)
    units = list(found.agent.units(found.source))
    assert list(BranchSelection(facts, None).in_order(units)) == units


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_the_conversation_ends_where_nothing_follows(tmp_path: Path, order: tuple[int, ...]) -> None:
    records = [
        spoke("user", "one", uuid="u1", parentUuid=None),
        spoke("assistant", "two", uuid="u2", parentUuid="u1"),
        spoke("user", "three", uuid="u3", parentUuid="u2"),
    ]
    path = transcript(tmp_path, *(records[at] for at in order))
    assert words(path, "codex", tmp_path / "there") == ["one", "two", "three"]


def test_a_clock_that_went_wrong_changes_nothing(tmp_path: Path) -> None:
    late = {**bell.user("m3", "three"), "timestamp": "2026-10-20T09:00:00.000Z"}
    path = chat(tmp_path, bell.user("m1", "one"), bell.gemini("m2", "two"), late)
    there = prepare(*only(path), "sage-emacs").write(tmp_path / "there")
    assert words(Path(there.files[0]), "codex", tmp_path / "further") == ["one", "two", "three"]
