"""Tool calls with their results inside them, and back again, exactly.

In the grouped view a `tool_use` block has `results`: a list of `{"at": [message, block], "block": {...}}`,
where `at` says which place of the ungrouped list the result came from. A message that held nothing but results
travels with the first of them as `message`; all others stay where they are, without those blocks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from clew.model.json import JSON

_Message = dict[str, JSON]


def group_tools(messages: Sequence[_Message]) -> list[_Message]:
    """Each result inside the call it answers; a result without its call stays a message."""
    calls = _calls(messages)
    results: dict[tuple[int, int], list[_Message]] = {}
    moved: set[tuple[int, int]] = set()
    for at, message in enumerate(messages):
        answers = [place for place in enumerate(message["content"]) if _answers(place[1], calls)]
        for number, (position, block) in enumerate(answers):
            entry: _Message = {"at": [at, position], "block": block}
            if number == 0 and len(answers) == len(message["content"]):
                entry["message"] = {key: value for key, value in message.items() if key != "content"}
            results.setdefault(calls[block["tool_id"]], []).append(entry)
            moved.add((at, position))
    return [
        _regrouped(message, at, results, moved)
        for at, message in enumerate(messages)
        if not message["content"] or any((at, n) not in moved for n in range(len(message["content"])))
    ]


def _calls(messages: Sequence[_Message]) -> dict[str, tuple[int, int]]:
    """Place of the first call of each id."""
    calls: dict[str, tuple[int, int]] = {}
    for at, message in enumerate(messages):
        for position, block in enumerate(message["content"]):
            if block["type"] == "tool_use" and block.get("tool_id") is not None:
                calls.setdefault(block["tool_id"], (at, position))
    return calls


def _answers(block: _Message, calls: dict[str, tuple[int, int]]) -> bool:
    return bool(block["type"] == "tool_result" and block.get("tool_id") in calls)


def _regrouped(
    message: _Message, at: int, results: dict[tuple[int, int], list[_Message]], moved: set[tuple[int, int]]
) -> _Message:
    content = [
        {**block, "results": results[at, position]} if (at, position) in results else block
        for position, block in enumerate(message["content"])
        if (at, position) not in moved
    ]
    return {**message, "content": content}


def ungroup_tools(grouped: Iterable[_Message]) -> list[_Message]:
    """The messages as they were before group_tools."""
    staying: list[_Message] = []
    moved: dict[int, list[tuple[int, _Message]]] = {}
    envelopes: dict[int, _Message] = {}
    for message in grouped:
        staying.append({**message, "content": [_without_results(block) for block in message["content"]]})
        for entry in (entry for block in message["content"] for entry in block.get("results", ())):
            at, position = entry["at"]
            moved.setdefault(at, []).append((position, entry["block"]))
            if "message" in entry:
                envelopes[at] = entry["message"]
    return _woven(staying, moved, envelopes)


def _without_results(block: _Message) -> _Message:
    return {key: value for key, value in block.items() if key != "results"} if "results" in block else block


def _woven(
    staying: list[_Message], moved: dict[int, list[tuple[int, _Message]]], envelopes: dict[int, _Message]
) -> list[_Message]:
    remaining = iter(staying)
    messages: list[_Message] = []
    for at in range(len(staying) + len(envelopes)):
        message = _order(envelopes[at]) if at in envelopes else next(remaining)
        content = message["content"]
        for position, block in sorted(moved.get(at, ()), key=lambda pair: pair[0]):
            content.insert(position, block)
        messages.append(message)
    return messages


def _order(envelope: _Message) -> _Message:
    """The envelope with room for its content, where the document has it: before the metadata."""
    message: _Message = {}
    for key, value in envelope.items():
        if key in ("metadata", "extensions"):
            message.setdefault("content", [])
        message[key] = value
    message.setdefault("content", [])
    return message
