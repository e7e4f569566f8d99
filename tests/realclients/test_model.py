"""The scripted model: it plays its turns, and refuses unexpected requests."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.realclients.client import SUBAGENT_TASK
from tests.realclients.history import JSON, Entry, image
from tests.realclients.model import Model
from tests.realclients.script import Call, Say, Script, Think, sign, turn
from tests.realclients.wire import Wire
from tests.realclients.wire_anthropic import Anthropic
from tests.realclients.wire_chat import ChatCompletions
from tests.realclients.wire_gemini import Gemini
from tests.realclients.wire_openai import OpenAI

WIRES: dict[str, Wire] = {
    "anthropic": Anthropic(),
    "chat": ChatCompletions(("<system-reminder>",)),
    "gemini": Gemini(),
    "openai": OpenAI(),
}
PATHS = {
    "anthropic": "/v1/messages",
    "chat": "/v1/chat/completions",
    "gemini": "/v1beta/models/gemini-2.5-pro:streamGenerateContent",
    "openai": "/v1/responses",
}
EVERY = pytest.mark.parametrize("name", WIRES)
IMAGE = "iVBORw0KGgo="


def request(name: str, prompt: str, tool: str = "ring") -> dict[str, JSON]:
    """A request with one prompt and one tool."""
    if name == "openai":
        content = [{"type": "input_text", "text": prompt}]
        message = {"type": "message", "role": "user", "content": content}
        return {"input": [message], "tools": [{"type": "function", "name": tool}]}
    if name == "gemini":
        parts = [{"text": prompt}]
        return {"contents": [{"role": "user", "parts": parts}], "tools": [{"functionDeclarations": [{"name": tool}]}]}
    offered = {"type": "function", "function": {"name": tool}} if name == "chat" else {"name": tool}
    return {"messages": [{"role": "user", "content": prompt}], "tools": [offered], "stream": True}


def scripted(name: str, *turns: Any, **more: Any) -> Model:
    return Model(WIRES[name], Script(turns, **more))


def ask(model: Model, name: str, body: JSON) -> tuple[int, str]:
    status, answer = model.answer(PATHS[name], body)
    return status, answer.body.decode()


@EVERY
def test_turns_are_played_in_order(name: str) -> None:
    model = scripted(name, turn(Think("hm"), Say("one"), Call("ring", {"times": 2})), turn(Say("two")))
    first, second = (ask(model, name, request(name, "hello")) for _ in range(2))
    assert (first[0], second[0]) == (200, 200)
    assert "one" in first[1] and "times" in first[1] and "two" in second[1]
    assert (model.errors, model.unused_turns(), len(model.requests)) == ([], [], 2)


@EVERY
def test_unused_turns_are_reported(name: str) -> None:
    assert scripted(name, turn(Say("one"))).unused_turns() == ["thread '': 1 turns were not used"]


@EVERY
@pytest.mark.parametrize(
    ("turns", "reason"),
    [
        ((), "no turns are left"),
        ((turn(Call("blow", {})),), "no tools named ['blow']"),
        ((turn(Say("x"), after="goodbye"),), "expected 'goodbye'"),
    ],
)
def test_unexpected_requests_are_refused(name: str, turns: tuple[Any, ...], reason: str) -> None:
    model = scripted(name, *turns)
    status, body = ask(model, name, request(name, "hello"))
    assert status == 400 and reason in body
    assert len(model.errors) == 1 and reason in model.errors[0]


@EVERY
@pytest.mark.parametrize("body", [None, [], {"tools": [{"name": "x", "type": "function"}]}])
def test_unreadable_requests_are_refused(name: str, body: JSON) -> None:
    model = scripted(name, turn(Say("x")))
    if name == "gemini" and isinstance(body, dict):
        body = {"tools": [{"functionDeclarations": [{"name": "x"}]}]}
    assert ask(model, name, body)[0] == 400
    assert "cannot be read" in model.errors[0]


@EVERY
def test_other_addresses_are_refused(name: str) -> None:
    model = scripted(name, turn(Say("x")))
    assert model.answer("/v1/elsewhere", {"input": []})[0] == 400
    assert "no such address" in model.errors[0]


@EVERY
def test_requests_without_tools_take_no_turn(name: str) -> None:
    model = scripted(name, turn(Say("one")))
    body = request(name, "a title, please")
    del body["tools"]
    assert ask(model, name, body)[0] == 200
    assert (len(model.unused_turns()), model.requests) == (1, [])


@EVERY
def test_sub_agents_have_threads_of_their_own(name: str) -> None:
    model = scripted(name, turn(Say("main")), agents={SUBAGENT_TASK: (turn(Say("aside")),)})
    assert "aside" in ask(model, name, request(name, f"{SUBAGENT_TASK} Go."))[1]
    assert "main" in ask(model, name, request(name, "hello"))[1]
    assert [request.thread for request in model.requests] == [SUBAGENT_TASK, ""]


def anthropic_request(*messages: tuple[str, list[dict[str, JSON]]]) -> dict[str, JSON]:
    return {"messages": [{"role": role, "content": content} for role, content in messages]}


ANTHROPIC_REQUEST = anthropic_request(
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
                "content": [{"type": "image", "source": {"type": "base64", "data": IMAGE}}],
            },
            {"type": "tool_result", "tool_use_id": "a", "content": "dong"},
        ],
    ),
)
OPENAI_REQUEST = {
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
            "output": [{"type": "input_image", "image_url": f"data:image/png;base64,{IMAGE}"}],
        },
        {"type": "function_call_output", "call_id": "a", "output": "dong"},
    ]
}
CHAT_REQUEST = {
    "messages": [
        {"role": "system", "content": "rules"},
        {
            "role": "user",
            "content": [{"type": "text", "text": "<system-reminder>x"}, {"type": "text", "text": "Ring."}],
        },
        {
            "role": "assistant",
            "content": "I ring.",
            "reasoning_content": "hm",
            "tool_calls": [
                {"id": "a", "type": "function", "function": {"name": "ring", "arguments": '{"n": 1}'}},
                {"id": "b", "type": "function", "function": {"name": "look", "arguments": "{}"}},
            ],
        },
        {
            "role": "tool",
            "tool_call_id": "b",
            "content": [{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{IMAGE}"}}],
        },
        {"role": "tool", "tool_call_id": "a", "content": "dong"},
    ]
}
GEMINI_REQUEST = {
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
                {"functionResponse": {"name": "look", "response": {}, "parts": [{"inlineData": {"data": IMAGE}}]}},
            ],
        },
    ]
}
REQUESTS = {"anthropic": ANTHROPIC_REQUEST, "chat": CHAT_REQUEST, "gemini": GEMINI_REQUEST, "openai": OPENAI_REQUEST}


@EVERY
def test_all_protocols_decode_to_one_history(name: str) -> None:
    assert WIRES[name].decode_history(REQUESTS[name]) == [
        Entry("user", "Ring."),
        Entry("thinking", "hm"),
        Entry("answer", "I ring."),
        Entry("call", name="ring", input={"n": 1}),
        Entry("call", name="look", input={}),
        Entry("result", "dong"),
        Entry("result", ""),
        image(IMAGE),
    ]
    assert list(WIRES[name].violations(REQUESTS[name])) == []


@pytest.mark.parametrize(
    ("name", "old", "new", "reason"),
    [
        ("anthropic", '"tool_use_id": "a"', '"tool_use_id": "c"', "are followed by results for"),
        ("anthropic", sign("hm"), "c2lnbmF0dXJl", "signature"),
        ("anthropic", '"I ring."', '" "', "without words"),
        ("anthropic", '"id": "a", "name": "ring"', '"id": "a", "name": "ring the bell"', "may not be named"),
        ("anthropic", '{"n": 1}', '"n"', "is no object"),
        ("openai", '_output", "call_id": "a"', '_output", "call_id": "b"', "1 calls, 0 results"),
        ("openai", sign("hm"), "gAAAA", "not the model's"),
        ("openai", '"arguments": "{}"', '"arguments": "{"', "no JSON"),
        ("chat", '"tool_call_id": "a"', '"tool_call_id": "c"', "without a call before it"),
        ("chat", '"arguments": "{}"', '"arguments": "[]"', "no JSON object"),
        ("gemini", '{"functionCall": {"name": "look", "args": {}}}', '{"text": "x"}', "are followed by responses of"),
        ("gemini", '{"functionCall"', '{"text": "", "was"', "no calls stand before"),
    ],
)
def test_requests_that_the_service_refuses_are_refused(name: str, old: str, new: str, reason: str) -> None:
    body = json.loads(json.dumps(REQUESTS[name]).replace(old, new))
    assert reason in "; ".join(WIRES[name].violations(body))


def test_results_sent_twice_count_once() -> None:
    body = json.loads(json.dumps(GEMINI_REQUEST))
    body["contents"][2]["parts"] *= 2
    assert WIRES["gemini"].decode_history(body) == WIRES["gemini"].decode_history(GEMINI_REQUEST)
    assert list(WIRES["gemini"].violations(body)) == []


def test_chat_completions_stream_their_usage_last() -> None:
    turns = (turn(Think("hm"), Say("one"), Call("ring", {"n": 1})), turn(Say("two")))
    model = scripted("chat", *turns)
    _, streamed = ask(model, "chat", request("chat", "hello"))
    *chunks, end = [line.removeprefix("data: ") for line in streamed.split("\n\n") if line]
    assert end == "[DONE]"
    decoded = [json.loads(chunk) for chunk in chunks]
    assert decoded[-1]["usage"]["prompt_tokens_details"] == {"cached_tokens": 500}
    deltas = [choice["delta"] for chunk in decoded for choice in chunk["choices"]]
    assert [next(iter(delta)) for delta in deltas if delta] == ["role", "reasoning_content", "content", "tool_calls"]
    status, plain = ask(model, "chat", {**request("chat", "hello"), "stream": False})
    assert (status, json.loads(plain)["choices"][0]["message"]["content"]) == (200, "two")
