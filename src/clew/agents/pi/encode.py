"""Messages and records as the lines that Pi reads.

A unit with a native record gives that record. Other messages are composed. Pi answers calls itself that have no result
before the next message, so results are written right behind the reply that called for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime

from clew.agents.derived_ids import derived_id
from clew.agents.pi import spell_milliseconds
from clew.agents.pi.records import HEADER
from clew.agents.target_profile import Header
from clew.io.codec import dumps
from clew.model.json import JSON
from clew.model.time import parse_time
from clew.model.unit import Unit

FORMAT_VERSION = 3
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PROVIDERS = {
    "claude": ("anthropic", "anthropic-messages"),
    "gemini": ("google", "google-generative-ai"),
    "gpt": ("openai", "openai-responses"),
}
"""By the beginning of a model's name: its provider, and the interface to it. Pi resumes with this model if it can."""
_UNKNOWN_PROVIDER = ("unknown", "openai-completions")
UNKNOWN_MODEL = "unknown"
_USAGE = {
    "input": "input_tokens",
    "output": "output_tokens",
    "cacheRead": "cache_read_tokens",
    "cacheWrite": "cache_creation_tokens",
}
_OPTIONAL_USAGE = {"cacheWrite1h": "cache_creation_1h_tokens", "reasoning": "reasoning_tokens"}
_COSTS = ("input", "output", "cacheRead", "cacheWrite", "total")

_Object = dict[str, JSON]


def encode(header: Header, units: Iterable[Unit]) -> Iterator[tuple[str, bytes]]:
    """The lines of a session."""
    composer = _Composer(header.session)
    has_header, has_native = False, False
    for unit in units:
        entries: Iterable[_Object] = ()
        if unit.native:
            has_native = True
            entries = [_copied(unit, header.session)]
        elif unit.is_message:
            entries = composer.add(unit.value)
        for entry in entries:
            if not has_header and entry["type"] != HEADER:
                yield "", _line(composer.header())
            has_header = True
            yield "", _line(entry)
    if not has_header:
        yield "", _line(composer.header())
    for entry in () if has_native else composer.finish():
        yield "", _line(entry)


def _line(entry: _Object) -> bytes:
    return dumps(entry) + b"\n"


def _copied(unit: Unit, session: Mapping[str, JSON]) -> _Object:
    """A record of Pi itself, with the id and the folder of the new session, and the parent that its unit has."""
    record = dict(unit.native)
    if record.get("type") == HEADER:
        return {**record, "id": session["id"], "cwd": session["workspace"] or record.get("cwd")}
    if "parentId" in record and "parent_uuid" in unit.value:
        record["parentId"] = unit.value["parent_uuid"]
    return record


class _Composer:
    """Composes entries. It holds a reply until its last line is there, and prompts until all calls are answered."""

    def __init__(self, session: Mapping[str, JSON]) -> None:
        self._session = session
        self._time = parse_time(session.get("started_at")) or _EPOCH
        self._count = 0
        self._last_entry: str | None = None
        self._last_message: JSON = None
        self._entry_of_message: dict[JSON, str | None] = {None: None}
        """The last entry of a message, by the uuid of the message, once it is written."""
        self._held_messages: list[JSON] = []
        """The uuids of messages that are not written to their end."""
        self._reply: _Object | None = None
        self._open_calls: dict[JSON, JSON] = {}
        """The names of tools, by the ids of calls without a result."""
        self._held: list[_Object] = []
        """Prompts that came before the results of the last reply."""

    def header(self) -> _Object:
        """The first line of the session."""
        started = parse_time(self._session.get("started_at")) or _EPOCH
        head = {"type": HEADER, "version": FORMAT_VERSION, "id": self._session["id"]}
        return {**head, "timestamp": spell_milliseconds(started), "cwd": self._session["workspace"]}

    def add(self, message: _Object) -> Iterator[_Object]:
        """The entries that are complete, now that this message is there."""
        if message.get("parent_uuid") != self._last_message:
            yield from self._close_reply()
            self._last_entry = self._entry_of_message.get(message.get("parent_uuid"), self._last_entry)
        self._time = parse_time(message.get("timestamp")) or self._time
        if message["role"] == "assistant":
            yield from self._add_reply(message)
        else:
            yield from self._add_other(message)
        self._last_message = message.get("uuid")
        self._held_messages.append(self._last_message)
        if self._reply is None and not self._held:
            self._note_entries()

    def finish(self) -> Iterator[_Object]:
        """The entries that were held back, and the title."""
        yield from self._close_reply()
        if self._session.get("title"):
            yield self._entry("session_info", name=self._session["title"])

    def _add_reply(self, message: _Object) -> Iterator[_Object]:
        """Add a line of a reply: everything that the model says up to the next message of somebody else is one."""
        content = [part for block in message["content"] for part in _reply_part(block)]
        if self._reply is None:
            yield from self._close_reply()
            self._reply = _reply(message.get("metadata") or {}, self._milliseconds())
        self._reply["content"] += content

    def _write_reply(self) -> Iterator[_Object]:
        reply, self._reply = self._reply, None
        if reply is None:
            return
        self._open_calls = {part["id"]: part["name"] for part in reply["content"] if part["type"] == "toolCall"}
        reply["stopReason"] = "toolUse" if self._open_calls else "stop"
        yield self._message(reply)
        self._note_entries()

    def _close_reply(self) -> Iterator[_Object]:
        """Write what is held back. Calls that have no result by now get none."""
        yield from self._write_reply()
        self._open_calls = {}
        yield from map(self._message, self._held)
        self._held = []
        self._note_entries()

    def _note_entries(self) -> None:
        self._entry_of_message |= dict.fromkeys(self._held_messages, self._last_entry)
        self._held_messages = []

    def _add_other(self, message: _Object) -> Iterator[_Object]:
        yield from self._write_reply()
        content: list[_Object] = []
        for block in message["content"]:
            if block["type"] != "tool_result":
                content += _parts(block)
            elif block["tool_id"] in self._open_calls:
                yield self._message(self._result(block))
            else:
                # Providers refuse a result without a call; its text is still part of the conversation.
                content += _output(block.get("output"))
        if content:
            role = "system" if message["role"] == "system" else "user"
            self._held.append({"role": role, "content": content, "timestamp": self._milliseconds()})
        if not self._open_calls:
            yield from self._close_reply()

    def _result(self, block: _Object) -> _Object:
        return {
            "role": "toolResult",
            "toolCallId": block["tool_id"],
            "toolName": self._open_calls.pop(block["tool_id"]),
            "content": _output(block.get("output")),
            "isError": block.get("is_error") is True,
            "timestamp": self._milliseconds(),
        }

    def _message(self, message: _Object) -> _Object:
        return self._entry("message", message=message)

    def _entry(self, kind: str, **fields: JSON) -> _Object:
        self._count += 1
        parent, self._last_entry = self._last_entry, derived_id(self._session["id"], self._count)
        time = spell_milliseconds(self._time)
        return {"type": kind, "id": self._last_entry, "parentId": parent, "timestamp": time, **fields}

    def _milliseconds(self) -> int:
        return int(self._time.timestamp() * 1000)


def _reply(metadata: Mapping[str, JSON], timestamp: int) -> _Object:
    """A reply without content, with all that Pi expects of one."""
    model = (metadata.get("model") or {}).get("name") or UNKNOWN_MODEL
    known = (both for start, both in _PROVIDERS.items() if model.startswith(start))
    provider, api = next(known, _UNKNOWN_PROVIDER)
    return {
        "role": "assistant",
        "content": [],
        "api": api,
        "provider": provider,
        "model": model,
        "usage": _usage(metadata.get("token_usage") or {}),
        "stopReason": "stop",
        "timestamp": timestamp,
    }


def _usage(counts: Mapping[str, JSON]) -> _Object:
    usage: _Object = {key: counts.get(name) or 0 for key, name in _USAGE.items()}
    total = sum(usage.values())
    usage |= {key: counts[name] for key, name in _OPTIONAL_USAGE.items() if name in counts}
    return {**usage, "totalTokens": total, "cost": dict.fromkeys(_COSTS, 0)}


def _reply_part(block: _Object) -> Iterator[_Object]:
    match block["type"]:
        case "thinking":
            signature = {"thinkingSignature": block["signature"]} if block.get("signature") else {}
            yield {"type": "thinking", "thinking": block["thinking"], **signature}
        case "tool_use":
            arguments = block["input"] if isinstance(block["input"], dict) else {"input": block["input"]}
            call = {"type": "toolCall", "id": block["tool_id"], "name": block["tool_name"] or "unknown"}
            yield {**call, "arguments": arguments}
        case "text":
            yield {"type": "text", "text": block["text"]}


def _parts(block: _Object) -> Iterator[_Object]:
    """What a prompt or a result can hold: texts and pictures; of a picture elsewhere its address."""
    if block["type"] == "text":
        yield {"type": "text", "text": block["text"]}
    elif block["type"] == "image" and block.get("image"):
        if block.get("encoding") == "url":
            yield {"type": "text", "text": block["image"]}
        else:
            yield {"type": "image", "data": block["image"], "mimeType": block.get("media_type") or "image/png"}


def _output(output: JSON) -> list[_Object]:
    if isinstance(output, list):
        return [part for block in output if isinstance(block, dict) and "type" in block for part in _parts(block)]
    text = "" if output is None else output if isinstance(output, str) else dumps(output).decode()
    return [{"type": "text", "text": text}]
