"""The scripted model itself: it says its turns, and refuses loudly what does not fit."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.realclients.clients import CLAUDE, CLIENTS, CODEX, GEMINI, Client
from tests.realclients.history import JSON, Entry, image
from tests.realclients.model import Model
from tests.realclients.script import Call, Say, Script, Think, sign, turn
from tests.realclients.stories import ERRAND

PATHS = {
    "claude": "/v1/messages",
    "codex": "/v1/responses",
    "gemini": "/v1beta/models/gemini-2.5-pro:streamGenerateContent",
}
EVERY = pytest.mark.parametrize("client", CLIENTS.values(), ids=CLIENTS)
PICTURE = "iVBORw0KGgo="


def asking(client: Client, prompt: str, tool: str = "ring") -> dict[str, JSON]:
    """A request with one prompt and one tool."""
    if client is CLAUDE:
        return {"messages": [{"role": "user", "content": prompt}], "tools": [{"name": tool}], "stream": True}
    if client is CODEX:
        content = [{"type": "input_text", "text": prompt}]
        asked = {"type": "message", "role": "user", "content": content}
        return {"input": [asked], "tools": [{"type": "function", "name": tool}]}
    parts = [{"text": prompt}]
    return {"contents": [{"role": "user", "parts": parts}], "tools": [{"functionDeclarations": [{"name": tool}]}]}


def model(client: Client, *turns: Any, **more: Any) -> Model:
    return Model(client.wire, Script(turns, **more))


def ask(asked: Model, client: Client, body: JSON) -> tuple[int, str]:
    status, answer = asked.answer(PATHS[client.name], body)
    return status, answer.body.decode()


@EVERY
def test_turns_are_said_in_order(client: Client) -> None:
    said = model(client, turn(Think("hm"), Say("one"), Call("ring", {"times": 2})), turn(Say("two")))
    first, second = (ask(said, client, asking(client, "hello")) for _ in range(2))
    assert (first[0], second[0]) == (200, 200)
    assert "one" in first[1] and "times" in first[1] and "two" in second[1]
    assert (said.misfits, said.unsaid(), len(said.requests)) == ([], [], 2)


@EVERY
def test_turns_nobody_asked_for_are_reported(client: Client) -> None:
    assert model(client, turn(Say("one"))).unsaid() == ["lane '': 1 turns were not asked for"]


@EVERY
@pytest.mark.parametrize(
    ("turns", "why"),
    [
        ((), "nothing is left to say"),
        ((turn(Call("blow", {})),), "no tools named ['blow']"),
        ((turn(Say("x"), after="goodbye"),), "expected 'goodbye'"),
    ],
)
def test_what_does_not_fit_is_refused(client: Client, turns: tuple[Any, ...], why: str) -> None:
    asked = model(client, *turns)
    status, body = ask(asked, client, asking(client, "hello"))
    assert status == 400 and why in body
    assert len(asked.misfits) == 1 and why in asked.misfits[0]


@EVERY
@pytest.mark.parametrize("body", [None, [], {"tools": [{"name": "x", "type": "function"}]}])
def test_what_cannot_be_read_is_refused(client: Client, body: JSON) -> None:
    asked = model(client, turn(Say("x")))
    if client is GEMINI and isinstance(body, dict):
        body = {"tools": [{"functionDeclarations": [{"name": "x"}]}]}
    assert ask(asked, client, body)[0] == 400
    assert "cannot be read" in asked.misfits[0]


@EVERY
def test_other_addresses_are_refused(client: Client) -> None:
    asked = model(client, turn(Say("x")))
    assert asked.answer("/v1/elsewhere", {"input": []})[0] == 400
    assert "no such address" in asked.misfits[0]


@EVERY
def test_requests_without_tools_take_no_turn(client: Client) -> None:
    asked = model(client, turn(Say("one")))
    body = asking(client, "a title, please")
    del body["tools"]
    assert ask(asked, client, body)[0] == 200
    assert (len(asked.unsaid()), asked.requests) == (1, [])


@EVERY
def test_sub_agents_have_lanes_of_their_own(client: Client) -> None:
    asked = model(client, turn(Say("main")), agents={ERRAND: (turn(Say("aside")),)})
    assert "aside" in ask(asked, client, asking(client, f"{ERRAND} Go."))[1]
    assert "main" in ask(asked, client, asking(client, "hello"))[1]
    assert [request.lane for request in asked.requests] == [ERRAND, ""]


def claude_request(*messages: tuple[str, list[dict[str, JSON]]]) -> dict[str, JSON]:
    return {"messages": [{"role": role, "content": content} for role, content in messages]}


CLAUDE_TALK = claude_request(
    ("user", [{"type": "text", "text": "<system-reminder>x"}, {"type": "text", "text": "Ring."}]),
    (
        "assistant",
        [
            {"type": "thinking", "thinking": "hm", "signature": sign("hm")},
            {"type": "text", "text": "I ring."},
            {"type": "tool_use", "id": "a", "name": "ring", "input": {"n": 1}},
            {"type": "tool_use", "id": "b", "name": "look", "input": {}},
        ],
    ),
    (
        "user",
        [
            {
                "type": "tool_result",
                "tool_use_id": "b",
                "content": [{"type": "image", "source": {"type": "base64", "data": PICTURE}}],
            },
            {"type": "tool_result", "tool_use_id": "a", "content": "dong"},
        ],
    ),
)
CODEX_TALK = {
    "input": [
        {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "rules"}]},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Ring."}]},
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}], "encrypted_content": sign("hm")},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I ring."}]},
        {"type": "function_call", "call_id": "a", "name": "ring", "arguments": '{"n": 1}'},
        {"type": "function_call", "call_id": "b", "name": "look", "arguments": "{}"},
        {
            "type": "function_call_output",
            "call_id": "b",
            "output": [{"type": "input_image", "image_url": f"data:image/png;base64,{PICTURE}"}],
        },
        {"type": "function_call_output", "call_id": "a", "output": "dong"},
    ]
}
GEMINI_TALK = {
    "contents": [
        {"role": "user", "parts": [{"text": "<session_context>x"}, {"text": "Ring."}]},
        {
            "role": "model",
            "parts": [
                {"text": "hm", "thought": True},
                {"text": "I ring."},
                {"functionCall": {"name": "ring", "args": {"n": 1}}},
                {"functionCall": {"name": "look", "args": {}}},
            ],
        },
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"name": "ring", "response": {"output": "dong"}}},
                {"functionResponse": {"name": "look", "response": {}, "parts": [{"inlineData": {"data": PICTURE}}]}},
            ],
        },
    ]
}
TALKS = {"claude": CLAUDE_TALK, "codex": CODEX_TALK, "gemini": GEMINI_TALK}


@EVERY
def test_the_three_protocols_tell_the_same_history(client: Client) -> None:
    assert client.wire.entries(TALKS[client.name]) == [
        Entry("user", "Ring."),
        Entry("thinking", "hm"),
        Entry("answer", "I ring."),
        Entry("call", name="ring", input={"n": 1}),
        Entry("call", name="look", input={}),
        Entry("result", "dong"),
        Entry("result", ""),
        image(PICTURE),
    ]
    assert list(client.wire.faults(TALKS[client.name])) == []


@pytest.mark.parametrize(
    ("client", "old", "new", "why"),
    [
        (CLAUDE, '"tool_use_id": "a"', '"tool_use_id": "c"', "are followed by results for"),
        (CLAUDE, sign("hm"), "c2lnbmF0dXJl", "signature"),
        (CLAUDE, '"I ring."', '" "', "without words"),
        (CLAUDE, '"id": "a", "name": "ring"', '"id": "a", "name": "ring the bell"', "may not be named"),
        (CLAUDE, '{"n": 1}', '"n"', "is no object"),
        (CODEX, '_output", "call_id": "a"', '_output", "call_id": "b"', "1 calls, 0 results"),
        (CODEX, sign("hm"), "gAAAA", "not the model's"),
        (CODEX, '"arguments": "{}"', '"arguments": "{"', "no JSON"),
        (GEMINI, '{"functionCall": {"name": "look", "args": {}}}', '{"text": "x"}', "are followed by responses of"),
        (GEMINI, '{"functionCall"', '{"text": "", "was"', "no calls stand before"),
    ],
)
def test_what_the_service_would_refuse_is_refused(client: Client, old: str, new: str, why: str) -> None:
    body = json.loads(json.dumps(TALKS[client.name]).replace(old, new))
    assert why in "; ".join(client.wire.faults(body))


def test_results_sent_twice_count_once() -> None:
    body = json.loads(json.dumps(GEMINI_TALK))
    body["contents"][2]["parts"] *= 2
    assert GEMINI.wire.entries(body) == GEMINI.wire.entries(GEMINI_TALK)
    assert list(GEMINI.wire.faults(body)) == []
