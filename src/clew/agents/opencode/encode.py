"""Sessions that the client imports, written twice: as its rows, which clew reads, and as the file that it imports.

clew writes nothing into the database. `opencode import` reads the second file and keeps all ids, so that the rows are
found under the same path afterwards. Ids ascend, and are smaller than those that the client makes by its clock: it
compares the ids of messages to tell which came later.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from uuid import UUID

from clew.agents.base import Header
from clew.agents.encoding import (
    NO_RESULT,
    UNKNOWN,
    Fields,
    HeldRecords,
    attachment_url,
    call_arguments,
    header_line,
    import_file_name,
    model_name,
    output_attachments,
    output_text,
    provider_of,
    row_line,
    subagents_by_call,
)
from clew.agents.opencode.events import UNTITLED
from clew.io.codec import dumps
from clew.model.json import JSON
from clew.model.time import milliseconds
from clew.model.unit import Unit

FORMAT_VERSION = "1.18.33"
"""The version of the client whose format is written."""
_SESSION_COLUMNS = {
    "id": "id",
    "projectID": "project_id",
    "parentID": "parent_id",
    "slug": "slug",
    "directory": "directory",
    "title": "title",
    "version": "version",
}


def session_id(identity: str) -> str:
    """An id of a session as the client has it, from one that no other session has."""
    try:
        return f"ses_{UUID(identity).hex[:26]}"
    except ValueError:
        return identity if identity.startswith("ses_") else f"ses_{sha256(identity.encode()).hexdigest()[:26]}"


def encode(header: Header, units: Iterable[Unit]) -> Iterator[tuple[str, bytes]]:
    """The rows of the session as the main file, and the file to import beside it."""
    session = header.session
    imported = import_file_name(session["id"])
    composer = _Composer(session)
    info = _session_info(session)
    yield "", header_line(header.agent, "", session["id"])
    yield "", row_line("session", _session_row(info))
    yield imported, b'{"info":' + dumps(info) + b',"messages":['
    is_first = True
    for message in composer.messages(units):
        yield imported, (b"" if is_first else b",") + dumps({"info": message["info"], "parts": message["parts"]})
        is_first = False
        for line in _rows(message):
            yield "", line
    yield imported, b"]}\n"


def _session_info(session: Mapping[str, JSON]) -> Fields:
    created = milliseconds(session.get("started_at")) or 1
    info: Fields = {
        "id": session["id"],
        "slug": str(session["id"]).removeprefix("ses_")[:12],
        "projectID": "global",
        "directory": session.get("workspace") or "/",
        "title": session.get("title") or f"{UNTITLED[0]}{session.get('started_at') or ''}",
        "version": FORMAT_VERSION,
        "time": {"created": created, "updated": milliseconds(session.get("ended_at")) or created},
    }
    if session.get("parent_session_id"):
        info["parentID"] = session["parent_session_id"]
    return info


def _session_row(info: Fields) -> Fields:
    """The columns of a session; its times are columns of their own."""
    columns = {column: info.get(key) for key, column in _SESSION_COLUMNS.items()}
    return {**columns, "time_created": info["time"]["created"], "time_updated": info["time"]["updated"]}


def _rows(message: Fields) -> Iterator[bytes]:
    """The rows of a message: the ids are columns, and no part of the data."""
    info = message["info"]
    time = info["time"]["created"]
    columns = {"id": info["id"], "session_id": info["sessionID"], "time_created": time, "time_updated": time}
    yield row_line("message", {**columns, "data": _data(info, "id", "sessionID")})
    for part in message["parts"]:
        columns = {"id": part["id"], "message_id": part["messageID"], "session_id": part["sessionID"]}
        columns |= {"time_created": time, "time_updated": time}
        yield row_line("part", {**columns, "data": _data(part, "id", "messageID", "sessionID")})


def _data(record: Fields, *without: str) -> str:
    return dumps({key: value for key, value in record.items() if key not in without}).decode()


class _Composer:
    """Composes messages. The client keeps a call and its result in one part."""

    def __init__(self, session: Mapping[str, JSON]) -> None:
        self._session_id = str(session["id"])
        self._folder = session.get("workspace") or "/"
        self._time = milliseconds(session.get("started_at")) or 1
        self._count = 0
        self._prompt_id: str | None = None
        self._model = UNKNOWN
        self._held = HeldRecords(_end_call)
        self._suffix = sha256(self._session_id.encode()).hexdigest()[:14]
        self._subagents = subagents_by_call(session)

    def messages(self, units: Iterable[Unit]) -> Iterator[Fields]:
        """The messages of the client."""
        for unit in units:
            if unit.is_message:
                self._add(unit.value)
                yield from self._held.take_complete()
        yield from self._held.take_all()

    def _add(self, message: Fields) -> None:
        # The client orders messages by their times.
        self._time = max(self._time, milliseconds(message.get("timestamp")) or 0)
        metadata = message.get("metadata") or {}
        self._model = model_name(metadata) or self._model
        blocks = [block for block in message["content"] if not self._answer(block)]
        if message["role"] == "assistant":
            self._add_reply(blocks)
        elif parts := [part for block in blocks if (part := _part(block)) is not None]:
            if metadata.get("is_meta") or message["role"] == "system":
                parts = [{**part, "synthetic": True} if part["type"] == "text" else part for part in parts]
            info: Fields = {"role": "user", "time": {"created": self._time}, "agent": "build"}
            info["model"] = {"providerID": provider_of(self._model), "modelID": self._model}
            prompt = self._new_message(info, parts)
            self._prompt_id = prompt["info"]["id"]

    def _add_reply(self, blocks: list[Fields]) -> None:
        """Add lines of a reply to the one that is held, unless a prompt or results came in between."""
        last = self._held.last
        if last is None or last["info"]["role"] != "assistant" or last["is_answered"]:
            last = self._new_message(self._reply_info(), [])
        for block in blocks:
            part = self._call(block) if block["type"] == "tool_use" else _part(block)
            if part is None:
                continue
            if part["type"] in ("text", "reasoning"):
                part["time"] = {"start": self._time, "end": self._time}
            elif part["type"] == "tool":
                last["info"]["finish"] = "tool-calls"
                self._held.add_call(block["tool_id"], part, last)
            last["parts"].append(self._with_ids(part, last))
        last["info"]["time"]["completed"] = self._time

    def _reply_info(self) -> Fields:
        return {
            "role": "assistant",
            "time": {"created": self._time, "completed": self._time},
            "parentID": self._prompt_id or "",
            "modelID": self._model,
            "providerID": provider_of(self._model),
            "mode": "build",
            "agent": "build",
            "path": {"cwd": self._folder, "root": self._folder},
            "cost": 0,
            # The tokens were counted where the session comes from.
            "tokens": {"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}},
            "finish": "stop",
        }

    def _new_message(self, info: Fields, parts: list[Fields]) -> Fields:
        own = {"id": self._next_id("msg"), "sessionID": self._session_id}
        if info.get("parentID") == "":
            info["parentID"] = own["id"]
        message: Fields = {"info": {**own, **info}, "parts": [], "is_answered": False}
        message["parts"] = [self._with_ids(part, message) for part in parts]
        self._held.add(message)
        return message

    def _next_id(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}_{self._count:012x}{self._suffix}"

    def _with_ids(self, part: Fields, message: Fields) -> Fields:
        """The part with its ids; a call stays the object that its result is put into."""
        own = {"id": self._next_id("prt"), "sessionID": self._session_id, "messageID": message["info"]["id"]}
        part.update(own)
        return part

    def _call(self, block: Fields) -> Fields:
        call, name = block["tool_id"] or self._next_id("call"), block["tool_name"] or UNKNOWN
        state: Fields = {"status": "running", "input": call_arguments(block), "time": {"start": self._time}}
        return {"type": "tool", "callID": call, "tool": name, "state": state}

    def _answer(self, block: Fields) -> bool:
        """Put a result into the call that it answers; False for anything else."""
        found = self._held.take_call(block)
        if found is None:
            return False
        part, message = found
        message["is_answered"] = True
        state, text = part["state"], output_text(block.get("output"))
        state["time"] = {"start": state["time"]["start"], "end": self._time}
        if block.get("is_error") is True:
            state |= {"status": "error", "error": text}
            return True
        subagents = self._subagents.get(block["tool_id"])
        child = {"sessionId": subagents[-1]["session_id"], "parentSessionId": self._session_id} if subagents else {}
        state |= {"status": "completed", "output": text, "title": part["tool"], "metadata": child}
        if attached := output_attachments(block.get("output")):
            own = {"sessionID": self._session_id, "messageID": part["messageID"]}
            state["attachments"] = [{"id": self._next_id("prt"), **own, **_file(item)} for item in attached]
        return True


def _end_call(part: Fields) -> None:
    """End a call that nothing answers."""
    time = part["state"]["time"]["start"]
    part["state"] |= {"status": "error", "error": NO_RESULT, "time": {"start": time, "end": time}}


def _part(block: Fields) -> Fields | None:
    """The part for a block that is no call."""
    match block["type"]:
        case "text":
            return {"type": "text", "text": block["text"]} if block["text"] else None
        case "thinking":
            part: Fields = {"type": "reasoning", "text": block["thinking"]}
            if block.get("signature"):
                part["metadata"] = {"anthropic": {"signature": block["signature"]}}
            return part
        case "document" if block.get("encoding") == "text":
            return {"type": "text", "text": block.get("document") or ""}
        case "image" | "document":
            return _file(block)
        case "tool_result":
            # Its call is not here, or has a result already.
            return {"type": "text", "text": output_text(block.get("output"))}
        case _:
            return {"type": "text", "text": dumps(block.get("value", block)).decode()}


def _file(block: Fields) -> Fields:
    mime = block.get("media_type") or "application/octet-stream"
    part: Fields = {"type": "file", "mime": mime, "url": attachment_url(block)}
    return {**part, "filename": block["title"]} if block.get("title") else part
