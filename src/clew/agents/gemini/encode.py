"""Sessions as an event log that the client lists and goes on with.

Messages of other agents are composed as records of the client. A session of Gemini CLI itself, of which a part goes
over or which is repaired, keeps its records: only ids change, and a session that was one document becomes a log.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, takewhile
from pathlib import Path

from clew.agents.base import Header
from clew.agents.derived_ids import derived_id
from clew.agents.gemini.events import RESULTS_SUFFIX, is_ignored
from clew.agents.gemini.locate import is_own_path, relative_name, safe_id
from clew.agents.gemini.project_registry import hash_of, slug_of
from clew.agents.gemini.records import embedded_messages, is_header, message_record
from clew.agents.gemini_content import parts_of_block, response_part, split_output
from clew.io.codec import dumps
from clew.io.paths import safe_relative
from clew.model.json import JSON
from clew.model.time import parse_time, spell_milliseconds, spell_time
from clew.model.unit import Unit

UNANSWERED = "no result was recorded"
"""The result of a call that has none."""
GUARD = "\u200b"
"""A zero width space, before a text that the client would take for a command. It trims spaces, but not this one."""
_MAX_HELD_RECORDS = 100

NativeRecord = dict[str, JSON]


# Where the session goes


def target(header: Header) -> str:
    """The path of the session's file below a home folder: that of its source, if it is the same session."""
    session = header.session
    project = f".gemini/tmp/{project_name(session)}"
    path = Path(str((session.get("source") or {}).get("path") or "").replace("\\", "/"))
    if is_own_path(path, str(session["id"])):
        return "/".join([project, *map(safe_relative, relative_name(path).split("/"))])
    parent = session.get("parent_session_id")
    if session.get("is_agent_session") and parent:
        return f"{project}/chats/{safe_id(str(parent))}/{safe_id(str(session['id']))}.jsonl"
    return f"{project}/chats/{_chat_name(header)}.jsonl"


def project_name(session: Mapping[str, JSON]) -> str:
    """The name of the project's folder: as the registry gives it, else as the client makes it."""
    return safe_relative(session.get("workspace_encoded") or slug_of(session["workspace"]))


def _chat_name(header: Header) -> str:
    """The name of a chat: the minute in which it began, and the beginning of its id."""
    stamp = parse_time(header.session.get("started_at")) or parse_time(header.export_timestamp)
    minute = spell_time(stamp)[:16].replace(":", "-") if stamp is not None else "1970-01-01T00-00"
    return f"session-{minute}-{safe_relative(str(header.session['id'])[:8])}"


# Records


def encode(header: Header, units: Iterable[Unit]) -> Iterator[tuple[str, bytes]]:
    """The lines of the session."""
    units = (unit for unit in units if unit.is_message or unit.native or unit.value["kind"] == "rewind")
    first = next(units, None)
    units = chain([first], units) if first is not None else units
    is_own = first is not None and bool(first.native)
    records = _copied_records(header.session, units) if is_own else _composed_records(header.session, units)
    for record in records:
        yield "", dumps(record) + b"\n"


def _header_record(session: Mapping[str, JSON]) -> NativeRecord:
    started = spell_milliseconds(session.get("started_at"))
    return {
        "sessionId": session["id"],
        "projectHash": hash_of(session["workspace"]),
        "startTime": started,
        "lastUpdated": spell_milliseconds(session.get("ended_at")) if session.get("ended_at") else started,
        "kind": "subagent" if session.get("is_agent_session") else "main",
    }


# Records of the client itself


def _copied_records(session: Mapping[str, JSON], units: Iterable[Unit]) -> Iterator[NativeRecord]:
    """The records of a session of the client under the new id, as a log that it replays to the same messages."""
    copier = _Copier()
    is_first = True
    for unit in _without_versions_of_absent(units):
        record = copier.message_record(unit) if unit.is_message else copier.other_record(unit)
        if record is None:
            continue
        if is_first and not is_header(record):
            yield _header_record(session)
        is_first = False
        yield _with_session_id(record, unit.claimed_session, session["id"])


def _without_versions_of_absent(units: Iterable[Unit]) -> Iterator[Unit]:
    """The units without the earlier versions of messages that are left out.

    An earlier version that comes before its message is one of the next message, unless that message is left out.
    """
    uuids: set[JSON] = set()
    held: list[Unit] = []
    for unit in units:
        if unit.is_message:
            uuids.add(unit.value["uuid"])
            yield from _versions_of(uuids, held)
            held = []
            yield unit
        elif held or (_is_version(unit) and unit.value["message_uuid"] not in uuids):
            held.append(unit)
        else:
            yield unit
    yield from _versions_of(uuids, held)


def _versions_of(uuids: set[JSON], records: list[Unit]) -> Iterator[Unit]:
    return (record for record in records if not _is_version(record) or record.value["message_uuid"] in uuids)


def _is_version(unit: Unit) -> bool:
    """True for an earlier version of a message, or the last one of a message that stands before it."""
    return unit.value["kind"] in ("progress", "link")


class _Copier:
    """Finds the native record to write for each unit, if there is one.

    All versions of a message are written, because the client may have taken it back between two of them. A message
    whose last version stands behind other messages is written with that version in its first place as well.
    """

    def __init__(self) -> None:
        self._uuids: set[JSON] = set()
        self._replacements: set[tuple[int, int]] = set()
        """File and end of the records that replace all messages and were written as they are."""

    def other_record(self, unit: Unit) -> Mapping[str, JSON] | None:
        """The record behind a unit that is no message; None for one that does not count when the log is replayed."""
        native, kind = unit.native, unit.value["kind"]
        has_messages = embedded_messages(native) is not None
        if _is_version(unit):
            if not has_messages:
                return native
            # A version inside of a later record that replaces all messages is shortened.
            uuid, is_written = unit.value["message_uuid"], (unit.part, unit.stop) in self._replacements
            return None if is_written or uuid in self._uuids else message_record(native, uuid)
        if kind not in ("state", "summary", "rewind"):
            return None
        if not has_messages:
            return native
        if kind == "rewind":
            self._replacements.add((unit.part, unit.stop))
            return native
        # No message stands before it, so those inside of it can be lines. The header of a document holds none.
        patch = native.get("$set")
        return {**native, "$set": _without_messages(patch)} if type(patch) is dict else _without_messages(native)

    def message_record(self, unit: Unit) -> Mapping[str, JSON] | None:
        """The record of a message; None for results, which stand with their calls, and for what was written before."""
        uuid = unit.value["uuid"]
        self._uuids.add(uuid)
        record = message_record(unit.native, uuid)
        if not record or (unit.part, unit.stop) in self._replacements or embedded_messages(record) is not None:
            return None
        if type(record.get("id")) is str:
            return record if record["id"] == uuid else None
        # Only in a document a message may do without an id.
        return None if uuid.endswith(RESULTS_SUFFIX) else {**record, "id": uuid}


def _without_messages(state: Mapping[str, JSON]) -> NativeRecord:
    return {key: value for key, value in state.items() if key != "messages"}


def _with_session_id(record: Mapping[str, JSON], old_id: JSON, new_id: JSON) -> NativeRecord:
    """The record with the new id of the session, where it or a part of it names the old one."""
    found = dict(record)
    if found.get("sessionId") == old_id:
        found["sessionId"] = new_id
    if type(found.get("$set")) is dict:
        found["$set"] = _with_session_id(found["$set"], old_id, new_id)
    if type(found.get("messages")) is list:
        messages = found["messages"]
        found["messages"] = [
            _with_session_id(message, old_id, new_id) if type(message) is dict else message for message in messages
        ]
    return found


# Records composed from messages


def _composed_records(session: Mapping[str, JSON], units: Iterable[Unit]) -> Iterator[NativeRecord]:
    composer = _Composer(session)
    yield _header_record(session)
    for unit in units:
        yield from composer.add_message(unit.value) if unit.is_message else composer.add_record(unit.value)
    yield from composer.finish()
    if session.get("title"):
        yield {"$set": {"summary": session["title"]}}


class _Composer:
    """Composes records. It holds replies back until their results are there: the client keeps both in one record."""

    def __init__(self, session: Mapping[str, JSON]) -> None:
        self._session = session
        self._time = spell_milliseconds(session.get("started_at"))
        self._held: list[NativeRecord] = []
        self._open_calls: dict[JSON, NativeRecord] = {}
        self._last_reply_id: JSON = None
        self._written: set[JSON] = set()

    def add_message(self, message: NativeRecord) -> Iterator[NativeRecord]:
        """The records that are complete, now that this message is there."""
        if message.get("timestamp") is not None:
            self._time = spell_milliseconds(message["timestamp"])
        blocks = [block for block in message["content"] if not self._answer_call(block)]
        if message["role"] == "assistant":
            self._hold_reply(message)
        elif parts := [part for block in blocks for part in parts_of_block(block)]:
            kind = "info" if message["role"] == "system" else "user"
            self._held.append({**self._base(message, kind), "content": _guarded(parts)})
        # The last one may be a reply, and the next message another line of it.
        while len(self._held) > 1 and (not _has_open_call(self._held[0]) or len(self._held) > _MAX_HELD_RECORDS):
            yield self._complete(self._held.pop(0))

    def add_record(self, record: Mapping[str, JSON]) -> Iterator[NativeRecord]:
        """A rewind to a message that was written; other records are not composed."""
        if record["kind"] == "rewind" and record.get("message_uuid") is not None:
            yield from self.finish()
            if record["message_uuid"] in self._written:
                yield {"$rewindTo": record["message_uuid"]}

    def finish(self) -> Iterator[NativeRecord]:
        """The records that were held back."""
        while self._held:
            yield self._complete(self._held.pop(0))

    def _base(self, message: NativeRecord, kind: str) -> NativeRecord:
        uuid = message.get("uuid") or derived_id(self._session["id"], message["index"])
        return {"id": uuid, "timestamp": self._time, "type": kind}

    def _answer_call(self, block: NativeRecord) -> bool:
        """Put a result into the call that it answers; False for anything else."""
        call = self._open_calls.pop(block["tool_id"], None) if block["type"] == "tool_result" else None
        if call is None:
            return False
        is_error = block.get("is_error") is True
        text, parts = split_output(block.get("output"))
        call["result"] = [response_part(call["id"], call["name"], text, is_error), *parts]
        call["status"], call["timestamp"], call["resultDisplay"] = "error" if is_error else "success", self._time, text
        return True

    def _hold_reply(self, message: NativeRecord) -> None:
        metadata = message.get("metadata") or {}
        record = {**self._base(message, "gemini"), "content": _reply_content(message["content"])}
        thoughts = [block["thinking"] for block in message["content"] if block["type"] == "thinking"]
        record["thoughts"] = [
            {"subject": "", "description": text, "timestamp": self._time} for text in thoughts if text
        ]
        record["tokens"] = _tokens(metadata.get("token_usage") or {})
        record["model"] = (metadata.get("model") or {}).get("name") or "unknown"
        calls = [
            self._call(block, record["id"], position)
            for position, block in enumerate(message["content"])
            if block["type"] == "tool_use"
        ]
        if calls:
            record["toolCalls"] = calls
        reply_id = metadata.get("message_id")
        if reply_id is not None and reply_id == self._last_reply_id and self._held and "tokens" in self._held[-1]:
            # The lines of one reply repeat its counts.
            self._held[-1]["tokens"] = None
        self._last_reply_id = reply_id
        self._held.append(record)

    def _call(self, block: NativeRecord, record_id: JSON, position: int) -> NativeRecord:
        call_id = block["tool_id"] or derived_id(self._session["id"], record_id, position)
        name = block["tool_name"] or "unknown"
        arguments = block["input"] if isinstance(block["input"], dict) else {"input": block["input"]}
        call = {"id": call_id, "name": name, "args": arguments, "result": None, "status": "", "timestamp": self._time}
        self._open_calls[block["tool_id"]] = call
        return call

    def _complete(self, record: NativeRecord) -> NativeRecord:
        """Cancel the calls that nothing answers: the models refuse calls without a result."""
        for call in record.get("toolCalls", ()):
            if not call["status"]:
                for call_id in (call["id"], None):
                    if self._open_calls.get(call_id) is call:
                        del self._open_calls[call_id]
                call["result"] = [response_part(call["id"], call["name"], UNANSWERED, is_error=True)]
                call["status"] = "cancelled"
        self._written.add(record["id"])
        return record


def _has_open_call(record: NativeRecord) -> bool:
    return any(not call["status"] for call in record.get("toolCalls", ()))


def _tokens(usage: Mapping[str, JSON]) -> dict[str, int] | None:
    """The counts as the client has them: cached input is part of the input, thoughts are no part of the output."""
    counts = {name: count for name, count in usage.items() if type(count) is int}
    if "input_tokens" not in counts and "output_tokens" not in counts:
        return None
    cached, thoughts = counts.get("cache_read_tokens", 0), counts.get("reasoning_tokens", 0)
    input_count = counts.get("input_tokens", 0) + cached + counts.get("cache_creation_tokens", 0)
    output_count = max(0, counts.get("output_tokens", 0) - thoughts)
    return {
        "input": input_count,
        "output": output_count,
        "cached": cached,
        "thoughts": thoughts,
        "tool": 0,
        "total": input_count + output_count + thoughts,
    }


def _guarded(parts: list[NativeRecord]) -> list[NativeRecord]:
    """The parts behind a guard, if they begin like a command: the client would not send that to the model."""
    leading = takewhile(lambda part: "text" in part, parts)
    return [{"text": GUARD}, *parts] if is_ignored("".join(part["text"] for part in leading)) else parts


def _reply_content(blocks: list[NativeRecord]) -> JSON:
    parts = [
        part for block in blocks if block["type"] in ("text", "image", "document") for part in parts_of_block(block)
    ]
    if all("text" in part for part in parts) and len(parts) < 2:
        return parts[0]["text"] if parts else ""
    return parts
