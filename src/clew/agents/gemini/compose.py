"""Sessions of other agents as an event log that the client lists and goes on with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import takewhile
from pathlib import Path

from clew.agents.base import Header
from clew.agents.folding import Message, Step, derived_id
from clew.agents.gemini.events import is_ignored
from clew.agents.gemini.locate import AGENT, CHATS, LOG, safe_id, saved_tag
from clew.agents.gemini.project import hash_of, slug_of
from clew.io.codec import dumps
from clew.io.paths import safe_relative
from clew.model.json import JSON
from clew.model.time import parse_time, spell_time

_NOWHERE = "1970-01-01T00:00:00.000Z"
UNANSWERED = "no result was recorded"
"""Closes a call that nothing answers."""
GUARD = "\u200b"
"""Nothing that can be seen, and no space either: the client trims those."""
_MAX_WAITING = 100


def target(header: Header) -> str:
    """Where the session's file lives below a home folder."""
    session = header.session
    own = header.extensions.get(AGENT) or {}
    is_placed = bool((session.get("source") or {}).get("path"))
    if is_placed and own.get("session") == session["id"] and _is_usual(own.get("file")):
        return "/".join([".gemini/tmp", folder_of(session), *map(safe_relative, own["file"].split("/"))])
    folder = f".gemini/tmp/{folder_of(session)}/chats"
    parent = session.get("parent_session_id")
    if session.get("is_agent_session") and parent:
        return f"{folder}/{safe_id(str(parent))}/{safe_id(str(session['id']))}.jsonl"
    return f"{folder}/{chat_name(header)}.jsonl"


def _is_usual(file: JSON) -> bool:
    """True for a name that the client would find again."""
    return isinstance(file, str) and (file.startswith(f"{CHATS}/") or saved_tag(Path(file)) is not None or file == LOG)


def folder_of(session: Mapping[str, JSON]) -> str:
    """The name of the project's folder: as the registry gives it, else as the client makes it."""
    return safe_relative(session.get("workspace_encoded") or slug_of(session["workspace"]))


def chat_name(header: Header) -> str:
    """The name of a chat: its minute, and the beginning of its id."""
    stamp = parse_time(header.session.get("started_at")) or parse_time(header.export_timestamp)
    minute = spell_time(stamp)[:16].replace(":", "-") if stamp is not None else "1970-01-01T00-00"
    return f"session-{minute}-{safe_relative(str(header.session['id'])[:8])}"


def composed(header: Header, units: Iterator[Step]) -> Iterator[tuple[str, bytes]]:
    """The lines of the session."""
    session = header.session
    composer = _Composer(session)
    yield "", dumps(_header(session)) + b"\n"
    for is_message, value in units:
        for record in composer.see(value) if is_message else ():
            yield "", dumps(record) + b"\n"
    for record in composer.rest():
        yield "", dumps(record) + b"\n"
    if session.get("title"):
        yield "", dumps({"$set": {"summary": session["title"]}}) + b"\n"


def _header(session: Mapping[str, JSON]) -> Message:
    started = _spelled(session.get("started_at"))
    return {
        "sessionId": session["id"],
        "projectHash": hash_of(session["workspace"]),
        "startTime": started,
        "lastUpdated": _spelled(session.get("ended_at")) if session.get("ended_at") else started,
        "kind": "subagent" if session.get("is_agent_session") else "main",
    }


def _spelled(time: JSON) -> str:
    """A time as the client spells it, to the millisecond."""
    stamp = parse_time(time)
    return stamp.strftime("%Y-%m-%dT%H:%M:%S.") + f"{stamp.microsecond // 1000:03}Z" if stamp is not None else _NOWHERE


class _Composer:
    """Holds back replies until their results are there: the client keeps both in one record."""

    def __init__(self, session: Mapping[str, JSON]) -> None:
        self._session = session
        self._time = _spelled(session.get("started_at"))
        self._waiting: list[Message] = []
        self._open: dict[JSON, Message] = {}
        self._last: JSON = None

    def see(self, message: Message) -> Iterator[Message]:
        """What can be written, now that this message is there."""
        if message.get("timestamp") is not None:
            self._time = _spelled(message["timestamp"])
        left = [block for block in message["content"] if not self._answers(block)]
        if message["role"] == "assistant":
            self._reply(message)
        elif parts := [part for block in left for part in _parts(block)]:
            kind = "info" if message["role"] == "system" else "user"
            self._waiting.append({**self._base(message, kind), "content": _guarded(parts)})
        # The last one may be a reply, and the next message another line of it.
        while len(self._waiting) > 1 and (not self._is_open(self._waiting[0]) or len(self._waiting) > _MAX_WAITING):
            yield self._closed(self._waiting.pop(0))

    def rest(self) -> Iterator[Message]:
        """What was held back."""
        while self._waiting:
            yield self._closed(self._waiting.pop(0))

    def _base(self, message: Message, kind: str) -> Message:
        uuid = message.get("uuid") or derived_id(self._session["id"], message["index"])
        return {"id": uuid, "timestamp": self._time, "type": kind}

    def _answers(self, block: Message) -> bool:
        """Put a result into the call that it answers; False for anything else."""
        call = self._open.pop(block["tool_id"], None) if block["type"] == "tool_result" else None
        if call is None:
            return False
        failed = block.get("is_error") is True
        text, parts = _output(block.get("output"))
        call["result"] = [_response(call["id"], call["name"], text, failed), *parts]
        call["status"], call["timestamp"], call["resultDisplay"] = "error" if failed else "success", self._time, text
        return True

    def _reply(self, message: Message) -> None:
        metadata = message.get("metadata") or {}
        record = {**self._base(message, "gemini"), "content": _content(message["content"])}
        thoughts = [block["thinking"] for block in message["content"] if block["type"] == "thinking"]
        record["thoughts"] = [
            {"subject": "", "description": text, "timestamp": self._time} for text in thoughts if text
        ]
        record["tokens"] = tokens_of(metadata.get("token_usage") or {})
        record["model"] = (metadata.get("model") or {}).get("name") or "unknown"
        calls = [self._call(block, at) for at, block in enumerate(message["content"]) if block["type"] == "tool_use"]
        if calls:
            record["toolCalls"] = calls
        group = metadata.get("message_id")
        if group is not None and group == self._last and self._waiting and "tokens" in self._waiting[-1]:
            # The lines of one reply repeat its counts.
            self._waiting[-1]["tokens"] = None
        self._last = group
        self._waiting.append(record)

    def _call(self, block: Message, at: int) -> Message:
        identity = block["tool_id"] or derived_id(self._session["id"], self._time, at)
        name = block["tool_name"] or "unknown"
        arguments = block["input"] if isinstance(block["input"], dict) else {"input": block["input"]}
        call = {"id": identity, "name": name, "args": arguments, "result": None, "status": "", "timestamp": self._time}
        self._open[block["tool_id"]] = call
        return call

    def _is_open(self, record: Message) -> bool:
        return any(not call["status"] for call in record.get("toolCalls", ()))

    def _closed(self, record: Message) -> Message:
        """A call that nothing answers was cancelled: the models refuse calls without a result."""
        for call in record.get("toolCalls", ()):
            if not call["status"]:
                self._forget(call)
                call["result"], call["status"] = [_response(call["id"], call["name"], UNANSWERED, True)], "cancelled"
        return record

    def _forget(self, call: Message) -> None:
        for identity in (call["id"], None):
            if self._open.get(identity) is call:
                del self._open[identity]


def tokens_of(usage: Mapping[str, JSON]) -> dict[str, int] | None:
    """The counts as the client has them: cached input is part of the input, thoughts are no part of the output."""
    counts = {name: count for name, count in usage.items() if type(count) is int}
    if "input_tokens" not in counts and "output_tokens" not in counts:
        return None
    cached, thoughts = counts.get("cache_read_tokens", 0), counts.get("reasoning_tokens", 0)
    given = counts.get("input_tokens", 0) + cached + counts.get("cache_creation_tokens", 0)
    said = max(0, counts.get("output_tokens", 0) - thoughts)
    total = given + said + thoughts
    return {"input": given, "output": said, "cached": cached, "thoughts": thoughts, "tool": 0, "total": total}


def _response(identity: str, name: str, text: str, failed: bool) -> Message:
    said = {"error" if failed else "output": text}
    return {"functionResponse": {"id": identity, "name": name, "response": said}}


def _output(output: JSON) -> tuple[str, list[Message]]:
    """The text of a result, and the pictures and documents in it."""
    if isinstance(output, list):
        blocks = [block for block in output if isinstance(block, dict)]
        parts = [part for block in blocks if block.get("type") in ("image", "document") for part in _parts(block)]
        texts = [block["text"] for block in blocks if isinstance(block.get("text"), str)]
        return "\n".join(texts), parts
    if output is None or isinstance(output, str):
        return output or "", []
    return dumps(output).decode(), []


def _guarded(parts: list[Message]) -> list[Message]:
    """What begins like a command to the client would not be sent to the model: something stands before it."""
    leading = takewhile(lambda part: "text" in part, parts)
    return [{"text": GUARD}, *parts] if is_ignored("".join(part["text"] for part in leading)) else parts


def _content(blocks: list[Message]) -> JSON:
    parts = [part for block in blocks if block["type"] in ("text", "image", "document") for part in _parts(block)]
    if all("text" in part for part in parts) and len(parts) < 2:
        return parts[0]["text"] if parts else ""
    return parts


def _parts(block: Message) -> Iterator[Message]:
    match block["type"]:
        case "text" if block["text"]:
            yield {"text": block["text"]}
        case "image" | "document" if block.get(block["type"]) is not None:
            kind = block.get("media_type") or "application/octet-stream"
            if block.get("encoding") == "url":
                yield {"fileData": {"mimeType": kind, "fileUri": block[block["type"]]}}
            elif block.get("encoding") == "text":
                yield {"text": block[block["type"]]}
            else:
                yield {"inlineData": {"mimeType": kind, "data": block[block["type"]]}}
        case "tool_result":
            text, parts = _output(block.get("output"))
            name, identity = block.get("tool_name") or "unknown", block["tool_id"] or "unknown"
            yield _response(identity, name, text, block.get("is_error") is True)
            yield from parts
