"""Anthropic Messages, as Claude Code speaks it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from tests.realclients.history import JSON, Entry, image, without_injected
from tests.realclients.script import Call, Say, Think, Turn, is_signature, sign
from tests.realclients.wire import Answer, json_answer, named_events, new_id

INJECTED = ("<system-reminder>", "Tool loaded.")
_NAME = re.compile(r"[A-Za-z0-9_-]{1,128}")


class Anthropic:
    """The protocol."""

    def is_conversation(self, path: str) -> bool:
        return path.endswith("/v1/messages")

    def answer_side_request(self, path: str, body: JSON) -> Answer | None:
        if path.endswith("/count_tokens"):
            return json_answer({"input_tokens": 100})
        if self.is_conversation(path) and not self.tool_names(body):
            return self.encode_turn(path, body, Turn((Say("done"),)))
        return None

    def tool_names(self, body: JSON) -> set[str]:
        return {tool["name"] for tool in body.get("tools", [])}

    def decode_history(self, body: JSON) -> list[Entry]:
        return without_injected(
            (entry for message in _in_call_order(body["messages"]) for entry in _message(message)), INJECTED
        )

    def violations(self, body: JSON) -> Iterator[str]:
        messages = _spoken(body["messages"])
        if not messages or messages[0]["role"] != "user":
            yield "the first message is not the user's"
        for at, message in enumerate(messages):
            for block in _blocks(message):
                yield from _block_violations(at, block)
            yield from _pairing_violations(messages, at)

    def encode_turn(self, path: str, body: JSON, turn: Turn) -> Answer:
        blocks = [_block(step) for step in turn.steps]
        message = _head(body, turn)
        stop = "tool_use" if any(isinstance(step, Call) for step in turn.steps) else "end_turn"
        if not body.get("stream"):
            return json_answer({**message, "content": blocks, "stop_reason": stop})
        return named_events(_events(message, blocks, stop, turn.usage.output))


def _head(body: JSON, turn: Turn) -> dict[str, JSON]:
    usage = turn.usage
    return {
        "id": new_id("msg_"),
        "type": "message",
        "role": "assistant",
        "model": body.get("model", "lab"),
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {
            "input_tokens": usage.input,
            "cache_creation_input_tokens": usage.written,
            "cache_read_input_tokens": usage.cached,
            "output_tokens": usage.output,
        },
    }


def _block(step: Say | Think | Call) -> dict[str, JSON]:
    match step:
        case Say(text):
            return {"type": "text", "text": text}
        case Think(text):
            return {"type": "thinking", "thinking": text, "signature": sign(text)}
        case Call():
            return {"type": "tool_use", "id": new_id("toolu_"), "name": step.name, "input": step.input}


def _events(
    message: JSON, blocks: list[dict[str, JSON]], stop: str, output: int
) -> Iterator[tuple[str, dict[str, JSON]]]:
    yield "message_start", {"message": message}
    for index, block in enumerate(blocks):
        empty, deltas = _in_deltas(block)
        yield "content_block_start", {"index": index, "content_block": empty}
        for delta in deltas:
            yield "content_block_delta", {"index": index, "delta": delta}
        yield "content_block_stop", {"index": index}
    yield "message_delta", {"delta": {"stop_reason": stop, "stop_sequence": None}, "usage": {"output_tokens": output}}
    yield "message_stop", {}


def _in_deltas(block: dict[str, JSON]) -> tuple[dict[str, JSON], list[dict[str, JSON]]]:
    if block["type"] == "text":
        return {**block, "text": ""}, [{"type": "text_delta", "text": block["text"]}]
    if block["type"] == "thinking":
        thought = {"type": "thinking_delta", "thinking": block["thinking"]}
        signed = {"type": "signature_delta", "signature": block["signature"]}
        return {"type": "thinking", "thinking": "", "signature": ""}, [thought, signed]
    return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": json.dumps(block["input"])}]


def _blocks(message: JSON) -> list[dict[str, JSON]]:
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)


def _spoken(messages: list[JSON]) -> list[JSON]:
    """What the two sides said: the client's own notes go as the system's."""
    return [message for message in messages if message["role"] != "system"]


def _in_call_order(messages: list[JSON]) -> Iterator[JSON]:
    """The messages, with results in the order of their calls: the client sends them as they finished."""
    order: dict[str, int] = {}
    for message in _spoken(messages):
        blocks = _blocks(message)
        order.update({block["id"]: at for at, block in enumerate(blocks) if block["type"] == "tool_use"})
        yield {**message, "content": sorted(blocks, key=lambda block: order.get(block.get("tool_use_id", ""), 999))}


def _message(message: JSON) -> Iterator[Entry]:
    for block in _blocks(message):
        match block["type"]:
            case "text":
                yield Entry("user" if message["role"] == "user" else "answer", block["text"])
            case "thinking":
                yield Entry("thinking", block["thinking"])
            case "tool_use":
                yield Entry("call", name=block["name"], input=block["input"])
            case "tool_result":
                yield from _result(block.get("content", ""))
            case "image":
                yield image(block["source"]["data"])
            case other:
                raise ValueError(f"a block of type {other!r}")


def _result(content: JSON) -> Iterator[Entry]:
    if isinstance(content, str):
        yield Entry("result", content)
        return
    yield Entry("result", "\n".join(_text(part) for part in content if part["type"] != "image"))
    yield from (image(part["source"]["data"]) for part in content if part["type"] == "image")


def _text(part: JSON) -> str:
    """The words of a part; of one that has none, the part itself."""
    return str(part["text"]) if part["type"] == "text" else json.dumps(part, separators=(",", ":"))


def _block_violations(at: int, block: JSON) -> Iterator[str]:
    if block["type"] == "text" and not block["text"].strip():
        yield f"message {at}: a text block without words"
    if block["type"] == "thinking" and not is_signature(block.get("signature")):
        yield f"message {at}: a thinking block with a signature that is not the model's: {block.get('signature')!r}"
    if block["type"] == "tool_use":
        if not _NAME.fullmatch(block["name"]) or not _NAME.fullmatch(block["id"]):
            yield f"message {at}: a call may not be named {block['name']!r} or have the id {block['id']!r}"
        if not isinstance(block["input"], dict):
            yield f"message {at}: the input of {block['name']} is no object"


def _pairing_violations(messages: list[JSON], at: int) -> Iterator[str]:
    """Results stand in the message right after their calls."""
    if messages[at]["role"] == "assistant":
        calls = {block["id"] for block in _blocks(messages[at]) if block["type"] == "tool_use"}
        after = _blocks(messages[at + 1]) if at + 1 < len(messages) else []
        given = {block["tool_use_id"] for block in after if block["type"] == "tool_result"}
        if calls != given:
            yield f"message {at}: calls {sorted(calls)} are followed by results for {sorted(given)}"
        return
    gives = any(block["type"] == "tool_result" for block in _blocks(messages[at]))
    if gives and (at == 0 or messages[at - 1]["role"] != "assistant"):
        yield f"message {at}: results that no calls stand before"
