"""Between a record of sage-emacs and its messages: a call and its result are one record, but two messages."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from clew.agents.folding import Chain, Message, Step, note, own_extension, without_derived
from clew.agents.sage_emacs.locate import AGENT
from clew.agents.sage_emacs.tables import CALLS, DURATION, MODEL, is_tool
from clew.model.json import JSON

_RESULT = ("output", "is_error")
_TOOL = ("tool_id", "tool_name", *_RESULT)


def folding(chain: Chain) -> Callable[[bool, dict[str, JSON]], Iterator[Step]]:
    """The fold of one source."""

    def fold(is_message: bool, value: dict[str, JSON]) -> Iterator[Step]:
        if not is_message:
            yield False, value
            return
        results = _fold(value, chain)
        yield True, value
        if results is not None:
            yield True, results
        chain.last = (results or value)["uuid"]

    return fold


def _fold(message: Message, chain: Chain) -> Message | None:
    """Make the message whole; returns the message with the results, if there are any."""
    if is_tool(message):
        slots = {name: message.pop(name) for name in _TOOL if name in message}
        message["content"] = [{"type": "tool_result", "tool_id": None, **slots}]
    elif own_extension(message, AGENT).get("plain") and message["content"][0]["text"] == "":
        message["content"] = []
    chain.identify(message)
    chain.attach(message)
    calls = message.pop(CALLS, None)
    results = _separate(calls, message["uuid"]) if calls else []
    message["content"] += calls or []
    return _answer(message, results) if results else None


def _separate(calls: list[Message], uuid: str) -> list[Message]:
    """Take the results out of the calls; a call without one is noted as open."""
    results = []
    for number, call in enumerate(calls):
        result = {name: call.pop(name) for name in _RESULT if name in call}
        duration = call.pop(DURATION, None)
        if call["tool_id"] is None:
            call["tool_id"] = f"{uuid}:t{number}"
            note(call, AGENT, derived=["tool_id"])
        if not result and duration is None:
            note(call, AGENT, open=True)
            continue
        block = {"type": "tool_result", "tool_id": call["tool_id"], "tool_name": call["tool_name"], **result}
        if duration is not None:
            note(block, AGENT, duration_ms=duration)
        results.append(block)
    return results


def _answer(message: Message, results: list[Message]) -> Message:
    answer: Message = {"index": 0, "role": "user", "uuid": f"{message['uuid']}:r", "parent_uuid": message["uuid"]}
    if "timestamp" in message:
        answer["timestamp"] = message["timestamp"]
    return {**answer, "content": results, "extensions": {AGENT: {"joined": True}}}


def unfolded(units: Iterator[Step]) -> Iterator[Step]:
    """The units as the tables know them, with each answer back in the message it was taken from."""
    held: Step | None = None
    for is_message, value in units:
        if held is not None and is_message and own_extension(value, AGENT).get("joined"):
            _join(held[1], value["content"])
            continue
        if held is not None:
            yield held
        held = (is_message, _unfold(value) if is_message else value)
    if held is not None:
        yield held


def _unfold(message: Message) -> Message:
    if MODEL in own_extension(message, AGENT).get("derived", ()):
        metadata = message.get("metadata") or {}
        message = {**message, "metadata": {name: item for name, item in metadata.items() if name != MODEL}}
    message = without_derived(message, AGENT)
    if is_tool(message):
        result: Message = next((block for block in message["content"] if block["type"] == "tool_result"), {})
        message.update({name: result[name] for name in _TOOL if result.get(name) is not None})
        return message
    calls = [block for block in message["content"] if block["type"] == "tool_use"]
    message["content"] = [block for block in message["content"] if block["type"] != "tool_use"]
    message[CALLS] = [without_derived(call, AGENT) for call in calls]
    return message


def _join(message: Message, results: list[Message]) -> None:
    closed = (call for call in message.get(CALLS, ()) if not own_extension(call, AGENT).get("open"))
    for call, result in zip(closed, results, strict=False):
        call.update({name: result[name] for name in _RESULT if name in result})
        duration = own_extension(result, AGENT).get("duration_ms")
        if duration is not None:
            call[DURATION] = duration
