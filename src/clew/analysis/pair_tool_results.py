"""Messages with the results of their tool calls, as they come: a result goes to its call, wherever it stands.

Only messages whose calls still wait are held, and no more than a few: a result that takes longer stays where it is.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from types import MappingProxyType
from typing import Any

import msgspec

from clew.model.json import JSON

WINDOW = 32
"""So many messages wait for results at most."""
MAX_LATE = 10_000
"""So many calls without a result are remembered."""


class Answer(msgspec.Struct, frozen=True, gc=False):
    """A result, and the message it came in."""

    message: dict[str, JSON]
    block: dict[str, JSON]


_NOTHING: Any = MappingProxyType({})
"""Most messages have no answers: these share it."""


class Joined(msgspec.Struct, gc=False):
    """A message; results by the place of their call, and the places of results that went to calls."""

    message: dict[str, JSON]
    answers: dict[int, Answer] = _NOTHING
    moved: dict[int, None] = _NOTHING
    late: dict[int, int] = _NOTHING
    """By the place of a result that came late: the index of the message with its call."""
    waiting: int = 0


def joined(messages: Iterable[dict[str, JSON]]) -> Iterator[Joined]:
    """Every message, in order, once its calls have their results."""
    joiner = _Joiner()
    take = joiner.take
    queue: deque[Joined] = deque()
    for message in messages:
        entry = take(message)
        if not queue:
            if entry.waiting:
                queue.append(entry)
            else:
                yield entry
            continue
        queue.append(entry)
        while queue:
            entry = queue[0]
            if entry.waiting:
                if len(queue) <= WINDOW:
                    break
                joiner.leave(entry)
            yield queue.popleft()
    yield from queue


class _Joiner:
    """The calls that wait."""

    def __init__(self) -> None:
        self._waiting: dict[str, tuple[Joined, int]] = {}
        self._late: dict[str, int] = {}

    def take(self, message: dict[str, JSON]) -> Joined:
        entry = Joined(message)
        place = -1  # counted by hand: nearly all messages have one block
        for block in message["content"]:
            place += 1
            kind = block["type"]
            if kind == "tool_use":
                key = block.get("tool_id")
                if key is not None and key not in self._waiting:
                    self._waiting[key] = entry, place
                    entry.waiting += 1
            elif kind == "tool_result":
                self._answer(entry, place, block)
        return entry

    def _answer(self, entry: Joined, place: int, block: dict[str, JSON]) -> None:
        key = block.get("tool_id") or ""
        asked = self._waiting.pop(key, None)
        if asked is not None:
            call, at = asked
            call.waiting -= 1
            answer = Answer(entry.message, block)
            if call.answers:
                call.answers[at] = answer
            else:
                call.answers = {at: answer}
            if entry.moved:
                entry.moved[place] = None
            else:
                entry.moved = {place: None}
        elif key in self._late:
            entry.late = entry.late or {}
            entry.late[place] = self._late.pop(key)

    def leave(self, entry: Joined) -> None:
        """A message goes though its calls still wait."""
        for key in [key for key, (call, _) in self._waiting.items() if call is entry]:
            del self._waiting[key]
            self._late[key] = entry.message["index"]
        while len(self._late) > MAX_LATE:
            del self._late[next(iter(self._late))]
