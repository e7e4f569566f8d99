"""The interface of a wire protocol: decoding the requests of a client, and encoding the turns of the scripted model."""

from __future__ import annotations

import json
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple, Protocol

from tests.realclients.history import JSON, Entry
from tests.realclients.script import Turn


class Answer(NamedTuple):
    """The body of a reply and its media type."""

    body: bytes
    media_type: str = "application/json"


class Wire(Protocol):
    """One protocol."""

    def answer_side_request(self, path: str, body: JSON) -> Answer | None:
        """The answer to a request outside of a conversation, as for a title; None for one of a conversation."""
        ...

    def is_conversation(self, path: str) -> bool:
        """Whether requests to this path hold a conversation."""
        ...

    def tool_names(self, body: JSON) -> set[str]:
        """The names of the tools that the request offers."""
        ...

    def decode_history(self, body: JSON) -> list[Entry]:
        """The conversation in the request, without texts that the client adds on its own."""
        ...

    def violations(self, body: JSON) -> Iterator[str]:
        """Why the real service would refuse the request."""
        ...

    def encode_turn(self, path: str, body: JSON, turn: Turn) -> Answer:
        """The reply for a turn."""
        ...


def json_answer(value: JSON) -> Answer:
    """One JSON value."""
    return Answer(json.dumps(value).encode())


def named_events(events: Iterable[tuple[str, dict[str, JSON]]]) -> Answer:
    """Server-sent events that carry their name twice."""
    lines = [f"event: {name}\ndata: {json.dumps({'type': name, **value})}\n\n" for name, value in events]
    return Answer("".join(lines).encode(), "text/event-stream")


def unnamed_events(values: Iterable[JSON]) -> Answer:
    """Server-sent events without names."""
    return Answer("".join(f"data: {json.dumps(value)}\n\n" for value in values).encode(), "text/event-stream")


def new_id(prefix: str, length: int = 24) -> str:
    """A new id."""
    return f"{prefix}{uuid.uuid4().hex[:length]}"


def unpaired_calls(calls: Iterable[str], results: Iterable[str]) -> Iterator[str]:
    """Calls without a result, results without a call, and either of them twice."""
    asked, given = Counter(calls), Counter(results)
    for one in sorted(asked.keys() | given.keys()):
        if (asked[one], given[one]) != (1, 1):
            yield f"call {one}: {asked[one]} calls, {given[one]} results"
