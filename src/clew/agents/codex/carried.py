"""Lines that are no message: what they say goes over as it is spelled."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec
from msgspec import UNSET, Raw, UnsetType

from clew.agents.codex import spelling
from clew.agents.codex.lines import Tokens
from clew.agents.codex.tables import STATE_KEYS, inert_events
from clew.agents.codex.watch import Watch
from clew.agents.orders import Order
from clew.io.codec import dumps, loads

if TYPE_CHECKING:
    from clew.agents.codex.reading import CodexReading

_INERT = {name.encode(): kind.encode() for name, kind in inert_events().items()}
_TOLD = frozenset(b"collab_agent_spawn_end sub_agent_activity".split())
"""Inert events that a document's header knows of."""
_REASONING = b'{"type":"agent_reasoning","text":'


class _Info(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    total_token_usage: Tokens | None = None
    last_token_usage: Tokens | None = None
    model_context_window: int | None | UnsetType = UNSET


class _TokenCount(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    type: str
    info: _Info | None
    rate_limits: Raw | UnsetType = UNSET


class _Words(msgspec.Struct, gc=False):
    message: Raw | UnsetType = UNSET


_read_count = msgspec.json.Decoder(_TokenCount).decode
_read_words = msgspec.json.Decoder(_Words).decode
Found = re.Match[bytes]


class Carried:
    """Makes records of the regular lines of one rollout. Whoever watches is told what the facts want to know."""

    def __init__(self, reading: CodexReading, between: bytes, watch: Watch | None) -> None:
        self.records: list[bytes] = []
        """Pieces of text."""
        self._reading, self._between, self._watch = reading, between, watch
        self._outline = reading.outline
        self._orders: dict[tuple[str, Order], bool] = {}

    def _event(self, text: bytes, line: int, name: bytes) -> bool:
        """An event goes over whole."""
        found, kind = spelling.EVENT(text), _INERT.get(name)
        if found is None or kind is None or line in self._outline.lone or not text.endswith(b"}}\n"):
            return False
        payload = text[found.end() : -2]
        if not (name == b"agent_reasoning" and _is_one_text(payload)) and not spelling.is_ours(payload):
            return False
        if self._watch is not None:
            self._tell(self._watch, text, name, payload, found[1])
        self._record(found, kind, b"event_msg", payload)
        return True

    def _tell(self, watch: Watch, text: bytes, name: bytes, payload: bytes, time: bytes) -> None:
        if name in _TOLD:
            watch.look(text)
            return
        if name == b"user_message" or name == b"agent_message":
            message = _read_words(payload).message
            if message is not UNSET:
                watch.twins.saw_event(watch.scanner.line, name.decode(), bytes(message))
        watch.pass_by(time)

    def _tokens(self, text: bytes, line: int) -> bool:
        found, watch = spelling.EVENT(text), self._watch
        if found is None or not text.endswith(b"}\n"):
            return False
        payload = text[found.end() : -2]
        try:
            count = _read_count(payload)
            limits = count.rate_limits
            is_usual = dumps(count) == payload and (limits is UNSET or spelling.is_known(bytes(limits)))
        except spelling.DAMAGED:
            is_usual = False
        if not is_usual and not spelling.is_ours(payload):
            return False
        if watch is not None and not is_usual:
            watch.look(text)
        elif watch is not None:
            watch.pass_by(found[1])
            if count.info is not None:
                watch.scanner.spent(count.info.total_token_usage, count.info.last_token_usage)
        self._record(found, b"cost", b"event_msg", payload)
        return True

    def _state(self, text: bytes) -> bool:
        """What holds for the messages to come: only keys that are known, and in the usual order."""
        found = spelling.STATE(text)
        if found is None or not text.endswith(b"}}\n"):
            return False
        payload, name = text[found.end() : -2], found[3].decode()
        try:
            told = loads(payload)
            if dumps(told) != payload:
                return False
        except spelling.DAMAGED:
            return False
        keys = tuple(told)
        outer: Order = ("timestamp", "ordinal", "type", "payload") if found[2] else ("timestamp", "type", "payload")
        if not keys or not STATE_KEYS[name].issuperset(keys):
            return False
        if not (self._is_usual(name, outer) and self._is_usual(name + ".payload", keys)):
            return False
        if self._watch is not None:
            self._watch.state(text, found[1], name, told)
        self._reading.note_record({"type": name, "payload": told})
        self._record(found, b"state", found[3], payload)
        return True

    def _record(self, found: Found, kind: bytes, sort: bytes, payload: bytes) -> None:
        time, ordinal = found[1], found[2]
        number = b'"ordinal":%b,' % ordinal if ordinal else b""
        self.records.append(
            b'{"after":%d,"kind":"%b","type":"%b","timestamp":"%b","extensions":{"codex":{"rest":{%b"payload":%b}}}}%b'
            % (self._reading.index, kind, sort, time, number, payload, self._between)
        )

    def _is_usual(self, table: str, keys: Order) -> bool:
        """True where keys stand in the first order of their kind, which they may be the first to tell."""
        known = self._orders.get((table, keys))
        if known is None:
            known = self._orders[table, keys] = self._reading.context.orders.learn(table, keys) == 0
        return known


def _is_one_text(payload: bytes) -> bool:
    """True for an event that is nothing but a text."""
    is_text = payload.startswith(_REASONING + b'"')
    return is_text and spelling.is_plain(payload) and spelling.is_string(payload[len(_REASONING) : -1])
