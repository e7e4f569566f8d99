"""Messages as the document that Continue reads: its own elements under another id, or elements composed anew."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from clew.agents.continue_dev.records import UNTITLED, is_document
from clew.agents.encoding import UNKNOWN, Fields, attachment_url, call_arguments, output_text
from clew.agents.target_profile import Header
from clew.io.codec import dumps
from clew.model.json import JSON
from clew.model.unit import Unit


def encode(header: Header, units: Iterable[Unit]) -> Iterator[tuple[str, bytes]]:
    """The document of a session."""
    session = header.session
    document: Fields = {"title": session.get("title") or UNTITLED}
    history: list[Fields] = []
    composer = _Composer(history)
    for unit in units:
        if unit.native and is_document(unit.native):
            document = dict(unit.native)
        elif unit.native and unit.start != unit.stop:
            history.append(dict(unit.native))
        elif not unit.native and unit.is_message:
            composer.add(unit.value)
    workspace = session["workspace"] or document.get("workspaceDirectory") or ""
    document = {"sessionId": session["id"], **document, "workspaceDirectory": workspace, "history": history}
    document["sessionId"] = session["id"]
    yield "", msgspec.json.format(dumps(document), indent=2)


class _Composer:
    """Adds elements to a history. Results stand in the element that calls for them."""

    def __init__(self, history: list[Fields]) -> None:
        self._history = history
        self._states: dict[JSON, Fields] = {}
        """The states of calls without a result, by the ids of the calls."""

    def add(self, message: Fields) -> None:
        if message["role"] == "assistant":
            self._add_reply(message["content"])
            return
        parts: list[Fields] = []
        for block in message["content"]:
            state = self._states.pop(block["tool_id"], None) if block["type"] == "tool_result" else None
            if state is not None:
                state["status"] = "errored" if block.get("is_error") is True else "done"
                output = {"content": output_text(block.get("output")), "name": "Tool Result"}
                state["output"] = [{**output, "description": "Tool execution result"}]
            else:
                parts += _parts(block)
        if parts:
            has_images = any(part["type"] != "text" for part in parts)
            content = parts if has_images else "\n".join(part["text"] for part in parts)
            role = "system" if message["role"] == "system" else "user"
            self._history.append({"message": {"role": role, "content": content}, "contextItems": []})

    def _add_reply(self, blocks: list[Fields]) -> None:
        """Add a line of a reply: what the model says in a row, before any result, is one element."""
        last = self._history[-1] if self._history else {}
        is_open = not any(state["status"] != "calling" for state in last.get("toolCallStates", ()))
        if not last or last["message"]["role"] != "assistant" or not is_open:
            last = {"message": {"role": "assistant", "content": ""}, "contextItems": []}
            self._history.append(last)
        reply = last["message"]
        texts = [block["text"] for block in blocks if block["type"] == "text"]
        reply["content"] = "\n".join(text for text in (reply["content"], *texts) if text)
        for block in blocks:
            if block["type"] == "tool_use":
                call, arguments = _call(block)
                state = {"toolCallId": call["id"], "toolCall": call, "status": "calling", "parsedArgs": arguments}
                reply.setdefault("toolCalls", []).append(call)
                last.setdefault("toolCallStates", []).append(state)
                self._states[call["id"]] = state


def _call(block: Mapping[str, JSON]) -> tuple[Fields, JSON]:
    arguments = call_arguments(block)
    function = {"name": block["tool_name"] or UNKNOWN, "arguments": dumps(arguments).decode()}
    return {"id": block["tool_id"], "type": "function", "function": function}, arguments


def _parts(block: Fields) -> Iterator[Fields]:
    match block["type"]:
        case "text":
            yield {"type": "text", "text": block["text"]}
        case "tool_result":
            yield {"type": "text", "text": output_text(block.get("output"))}
        case "image" if block.get("image"):
            yield {"type": "imageUrl", "imageUrl": {"url": attachment_url(block)}}
