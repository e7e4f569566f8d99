"""Regular lines the quick way: values that need no look inside go over as they are spelled.

A line is regular when it is one of a few kinds, has known keys only, in a known order, and would be spelled by us as
it is: then a struct takes it apart and gives it back byte for byte. All other lines take the general way, by tables.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec import UNSET, Raw, UnsetType

from clew.agents.codex.outcome import outcome_of_line
from clew.agents.codex.parts import parse_arguments
from clew.agents.codex.shape import note_outcome
from clew.agents.codex.tables import AGENT, inert_events
from clew.agents.folding import Message
from clew.agents.orders import Order
from clew.io.codec import NOT_JSON, dumps, loads
from clew.model.json import JSON

if TYPE_CHECKING:
    from clew.agents.codex.reading import CodexReading

_PASSED = "internal_chat_message_metadata_passthrough"
_LINE: Order = ("timestamp", "ordinal", "type", "payload", "metadata")
_NAMED_FIRST: Order = ("type", "id", "name", "call_id", "arguments", _PASSED, "metadata")
_RESULT: Order = ("type", "id", "call_id", "output", _PASSED, "metadata")
_MESSAGE: Order = ("type", "id", "role", "content", "phase", _PASSED, "metadata")
_CUSTOM: Order = ("type", "id", "status", "call_id", "name", "input", _PASSED, "metadata")
ORDERS: dict[str, list[Order]] = {
    "line": [_LINE],
    "line.function_call": [_LINE],
    "line.function_call_output": [_LINE],
    "line.custom_tool_call_output": [_LINE],
    "line.reasoning": [_LINE],
    "line.message": [_LINE],
    "line.custom_tool_call": [_LINE],
    "message": [_MESSAGE],
    "text": [("type", "text")],
    "custom_tool_call": [_CUSTOM],
    "function_call_output": [_RESULT],
    "custom_tool_call_output": [_RESULT],
    "reasoning": [("type", "id", "summary", "content", "encrypted_content", _PASSED, "metadata")],
}
"""The usual order of keys."""

_ODD = re.compile(rb"\\(?:/|u(?!00(?:0[0-7bef]|1[0-9a-f])))").search
"""An escape that we would not write."""
_BEGINS = re.compile(
    rb'\{"timestamp":"([^"]{10}T[^"]{12}Z)",(?:"ordinal":(\d+),)?"type":"(event_msg|response_item)",'
    rb'"payload":(?=\{"type":"(\w+)")'
).match
_OUTPUT = b'"output":"'
_QUOTE = ord('"')
_INERT = {name.encode(): kind.encode() for name, kind in inert_events().items()}
_encode_into = msgspec.json.Encoder().encode_into


class _Thought(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    type: Literal["summary_text"]
    text: Raw


class _Reasoning(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    type: Literal["reasoning"]
    id: str | UnsetType = UNSET
    summary: list[_Thought] = []
    content: None | UnsetType = UNSET
    encrypted_content: Raw | UnsetType = UNSET
    internal_chat_message_metadata_passthrough: dict[str, Any] | UnsetType = UNSET
    metadata: dict[str, Any] | UnsetType = UNSET


class _Call(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    type: Literal["function_call"]
    id: str | UnsetType = UNSET
    name: str | UnsetType = UNSET
    arguments: str | UnsetType = UNSET
    call_id: str | UnsetType = UNSET
    internal_chat_message_metadata_passthrough: dict[str, Any] | UnsetType = UNSET
    metadata: dict[str, Any] | UnsetType = UNSET


class _CallNamedFirst(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """The same, with the id of the call before its arguments."""

    type: Literal["function_call"]
    id: str | UnsetType = UNSET
    name: str | UnsetType = UNSET
    call_id: str | UnsetType = UNSET
    arguments: str | UnsetType = UNSET
    internal_chat_message_metadata_passthrough: dict[str, Any] | UnsetType = UNSET
    metadata: dict[str, Any] | UnsetType = UNSET


class _Result(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    type: Literal["function_call_output", "custom_tool_call_output"]
    id: str | UnsetType = UNSET
    call_id: str | UnsetType = UNSET
    output: Raw | UnsetType = UNSET
    internal_chat_message_metadata_passthrough: dict[str, Any] | UnsetType = UNSET
    metadata: dict[str, Any] | UnsetType = UNSET


class _Words(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    type: Literal["output_text"]
    text: Raw


class _Answer(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    type: Literal["message"]
    id: str | UnsetType = UNSET
    role: Literal["assistant"] | UnsetType = UNSET
    content: list[_Words] | UnsetType = UNSET
    phase: str | UnsetType = UNSET
    internal_chat_message_metadata_passthrough: dict[str, Any] | UnsetType = UNSET
    metadata: dict[str, Any] | UnsetType = UNSET


class _Custom(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    type: Literal["custom_tool_call"]
    id: str | UnsetType = UNSET
    status: str | UnsetType = UNSET
    call_id: str | UnsetType = UNSET
    name: str | UnsetType = UNSET
    input: Raw | UnsetType = UNSET
    internal_chat_message_metadata_passthrough: dict[str, Any] | UnsetType = UNSET
    metadata: dict[str, Any] | UnsetType = UNSET


def _decoder(payload: Any) -> Any:
    fields: list[Any] = [("timestamp", str), ("ordinal", int | UnsetType, UNSET)]
    fields += [("type", str, ""), ("payload", payload, None)]
    struct = msgspec.defstruct("Line", fields, forbid_unknown_fields=True, gc=False)
    return msgspec.json.Decoder(struct).decode


_SHAPES: dict[bytes, tuple[tuple[str, Any, Order], ...]] = {
    b"reasoning": (("reasoning", _decoder(_Reasoning), ORDERS["reasoning"][0]),),
    b"function_call": (
        ("function_call", _decoder(_Call), ("type", "id", "name", "arguments", "call_id", _PASSED, "metadata")),
        (
            "function_call",
            _decoder(_CallNamedFirst),
            ("type", "id", "name", "call_id", "arguments", _PASSED, "metadata"),
        ),
    ),
    b"message": (("message", _decoder(_Answer), _MESSAGE),),
    b"custom_tool_call": (("custom_tool_call", _decoder(_Custom), _CUSTOM),),
    b"function_call_output": (("function_call_output", _decoder(_Result), _RESULT),),
    b"custom_tool_call_output": (("custom_tool_call_output", _decoder(_Result), _RESULT),),
}
_DAMAGED = (*NOT_JSON, msgspec.ValidationError)
_Make = Callable[[Any, bytes, int, dict[str, JSON]], list[Message] | None]
"""From an item, its line and where it begins there to its blocks; what else it says is put aside."""


class Regular:
    """Takes the regular lines of one rollout."""

    def __init__(self, reading: CodexReading, between: bytes) -> None:
        self._reading, self._between = reading, between
        self._numbers: dict[Order, int | list[str]] = {}
        self._spelled = bytearray()
        self._makers: dict[bytes, _Make] = {
            b"reasoning": self._thoughts,
            b"function_call": self._call,
            b"custom_tool_call": self._custom,
            b"message": self._answer,
            b"function_call_output": self._result,
            b"custom_tool_call_output": self._result,
        }

    def take(self, text: bytes, line: int, messages: bytearray, records: bytearray) -> bool:
        """Append what a line becomes; False: it must take the general way."""
        begins = _BEGINS(text)
        if begins is None:
            return False
        time, ordinal, sort, name = begins.groups()
        if sort == b"event_msg":
            kind = _INERT.get(name)
            if kind is None or line in self._reading.outline.lone:
                return False
            return self._event(text, begins.end(), time, ordinal, kind, records)
        make = self._makers.get(name)
        if make is None or _ODD(text) or not (text.isascii() or _is_utf8(text)):
            return False
        message = self._item(text, name, begins.end(), make)
        if message is None:
            return False
        self._reading.settle(message, name.decode(), line)
        _encode_into(message, messages, -1)
        messages += self._between
        return True

    def _event(self, text: bytes, at: int, time: bytes, ordinal: bytes | None, kind: bytes, records: bytearray) -> bool:
        """An event goes over whole."""
        try:
            value = loads(text)
            spelled = dumps(value)
        except _DAMAGED:
            return False
        if len(spelled) + 1 != len(text) or not text.startswith(spelled) or len(value) != (4 if ordinal else 3):
            return False
        number = b'"ordinal":%b,' % ordinal if ordinal else b""
        told = (self._reading.index, kind, time, number, text[at:-2], self._between)
        records += (
            b'{"after":%d,"kind":"%b","type":"event_msg","timestamp":"%b",'
            b'"extensions":{"codex":{"rest":{%b"payload":%b}}}}%b' % told
        )
        return True

    def _item(self, text: bytes, name: bytes, at: int, make: _Make) -> Message | None:
        spelled = self._spelled
        for table, decode, order in _SHAPES[name]:
            try:
                line = decode(text)
            except _DAMAGED:
                continue
            _encode_into(line, spelled)
            if len(spelled) + 1 == len(text) and text.startswith(spelled):
                return self._message(line, text, at, make, table, order)
        return None

    def _message(self, line: Any, text: bytes, at: int, make: _Make, table: str, order: Order) -> Message | None:
        rest: dict[str, JSON] = {}
        item = line.payload
        content = make(item, text, at, rest)
        number = self._numbers.get(order)
        if number is None:
            number = self._numbers[order] = self._reading.context.orders.learn(table, order)
        if content is None or type(number) is not int:
            return None
        if item.internal_chat_message_metadata_passthrough is not UNSET:
            rest[_PASSED] = item.internal_chat_message_metadata_passthrough
        if item.metadata is not UNSET:
            rest["metadata"] = item.metadata
        role = "user" if table.endswith("output") else "assistant"
        message: Message = {"index": 0, "role": role, "timestamp": line.timestamp, "content": content}
        if item.id is not UNSET:
            message["uuid"] = item.id
        if rest or number or line.ordinal is not UNSET:
            message["extensions"] = {AGENT: _noted(rest, line.ordinal, {table: number} if number else None)}
        return message

    def _result(self, item: _Result, text: bytes, at: int, rest: dict[str, JSON]) -> list[Message] | None:
        begin = text.find(_OUTPUT, at)
        if begin < 0 or item.call_id is UNSET or item.output is UNSET or not _is_text(item.output):
            return None
        if item.type != "function_call_output":
            rest["type"] = item.type
        call = item.call_id
        block: Message = {"type": "tool_result", "tool_id": call, "tool_name": self._reading.calls.get(call)}
        block["output"] = item.output
        note_outcome(block, outcome_of_line(text, begin + len(_OUTPUT)))
        return [block]

    def _call(self, item: _Call, text: bytes, at: int, rest: dict[str, JSON]) -> list[Message] | None:
        if item.name is UNSET or item.arguments is UNSET or item.call_id is UNSET:
            return None
        parsed = parse_arguments(item.arguments)
        if type(parsed) is not str and dumps(parsed) != item.arguments.encode():
            rest["arguments"] = item.arguments
        self._reading.calls[item.call_id] = item.name
        return [{"type": "tool_use", "tool_id": item.call_id, "tool_name": item.name, "input": parsed}]

    def _custom(self, item: _Custom, text: bytes, at: int, rest: dict[str, JSON]) -> list[Message] | None:
        if item.name is UNSET or item.call_id is UNSET or item.input is UNSET or not _is_text(item.input):
            return None
        rest["type"] = item.type
        if item.status is not UNSET:
            rest["status"] = item.status
        self._reading.calls[item.call_id] = item.name
        given = {"input": item.input}
        return [{"type": "tool_use", "tool_id": item.call_id, "tool_name": item.name, "input": given}]

    def _answer(self, item: _Answer, text: bytes, at: int, rest: dict[str, JSON]) -> list[Message] | None:
        words = item.content
        if item.role is UNSET or words is UNSET or not all(_is_text(word.text) for word in words):
            return None
        if item.phase is not UNSET:
            rest["phase"] = item.phase
        return [{"type": "text", "text": word.text} for word in words]

    def _thoughts(self, item: _Reasoning, text: bytes, at: int, rest: dict[str, JSON]) -> list[Message] | None:
        if not item.summary or not all(_is_text(thought.text) for thought in item.summary):
            return None
        blocks: list[Message] = [{"type": "thinking", "thinking": thought.text} for thought in item.summary]
        if item.encrypted_content is not UNSET:
            if not _is_text(item.encrypted_content):
                return None
            blocks[0]["signature"] = item.encrypted_content
        if item.content is not UNSET:
            rest["content"] = None
        return blocks


def _noted(rest: dict[str, JSON], ordinal: Any, order: dict[str, int] | None) -> dict[str, JSON]:
    """What the model has no place for."""
    kept: dict[str, JSON] = {"payload": rest} if rest else {}
    if ordinal is not UNSET:
        kept["ordinal"] = ordinal
    noted: dict[str, JSON] = {"rest": kept} if kept else {}
    if order is not None:
        noted["order"] = order
    return noted


def _is_text(value: Raw) -> bool:
    return memoryview(value)[0] == _QUOTE


def _is_utf8(text: bytes) -> bool:
    """Text that is not looked into must still be text."""
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True
