"""Sessions as the two files that Cline 3 resumes: the messages, and the manifest that names their file.

A message of Cline itself is written as it was. Other messages are composed. The providers want the results of all calls
right behind the reply that made them, so what stands between is written after them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, count, islice

from clew.agents.base import Header, Unit
from clew.agents.derived_ids import derived_id
from clew.agents.encoding import (
    NO_RESULT,
    UNKNOWN,
    ApiMessage,
    ApiOrder,
    Fields,
    call_arguments,
    model_name,
    output_blocks,
    text_or_image,
)
from clew.io.codec import dumps
from clew.model.json import JSON
from clew.model.time import EPOCH, parse_time, spell_time, to_milliseconds


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


def _document_head(session: Mapping[str, JSON], first: list[Unit]) -> Fields:
    """The members of the document beside the messages. Those of Cline's own session come with its first unit."""
    native = first[0].native if first and not first[0].is_message else {}
    known = {name: value for name, value in native.items() if name != "messages"} if "messages" in native else {}
    head: Fields = {"version": 1, "updated_at": _time(session.get("ended_at")), "agent": "lead"}
    origin = {"source": "cli", "mode": "user", **(known.get("origin") or {}), "sessionId": session["id"]}
    return {**head, **known, "sessionId": session["id"], "origin": origin}


def _manifest(header: Header) -> Fields:
    """What the client needs to find a session by its id. Who resumes it chooses the model."""
    session = header.session
    manifest: Fields = {
        "version": 1,
        "session_id": session["id"],
        "source": "cli",
        "pid": 0,
        "started_at": _time(session.get("started_at")),
        "ended_at": _time(session.get("ended_at")),
        "exit_code": 0,
        "status": "completed",
        "interactive": True,
        "provider": UNKNOWN,
        "model": UNKNOWN,
        "cwd": session["workspace"],
        "workspace_root": session["workspace"],
        "enable_tools": True,
        "enable_spawn": True,
        "enable_teams": False,
        "messages_path": header.main_file,
    }
    return {**manifest, "metadata": {"title": session["title"]}} if session.get("title") else manifest


def _time(time: JSON) -> str:
    return spell_time(parse_time(time) or EPOCH)


def _messages(session: Mapping[str, JSON], units: Iterable[Unit]) -> Iterator[Fields]:
    order, numbers = ApiOrder(session, NO_RESULT), count(1)
    for unit in units:
        if not unit.is_message:
            continue
        # A task of the extension has messages without ids, in an older form.
        is_native = isinstance(unit.native.get("id"), str) and "role" in unit.native
        for message in order.finish() if is_native else order.add(unit.value):
            yield from _composed(message, derived_id(session["id"], next(numbers)))
        if is_native:
            yield dict(unit.native)
    for message in order.finish():
        yield from _composed(message, derived_id(session["id"], next(numbers)))


def _composed(message: ApiMessage, identity: str) -> Iterator[Fields]:
    metadata: Fields = {}
    if message.role == "assistant":
        content = [part for block in message.content for part in _reply_part(block)]
        metadata = _reply_metadata(message.metadata)
    elif message.role == "tool":
        content = [_result(message.content[0])]
    else:
        content = _parts(message.content)
    if content:
        role = "assistant" if message.role == "assistant" else "user"
        time = to_milliseconds(message.time)
        yield {"id": identity, "role": role, "content": content, "ts": time, **metadata}


def _reply_metadata(metadata: Mapping[str, JSON]) -> Fields:
    found: Fields = {}
    if model := model_name(metadata):
        found["modelInfo"] = {"id": model, "provider": UNKNOWN}
    counts = metadata.get("token_usage") or {}
    if "input_tokens" in counts or "output_tokens" in counts:
        read, written = counts.get("cache_read_tokens", 0), counts.get("cache_creation_tokens", 0)
        found["metrics"] = {
            "inputTokens": counts.get("input_tokens", 0) + read + written,
            "outputTokens": counts.get("output_tokens", 0),
            "cacheReadTokens": read,
            "cacheWriteTokens": written,
        }
    return found


def _reply_part(block: Fields) -> Iterator[Fields]:
    match block["type"]:
        case "text" if block["text"]:
            yield {"type": "text", "text": block["text"]}
        case "thinking" if block["thinking"]:
            signature = {"signature": block["signature"]} if block.get("signature") else {}
            yield {"type": "thinking", "thinking": block["thinking"], **signature}
        case "tool_use":
            call = {"type": "tool_use", "id": block["tool_id"], "name": block["tool_name"] or UNKNOWN}
            yield {**call, "input": call_arguments(block)}


def _parts(blocks: Iterable[Fields]) -> list[Fields]:
    """What a prompt or a result can hold: texts and images."""
    parts = (text_or_image(block, "mediaType") for block in blocks)
    return [part for part in parts if part is not None and part.get("text") != ""]


def _result(block: Fields) -> Fields:
    """A result; its content is a text, or parts where images are among them."""
    parts = _parts(output_blocks(block.get("output")))
    is_text = all(part["type"] == "text" for part in parts)
    content = "\n".join(part["text"] for part in parts) if is_text else parts
    result = {"type": "tool_result", "tool_use_id": block["tool_id"], "name": block["tool_name"], "content": content}
    return {**result, "is_error": True} if block.get("is_error") is True else result
