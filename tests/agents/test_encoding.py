"""Messages in the order that the APIs of models demand."""

from __future__ import annotations

from itertools import chain

import pytest

from clew.agents import registry
from clew.agents.base import Header, Unit
from clew.agents.encoding import ApiMessage, ApiOrder, Fields, output_blocks, output_text
from clew.model.json import JSON
from tests.receivers import RECEIVERS

SESSION: dict[str, JSON] = {"id": "s1", "started_at": "2026-11-01T08:00:00Z"}


def text(words: str) -> Fields:
    return {"type": "text", "text": words}


def call(name: str) -> Fields:
    return {"type": "tool_use", "tool_id": name, "tool_name": "bash", "input": {}}


def result(name: str) -> Fields:
    return {"type": "tool_result", "tool_id": name, "output": name}


def message(index: int, role: str, *content: Fields, **fields: JSON) -> Fields:
    return {"index": index, "uuid": f"m{index}", "role": role, "content": list(content), **fields}


def ordered(*messages: Fields, no_result: str = "") -> list[ApiMessage]:
    order = ApiOrder(SESSION, no_result)
    return [*chain.from_iterable(map(order.add, messages)), *order.finish()]


def roles(messages: list[ApiMessage]) -> list[str]:
    return [each.role for each in messages]


def test_results_follow_their_reply() -> None:
    found = ordered(
        message(1, "assistant", text("I go."), call("c1")),
        message(2, "assistant", call("c2")),
        message(3, "user", text("Wait!"), result("c2")),
        message(4, "user", result("c1"), text("Go on.")),
    )
    assert roles(found) == ["assistant", "tool", "tool", "user", "user"]
    assert [each.content[0].get("tool_id") for each in found[1:3]] == ["c2", "c1"]
    assert [each.uuid for each in (found[0], found[1])] == ["m1", "m3"]
    assert [each.parent_uuid for each in found] == [None, *(each.uuid for each in found[:-1])]
    assert len({each.uuid for each in found}) == len(found)


def test_a_result_without_a_call_becomes_text() -> None:
    (found,) = ordered(message(1, "user", result("c1")))
    assert (found.role, found.content) == ("user", [text("c1")])


@pytest.mark.parametrize(
    ("output", "texts"),
    [
        (None, [""]),
        ("a", ["a"]),
        ({"a": 1}, ['{"a":1}']),
        (["a", 1, {"b": 2}], ["a", "1", '{"b":2}']),
        (
            [text("a"), {"type": "text"}, {"type": "text", "text": 1}],
            ["a", '{"type":"text"}', '{"type":"text","text":1}'],
        ),
    ],
)
def test_outputs_of_any_shape_become_blocks(output: JSON, texts: list[str]) -> None:
    assert output_blocks(output) == [text(each) for each in texts]
    assert output_text(output) == "\n".join(texts)


def test_an_output_keeps_its_images() -> None:
    image = {"type": "image", "encoding": "base64", "image": "AAAA"}
    assert output_blocks([text("a"), image]) == [text("a"), image]
    assert output_text([text("a"), image]) == "a"


def test_a_call_without_a_result_gets_one_where_the_agent_needs_it() -> None:
    messages = (message(1, "assistant", call("c1")), message(2, "user", text("Stop.")), message(3, "assistant"))
    assert roles(ordered(*messages)) == ["assistant", "user", "assistant"]
    found = ordered(*messages, no_result="none")
    assert roles(found) == ["assistant", "tool", "user", "assistant"]
    assert found[1].content[0]["output"] == "none"


def test_a_message_without_a_time_has_that_of_the_last_one() -> None:
    later = {"timestamp": "2026-11-01T09:00:00Z"}
    found = ordered(
        message(1, "user", text("a")), message(2, "assistant", text("b"), **later), message(3, "user", text("c"))
    )
    assert [each.time.hour for each in found] == [8, 9, 9]


def test_branches_begin_behind_their_parents() -> None:
    found = ordered(
        message(1, "user", text("a"), parent_uuid=None),
        message(2, "assistant", text("b"), call("c1"), parent_uuid="m1"),
        message(3, "user", result("c1"), text("c"), parent_uuid="m2"),
        message(4, "user", text("d"), parent_uuid="m2"),
        message(5, "user", text("e"), parent_uuid=None),
        message(6, "user", text("f"), parent_uuid="m3"),
    )
    last_of_third = found[3].uuid
    assert [each.parent_uuid for each in found] == [None, "m1", "m2", "m3", "m2", None, last_of_third]


@pytest.mark.parametrize("agent", RECEIVERS)
def test_a_result_behind_a_prompt_is_not_lost(agent: str) -> None:
    messages = [
        message(1, "user", text("Go."), parent_uuid=None),
        message(2, "assistant", call("c1"), parent_uuid="m1"),
        message(3, "user", text("Wait!"), parent_uuid="m2"),
        message(4, "user", {**result("c1"), "output": "gone at last"}, parent_uuid="m3"),
        message(5, "assistant", text("Done."), parent_uuid="m4"),
    ]
    session = {**SESSION, "workspace": "/home/ada", "ended_at": None, "is_agent_session": False}
    units = [Unit(True, value, 0, 0, 0, ()) for value in messages]
    pieces = registry.get(agent).encode(Header("", "", agent, session, {}), units)
    assert b"gone at last" in b"".join(piece for _, piece in pieces)
