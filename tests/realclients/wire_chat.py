"""OpenAI chat completions, as most other clients speak it."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator

from tests.realclients.history import JSON, Entry, image, without_injected
from tests.realclients.script import DONE, Call, Say, Think, Turn
from tests.realclients.wire import Answer, json_answer, new_id

MODEL = "lab-model"


class ChatCompletions:
    """The protocol.

    `injected`: the beginnings of user texts that the client adds on its own. `wrapper` and `result_wrapper`: patterns
    of what it puts around the text of a prompt or of a result. `image_result`: the text of a result that is only an
    image. `read_result`: gives the text of a result that has a structure of the client's own.
    """

    def __init__(
        self,
        injected: tuple[str, ...] = (),
        wrapper: str | None = None,
        image_result: str = "",
        result_wrapper: str | None = None,
        read_result: Callable[[str], str] = lambda content: content,
    ) -> None:
        self._injected, self._image_result, self._read_result = injected, image_result, read_result
        wrappers = {"user": wrapper, "result": result_wrapper}
        self._wrappers = {kind: re.compile(pattern, re.DOTALL) for kind, pattern in wrappers.items() if pattern}

    def is_conversation(self, path: str) -> bool:
        return path.endswith("/chat/completions")

    def answer_side_request(self, path: str, body: JSON) -> Answer | None:
        if path.endswith("/models"):
            model = {"id": MODEL, "object": "model", "created": 1, "owned_by": "lab", "context_length": 262144}
            return json_answer({"object": "list", "data": [model]})
        if self.is_conversation(path) and not self.tool_names(body):
            return self.encode_turn(path, body, DONE)
        return None

    def tool_names(self, body: JSON) -> set[str]:
        return {tool["function"]["name"] for tool in body.get("tools") or []}

    def decode_history(self, body: JSON) -> list[Entry]:
        entries = (entry for message in _in_call_order(body["messages"]) for entry in _decode_message(message))
        return without_injected(map(self._without_additions, entries), self._injected)

    def _without_additions(self, entry: Entry) -> Entry:
        if entry == Entry("result", self._image_result):
            return entry._replace(text="")
        text = self._read_result(entry.text) if entry.kind == "result" else entry.text
        wrapper = self._wrappers.get(entry.kind)
        return entry._replace(text=text if wrapper is None else wrapper.sub("", text))

    def violations(self, body: JSON) -> Iterator[str]:
        pending: list[str] = []
        for at, message in enumerate(body["messages"]):
            if message["role"] == "tool":
                if message["tool_call_id"] not in pending:
                    yield f"message {at}: a result for {message['tool_call_id']} without a call before it"
                else:
                    pending.remove(message["tool_call_id"])
                continue
            if pending:
                yield f"message {at}: the calls {pending} before it have no results"
            pending = [call["id"] for call in message.get("tool_calls") or []]
            yield from _message_violations(at, message)
        if pending:
            yield f"the last calls {pending} have no results"

    def encode_turn(self, path: str, body: JSON, turn: Turn) -> Answer:
        calls = any(isinstance(step, Call) for step in turn.steps)
        head = {"id": new_id("chatcmpl-"), "created": int(time.time()), "model": body.get("model", MODEL)}
        finish = "tool_calls" if calls else "stop"
        if body.get("stream"):
            return _event_stream(_chunks(head, turn, finish))
        choice = {"index": 0, "message": _encode_message(turn), "finish_reason": finish}
        return json_answer({**head, "object": "chat.completion", "choices": [choice], "usage": _usage(turn)})


def _event_stream(chunks: Iterator[dict[str, JSON]]) -> Answer:
    lines = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks]
    return Answer("".join([*lines, "data: [DONE]\n\n"]).encode(), "text/event-stream")


def _chunks(head: dict[str, JSON], turn: Turn, finish: str) -> Iterator[dict[str, JSON]]:
    def chunk(delta: dict[str, JSON], finish_reason: str | None = None) -> dict[str, JSON]:
        choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
        return {**head, "object": "chat.completion.chunk", "choices": [choice]}

    yield chunk({"role": "assistant", "content": ""})
    for step in turn.steps:
        if isinstance(step, Think):
            yield chunk({"reasoning_content": step.text})
        elif isinstance(step, Say):
            yield chunk({"content": step.text})
    for index, call in enumerate(_encode_calls(turn)):
        yield chunk({"tool_calls": [{"index": index, **call}]})
    yield chunk({}, finish)
    yield {**head, "object": "chat.completion.chunk", "choices": [], "usage": _usage(turn)}


def _encode_message(turn: Turn) -> dict[str, JSON]:
    message: dict[str, JSON] = {
        "role": "assistant",
        "content": "".join(step.text for step in turn.steps if isinstance(step, Say)),
    }
    thoughts = "".join(step.text for step in turn.steps if isinstance(step, Think))
    if thoughts:
        message["reasoning_content"] = thoughts
    calls = _encode_calls(turn)
    if calls:
        message["tool_calls"] = calls
    return message


def _encode_calls(turn: Turn) -> list[dict[str, JSON]]:
    return [
        {
            "id": new_id("call_"),
            "type": "function",
            "function": {"name": step.name, "arguments": json.dumps(step.input)},
        }
        for step in turn.steps
        if isinstance(step, Call)
    ]


def _usage(turn: Turn) -> dict[str, JSON]:
    usage = turn.usage
    prompt = usage.input + usage.cached + usage.written
    return {
        "prompt_tokens": prompt,
        "completion_tokens": usage.output,
        "total_tokens": prompt + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cached},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
    }


def _in_call_order(messages: list[JSON]) -> Iterator[JSON]:
    """The messages, with the results after a message in the order of its calls: clients send them as they finish."""
    order: dict[str, int] = {}
    results: list[JSON] = []
    for message in messages:
        if message["role"] == "tool":
            results.append(message)
            continue
        yield from sorted(results, key=lambda result: order.get(result["tool_call_id"], 0))
        results.clear()
        order = {call["id"]: at for at, call in enumerate(message.get("tool_calls") or [])}
        yield message
    yield from sorted(results, key=lambda result: order.get(result["tool_call_id"], 0))


def _decode_message(message: JSON) -> Iterator[Entry]:
    match message["role"]:
        case "system" | "developer":
            return
        case "user":
            yield from (image(part) if is_image else Entry("user", part) for is_image, part in _parts(message))
        case "assistant":
            thought = message.get("reasoning_content") or message.get("reasoning")
            if thought:
                yield Entry("thinking", thought)
            yield from (Entry("answer", text) for _, text in _parts(message) if text)
            for call in message.get("tool_calls") or []:
                function = call["function"]
                yield Entry("call", name=function["name"], input=json.loads(function["arguments"] or "{}"))
        case "tool":
            parts = list(_parts(message))
            yield Entry("result", "\n".join(text for is_image, text in parts if not is_image))
            yield from (image(data) for is_image, data in parts if is_image)
        case other:
            raise ValueError(f"a message with the role {other!r}")


def _parts(message: JSON) -> Iterator[tuple[bool, str]]:
    """The parts of a message: whether each is an image, and its text or data."""
    content = message.get("content")
    if content is None or isinstance(content, str):
        yield False, content or ""
        return
    for part in content:
        match part["type"]:
            case "text":
                yield False, part["text"]
            case "image_url":
                yield True, part["image_url"]["url"].partition("base64,")[2]
            case other:
                raise ValueError(f"a part of type {other!r}")


def _message_violations(at: int, message: JSON) -> Iterator[str]:
    if message["role"] == "user" and not message.get("content"):
        yield f"message {at}: a prompt without content"
    for call in message.get("tool_calls") or []:
        try:
            is_object = isinstance(json.loads(call["function"]["arguments"] or "{}"), dict)
        except ValueError:
            is_object = False
        if not is_object:
            yield f"message {at}: the arguments of {call['function']['name']} are no JSON object"
