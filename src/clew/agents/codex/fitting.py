"""What becomes of the items of regular lines, one after the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import UNSET

from clew.agents.codex import known, made
from clew.agents.codex.known import PASSED, is_known, is_text
from clew.agents.codex.made import Kept
from clew.agents.codex.shape import DONE
from clew.agents.codex.words import INJECTED
from clew.agents.orders import Order
from clew.graph.links import MESSAGE, RESULT, SAID, SIGNIFICANT

if TYPE_CHECKING:
    from clew.agents.codex.reading import CodexReading

ANSWERED, SPOKEN = MESSAGE | SAID | RESULT, MESSAGE | SAID | SIGNIFICANT
"""Flags of a tool's result, and of what user and model say and do."""
_INJECTED = tuple(text.encode() for text in INJECTED)
_SPAWN = "spawn_agent"
_CALL_FIRST: Order = ("type", "name", "call_id", "arguments")
_CALL_LAST: Order = ("type", "name", "arguments", "call_id")
_TYPED = {known.CustomOutput: Kept(type="custom_tool_call_output")}
"""What is kept of every item of a kind."""
_NULL = Kept(content=None)

Fitted: TypeAlias = tuple[str, list[Any], Any, Any, int]
"""Role, content, what the model has no place for, metadata and flags of a message."""


class Fitting:
    """Says of each item what message it becomes; items that do not fit take the general way."""

    def __init__(self, reading: CodexReading, awaited: dict[str, str | None] | None) -> None:
        self._reading, self._thread, self._calls = reading, reading.thread, reading.calls
        self._repeated, self._prefix = reading.outline.repeated, reading.thread.prefix
        self._watches = awaited is not None
        self._awaited = awaited if awaited is not None else {}
        self._model: Any = UNSET
        self._level: Any = UNSET
        self._described: tuple[str | None, str | None] = (None, None)
        """Model and effort that the two above say."""
        self._call_keys: Order = ()
        """The keys of the last call."""
        self._orders: dict[tuple[str, Order], bool] = {}

    def result(self, payload: Any) -> Fitted | None:
        call = payload.call_id
        if call in self._awaited or not self._may_be(payload):
            return None
        block = made.result(call, self._calls.get(call), payload.output)
        if block is None:
            return None
        kept: Any = _TYPED.get(type(payload), UNSET)
        if not payload.passed is UNSET is payload.metadata:
            kept = _kept(payload, UNSET if kept is UNSET else kept.type)
        return "user", [block], kept, self._news() if self._thread.has_news else UNSET, ANSWERED

    def call(self, payload: Any) -> Fitted | None:
        name, call = payload.name, payload.call_id
        keys = _CALL_FIRST if type(payload) is known.Call else _CALL_LAST
        if not payload.id is UNSET is payload.passed is payload.metadata:
            keys = _call_keys(keys, payload)
        if (name == _SPAWN and self._watches) or not self._may_be(payload):
            return None
        if keys is not self._call_keys:
            if not self.is_usual("function_call", keys):
                return None
            self._call_keys = keys
        given, spelled = made.given(payload.arguments)
        # Now and then the oldest of them are forgotten.
        dict.__setitem__(self._calls, call, name)
        kept: Any = UNSET
        if spelled is not UNSET or not payload.passed is UNSET is payload.metadata:
            kept = _kept(payload)
            kept.arguments = spelled
        return "assistant", [made.Use(call, name, given)], kept, self._metadata(None), SPOKEN

    def custom(self, payload: known.CustomCall) -> Fitted | None:
        if (payload.name == _SPAWN and self._watches) or not self._may_be(payload) or not is_text(payload.input):
            return None
        dict.__setitem__(self._calls, payload.call_id, payload.name)
        kept = _kept(payload, "custom_tool_call", payload.status)
        content = [made.Use(payload.call_id, payload.name, made.Given(payload.input))]
        return "assistant", content, kept, self._metadata(None), SPOKEN

    def spoken(self, payload: known.Spoken) -> Fitted | None:
        if len(payload.content) != 1 or not self._may_be(payload):
            return None
        words, phase = payload.content[0], payload.phase
        if not is_text(words.text):
            return None
        is_bare = phase is UNSET is payload.passed is payload.metadata
        if payload.role == "user" and words.type == "input_text":
            if not is_bare or bytes(words.text).startswith(_INJECTED, 1):
                return None
            return "user", [made.Text(words.text)], UNSET, self._news(), SPOKEN
        if payload.role != "assistant" or words.type != "output_text":
            return None
        kept: Any = UNSET
        if not is_bare:
            kept = _kept(payload)
            kept.phase = phase
        stop = DONE.get(phase) if phase is not UNSET else None
        return "assistant", [made.Text(words.text)], kept, self._metadata(stop), SPOKEN

    def thoughts(self, payload: known.Reasoning) -> Fitted | None:
        blocks = made.thoughts(payload)
        if blocks is None or not self._may_be(payload):
            return None
        kept: Any = UNSET
        if not payload.passed is UNSET is payload.metadata or not payload.summary:
            kept = _kept(payload)
            kept.content, kept.summary = payload.content, UNSET if payload.summary else ()
        elif payload.content is None:
            kept = _NULL
        return "assistant", blocks, kept, self._metadata(None), SPOKEN

    def is_usual(self, table: str, keys: Order) -> bool:
        """True where keys stand in the first order of their kind, which they may be the first to tell."""
        known_already = self._orders.get((table, keys))
        if known_already is None:
            known_already = self._reading.context.orders.learn(table, keys) == 0
            self._orders[table, keys] = known_already
        return known_already

    def _news(self) -> Any:
        return self._thread.news() or UNSET

    def _metadata(self, stop: str | None) -> Any:
        """What is known of an answer."""
        thread = self._thread
        if stop is not None or thread.has_news:
            return {**thread.news(), **self._reading.answered(stop)} or UNSET
        if thread.model is not self._described[0] or thread.effort is not self._described[1]:
            self._described = thread.model, thread.effort
            self._model = made.Model(thread.model) if thread.model else UNSET
            self._level = made.Level(thread.effort) if thread.effort else UNSET
        return UNSET if self._model is UNSET is self._level else made.Answered(self._model, self._level)

    def _may_be(self, payload: Any) -> bool:
        """True for an item whose id, if it has one, can be that of a message, and with nothing odd at its end."""
        own, passed, metadata = payload.id, payload.passed, payload.metadata
        if own is UNSET is passed is metadata:
            return True
        if own is not UNSET and (not own or own in self._repeated or own.startswith(self._prefix)):
            return False
        return all(raw is UNSET or _is_object(bytes(raw)) for raw in (passed, metadata))


FITS: dict[type, Callable[[Fitting, Any], Fitted | None]] = {
    known.Reasoning: Fitting.thoughts,
    known.Call: Fitting.call,
    known.LateCall: Fitting.call,
    known.CustomCall: Fitting.custom,
    known.Spoken: Fitting.spoken,
    known.Output: Fitting.result,
    known.CustomOutput: Fitting.result,
}


def _is_object(text: bytes) -> bool:
    """True for an object that we would spell like this."""
    return text.startswith(b"{") and is_known(text)


def _kept(payload: Any, sort: Any = UNSET, status: Any = UNSET) -> Kept:
    """What the model has no place for in an item."""
    return Kept(sort, status, UNSET, UNSET, payload.passed, payload.metadata)


def _call_keys(keys: Order, payload: Any) -> Order:
    own = ("id",) if payload.id is not UNSET else ()
    more = [name for name, raw in ((PASSED, payload.passed), ("metadata", payload.metadata)) if raw is not UNSET]
    return (keys[0], *own, *keys[1:], *more)
