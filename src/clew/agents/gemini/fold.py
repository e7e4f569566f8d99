"""Between a record of Gemini CLI and its messages: a call and its result are one record, but two messages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import takewhile

from clew.agents.folding import Message, Step, note, own_extension, without_derived
from clew.agents.gemini.events import RESULTS_SUFFIX, is_ignored
from clew.agents.gemini.locate import AGENT
from clew.agents.gemini.parts import PART
from clew.agents.gemini.tables import CALLS, STATUS, THOUGHTS
from clew.model.json import JSON
from clew.model.time import is_canonical, is_later

_DONE = {"success": False, "error": True, "cancelled": True}
_NUDGE = "System: Please continue."
TODO_TOOL = "write_todos"


def fold(message: Message, is_answered: Callable[[JSON], bool]) -> Message | None:
    """Make the message whole; returns the message with the results, if there are any.

    `is_answered` tells of a call that a message of its own answers: then its result here is a copy.
    """
    thoughts, calls = message.pop(THOUGHTS, []), message.pop(CALLS, [])
    content = message["content"]
    if calls:
        content = _without_repeated(message, content, calls)
    if thoughts and any(block["type"] == "thinking" for block in content):
        note(message, AGENT, thoughts=thoughts)
        thoughts = []
    results = list(_separate(message, calls, is_answered))
    message["content"] = [*thoughts, *content, *calls]
    _mark(message)
    return _answer(message, calls, results) if results else None


def _without_repeated(message: Message, content: list[Message], calls: list[Message]) -> list[Message]:
    """The content without the calls that the list of calls holds as well; they are noted with their places."""
    ids = {call.get("tool_id") for call in calls} - {None}
    names = [call.get("tool_name") for call in calls]
    kept, hidden = [], []
    for at, block in enumerate(content):
        repeated = block["type"] == "tool_use" and (block["tool_id"] in ids or _is_nameless_copy(block, names))
        if repeated:
            hidden.append([at, block])
        else:
            kept.append(block)
    if hidden:
        note(message, AGENT, hidden=hidden)
    return kept


def _is_nameless_copy(block: Message, names: list[JSON]) -> bool:
    if block["tool_id"] is not None or block["tool_name"] not in names:
        return False
    names.remove(block["tool_name"])
    return True


def _separate(message: Message, calls: list[Message], is_answered: Callable[[JSON], bool]) -> Iterator[Message]:
    """Take the results out of the calls."""
    for number, call in enumerate(calls):
        _complete(call, message["uuid"], number)
        result = _result(call)
        if result is None:
            continue
        if is_answered(call["tool_id"]):
            note(call, AGENT, result=result)
        else:
            yield result


def _complete(call: Message, uuid: str, number: int) -> None:
    usual = {"tool_id": f"{uuid}:{number}", "tool_name": None, "input": None}
    added = [name for name in usual if name not in call]
    if added:
        call.update({name: usual[name] for name in added})
        note(call, AGENT, derived=added)


def _result(call: Message) -> Message | None:
    """The result of a call that has ended; what a call that has not says of itself is noted on it."""
    status = call.pop(STATUS, None)
    slots = {"output": call.pop("output")} if "output" in call else {}
    if status is None and not slots:
        note(call, AGENT, open=True)
        return None
    if status is not None and status not in _DONE:
        note(call, AGENT, status=status, **slots)
        return None
    result = {"type": "tool_result", "tool_id": call["tool_id"], "tool_name": call["tool_name"], **slots}
    if status is not None:
        result["is_error"] = _DONE[status]
    if status == "cancelled":
        note(result, AGENT, status=status)
    return result


def _mark(message: Message) -> None:
    """Tell apart what no person typed."""
    if message["role"] == "system" or (message["role"] == "user" and not is_typed(message["content"])):
        message.setdefault("metadata", {})["is_meta"] = True


def is_typed(blocks: list[Message]) -> bool:
    """True for content that a person may have typed."""
    if not any(block["type"] != "tool_result" for block in blocks):
        return False
    text = "".join(block["text"] for block in blocks if block["type"] == "text").strip()
    if not text:
        kinds = {block["type"] for block in blocks}
        return "tool_result" not in kinds and bool(kinds & {"image", "document"})
    leading = takewhile(lambda block: block["type"] == "text", blocks)
    return text != _NUDGE and not is_ignored("".join(block["text"] for block in leading))


def _answer(message: Message, calls: list[Message], results: list[Message]) -> Message:
    uuid = message["uuid"]
    answer: Message = {"index": 0, "role": "user", "uuid": uuid + RESULTS_SUFFIX, "parent_uuid": uuid}
    time = _last_time(message, calls)
    if time is not None:
        answer["timestamp"] = time
    answer["content"] = results
    todos = _todos(calls)
    if todos is not None:
        answer["metadata"] = {"todos": todos}
    answer["extensions"] = {AGENT: {"joined": True}}
    return answer


def _last_time(message: Message, calls: list[Message]) -> str | None:
    """When the last of the calls was noted; they say so themselves."""
    last: str | None = message.get("timestamp")
    for call in calls:
        time = (own_extension(call, AGENT).get("rest") or {}).get("timestamp")
        if type(time) is str and is_canonical(time) and (last is None or is_later(time, last)):
            last = time
    return last


def _todos(calls: list[Message]) -> list[Message] | None:
    """The task list that the last of the calls left behind."""
    for call in reversed(calls):
        shown = (own_extension(call, AGENT).get("rest") or {}).get("resultDisplay")
        given = call["input"] if call["tool_name"] == TODO_TOOL else None
        for source in (shown, given):
            todos = source.get("todos") if type(source) is dict else None
            if type(todos) is list and all(type(todo) is dict for todo in todos):
                return [_todo(todo) for todo in todos]
    return None


def _todo(todo: Message) -> Message:
    named = (("content", todo.get("description", todo.get("content"))), ("status", todo.get("status")))
    return {name: value for name, value in named if type(value) is str}


class Pairs:
    """Ids for calls among the parts that have none, and for the responses to them, which follow in their order."""

    def __init__(self) -> None:
        self._open: dict[JSON, list[str]] = {}

    def name(self, message: Message) -> None:
        """Give ids to the calls and responses of a message that lack them."""
        for number, block in enumerate(message["content"]):
            if block["type"] not in ("tool_use", "tool_result") or block["tool_id"] is not None:
                continue
            waiting = self._open.setdefault(block.get("tool_name"), [])
            if block["type"] == "tool_use":
                waiting.append(f"{message['uuid']}:part{number}")
                block["tool_id"] = waiting[-1]
            elif waiting:
                block["tool_id"] = waiting.pop(0)


def unfolded(units: Iterable[Step]) -> Iterator[Step]:
    """The units as the tables know them, with each answer back in the message it was taken from."""
    held: Message | None = None
    for is_message, value in units:
        if held is not None:
            joined = is_message and own_extension(value, AGENT).get("joined")
            yield True, unfold(held, value["content"] if joined else [])
            held = None
            if joined:
                continue
        if is_message:
            held = value
        else:
            yield False, value
    if held is not None:
        yield True, unfold(held, [])


def unfold(message: Message, results: list[Message]) -> Message:
    """The message as the tables know it."""
    message = without_derived(message, AGENT)
    own = own_extension(message, AGENT)
    content, thoughts, calls = [], list(own.get("thoughts", ())), []
    for block in message["content"]:
        is_part = PART in own_extension(block, AGENT)
        if block["type"] == "thinking" and not is_part and message["role"] == "assistant":
            thoughts.append(block)
        elif block["type"] == "tool_use" and not is_part:
            calls.append(block)
        else:
            content.append(block)
    for at, block in own.get("hidden", ()):
        content.insert(at, block)
    left = iter(results)
    message["content"] = content
    message[THOUGHTS], message[CALLS] = thoughts, [_joined(call, left) for call in calls]
    return message


def _joined(call: Message, results: Iterator[Message]) -> Message:
    """The call as one record with its result."""
    own = own_extension(call, AGENT)
    call = without_derived(call, AGENT)
    if "status" in own:
        call[STATUS] = own["status"]
        if "output" in own:
            call["output"] = own["output"]
        return call
    result = own.get("result") or (None if "open" in own else next(results, None))
    if result is None:
        return call
    if "output" in result:
        call["output"] = result["output"]
    if "is_error" in result:
        failed = "error" if result["is_error"] else "success"
        call[STATUS] = own_extension(result, AGENT).get("status", failed)
    return call
