"""Gemini generateContent, as Gemini CLI speaks it."""

from __future__ import annotations

from collections.abc import Iterator

from tests.realclients.history import JSON, Entry, image, without_injected
from tests.realclients.script import Call, Say, Think, Turn
from tests.realclients.wire import Answer, json_answer, new_id, unnamed_events

INJECTED = ("<session_context>", "<hook_context>")


class Gemini:
    """The protocol."""

    def is_conversation(self, path: str) -> bool:
        return path.endswith((":generateContent", ":streamGenerateContent"))

    def answer_side_request(self, path: str, body: JSON) -> Answer | None:
        if path.endswith(":countTokens"):
            return json_answer({"totalTokens": 100})
        if self.is_conversation(path) and not self.tool_names(body):
            return self.encode_turn(path, body, Turn((Say("done"),)))
        return None

    def tool_names(self, body: JSON) -> set[str]:
        return {one["name"] for tool in body.get("tools", []) for one in tool.get("functionDeclarations", [])}

    def decode_history(self, body: JSON) -> list[Entry]:
        found = [entry for content in body["contents"] for entry in _content(content)]
        return without_injected(found, INJECTED)

    def violations(self, body: JSON) -> Iterator[str]:
        contents = body["contents"]
        if not contents or contents[0]["role"] != "user":
            yield "the first content is not the user's"
        for at, content in enumerate(contents):
            if not content.get("parts"):
                yield f"content {at}: no parts"
            yield from _pairing_violations(contents, at)

    def encode_turn(self, path: str, body: JSON, turn: Turn) -> Answer:
        reply = _reply(path.rpartition("/")[2].partition(":")[0], turn)
        return unnamed_events([reply]) if ":stream" in path else json_answer(reply)


def _reply(model: str, turn: Turn) -> dict[str, JSON]:
    usage = turn.usage
    read = usage.input + usage.cached + usage.written
    content = {"role": "model", "parts": [_encode_step(step) for step in turn.steps]}
    return {
        "candidates": [{"content": content, "finishReason": "STOP", "index": 0}],
        "usageMetadata": {
            "promptTokenCount": read,
            "cachedContentTokenCount": usage.cached,
            "candidatesTokenCount": usage.output - usage.reasoning,
            "thoughtsTokenCount": usage.reasoning,
            "totalTokenCount": read + usage.output,
        },
        "modelVersion": model,
        "responseId": new_id("", 32),
    }


def _encode_step(step: Say | Think | Call) -> dict[str, JSON]:
    match step:
        case Say(text):
            return {"text": text}
        case Think(text):
            return {"text": text, "thought": True}
        case Call():
            return {"functionCall": {"name": step.name, "args": step.input}}


def _content(content: JSON) -> Iterator[Entry]:
    for part in _once(content["parts"]):
        if part.get("thought"):
            yield Entry("thinking", part["text"])
        elif "text" in part:
            yield Entry("user" if content["role"] == "user" else "answer", part["text"])
        elif "functionCall" in part:
            yield Entry("call", name=part["functionCall"]["name"], input=part["functionCall"].get("args", {}))
        elif "functionResponse" in part:
            yield from _response(part["functionResponse"])
        elif "inlineData" in part:
            yield image(part["inlineData"]["data"])
        else:
            raise ValueError(f"a part with {sorted(part)}")


def _once(parts: list[JSON]) -> list[JSON]:
    """The parts without repeated results: when it resumes, the client sends each of them twice, in the same words."""
    if not any("functionResponse" in part for part in parts):
        return parts
    return [part for at, part in enumerate(parts) if part not in parts[:at]]


def _response(answer: JSON) -> Iterator[Entry]:
    response = answer["response"]
    yield Entry("result", response.get("output", response.get("error", "")))
    yield from (image(part["inlineData"]["data"]) for part in answer.get("parts", []))


def _pairing_violations(contents: list[JSON], at: int) -> Iterator[str]:
    """As many responses as calls, in the content right after them."""
    calls = _names(contents[at], "functionCall")
    given = _names(contents[at + 1], "functionResponse") if at + 1 < len(contents) else []
    if calls and calls != given:
        yield f"content {at}: calls of {calls} are followed by responses of {given}"
    if at == 0 or not _names(contents[at - 1], "functionCall"):
        orphans = _names(contents[at], "functionResponse")
        if orphans:
            yield f"content {at}: responses of {orphans} that no calls stand before"


def _names(content: JSON, key: str) -> list[str]:
    return [part[key]["name"] for part in _once(content["parts"]) if key in part]
