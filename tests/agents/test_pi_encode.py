"""Sessions written for Pi: composed of messages of other agents, and copied."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from clew.agents.base import Header, Unit
from clew.agents.pi import Pi
from clew.convert.prepare import prepare
from clew.model.json import JSON
from tests.agents.test_pi import OLD, TREE

PI = Pi()
SESSION: dict[str, JSON] = {"id": "s1", "workspace": "/home/ada", "started_at": "2026-11-01T08:00:00Z"}


def text(words: str) -> dict[str, JSON]:
    return {"type": "text", "text": words}


def call(name: str) -> dict[str, JSON]:
    return {"type": "tool_use", "tool_id": name, "tool_name": "bash", "input": {"command": name}}


def result(name: str, output: JSON = "ok") -> dict[str, JSON]:
    return {"type": "tool_result", "tool_id": name, "output": output}


def encoded(*messages: tuple[str, list[dict[str, JSON]]], **session: JSON) -> list[dict[str, Any]]:
    """The lines of a session of messages that follow each other."""
    units = []
    for index, (role, content) in enumerate(messages, 1):
        uuid, parent = f"m{index}", f"m{index - 1}" if index > 1 else None
        value = {"index": index, "uuid": uuid, "parent_uuid": parent, "role": role, "content": content}
        units.append(Unit(True, value, 0, 0, 0, ()))
    pieces = PI.encode(Header("", "", "pi", {**SESSION, **session}, {}), units)
    return [json.loads(piece) for _, piece in pieces]


def outline(lines: list[dict[str, Any]]) -> list[tuple[str, list[str]]]:
    """Role and types of content of the messages."""
    messages = [line["message"] for line in lines if line["type"] == "message"]
    return [(each["role"], [part["type"] for part in each["content"]]) for each in messages]


def chain(lines: list[dict[str, Any]]) -> bool:
    """Whether each entry follows the one before it."""
    entries = lines[1:]
    return [entry["parentId"] for entry in entries] == [None, *(entry["id"] for entry in entries[:-1])]


def test_what_the_model_says_in_a_row_is_one_reply() -> None:
    lines = encoded(("user", [text("Go.")]), ("assistant", [text("I go.")]), ("assistant", [call("c1"), call("c2")]))
    assert outline(lines) == [("user", ["text"]), ("assistant", ["text", "toolCall", "toolCall"])]
    assert lines[-1]["message"]["stopReason"] == "toolUse"
    assert chain(lines)


def test_results_stand_behind_their_reply_and_prompts_wait_for_them() -> None:
    lines = encoded(
        ("user", [text("Go.")]),
        ("assistant", [call("c1"), call("c2")]),
        ("user", [result("c1"), text("Wait!")]),
        ("user", [result("c2")]),
        ("assistant", [text("Done.")]),
        ("user", [result("c2", "too late")]),
    )
    roles = "user assistant toolResult toolResult user assistant user"
    assert [role for role, _ in outline(lines)] == roles.split()
    assert chain(lines)


def test_a_prompt_behind_a_call_without_a_result_is_not_lost() -> None:
    lines = encoded(("assistant", [call("c1")]), ("user", [text("Stop.")]), title="Stopped")
    assert outline(lines) == [("assistant", ["toolCall"]), ("user", ["text"])]
    assert (lines[0]["type"], lines[-1]["type"], lines[-1]["name"]) == ("session", "session_info", "Stopped")


def test_a_message_that_follows_an_earlier_one_begins_a_branch() -> None:
    places = [("a", None, "user"), ("b", "a", "assistant"), ("c", "b", "user"), ("d", "b", "user"), ("e", None, "user")]
    units = []
    for index, (uuid, parent, role) in enumerate(places, 1):
        value = {"index": index, "uuid": uuid, "parent_uuid": parent, "role": role, "content": [text(uuid)]}
        units.append(Unit(True, value, 0, 0, 0, ()))
    pieces = PI.encode(Header("", "", "pi", SESSION, {}), units)
    a, b, c, d, e = [json.loads(piece) for _, piece in pieces][1:]
    assert [each["parentId"] for each in (a, b, c, d, e)] == [None, a["id"], b["id"], b["id"], None]


def test_a_message_keeps_its_time() -> None:
    units = []
    for index, (role, block) in enumerate(
        [("assistant", call("c1")), ("user", text("Wait!")), ("user", result("c1"))], 1
    ):
        value = {"index": index, "uuid": f"m{index}", "parent_uuid": f"m{index - 1}" if index > 1 else None}
        value |= {"role": role, "timestamp": f"2026-11-01T08:0{index}:00.000Z", "content": [block]}
        units.append(Unit(True, value, 0, 0, 0, ()))
    pieces = PI.encode(Header("", "", "pi", SESSION, {}), units)
    reply, answer, prompt = [json.loads(piece) for _, piece in pieces][1:]
    times = [each["timestamp"] for each in (reply, prompt, answer)]
    assert times == [unit.value["timestamp"] for unit in units]


def test_a_whole_copy_has_every_entry_under_a_new_id(tmp_path: Path) -> None:
    for path in (OLD, TREE):
        written = prepare(PI, PI.locate(path), "pi").write(tmp_path)
        copy, original = (file.read_bytes().splitlines() for file in (Path(written.files[0]), path))
        assert copy[1:] == original[1:]
        assert json.loads(copy[0]) == {**json.loads(original[0]), "id": written.session_id}


def test_a_copy_of_one_branch_goes_on_where_the_branch_ends(tmp_path: Path) -> None:
    written = prepare(PI, PI.locate(TREE), "pi", branch="a0000012").write(tmp_path, allow_loss=True)
    copy = PI.locate(Path(written.files[0]))
    path = PI.facts(copy).tree.graph().active_path
    assert path[-2:] == ["a0000012", "a0000013"]
    assert "a0000015" not in {unit.value.get("uuid") for unit in PI.units(copy) if unit.is_message}
