"""The quick way for records of the usual shapes, many at a time.

Records take it only if their structs give the same bytes back; anything else takes the general way, which gives the
same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Generic, Literal, TypeVar

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, to_builtins

from clew.agents.gemini import tables
from clew.agents.mapping import Context, Table
from clew.agents.orders import Order, State
from clew.io.codec import NOT_JSON
from clew.model.json import JSON

_HEAD, _TAIL = b'{"messages":[', b"]}"
_OPEN, _CLOSE = b'{\n  "messages": [\n    ', b"\n  ]\n}"
_UNUSUAL = (*NOT_JSON, UnicodeEncodeError)
_MAX_KNOWN = 1000
_encoder = msgspec.json.Encoder()
encode = _encoder.encode
_format = msgspec.json.format


class Thought(Struct, gc=False):
    subject: str
    description: str
    timestamp: str


class Said(Struct, gc=False, forbid_unknown_fields=True):
    output: Any
    """A string; once it was read, as it is spelled."""


class Response(Struct, gc=False):
    id: str
    name: str
    response: Said


class Part(Struct, gc=False):
    functionResponse: Response


class Call(Struct, gc=False, forbid_unknown_fields=True):
    """A call that succeeded."""

    id: str
    name: str
    args: dict[str, JSON]
    result: list[Part]
    status: Literal["success"]
    timestamp: str
    resultDisplay: JSON
    description: str
    displayName: str
    renderOutputAsMarkdown: bool


class OtherCall(Struct, gc=False, forbid_unknown_fields=True):
    """The same in the other order that the client has."""

    id: str
    name: str
    args: dict[str, JSON]
    result: list[Part]
    status: Literal["success"]
    timestamp: str
    resultDisplay: JSON
    displayName: str
    description: str
    renderOutputAsMarkdown: bool


class Tokens(Struct, gc=False):
    input: int
    output: int
    cached: int
    thoughts: int
    tool: int
    total: int


class Patch(Struct, gc=False):
    lastUpdated: str


class _Line(Struct, gc=False, forbid_unknown_fields=True):
    patch: Patch | UnsetType = msgspec.field(default=UNSET, name=tables.PATCH)
    """Of a line that is no message."""
    id: str | UnsetType = UNSET
    timestamp: str | UnsetType = UNSET
    type: str | UnsetType = UNSET
    content: JSON | UnsetType = UNSET
    displayContent: JSON | UnsetType = UNSET
    thoughts: list[Thought] | UnsetType = UNSET
    tokens: Tokens | UnsetType = UNSET
    model: str | UnsetType = UNSET


class Line(_Line, gc=False, forbid_unknown_fields=True):
    """A message, or a line that says when the session was changed."""

    toolCalls: list[Call] | UnsetType = UNSET


class OtherLine(_Line, gc=False, forbid_unknown_fields=True):
    """The same with calls in the other order."""

    toolCalls: list[OtherCall] | UnsetType = UNSET


_AnyLine = TypeVar("_AnyLine")


class _Held(Struct, Generic[_AnyLine], gc=False):
    """Some elements of a document."""

    messages: list[_AnyLine]


class _Chat(Struct, Generic[_AnyLine], gc=False, forbid_unknown_fields=True):
    """A document."""

    sessionId: str
    projectHash: str
    startTime: str
    lastUpdated: str
    messages: list[_AnyLine]
    kind: str | UnsetType = UNSET


class _Sort:
    """The lines with calls in one of the orders."""

    def __init__(self, line: type[Struct]) -> None:
        self.lines = msgspec.json.Decoder(line).decode_lines
        self.held: Callable[[bytes], Any] = msgspec.json.Decoder(_Held[line]).decode  # type: ignore[valid-type]
        self.chat: Callable[[bytes], Any] = msgspec.json.Decoder(_Chat[line]).decode  # type: ignore[valid-type]


_sorts = [_Sort(Line), _Sort(OtherLine)]
"""The one that was met last is tried first."""

Use = tuple[str, bool, bool, bool]
"""What of the tables a message needs: its type, whether it has thoughts, calls, and those in the other order."""
_MESSAGE = ("id", "timestamp", "type", "content")
_REPLY = (*_MESSAGE, "thoughts", "tokens", "model")
_known: dict[tuple[Use, State], tuple[bool, State]] = {}
"""For an order of keys before a message the one behind it, and whether the message fits."""


class Quick:
    """Takes the lines of one source the quick way."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._fits: dict[Use, bool] = {}
        self._patches: bool | None = None

    def lines(self, text: bytes) -> list[Any] | None:
        """The structs of lines; None where there is one among them that has none."""
        for sort in tuple(_sorts):
            try:
                found = sort.lines(text)
                _spell_long(found)
                spelled = _encoder.encode_lines(found)
            except _UNUSUAL:
                continue
            if spelled == text:
                return _prefer(sort, found)
        return None

    def elements(self, piece: bytes) -> list[Any] | None:
        """The structs of elements as they stand in a document of the usual layout."""
        text = _HEAD + piece + _TAIL
        for sort in tuple(_sorts):
            try:
                found = sort.held(text)
                _spell_long(found.messages)
                spelled = _format(encode(found), indent=2)
            except _UNUSUAL:
                continue
            if len(spelled) == len(_OPEN) + len(piece) + len(_CLOSE) and spelled.startswith(piece, len(_OPEN)):
                return _prefer(sort, found.messages)
        return None

    def chat(self, raw: bytes) -> tuple[dict[str, JSON], list[Any]] | None:
        """The header of a whole document of the usual layout, and the structs of its elements."""
        for sort in tuple(_sorts):
            try:
                found = sort.chat(raw)
                _spell_long(found.messages)
                spelled = _format(encode(found), indent=2)
            except _UNUSUAL:
                continue
            if spelled == raw and found.messages:
                lines, found.messages = _prefer(sort, found.messages), []
                return to_builtins(found), lines
        return None

    def fits(self, use: Use) -> bool:
        """True when the general way would note nothing about the order of keys in this source."""
        found = self._fits.get(use)
        if found is None:
            found = self._fits[use] = self._follows(use)
        return found

    def _follows(self, use: Use) -> bool:
        used = list(_used(use))
        names, orders = [table.name for table, _ in used], self._context.orders
        before = orders.state(names)
        known = _known.get((use, before))
        if known is None:
            fits = _is_plain(used, self._context)
            if len(_known) < _MAX_KNOWN:
                _known[use, before] = fits, orders.state(names)
            return fits
        orders.restore(names, known[1])
        return known[0]

    def patches(self) -> bool:
        """True when a line that only says when the session was changed needs no notes."""
        if self._patches is None:
            used = ((tables.SET.table, (tables.PATCH,)), (tables.SET_TABLE, ("lastUpdated",)))
            self._patches = _is_plain(used, self._context)
        return self._patches


def _spell_long(found: list[Any]) -> None:
    """Spell what tools gave: it is long, and would have to be spelled twice, for the proof and for the document."""
    for line in found:
        for call in line.toolCalls or ():
            if type(call.resultDisplay) is str:
                call.resultDisplay = Raw(encode(call.resultDisplay))
            for part in call.result:
                said = part.functionResponse.response
                if type(said.output) is str:
                    said.output = Raw(encode(said.output))


def _prefer(sort: _Sort, found: list[Any]) -> list[Any]:
    if sort is not _sorts[0]:
        _sorts.reverse()
    return found


def _is_plain(used: Iterable[tuple[Table, Order]], context: Context) -> bool:
    return all(table.plan(keys, context).unusual is None for table, keys in used)


def _used(use: Use) -> Iterable[tuple[Table, Order]]:
    speaker, has_thoughts, has_calls, is_other = use
    keys = _MESSAGE if speaker == "user" else (*_REPLY, "toolCalls") if has_calls else _REPLY
    yield (tables.USER if speaker == "user" else tables.GEMINI).table, keys
    yield tables.VERSION.table, keys
    if has_thoughts:
        yield tables.THOUGHT.table, Thought.__struct_fields__
    if has_calls:
        yield tables.CALL.table, (OtherCall if is_other else Call).__struct_fields__


def one_line(line: Any) -> bytes:
    """The line of a struct."""
    return encode(line) + b"\n"
