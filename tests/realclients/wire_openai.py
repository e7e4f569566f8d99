"""OpenAI Responses, as Codex speaks it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import groupby

from tests.realclients.history import JSON, Entry, image, without_injected
from tests.realclients.script import Call, Say, Think, Turn, is_signature, sign
from tests.realclients.wire import Answer, json_answer, named_events, new_id, unpaired_calls

INJECTED = ("<environment_context>", "# AGENTS.md instructions", "<user_instructions>")
_TEXT_OF = {"input_text": "text", "encrypted_content": "encrypted_content"}
TOOL_SEARCH = "tool_search"
"""The tool by which the model asks the client for tools of MCP servers."""
_CALLS = ("function_call", "custom_tool_call")
_OUTPUTS = ("function_call_output", "custom_tool_call_output")


class OpenAI:
    """The protocol."""

    def is_conversation(self, path: str) -> bool:
        return path.endswith("/v1/responses")

    def answer_side_request(self, path: str, body: JSON) -> Answer | None:
        if path.endswith("/models"):
            return json_answer({"object": "list", "data": [], "models": []})
        if self.is_conversation(path) and not self.tool_names(body):
            return self.encode_turn(path, body, Turn((Say("done"),)))
        return None

    def tool_names(self, body: JSON) -> set[str]:
        added = ("additional_tools", "tool_search_output")
        more = [tool for item in body["input"] if item["type"] in added for tool in item["tools"]]
        return {name for tool in [*body.get("tools", []), *more] for name in _tool_names(tool)}

    def decode_history(self, body: JSON) -> list[Entry]:
        return without_injected((entry for item in _in_call_order(body["input"]) for entry in _item(item)), INJECTED)

    def violations(self, body: JSON) -> Iterator[str]:
        items = body["input"]
        yield from unpaired_calls(
            (item["call_id"] for item in items if item["type"] in _CALLS),
            (item["call_id"] for item in items if item["type"] in _OUTPUTS),
        )
        for at, item in enumerate(items):
            sealed = item.get("encrypted_content")
            if item["type"] == "reasoning" and sealed is not None and not is_signature(sealed):
                yield f"item {at}: reasoning that is not the model's: {sealed!r}"
            if item["type"] == "function_call":
                yield from _argument_violations(at, item["arguments"])

    def encode_turn(self, path: str, body: JSON, turn: Turn) -> Answer:
        return named_events(_events(body, turn))


def _tool_names(tool: JSON) -> Iterator[str]:
    if tool["type"] == "namespace":
        yield from (inner["name"] for inner in tool["tools"])
    else:
        yield tool.get("name", tool["type"])


def _events(body: JSON, turn: Turn) -> Iterator[tuple[str, dict[str, JSON]]]:
    head = {"id": new_id("resp_", 32), "object": "response", "model": body.get("model"), "status": "in_progress"}
    yield "response.created", {"response": {**head, "output": []}}
    items = [_encode_step(step) for step in turn.steps]
    for index, item in enumerate(items):
        yield "response.output_item.added", {"output_index": index, "item": item}
        yield "response.output_item.done", {"output_index": index, "item": item}
    done = {**head, "output": items, "status": "completed", "usage": _usage(turn)}
    yield "response.completed", {"response": done}


def _usage(turn: Turn) -> dict[str, JSON]:
    usage = turn.usage
    read = usage.input + usage.cached + usage.written
    return {
        "input_tokens": read,
        "input_tokens_details": {"cached_tokens": usage.cached},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": read + usage.output,
    }


def _encode_step(step: Say | Think | Call) -> dict[str, JSON]:
    match step:
        case Say(text):
            content = [{"type": "output_text", "text": text, "annotations": []}]
            head = {"type": "message", "id": new_id("msg_", 32), "role": "assistant", "status": "completed"}
            return {**head, "content": content}
        case Think(text):
            summary = [{"type": "summary_text", "text": text}]
            return {"type": "reasoning", "id": new_id("rs_", 32), "summary": summary, "encrypted_content": sign(text)}
        case Call():
            return _encode_call(step)


def _encode_call(call: Call) -> dict[str, JSON]:
    common: dict[str, JSON] = {"call_id": new_id("call_"), "name": call.name, "status": "completed"}
    if call.space:
        common["namespace"] = call.space
    if call.name == TOOL_SEARCH:
        return {"type": "tool_search_call", **common, "execution": "client", "arguments": call.input}
    if isinstance(call.input, str):
        return {"type": "custom_tool_call", "id": new_id("ctc_", 32), **common, "input": call.input}
    return {"type": "function_call", "id": new_id("fc_", 32), **common, "arguments": json.dumps(call.input)}


def _in_call_order(items: list[JSON]) -> Iterator[JSON]:
    """The items, with neighbouring outputs in the order of their calls: they may stand as they finished."""
    order = {item["call_id"]: at for at, item in enumerate(items) if item["type"] in _CALLS}
    for is_output, run in groupby(items, key=lambda item: item["type"] in _OUTPUTS):
        neighbours = list(run)
        yield from sorted(neighbours, key=lambda item: order.get(item["call_id"], 0)) if is_output else neighbours


def _item(item: JSON) -> Iterator[Entry]:
    match item["type"]:
        case "message" if item["role"] in ("user", "assistant"):
            kind = "user" if item["role"] == "user" else "answer"
            for part in item["content"]:
                yield _picture(part) if part["type"] == "input_image" else Entry(kind, part["text"])  # type: ignore[arg-type]
        case "reasoning":
            yield Entry("thinking", "\n".join(part["text"] for part in item["summary"]))
        case "function_call":
            yield Entry("call", name=item["name"], input=json.loads(item["arguments"]))
        case "custom_tool_call":
            yield Entry("call", name=item["name"], input=item["input"])
        case "function_call_output" | "custom_tool_call_output":
            yield from _output(item["output"])
        case "agent_message":
            yield from (Entry("user", part[_TEXT_OF[part["type"]]]) for part in item["content"])
        case "message" | "additional_tools" | "tool_search_call" | "tool_search_output":
            return
        case other:
            raise ValueError(f"an item of type {other!r}")


def _output(output: JSON) -> Iterator[Entry]:
    if isinstance(output, str):
        yield Entry("result", output)
        return
    yield Entry("result", "\n".join(part["text"] for part in output if part["type"] == "input_text"))
    yield from (_picture(part) for part in output if part["type"] == "input_image")


def _picture(part: JSON) -> Entry:
    return image(part["image_url"].partition("base64,")[2])


def _argument_violations(at: int, arguments: str) -> Iterator[str]:
    try:
        json.loads(arguments)
    except ValueError:
        yield f"item {at}: arguments that are no JSON: {arguments!r}"
