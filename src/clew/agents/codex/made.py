"""What lines of the usual shapes become: messages and records of the model as structs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field

from clew.agents.codex import known
from clew.agents.codex.known import PASSED, is_text
from clew.agents.codex.outcome import UNKNOWN, outcome_of_spelled
from clew.agents.codex.parts import parse_arguments
from clew.io.codec import dumps

_encoder = msgspec.json.Encoder()
_COMMA = b","
_EMPTY = Raw(b'""')


class Text(Struct, tag_field="type", tag="text", gc=False):
    text: Raw


class Thinking(Struct, tag_field="type", tag="thinking", gc=False):
    thinking: Raw
    signature: Raw | UnsetType = UNSET


class Given(Struct, gc=False):
    """What a tool is given that takes nothing but a text."""

    input: Raw


class Use(Struct, tag_field="type", tag="tool_use", gc=False):
    tool_id: str
    tool_name: str
    input: Raw | Given | str


class Ours(Struct, gc=False):
    """What is noted for the agent itself."""

    codex: Any


class Went(Struct, gc=False):
    """How a call went."""

    exit_code: int | UnsetType
    duration: float | UnsetType


class Result(Struct, tag_field="type", tag="tool_result", gc=False):
    tool_id: str
    tool_name: str | None
    output: Raw
    is_error: bool | UnsetType
    extensions: Ours | UnsetType


class Kept(Struct, gc=False):
    """What an item says that the model has no place for."""

    type: str | UnsetType = UNSET
    status: str | UnsetType = UNSET
    phase: str | UnsetType = UNSET
    content: None | UnsetType = UNSET
    passed: Raw | UnsetType = field(default=UNSET, name=PASSED)
    metadata: Raw | UnsetType = UNSET
    arguments: str | UnsetType = UNSET
    summary: tuple[()] | UnsetType = UNSET


class Rest(Struct, gc=False):
    ordinal: int | UnsetType
    payload: Any


class Own(Struct, gc=False):
    rest: Any
    inherited: bool | UnsetType = UNSET


class Usage(Struct, omit_defaults=True, gc=False):
    """The counts in the order in which requests have them."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_creation_tokens: int | None = None
    cache_read_tokens: int | None = None
    reasoning_tokens: int | None = None


class Model(Struct, gc=False):
    name: str


class Level(Struct, gc=False):
    level: str


class Answered(Struct, gc=False):
    """What holds for an answer."""

    model: Model | UnsetType
    thinking: Level | UnsetType
    token_usage: Any = UNSET


class Derived(Struct, gc=False):
    """A message whose id is derived."""

    index: int
    role: str
    timestamp: str
    content: list[Any]
    extensions: Ours | UnsetType
    uuid: str
    parent_uuid: str | None
    metadata: Any


class Named(Struct, gc=False):
    """A message that has an id of its own."""

    index: int
    role: str
    timestamp: str
    uuid: str
    content: list[Any]
    extensions: Ours | UnsetType
    parent_uuid: str | None
    metadata: Any


class Record(Struct, gc=False):
    after: int
    kind: str
    type: str
    timestamp: str
    extensions: Ours


def result(call: str, name: str | None, output: Raw) -> Result | None:
    """The block of a result; None where it is no text."""
    found = outcome_of_spelled(output)
    if found is None:
        return None
    if found is UNKNOWN:
        return Result(call, name, output, UNSET, UNSET)
    is_error, code, seconds = found
    went = UNSET if code is None is seconds else Ours(Went(_known(code), _known(seconds)))
    return Result(call, name, output, _known(is_error), went)


def _known(fact: Any) -> Any:
    return UNSET if fact is None else fact


def given(text: str) -> tuple[Any, Any]:
    """What a call is given, and its text where that is not spelled as ours."""
    parsed = parse_arguments(text)
    if type(parsed) is str:
        return text, UNSET
    spelled = dumps(parsed)
    return Raw(spelled), UNSET if spelled == text.encode() else text


def thoughts(payload: known.Reasoning) -> list[Thinking] | None:
    """The blocks of some thoughts, of which the first is signed; None where one of them is no text."""
    summary, signature = payload.summary, payload.encrypted_content
    if signature is not UNSET and not is_text(signature):
        return None
    for thought in summary:
        if thought.type != "summary_text" or not is_text(thought.text):
            return None
    blocks = [Thinking(thought.text) for thought in summary] or [Thinking(_EMPTY)]
    blocks[0].signature = signature
    return blocks


def noted(ordinal: Any, kept: Any, is_inherited: bool) -> Any:
    """What the model has no place for in a line."""
    rest = UNSET if kept is UNSET is ordinal else Rest(ordinal, kept)
    inherited = True if is_inherited else UNSET
    return UNSET if rest is UNSET is inherited else Ours(Own(rest, inherited))


def message(
    own: Any, index: int, role: str, time: str, content: list[Any], noted: Any, uuid: str, parent: str | None, more: Any
) -> Any:
    """A message whose item may have an id of its own."""
    if own is UNSET:
        return Derived(index, role, time, content, noted, uuid, parent, more)
    return Named(index, role, time, uuid, content, noted, parent, more)


def add_usage(message: Any, usage: Any) -> None:
    """Add what was used for a message: metadata is the last member of it, and usage the last of those."""
    if type(message) is dict:
        message.setdefault("metadata", {})["token_usage"] = usage
    elif message.metadata is UNSET:
        message.metadata = {"token_usage": usage}
    elif type(message.metadata) is dict:
        message.metadata["token_usage"] = usage
    else:
        message.metadata.token_usage = usage


def spell(made: Sequence[Any], out: bytearray, between: bytes) -> None:
    """Append the JSON of each with `between` behind it; no JSON of ours has a line end in it."""
    if made and between == _COMMA:
        begin = len(out)
        _encoder.encode_into(made, out, begin)
        del out[begin]
        out[-1:] = between
    elif made:
        out += _encoder.encode_lines(made).replace(b"\n", between)
