"""Messages and records as the lines that Pi reads.

A unit with a native record gives that record. Other messages are composed. Pi inserts a result for every call without
one before the next message, so results are written directly after the reply with their calls.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

from clew.agents.derived_ids import derived_id
from clew.agents.encoding import (
    UNKNOWN,
    ApiMessage,
    ApiOrder,
    Fields,
    call_arguments,
    json_line,
    model_name,
    output_blocks,
    provider_of,
    select_renamed,
    text_or_image,
)
from clew.agents.pi.records import HEADER
from clew.agents.target_profile import Header
from clew.model.json import JSON
from clew.model.time import spell_milliseconds, to_milliseconds
from clew.model.unit import Unit

FORMAT_VERSION = 3
_API_NAMES = {
    "anthropic": "anthropic-messages",
    "google": "google-generative-ai",
    "openai": "openai-responses",
}
"""Pi's names for the interfaces of providers. It resumes with the provider and model of the last reply if it can."""
_OTHER_API_NAME = "openai-completions"
_USAGE = {
    "input_tokens": "input",
    "output_tokens": "output",
    "cache_read_tokens": "cacheRead",
    "cache_creation_tokens": "cacheWrite",
}
_OPTIONAL_USAGE = {"cache_creation_1h_tokens": "cacheWrite1h", "reasoning_tokens": "reasoning"}
_COSTS = ("input", "output", "cacheRead", "cacheWrite", "total")


def encode(header: Header, units: Iterable[Unit]) -> Iterator[tuple[str, bytes]]:
    """The lines of a session."""
    has_header = False
    for entry in _entries(header.session, units):
        if not has_header and entry["type"] != HEADER:
            yield "", json_line(_header(header.session))
        has_header = True
        yield "", json_line(entry)
    if not has_header:
        yield "", json_line(_header(header.session))


def _header(session: Mapping[str, JSON]) -> Fields:
    time = spell_milliseconds(session.get("started_at"))
    head = {"type": HEADER, "version": FORMAT_VERSION, "id": session["id"]}
    return {**head, "timestamp": time, "cwd": session["workspace"]}


def _entries(session: Mapping[str, JSON], units: Iterable[Unit]) -> Iterator[Fields]:
    order, composer = ApiOrder(session), _Composer(session)
    has_native = False
    for unit in units:
        if unit.native:
            has_native = True
            yield _copied(unit, session)
        elif unit.is_message:
            for message in order.add(unit.value):
                yield from composer.message_entry(message)
    for message in order.finish():
        yield from composer.message_entry(message)
    if session.get("title") and not has_native:
        yield composer.title_entry(session["title"], order.time)


def _copied(unit: Unit, session: Mapping[str, JSON]) -> Fields:
    """A record of Pi itself, with the id and the folder of the new session, and the parent that its unit has."""
    record = dict(unit.native)
    if record.get("type") == HEADER:
        return {**record, "id": session["id"], "cwd": session["workspace"] or record.get("cwd")}
    if "parentId" in record and "parent_uuid" in unit.value:
        record["parentId"] = unit.value["parent_uuid"]
    return record


class _Composer:
    """Composes entries with new ids."""

    def __init__(self, session: Mapping[str, JSON]) -> None:
        self._session_id = session["id"]
        self._ids: dict[str | None, str | None] = {None: None}
        """The ids of entries, by the uuids of their messages."""
        self._last_uuid: str | None = None

    def message_entry(self, message: ApiMessage) -> Iterator[Fields]:
        """The entry of a message; none for one of which nothing can be written."""
        body: Fields = {"role": message.role, "content": _parts(message.content)}
        if message.role == "assistant":
            body = _reply(message)
        elif message.role == "tool":
            body = _result(message.content[0])
        elif not body["content"]:
            self._ids[message.uuid] = self._ids[message.parent_uuid]
            return
        body["timestamp"] = to_milliseconds(message.time)
        self._last_uuid = message.uuid
        yield self._entry("message", message.uuid, message.parent_uuid, message.time, message=body)

    def title_entry(self, title: JSON, time: datetime) -> Fields:
        """The entry that names the session."""
        return self._entry("session_info", "title", self._last_uuid, time, name=title)

    def _entry(self, kind: str, uuid: str, parent_uuid: str | None, time: datetime, **fields: JSON) -> Fields:
        identity = self._ids[uuid] = derived_id(self._session_id, len(self._ids))
        place = {"id": identity, "parentId": self._ids[parent_uuid]}
        return {"type": kind, **place, "timestamp": spell_milliseconds(time), **fields}


def _reply(message: ApiMessage) -> Fields:
    """A reply with all that Pi expects of one."""
    model = model_name(message.metadata) or UNKNOWN
    provider = provider_of(model)
    content = [part for block in message.content for part in _reply_parts(block)]
    has_calls = any(part["type"] == "toolCall" for part in content)
    return {
        "role": "assistant",
        "content": content,
        "api": _API_NAMES.get(provider, _OTHER_API_NAME),
        "provider": provider,
        "model": model,
        "usage": _usage(message.metadata.get("token_usage") or {}),
        "stopReason": "toolUse" if has_calls else "stop",
    }


def _usage(counts: Mapping[str, JSON]) -> Fields:
    usage = dict.fromkeys(_USAGE.values(), 0) | select_renamed(counts, _USAGE)
    optional = select_renamed(counts, _OPTIONAL_USAGE)
    return {**usage, **optional, "totalTokens": sum(usage.values()), "cost": dict.fromkeys(_COSTS, 0)}


def _reply_parts(block: Fields) -> Iterator[Fields]:
    match block["type"]:
        case "thinking":
            signature = {"thinkingSignature": block["signature"]} if block.get("signature") else {}
            yield {"type": "thinking", "thinking": block["thinking"], **signature}
        case "tool_use":
            call = {"type": "toolCall", "id": block["tool_id"], "name": block["tool_name"] or UNKNOWN}
            yield {**call, "arguments": call_arguments(block)}
        case "text":
            yield {"type": "text", "text": block["text"]}


def _result(block: Fields) -> Fields:
    return {
        "role": "toolResult",
        "toolCallId": block["tool_id"],
        "toolName": block["tool_name"],
        "content": _parts(output_blocks(block.get("output"))),
        "isError": block.get("is_error") is True,
    }


def _parts(blocks: Iterable[Fields]) -> list[Fields]:
    """What a prompt or a result can hold: texts and pictures."""
    return [part for block in blocks if (part := text_or_image(block)) is not None]
