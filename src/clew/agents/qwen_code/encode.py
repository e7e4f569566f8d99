"""Messages and records as the lines that Qwen Code reads.

A unit with a native record gives that record. Every other message is composed with all keys that the client's own
reader looks for, so that `qwen --resume` finds it and goes on with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from itertools import chain

from clew.agents.derived_ids import derived_id
from clew.agents.encoding import (
    UNKNOWN,
    ApiMessage,
    ApiOrder,
    Fields,
    call_arguments,
    json_line,
    model_name,
)
from clew.agents.gemini_content import parts_of_block
from clew.agents.qwen_code.events import PERSON
from clew.agents.target_profile import Header
from clew.io.codec import dumps
from clew.model.json import JSON
from clew.model.time import spell_milliseconds
from clew.model.unit import Unit

CLIENT_VERSION = "0.24.4"
"""Records name the version that wrote them; the client asks for no certain one."""


def encode(header: Header, units: Iterable[Unit]) -> Iterator[tuple[str, bytes]]:
    """The lines of a session's file."""
    encoder = _Encoder(header.session)
    for record in chain(chain.from_iterable(map(encoder.records, units)), encoder.last_records()):
        yield "", json_line(record)
    if "parent_tool_id" in header.session:
        yield f"{header.session['id']}.meta.json", dumps(_note_on_subagent(header.session))


def _note_on_subagent(session: Mapping[str, JSON]) -> Fields:
    """What the client notes beside the transcript of a sub-agent that has ended."""
    agent = {"agentId": session["agent_id"], "agentType": "general-purpose", "status": "completed"}
    return {**agent, "parentSessionId": session["parent_session_id"], "toolUseId": session["parent_tool_id"]}


class _Encoder:
    """What must be known of earlier units to encode the next one."""

    def __init__(self, session: Mapping[str, JSON]) -> None:
        self._session = session
        is_subagent = session.get("is_agent_session") and session.get("parent_session_id")
        # To the client, a transcript of records with several session ids is damaged.
        self._session_id = session["parent_session_id"] if is_subagent else session["id"]
        self._is_subagent = bool(session.get("is_agent_session"))
        self._has_moved = not session.get("workspace_encoded")
        self._has_native = False
        self._written: set[JSON] = set()
        self._last_uuid: str | None = None
        self._order = ApiOrder(session)

    def records(self, unit: Unit) -> Iterator[Fields]:
        """The native records of a unit."""
        if unit.native:
            self._has_native = True
            yield from self._copied(unit) if unit.start != unit.stop else ()
        elif unit.is_message:
            yield from map(self._composed, self._order.add(unit.value))

    def last_records(self) -> Iterator[Fields]:
        """What is left of a composed session, and its title."""
        yield from map(self._composed, self._order.finish())
        title = self._session.get("title")
        if not self._has_native and not self._is_subagent and title:
            record = self._record("system", derived_id(self._session["id"], "title"), self._last_uuid, self._order.time)
            payload = {"customTitle": title, "titleSource": "manual"}
            yield record | {"subtype": "custom_title", "systemPayload": payload}

    def _copied(self, unit: Unit) -> Iterator[Fields]:
        """The native record in the new session. What follows records that are left out is linked anew, or left out."""
        record = {**unit.native, "sessionId": self._session_id}
        uuid, parent = record.get("uuid"), unit.value.get("parent_uuid")
        if parent is not None and parent not in self._written:
            if not unit.is_message:
                return
            parent = self._last_uuid
        if "parentUuid" in record:
            record["parentUuid"] = parent
        if self._has_moved and "cwd" in record:
            record["cwd"] = self._session["workspace"]
        if isinstance(uuid, str):
            self._written.add(uuid)
            self._last_uuid = uuid
        yield record

    def _composed(self, message: ApiMessage) -> Fields:
        self._last_uuid = message.uuid
        kind = "tool_result" if message.role == "tool" else "assistant" if message.role == "assistant" else "user"
        record = self._record(kind, message.uuid, message.parent_uuid, message.time, message.metadata)
        parts = [part for block in message.content for part in _parts(block)]
        if kind == "assistant":
            return record | {
                "model": model_name(message.metadata) or UNKNOWN,
                "message": {"role": "model", "parts": parts},
            }
        if kind == "user" and not self._is_subagent:
            record["provenance"] = "system" if message.metadata.get("is_meta") else PERSON
        record["message"] = {"role": "user", "parts": parts}
        if kind == "tool_result":
            (block,) = message.content
            status = "error" if block.get("is_error") is True else "success"
            record["toolCallResult"] = {"callId": block["tool_id"], "status": status}
        return record

    def _record(
        self, kind: str, uuid: str, parent: str | None, time: datetime, metadata: Mapping[str, JSON] = {}
    ) -> Fields:
        """The envelope of a record."""
        record: Fields = {
            "uuid": uuid,
            "parentUuid": parent,
            "sessionId": self._session_id,
            "timestamp": spell_milliseconds(time),
            "type": kind,
            # The client finds sessions by the folder in their records.
            "cwd": self._session["workspace"],
            "version": CLIENT_VERSION,
        }
        if metadata.get("git_branch"):
            record["gitBranch"] = metadata["git_branch"]
        if self._is_subagent:
            record |= {"agentId": self._session.get("agent_id") or self._session["id"], "isSidechain": True}
        return record


def _parts(block: Fields) -> Iterator[Fields]:
    match block["type"]:
        case "thinking" if block["thinking"]:
            signature = {"thoughtSignature": block["signature"]} if block.get("signature") else {}
            yield {"text": block["thinking"], "thought": True, **signature}
        case "tool_use":
            call = {"id": block["tool_id"], "name": block["tool_name"] or UNKNOWN, "args": call_arguments(block)}
            yield {"functionCall": call}
        case "unknown":
            yield block["value"] if isinstance(block["value"], dict) else {"text": dumps(block["value"]).decode()}
        case _:
            yield from parts_of_block(block)
