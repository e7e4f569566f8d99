"""The outline of a line: only the fields that the first pass wants, so that the rest is skipped unread."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, Raw, UnsetType

from clew.agents.codex.kinds import KINDS
from clew.io.codec import dumps, loads_text
from clew.model.json import JSON

DAMAGED = (msgspec.MsgspecError, RecursionError, UnicodeDecodeError)


class Block(msgspec.Struct, gc=False):
    type: str | None = None
    text: Raw | UnsetType = UNSET


_Count = Annotated[int, Meta(ge=0, le=2**53)] | None
"""A larger count is no count, and neither is one below zero."""


class Tokens(
    msgspec.Struct,
    omit_defaults=True,
    rename={
        "input": "input_tokens",
        "cached": "cached_input_tokens",
        "written": "cache_write_input_tokens",
        "output": "output_tokens",
        "reasoning": "reasoning_output_tokens",
        "total": "total_tokens",
    },
):
    """Token counts as Codex gives them."""

    input: _Count = None
    cached: _Count = None
    written: _Count = None
    output: _Count = None
    reasoning: _Count = None
    total: _Count = None


NO_TOKENS = Tokens()
"""What a token event says that has no count at all."""


class Spending(msgspec.Struct, gc=False):
    total_token_usage: Tokens | None = None
    last_token_usage: Tokens | None = None


class Passthrough(msgspec.Struct, gc=False):
    turn_id: str | None = None
    content_item_kinds: list[str | None] | None = None


class Payload(msgspec.Struct, gc=False):
    type: str | None = None
    id: str | None = None
    role: str | None = None
    content: str | list[Block] | None | UnsetType = UNSET
    name: str | None = None
    call_id: str | None = None
    output: Raw | UnsetType = UNSET
    message: Raw | UnsetType = UNSET
    info: Spending | None = None
    internal_chat_message_metadata_passthrough: Passthrough | None = None
    # turn_context
    turn_id: str | None = None
    model: str | None = None
    effort: str | None = None
    cwd: str | None = None
    # events
    num_turns: int | None = None
    new_thread_id: str | None = None
    event_id: str | None = None
    agent_thread_id: str | None = None
    agent_path: str | None = None
    new_agent_nickname: str | None = None
    thread_name: str | None = None
    # session_meta
    timestamp: str | None = None
    session_id: str | None = None
    originator: str | None = None
    cli_version: str | None = None
    source: Raw | UnsetType = UNSET
    thread_source: Raw | UnsetType = UNSET
    parent_thread_id: str | None = None
    forked_from_id: str | None = None
    agent_nickname: str | None = None
    history_mode: str | None = None
    history_base: Raw | UnsetType = UNSET
    subagent_history_start_ordinal: int | None = None
    git: Raw | UnsetType = UNSET


class Line(Payload, gc=False):
    """An envelope, or an item that stands bare on its line."""

    payload: Payload | None | UnsetType = UNSET
    ordinal: int | None = None
    record_type: Raw | UnsetType = UNSET


_decoder = msgspec.json.Decoder(Line)
decode, decode_lines = _decoder.decode, _decoder.decode_lines


class _Passed(msgspec.Struct, gc=False):
    """Nothing of an object."""


_pass_over = msgspec.json.Decoder(_Passed).decode


def is_record(text: bytes) -> bool:
    """Whether a line is a whole record; nothing of it is kept."""
    try:
        _pass_over(text)
    except DAMAGED:
        return False
    return True


def item_of(line: Line) -> tuple[str | None, Payload]:
    """The kind of item on a line that is conversation, None where it is something else, and its payload."""
    payload = line.payload
    if payload is UNSET:
        item: Payload = line
    elif payload is None or line.type not in ("response_item", "request_item"):
        return None, payload or line
    else:
        item = payload
    kind = item.type
    if kind is None:
        return ("message" if item.role is not None and item.content is not UNSET else None), item
    return (kind if kind in KINDS else None), item


def meta_of(line: Line) -> Payload | None:
    """What a line says about the session, where it is such a line."""
    if line.type == "session_meta" and line.payload:
        return line.payload
    if line.type is None and line.payload is UNSET and line.id and line.timestamp and line.record_type is UNSET:
        return line
    return None


def branch_of(meta: Payload) -> str | None:
    """The git branch that a session began on."""
    git: JSON = loads_text(meta.git) if meta.git is not UNSET else None
    branch = git.get("branch") if isinstance(git, dict) else None
    return branch if isinstance(branch, str) else None


def texts_of(content: JSON) -> list[str]:
    """The texts of a message."""
    if isinstance(content, str):
        return [content]
    if content is UNSET or content is None:
        return []
    raws = [block.text for block in content if block.type in ("input_text", "output_text", "text")]
    texts = [loads_text(raw) for raw in raws if raw is not UNSET]
    return [text for text in texts if isinstance(text, str)]


def lenient(value: dict[str, JSON]) -> Line:
    """The outline of a record that was read the careful way: what is of another type is left out."""
    outline = _outline(value, Line)
    if "payload" in value and "payload" not in outline:
        outline["payload"] = None
    return msgspec.convert(outline, Line)


_NESTED: dict[str, type[msgspec.Struct]] = {
    "payload": Payload,
    "info": Spending,
    "internal_chat_message_metadata_passthrough": Passthrough,
}
_RAW = frozenset("output message source thread_source history_base git record_type text".split())


_fields = cache(msgspec.structs.fields)


def _outline(value: dict[str, JSON], struct: type[msgspec.Struct]) -> dict[str, Any]:
    outline: dict[str, Any] = {}
    for field in _fields(struct):
        if field.name not in value:
            continue
        item = value[field.name]
        if field.name in _RAW:
            outline[field.name] = Raw(dumps(item))
            continue
        if isinstance(item, dict) and field.name in _NESTED:
            item = _outline(item, _NESTED[field.name])
        elif isinstance(item, list) and field.name == "content":
            item = [_outline(block, Block) if isinstance(block, dict) else {} for block in item]
        elif field.name == "content" and not isinstance(item, str):
            item = None
        try:
            msgspec.convert(item, field.type)
        except msgspec.ValidationError:
            continue
        outline[field.name] = item
    return outline
