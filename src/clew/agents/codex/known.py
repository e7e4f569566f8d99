"""Lines of the usual shapes as structs. A line that comes back from its struct byte for byte has nothing else in it."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType, field

from clew.agents.codex.lines import Tokens
from clew.io.codec import NOT_JSON, dumps, loads

DAMAGED = (*NOT_JSON, msgspec.ValidationError, UnicodeEncodeError)
PASSED = "internal_chat_message_metadata_passthrough"
_QUOTE, _SLASH = b'"/'
ITEM, EVENT = "response_item", "event_msg"
WINDOW = 1 << 17
"""So many bytes of lines are read together."""
_Number = Annotated[int, Meta(ge=0, le=2**53)]
_Text = str | UnsetType
_Opaque = Raw | UnsetType


class _Payload(Struct, tag_field="type", kw_only=True, forbid_unknown_fields=True, gc=False):
    """What a line says; the first key tells its kind."""


class Call(_Payload, tag="function_call", kw_only=True, gc=False):
    id: _Text = UNSET
    name: str
    call_id: str
    arguments: str
    passed: _Opaque = field(default=UNSET, name=PASSED)
    metadata: _Opaque = UNSET


class LateCall(_Payload, tag="function_call", kw_only=True, gc=False):
    """The same in the other order that calls come in."""

    id: _Text = UNSET
    name: str
    arguments: str
    call_id: str
    passed: _Opaque = field(default=UNSET, name=PASSED)
    metadata: _Opaque = UNSET


class CustomCall(_Payload, tag="custom_tool_call", kw_only=True, gc=False):
    id: _Text = UNSET
    status: _Text = UNSET
    call_id: str
    name: str
    input: Raw
    passed: _Opaque = field(default=UNSET, name=PASSED)
    metadata: _Opaque = UNSET


class Output(_Payload, tag="function_call_output", kw_only=True, gc=False):
    id: _Text = UNSET
    call_id: str
    output: Raw
    passed: _Opaque = field(default=UNSET, name=PASSED)
    metadata: _Opaque = UNSET


class CustomOutput(_Payload, tag="custom_tool_call_output", kw_only=True, gc=False):
    id: _Text = UNSET
    call_id: str
    output: Raw
    passed: _Opaque = field(default=UNSET, name=PASSED)
    metadata: _Opaque = UNSET


class Words(Struct, forbid_unknown_fields=True, gc=False):
    type: str
    text: Raw


class Spoken(_Payload, tag="message", kw_only=True, gc=False):
    id: _Text = UNSET
    role: str
    content: list[Words]
    phase: _Text = UNSET
    passed: _Opaque = field(default=UNSET, name=PASSED)
    metadata: _Opaque = UNSET


class Reasoning(_Payload, tag="reasoning", kw_only=True, gc=False):
    id: _Text = UNSET
    summary: list[Words]
    content: None | UnsetType = UNSET
    encrypted_content: _Opaque = UNSET
    passed: _Opaque = field(default=UNSET, name=PASSED)
    metadata: _Opaque = UNSET


class _Info(Struct, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    total_token_usage: Tokens | None = None
    last_token_usage: Tokens | None = None
    model_context_window: int | None | UnsetType = UNSET


class TokenCount(_Payload, tag="token_count", kw_only=True, gc=False):
    info: _Info | None
    rate_limits: _Opaque = UNSET


class Thought(_Payload, tag="agent_reasoning", kw_only=True, gc=False):
    text: Raw


class UserWords(_Payload, tag="user_message", kw_only=True, gc=False):
    message: Raw
    images: list[str] | UnsetType = UNSET
    local_images: list[str] | UnsetType = UNSET


class AgentWords(_Payload, tag="agent_message", kw_only=True, gc=False):
    message: Raw
    phase: str | None | UnsetType = UNSET


_Time = Annotated[str, Meta(min_length=24, max_length=24)]
_Items = CustomCall | Output | CustomOutput | Spoken | Reasoning


class _Line(Struct, tag_field="type", kw_only=True, forbid_unknown_fields=True, gc=False):
    timestamp: _Time
    ordinal: _Number | UnsetType = UNSET


class _Item(_Line, tag="response_item", kw_only=True, gc=False):
    payload: Call | _Items


class _LateItem(_Line, tag="response_item", kw_only=True, gc=False):
    payload: LateCall | _Items


class _Event(_Line, tag="event_msg", kw_only=True, gc=False):
    payload: TokenCount | Thought | UserWords | AgentWords


class _Turn(_Line, tag="turn_context", kw_only=True, gc=False):
    payload: Raw


class _Meta(_Line, tag="session_meta", kw_only=True, gc=False):
    payload: Raw


class Line(Struct, gc=False):
    """A line in the order of its keys."""

    timestamp: str
    ordinal: int | UnsetType
    type: str
    payload: Any


class Envelope(Struct, forbid_unknown_fields=True, kw_only=True, gc=False):
    """A line of any kind."""

    timestamp: _Time
    ordinal: _Number | UnsetType = UNSET
    type: str
    payload: Raw


_ESCAPE = re.compile(rb"\\[/u]").search
_OURS = frozenset(b"%04x" % code for code in range(32) if chr(code) not in "\b\t\n\f\r")
"""The characters that we write with their numbers."""
_encoder = msgspec.json.Encoder()
_orders = [
    msgspec.json.Decoder(_Item | _Event | _Turn | _Meta),
    msgspec.json.Decoder(_LateItem | _Event | _Turn | _Meta),
]
_envelope = msgspec.json.Decoder(Envelope).decode
_SORTS: dict[Any, str] = {_Item: ITEM, _LateItem: ITEM, _Event: EVENT, _Turn: "turn_context", _Meta: "session_meta"}


class Window(NamedTuple):
    """Some lines of a chunk that are all usual, or one that is not and has no struct."""

    begin: int
    end: int
    lines: list[Line]


class Reader:
    """Reads the lines of one rollout: many at a time, and one by one where not all of them are usual."""

    def __init__(self) -> None:
        self._order = 0

    def windows(self, chunk: bytes) -> Iterator[Window]:
        """The lines of a chunk, many at a time where all of them are usual."""
        begin = 0
        while begin < len(chunk):
            end = chunk.find(b"\n", begin + WINDOW) + 1 or len(chunk)
            lines = self._together(chunk, begin, end)
            if lines is not None:
                yield Window(begin, end, lines)
            else:
                yield from self._apart(chunk[begin:end], begin)
            begin = end

    def _apart(self, text: bytes, begin: int) -> Iterator[Window]:
        """The same for lines some of which are not usual."""
        end, usual = begin, []
        for line in io.BytesIO(text):
            lines = self._together(line, 0, len(line))
            if lines:
                usual += lines
                end += len(line)
                continue
            if usual:
                yield Window(begin, end, usual)
            begin, end, usual = end + len(line), end + len(line), []
            yield Window(begin - len(line), begin, [])
        if usual:
            yield Window(begin, end, usual)

    def _together(self, chunk: bytes, begin: int, end: int) -> list[Line] | None:
        """All lines from one place to another, if they are usual."""
        if not _is_plain(chunk, begin, end):
            return None
        text = memoryview(chunk)[begin:end]
        for order in (self._order, 1 - self._order):
            try:
                found = _orders[order].decode_lines(text)
                times = [line.timestamp for line in found]
                ordinals, payloads = [line.ordinal for line in found], [line.payload for line in found]
                lines = list(map(Line, times, ordinals, [_SORTS[type(line)] for line in found], payloads))
                spelled = _encoder.encode_lines(lines)
            except DAMAGED:
                return None
            if len(spelled) == end - begin and chunk.startswith(spelled, begin):
                self._order = order
                return lines if _are_times("".join(times), len(times)) else None
        return None


def _is_plain(chunk: bytes, begin: int, end: int) -> bool:
    """True when the strings among lines are spelled as we spell them, if they are strings."""
    at = begin
    while (found := _ESCAPE(chunk, at, end)) is not None:
        at = found.end()
        if chunk[at - 1] == _SLASH or chunk[at : at + 4] not in _OURS:
            return False
    try:
        str(memoryview(chunk)[begin:end], "utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _are_times(joined: str, number: int) -> bool:
    """True for times of 24 letters each that are spelled in the usual way."""
    return joined[10::24] == "T" * number and joined[23::24] == "Z" * number


def envelope(text: bytes) -> Envelope | None:
    """A line of any kind; None where it is spelled in another way."""
    try:
        found: Envelope = _envelope(text)
        is_usual = dumps(found) + b"\n" == text
    except DAMAGED:
        return None
    return found if is_usual and _are_times(found.timestamp, 1) else None


def is_ours(text: bytes) -> bool:
    """True for a JSON value that we would spell like this."""
    try:
        return dumps(loads(text)) == text
    except DAMAGED:
        return False


def is_text(raw: Raw) -> bool:
    """True for a string."""
    return memoryview(raw)[0] == _QUOTE


is_known = lru_cache(256)(is_ours)
"""The same for what comes again and again."""
