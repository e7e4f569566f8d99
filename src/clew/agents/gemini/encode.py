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
from clew.agents.encoding import (
    NO_RESULT,
    UNKNOWN,
    Fields,
    HeldRecords,
    call_arguments,
    json_line,
    model_name,
    output_text,
)
from clew.agents.gemini.events import RESULTS_SUFFIX, is_ignored
from clew.agents.gemini.locate import is_own_path, relative_name, safe_id
from clew.agents.gemini.project_registry import hash_of, slug_of
from clew.agents.gemini.records import embedded_messages, is_header, message_record
from clew.agents.gemini_content import parts_of_block
from clew.io.paths import safe_relative
from clew.model.json import JSON
from clew.model.time import parse_time, spell_milliseconds, spell_time
from clew.model.unit import Unit

GUARD = "\u200b"
"""A zero width space, before a text that the client would take for a command. It trims spaces, but not this one."""


# Where the session goes


def target(header: Header) -> str:
    """The path of the session's file below a home folder: that of its source, if it is the same session."""
    session = header.session
    project = f".gemini/tmp/{project_name(session)}"
    path = Path(header.recorded_path)
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
        yield "", json_line(record)


def _header_record(session: Mapping[str, JSON]) -> Fields:
    started = spell_milliseconds(session.get("started_at"))
    return {
        "sessionId": session["id"],
        "projectHash": hash_of(session["workspace"]),
        "startTime": started,
        "lastUpdated": spell_milliseconds(session.get("ended_at")) if session.get("ended_at") else started,
        "kind": "subagent" if session.get("is_agent_session") else "main",
    }


# Records of the client itself


def _copied_records(session: Mapping[str, JSON], units: Iterable[Unit]) -> Iterator[Fields]:
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
        yield dict(record)


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


def _without_messages(state: Mapping[str, JSON]) -> Fields:
    return {key: value for key, value in state.items() if key != "messages"}


# Records composed from messages


def _composed_records(session: Mapping[str, JSON], units: Iterable[Unit]) -> Iterator[Fields]:
    composer = _Composer(session)
    yield _header_record(session)
    for unit in units:
        yield from composer.add_message(unit.value) if unit.is_message else composer.add_record(unit.value)
    yield from composer.finish()
    if session.get("title"):
        yield {"$set": {"summary": session["title"]}}


class _Composer:
    """Composes records. The client keeps a call and its result in one record."""

    def __init__(self, session: Mapping[str, JSON]) -> None:
        self._session = session
        self._time = spell_milliseconds(session.get("started_at"))
        self._held = HeldRecords(_cancel_call)
        self._last_reply_id: JSON = None
        self._uuids: set[JSON] = set()

    def add_message(self, message: Fields) -> Iterator[Fields]:
        """The records that are complete, now that this message is there."""
        if message.get("timestamp") is not None:
            self._time = spell_milliseconds(message["timestamp"])
        blocks = [block for block in message["content"] if not self._answer_call(block)]
        if message["role"] == "assistant":
            self._hold_reply(message)
        elif parts := [part for block in blocks for part in parts_of_block(block)]:
            kind = "info" if message["role"] == "system" else "user"
            self._held.add({**self._base(message, kind), "content": _guarded(parts)})
        yield from self._held.take_complete()

    def add_record(self, record: Mapping[str, JSON]) -> Iterator[Fields]:
        """A rewind to a message that was written; other records are not composed."""
        if record["kind"] == "rewind" and record.get("message_uuid") is not None:
            yield from self.finish()
            if record["message_uuid"] in self._uuids:
                yield {"$rewindTo": record["message_uuid"]}

    def finish(self) -> Iterator[Fields]:
        """The records that were held back."""
        yield from self._held.take_all()

    def _base(self, message: Fields, kind: str) -> Fields:
        uuid = message.get("uuid") or derived_id(self._session["id"], message["index"])
        self._uuids.add(uuid)
        return {"id": uuid, "timestamp": self._time, "type": kind}

    def _answer_call(self, block: Fields) -> bool:
        """Put a result into the call that it answers; False for anything else."""
        found = self._held.take_call(block)
        if found is None:
            return False
        call, _ = found
        _put_result(call, block)
        call["status"] = "error" if block.get("is_error") is True else "success"
        call["timestamp"], call["resultDisplay"] = self._time, output_text(block.get("output"))
        return True

    def _hold_reply(self, message: Fields) -> None:
        metadata = message.get("metadata") or {}
        record = {**self._base(message, "gemini"), "content": _reply_content(message["content"])}
        thoughts = [block["thinking"] for block in message["content"] if block["type"] == "thinking"]
        record["thoughts"] = [
            {"subject": "", "description": text, "timestamp": self._time} for text in thoughts if text
        ]
        record["tokens"] = _tokens(metadata.get("token_usage") or {})
        record["model"] = model_name(metadata) or UNKNOWN
        calls = [
            self._call(block, record, position)
            for position, block in enumerate(message["content"])
            if block["type"] == "tool_use"
        ]
        if calls:
            record["toolCalls"] = calls
        reply_id, last = metadata.get("message_id"), self._held.last
        if reply_id is not None and reply_id == self._last_reply_id and last is not None and "tokens" in last:
            # The lines of one reply repeat its counts.
            last["tokens"] = None
        self._last_reply_id = reply_id
        self._held.add(record)

    def _call(self, block: Fields, record: Fields, position: int) -> Fields:
        call_id = block["tool_id"] or derived_id(self._session["id"], record["id"], position)
        call = {"id": call_id, "name": block["tool_name"] or UNKNOWN, "args": call_arguments(block)}
        call |= {"result": None, "status": "", "timestamp": self._time}
        self._held.add_call(block["tool_id"], call, record)
        return call


def _put_result(call: Fields, block: Mapping[str, JSON]) -> None:
    result = {"type": "tool_result", **block, "tool_id": call["id"], "tool_name": call["name"]}
    call["result"] = list(parts_of_block(result))


def _cancel_call(call: Fields) -> None:
    """Cancel a call that nothing answers: the models refuse calls without a result."""
    _put_result(call, {"output": NO_RESULT, "is_error": True})
    call["status"] = "cancelled"


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


def _guarded(parts: list[Fields]) -> list[Fields]:
    """The parts behind a guard, if they begin like a command: the client would not send that to the model."""
    leading = takewhile(lambda part: "text" in part, parts)
    return [{"text": GUARD}, *parts] if is_ignored("".join(part["text"] for part in leading)) else parts


def _reply_content(blocks: list[Fields]) -> JSON:
    parts = [
        part for block in blocks if block["type"] in ("text", "image", "document") for part in parts_of_block(block)
    ]
    if all("text" in part for part in parts) and len(parts) < 2:
        return parts[0]["text"] if parts else ""
    return parts
