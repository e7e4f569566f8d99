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
from clew.agents.database import DUMP_VERSION, HEADER_KEY
from clew.agents.opencode.events import UNTITLED
from clew.io.codec import dumps
from clew.io.database_paths import FILE_SUFFIX
from clew.model.json import JSON
from clew.model.time import microseconds
from clew.model.unit import Unit

FORMAT_VERSION = "1.18.33"
"""The version of the client whose format is written."""
IMPORT_SUFFIX = ".json"
UNANSWERED = "no result was recorded"
"""The error of a call that has no result: models refuse such calls."""
_MAX_HELD_MESSAGES = 100
_PROVIDERS = {
    "claude": "anthropic",
    "gpt": "openai",
    "o1": "openai",
    "o3": "openai",
    "o4": "openai",
    "gemini": "google",
}
"""Providers by the beginnings of the names of their models."""

NativeRecord = dict[str, JSON]


def session_id(identity: str) -> str:
    """An id of a session as the client has it, from one that no other session has."""
    try:
        return f"ses_{UUID(identity).hex[:26]}"
    except ValueError:
        return identity if identity.startswith("ses_") else f"ses_{sha256(identity.encode()).hexdigest()[:26]}"


def encode(header: Header, units: Iterable[Unit]) -> Iterator[tuple[str, bytes]]:
    """The rows of the session as the main file, and the file to import beside it."""
    session = header.session
    imported = f"{session['id']}{IMPORT_SUFFIX}"
    composer = _Composer(session)
    info, row = _session_info(session), _session_row(session)
    yield "", _line({HEADER_KEY: DUMP_VERSION, "agent": header.agent, "schema": "", "session": session["id"]})
    yield "", _line({"table": "session", "row": row})
    yield imported, b'{"info":' + dumps(info) + b',"messages":['
    is_first = True
    for message in composer.messages(units):
        yield imported, (b"" if is_first else b",") + dumps({"info": message["info"], "parts": message["parts"]})
        is_first = False
        for line in _rows(message):
            yield "", line
    yield imported, b"]}\n"


def import_file(main_file: str) -> str:
    """The file to import, beside the main file of a session."""
    return main_file.removesuffix(FILE_SUFFIX) + IMPORT_SUFFIX


def _line(record: NativeRecord) -> bytes:
    return dumps(record) + b"\n"


def _milliseconds(time: JSON) -> int | None:
    found = microseconds(time)
    return None if found is None else found // 1000


def _session_info(session: Mapping[str, JSON]) -> NativeRecord:
    created = _milliseconds(session.get("started_at")) or 1
    info: NativeRecord = {
        "id": session["id"],
        "slug": str(session["id"]).removeprefix("ses_")[:12],
        "projectID": "global",
        "directory": session.get("workspace") or "/",
        "title": session.get("title") or f"{UNTITLED[0]}{session.get('started_at') or ''}",
        "version": FORMAT_VERSION,
        "time": {"created": created, "updated": _milliseconds(session.get("ended_at")) or created},
    }
    if session.get("parent_session_id"):
        info["parentID"] = session["parent_session_id"]
    return info


def _session_row(session: Mapping[str, JSON]) -> NativeRecord:
    info = _session_info(session)
    return {
        "id": info["id"],
        "project_id": info["projectID"],
        "parent_id": info.get("parentID"),
        "slug": info["slug"],
        "directory": info["directory"],
        "title": info["title"],
        "version": info["version"],
        "time_created": info["time"]["created"],
        "time_updated": info["time"]["updated"],
    }


def _rows(message: NativeRecord) -> Iterator[bytes]:
    """The rows of a message: the ids are columns, and no part of the data."""
    info = message["info"]
    time = info["time"]["created"]
    columns = {"id": info["id"], "session_id": info["sessionID"], "time_created": time, "time_updated": time}
    yield _line({"table": "message", "row": {**columns, "data": _data(info, "id", "sessionID")}})
    for part in message["parts"]:
        columns = {"id": part["id"], "message_id": part["messageID"], "session_id": part["sessionID"]}
        columns |= {"time_created": time, "time_updated": time}
        yield _line({"table": "part", "row": {**columns, "data": _data(part, "id", "messageID", "sessionID")}})


def _data(record: NativeRecord, *without: str) -> str:
    return dumps({key: value for key, value in record.items() if key not in without}).decode()


class _Composer:
    """Composes messages. It holds replies back until their results are there: the client keeps both in one part."""

    def __init__(self, session: Mapping[str, JSON]) -> None:
        self._session_id = str(session["id"])
        self._folder = session.get("workspace") or "/"
        self._time = _milliseconds(session.get("started_at")) or 1
        self._count = 0
        self._prompt_id: str | None = None
        self._model: str | None = None
        self._held: list[NativeRecord] = []
        self._open_calls: dict[JSON, NativeRecord] = {}
        self._suffix = sha256(self._session_id.encode()).hexdigest()[:14]
        links = session.get("subagents") or ()
        self._children = {link.get("tool_id"): link.get("session_id") for link in links if link.get("session_id")}

    def messages(self, units: Iterable[Unit]) -> Iterator[NativeRecord]:
        """The messages of the client."""
        for unit in units:
            if unit.is_message:
                self._add(unit.value)
            # The last one may be a reply, and the next message another line of it.
            while len(self._held) > 1 and (not _has_open_call(self._held[0]) or len(self._held) > _MAX_HELD_MESSAGES):
                yield self._complete(self._held.pop(0))
        while self._held:
            yield self._complete(self._held.pop(0))

    def _add(self, message: NativeRecord) -> None:
        # The client orders messages by their times.
        self._time = max(self._time, _milliseconds(message.get("timestamp")) or 0)
        metadata = message.get("metadata") or {}
        self._model = (metadata.get("model") or {}).get("name") or self._model
        blocks = [block for block in message["content"] if not self._answer(block)]
        if message["role"] == "assistant":
            self._add_reply(blocks)
        elif parts := [part for block in blocks if (part := _part(block)) is not None]:
            if metadata.get("is_meta") or message["role"] == "system":
                parts = [{**part, "synthetic": True} if part["type"] == "text" else part for part in parts]
            model = self._model or "unknown"
            info: NativeRecord = {"role": "user", "time": {"created": self._time}, "agent": "build"}
            info["model"] = {"providerID": _provider(model), "modelID": model}
            prompt = self._new_message(info, parts)
            self._prompt_id = prompt["info"]["id"]

    def _add_reply(self, blocks: list[NativeRecord]) -> None:
        """Add lines of a reply to the one that is held, unless a prompt or results came in between."""
        last = self._held[-1] if self._held else None
        if last is None or last["info"]["role"] != "assistant" or last["is_answered"]:
            last = self._new_message(self._reply_info(), [])
        for block in blocks:
            part = self._call(block) if block["type"] == "tool_use" else _part(block)
            if part is not None:
                if part["type"] in ("text", "reasoning"):
                    part["time"] = {"start": self._time, "end": self._time}
                last["parts"].append(self._with_ids(part, last))
        last["info"]["time"]["completed"] = self._time

    def _reply_info(self) -> NativeRecord:
        model = self._model or "unknown"
        return {
            "role": "assistant",
            "time": {"created": self._time, "completed": self._time},
            "parentID": self._prompt_id or "",
            "modelID": model,
            "providerID": _provider(model),
            "mode": "build",
            "agent": "build",
            "path": {"cwd": self._folder, "root": self._folder},
            "cost": 0,
            # The tokens were counted where the session comes from.
            "tokens": {"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}},
            "finish": "stop",
        }

    def _new_message(self, info: NativeRecord, parts: list[NativeRecord]) -> NativeRecord:
        own = {"id": self._next_id("msg"), "sessionID": self._session_id}
        if info.get("parentID") == "":
            info["parentID"] = own["id"]
        message: NativeRecord = {"info": {**own, **info}, "parts": [], "is_answered": False}
        message["parts"] = [self._with_ids(part, message) for part in parts]
        self._held.append(message)
        return message

    def _next_id(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}_{self._count:012x}{self._suffix}"

    def _with_ids(self, part: NativeRecord, message: NativeRecord) -> NativeRecord:
        """The part with its ids; a call stays the object that its result is put into."""
        own = {"id": self._next_id("prt"), "sessionID": self._session_id, "messageID": message["info"]["id"]}
        part.update(own)
        return part

    def _call(self, block: NativeRecord) -> NativeRecord:
        given = block["input"] if isinstance(block["input"], dict) else {"input": block["input"]}
        call, name = block["tool_id"] or self._next_id("call"), block["tool_name"] or "unknown"
        state: NativeRecord = {"status": "running", "input": given, "time": {"start": self._time}}
        part: NativeRecord = {"type": "tool", "callID": call, "tool": name, "state": state}
        self._open_calls[block["tool_id"]] = part
        return part

    def _answer(self, block: NativeRecord) -> bool:
        """Put a result into the call that it answers; False for anything else."""
        part = self._open_calls.pop(block["tool_id"], None) if block["type"] == "tool_result" else None
        if part is None:
            return False
        state, (text, files) = part["state"], _split_output(block.get("output"))
        state["time"] = {"start": state["time"]["start"], "end": self._time}
        if block.get("is_error") is True:
            state |= {"status": "error", "error": text}
        else:
            child = self._children.get(block["tool_id"])
            metadata = {"sessionId": child, "parentSessionId": self._session_id} if child else {}
            state |= {"status": "completed", "output": text, "title": part["tool"], "metadata": metadata}
            if files:
                own = {"sessionID": self._session_id, "messageID": part["messageID"]}
                state["attachments"] = [{"id": self._next_id("prt"), **own, **file} for file in files]
        for message in self._held:
            message["is_answered"] |= message["info"]["id"] == part["messageID"]
        return True

    def _complete(self, message: NativeRecord) -> NativeRecord:
        """End the calls that nothing answers."""
        for part in message["parts"]:
            if part["type"] != "tool":
                continue
            message["info"]["finish"] = "tool-calls"
            if part["state"]["status"] == "running":
                self._open_calls = {key: call for key, call in self._open_calls.items() if call is not part}
                time = part["state"]["time"]["start"]
                part["state"] |= {"status": "error", "error": UNANSWERED, "time": {"start": time, "end": time}}
        return message


def _has_open_call(message: NativeRecord) -> bool:
    return any(part["type"] == "tool" and part["state"]["status"] == "running" for part in message["parts"])


def _part(block: NativeRecord) -> NativeRecord | None:
    """The part for a block that is no call."""
    match block["type"]:
        case "text":
            return {"type": "text", "text": block["text"]} if block["text"] else None
        case "thinking":
            part: NativeRecord = {"type": "reasoning", "text": block["thinking"]}
            if block.get("signature"):
                part["metadata"] = {"anthropic": {"signature": block["signature"]}}
            return part
        case "document" if block.get("encoding") == "text":
            return {"type": "text", "text": block.get("document") or ""}
        case "image" | "document":
            return _file(block)
        case "tool_result":
            # Its call is not here, or has a result already.
            return {"type": "text", "text": _split_output(block.get("output"))[0]}
        case _:
            return {"type": "text", "text": dumps(block.get("value", block)).decode()}


def _file(block: NativeRecord) -> NativeRecord:
    content, mime = block.get(block["type"]) or "", block.get("media_type") or "application/octet-stream"
    url = content if block.get("encoding") == "url" else f"data:{mime};base64,{content}"
    part: NativeRecord = {"type": "file", "mime": mime, "url": url}
    return {**part, "filename": block["title"]} if block.get("title") else part


def _split_output(output: JSON) -> tuple[str, list[NativeRecord]]:
    """The text of a result, and the pictures in it."""
    if isinstance(output, str) or output is None:
        return output or "", []
    if not isinstance(output, list):
        return dumps(output).decode(), []
    texts = [block["text"] for block in output if block.get("type") == "text"]
    return "\n".join(texts), [_file(block) for block in output if block.get("type") in ("image", "document")]


def _provider(model: str) -> str:
    return next((name for start, name in _PROVIDERS.items() if model.startswith(start)), "unknown")
