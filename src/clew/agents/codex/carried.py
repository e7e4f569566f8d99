"""Lines that are no message: what they say goes over as it is."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from msgspec import UNSET, Raw

from clew.agents.codex.fitting import Fitting
from clew.agents.codex.known import (
    DAMAGED,
    EVENT,
    AgentWords,
    Line,
    Thought,
    TokenCount,
    UserWords,
    envelope,
    is_known,
    is_text,
)
from clew.agents.codex.made import Ours, Own, Record, Rest
from clew.agents.codex.tables import STATE_KEYS, inert_events
from clew.agents.codex.watch import Watch
from clew.agents.orders import Order
from clew.io.codec import dumps, loads
from clew.model.json import JSON

if TYPE_CHECKING:
    from clew.agents.codex.reading import CodexReading

_INERT = inert_events()
_TOLD = frozenset("token_count user_message agent_message collab_agent_spawn_end sub_agent_activity".split())
"""Events that a document's header knows of."""
_TURN = "turn_context"
_KINDS: dict[type, str] = {
    TokenCount: _INERT["token_count"],
    Thought: _INERT["agent_reasoning"],
    UserWords: _INERT["user_message"],
    AgentWords: _INERT["agent_message"],
    Raw: "state",
}
_OUTER: Order = ("timestamp", "type", "payload")
_NUMBERED: Order = ("timestamp", "ordinal", "type", "payload")


class Carried:
    """Makes records of the regular lines of one rollout. Whoever watches is told what the facts want to know."""

    def __init__(self, reading: CodexReading, between: bytes, watch: Watch | None) -> None:
        self.records: list[Any] = []
        self._reading, self._between, self._watch = reading, between, watch
        self._outline = reading.outline
        self._fitting = Fitting(reading, watch.scanner.awaited if watch is not None else None)
        self._turn = b""
        """What the last turn said, if the same again would change nothing."""

    def _goes_over(self, found: Line, payload: Any, line: int) -> bool:
        """True for a line that needs nothing but to become a record."""
        if type(payload) is TokenCount:
            limits = payload.rate_limits
            return limits is UNSET or is_known(bytes(limits))
        if type(payload) is Raw:
            return found.type == _TURN and bytes(payload) == self._turn
        words = payload.text if type(payload) is Thought else payload.message
        return is_text(words) and line not in self._outline.lone

    def _carry(self, lines: list[Line], after: list[int]) -> None:
        """Make records of lines; what stands beside their time and type is left."""
        kinds = [_KINDS[type(line.payload)] for line in lines]
        rests = map(Rest, [line.ordinal for line in lines], [line.payload for line in lines])
        sorts, times = [line.type for line in lines], [line.timestamp for line in lines]
        self.records += map(Record, after, kinds, sorts, times, map(Ours, map(Own, rests)))
        if self._watch is not None:
            self._watch.pass_by(times[-1], len(lines))

    def _other(self, text: bytes, line: int) -> bool:
        """An event of any other kind goes over whole; False: the line must take the general way."""
        found = envelope(text)
        told = _told(bytes(found.payload)) if found is not None and found.type == EVENT else None
        name = told.get("type") if told is not None else None
        kind = _INERT.get(name) if type(name) is str else None
        if found is None or kind is None or line in self._outline.lone:
            return False
        watch = self._watch
        if watch is not None and name in _TOLD:
            watch.look(text, line)
        elif watch is not None:
            watch.pass_by(found.timestamp, 1)
        rest = Rest(found.ordinal, found.payload)
        self.records.append(Record(self._reading.index, kind, EVENT, found.timestamp, Ours(Own(rest))))
        return True

    def _state(self, found: Line, line: int) -> bool:
        """A line that says what holds for the messages to come: only keys that are known, and in the usual order."""
        name, told = str(found.type), None
        if type(found.payload) is Raw:
            payload = bytes(found.payload)
            told = _told_again(payload)
        if not told or not STATE_KEYS[name].issuperset(told):
            return False
        outer, is_usual = _OUTER if found.ordinal is UNSET else _NUMBERED, self._fitting.is_usual
        if not (is_usual(name, outer) and is_usual(name + ".payload", tuple(told))):
            return False
        if self._watch is not None:
            self._watch.state(line, found, told)
        self._reading.note_record({"type": name, "payload": told})
        self._turn = payload if name == _TURN else b""
        self._carry([found], [self._reading.index])
        return True


def _told(payload: bytes) -> dict[str, JSON] | None:
    """What a payload says; None where it is no object, or spelled in another way than ours."""
    try:
        told = loads(payload)
        return told if type(told) is dict and dumps(told) == payload else None
    except DAMAGED:
        return None


_told_again = lru_cache(16)(_told)
"""The same for what turns repeat."""
