"""Sessions as the two files that Cline 3 resumes: the messages, and the manifest that names their file.

A message of Cline itself is written as it was. Other messages are composed. The providers want the results of all calls
right behind the reply that made them, so what stands between is written after them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import chain, islice

from clew.agents.base import Header, Unit
from clew.agents.derived_ids import derived_id
from clew.io.codec import dumps
from clew.model.json import JSON
from clew.model.time import parse_time, spell_time

UNANSWERED = "no result was recorded"
"""The result of a call that has none."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_UNKNOWN = "unknown"

_Object = dict[str, JSON]


def encode(header: Header, units: Iterable[Unit]) -> Iterator[tuple[str, bytes]]:
    """The document with the messages, one on each line, and the manifest."""
    session = header.session
    units = iter(units)
    first = list(islice(units, 1))
    yield "", dumps(_document_head(session, first))[:-1] + b',"messages":['
    separator = b"\n"
    for message in _messages(session, chain(first, units)):
        yield "", separator + dumps(message)
        separator = b",\n"
    yield "", b"\n]}\n"
    yield f"{session['id']}.json", dumps(_manifest(header)) + b"\n"


def _document_head(session: Mapping[str, JSON], first: list[Unit]) -> _Object:
    """The members of the document beside the messages. Those of Cline's own session come with its first unit."""
    native = first[0].native if first and not first[0].is_message else {}
    known = {name: value for name, value in native.items() if name != "messages"} if "messages" in native else {}
    head: _Object = {"version": 1, "updated_at": _time(session.get("ended_at")), "agent": "lead"}
    origin = {"source": "cli", "mode": "user", **(known.get("origin") or {}), "sessionId": session["id"]}
    return {**head, **known, "sessionId": session["id"], "origin": origin}


def _manifest(header: Header) -> _Object:
    """What the client needs to find a session by its id. Who resumes it chooses the model."""
    session = header.session
    manifest: _Object = {
        "version": 1,
        "session_id": session["id"],
        "source": "cli",
        "pid": 0,
        "started_at": _time(session.get("started_at")),
        "ended_at": _time(session.get("ended_at")),
        "exit_code": 0,
        "status": "completed",
        "interactive": True,
        "provider": _UNKNOWN,
        "model": _UNKNOWN,
        "cwd": session["workspace"],
        "workspace_root": session["workspace"],
        "enable_tools": True,
        "enable_spawn": True,
        "enable_teams": False,
        "messages_path": header.main_file,
    }
    return {**manifest, "metadata": {"title": session["title"]}} if session.get("title") else manifest


def _time(time: JSON) -> str:
    return spell_time(parse_time(time) or _EPOCH)


def _messages(session: Mapping[str, JSON], units: Iterable[Unit]) -> Iterator[_Object]:
    composer = _Composer(session)
    for unit in units:
        if not unit.is_message:
            continue
        # A task of the extension has messages without ids, in an older form.
        if isinstance(unit.native.get("id"), str) and "role" in unit.native:
            yield from composer.finish()
            yield dict(unit.native)
        else:
            yield from composer.add(unit.value)
    yield from composer.finish()


class _Composer:
    """Composes messages. It holds a reply until its last line is there, and prompts until all calls are answered."""

    def __init__(self, session: Mapping[str, JSON]) -> None:
        self._session = session
        self._time = parse_time(session.get("started_at")) or _EPOCH
        self._count = 0
        self._reply: _Object | None = None
        self._open_calls: dict[JSON, str] = {}
        """The names of tools, by the ids of calls without a result."""
        self._held: list[_Object] = []
        """Prompts that came before the results of the last reply."""

    def add(self, message: _Object) -> Iterator[_Object]:
        """The messages that are complete, now that this one is there."""
        self._time = parse_time(message.get("timestamp")) or self._time
        if message["role"] == "assistant":
            yield from self._add_reply(message)
        else:
            yield from self._add_prompt(message)

    def finish(self) -> Iterator[_Object]:
        """The messages that were held back. Calls that have no result by now get one that says so."""
        yield from self._write_reply()
        for call, name in self._open_calls.items():
            yield self._message("user", [_result(call, name, UNANSWERED, is_error=True)])
        self._open_calls = {}
        yield from self._held
        self._held = []

    def _add_reply(self, message: _Object) -> Iterator[_Object]:
        if self._reply is None:
            yield from self.finish()
            self._reply = {**self._message("assistant", []), **_reply_metadata(message.get("metadata") or {})}
        content: list[_Object] = self._reply["content"]
        content += [part for block in message["content"] for part in _reply_part(block)]

    def _write_reply(self) -> Iterator[_Object]:
        reply, self._reply = self._reply, None
        if reply is not None and reply["content"]:
            self._open_calls = {part["id"]: part["name"] for part in reply["content"] if part["type"] == "tool_use"}
            yield reply

    def _add_prompt(self, message: _Object) -> Iterator[_Object]:
        yield from self._write_reply()
        content: list[_Object] = []
        for block in message["content"]:
            if block["type"] != "tool_result":
                content += _parts(block)
            elif block["tool_id"] in self._open_calls:
                name, is_error = self._open_calls.pop(block["tool_id"]), block.get("is_error") is True
                yield self._message("user", [_result(block["tool_id"], name, _output(block.get("output")), is_error)])
            else:
                # Providers refuse a result without a call; its text is still part of the conversation.
                output = _output(block.get("output"))
                content += output if isinstance(output, list) else [{"type": "text", "text": output}]
        if content:
            self._held.append(self._message("user", content))
        if not self._open_calls:
            yield from self.finish()

    def _message(self, role: str, content: list[_Object]) -> _Object:
        self._count += 1
        identity = derived_id(self._session["id"], self._count)
        return {"id": identity, "role": role, "content": content, "ts": int(self._time.timestamp() * 1000)}


def _reply_metadata(metadata: Mapping[str, JSON]) -> _Object:
    found: _Object = {}
    model = (metadata.get("model") or {}).get("name")
    if model:
        found["modelInfo"] = {"id": model, "provider": _UNKNOWN}
    counts = {name: count for name, count in (metadata.get("token_usage") or {}).items() if type(count) is int}
    if "input_tokens" in counts or "output_tokens" in counts:
        read, written = counts.get("cache_read_tokens", 0), counts.get("cache_creation_tokens", 0)
        found["metrics"] = {
            "inputTokens": counts.get("input_tokens", 0) + read + written,
            "outputTokens": counts.get("output_tokens", 0),
            "cacheReadTokens": read,
            "cacheWriteTokens": written,
        }
    return found


def _reply_part(block: _Object) -> Iterator[_Object]:
    match block["type"]:
        case "text" if block["text"]:
            yield {"type": "text", "text": block["text"]}
        case "thinking" if block["thinking"]:
            signature = {"signature": block["signature"]} if block.get("signature") else {}
            yield {"type": "thinking", "thinking": block["thinking"], **signature}
        case "tool_use":
            arguments = block["input"] if isinstance(block["input"], dict) else {"input": block["input"]}
            call = {"type": "tool_use", "id": block["tool_id"], "name": block["tool_name"] or _UNKNOWN}
            yield {**call, "input": arguments}


def _parts(block: _Object) -> Iterator[_Object]:
    """What a prompt or a result can hold: texts and images; of an image elsewhere its address."""
    if block["type"] == "text" and block["text"]:
        yield {"type": "text", "text": block["text"]}
    elif block["type"] == "image" and block.get("image"):
        if block.get("encoding") == "url":
            yield {"type": "text", "text": block["image"]}
        else:
            yield {"type": "image", "data": block["image"], "mediaType": block.get("media_type") or "image/png"}


def _result(call: JSON, name: str, content: JSON, is_error: bool) -> _Object:
    result = {"type": "tool_result", "tool_use_id": call, "name": name, "content": content}
    return {**result, "is_error": True} if is_error else result


def _output(output: JSON) -> JSON:
    if isinstance(output, list):
        parts = [part for block in output if isinstance(block, dict) and "type" in block for part in _parts(block)]
        is_text = all(part["type"] == "text" for part in parts)
        return "\n".join(part["text"] for part in parts) if is_text else parts
    return "" if output is None else output if isinstance(output, str) else dumps(output).decode()
