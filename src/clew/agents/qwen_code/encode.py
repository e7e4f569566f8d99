"""Messages and records as the lines that Qwen Code reads.

A unit with a native record gives that record. Every other message is composed with all keys that the client's own
reader looks for, so that `qwen --resume` finds it and goes on with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain

from clew.agents.derived_ids import derived_id
from clew.agents.gemini_content import parts_of_block
from clew.agents.qwen_code.events import PERSON
from clew.agents.target_profile import Header
from clew.io.codec import dumps
from clew.model.json import JSON
from clew.model.time import spell_milliseconds
from clew.model.unit import Unit

Fields = dict[str, JSON]

CLIENT_VERSION = "0.24.4"
"""Records name the version that wrote them; the client asks for no certain one."""


def encode(header: Header, units: Iterable[Unit]) -> Iterator[tuple[str, bytes]]:
    """The lines of a session's file."""
    encoder = _Encoder(header.session)
    for record in chain(chain.from_iterable(map(encoder.records, units)), encoder.last_records()):
        yield "", dumps(record) + b"\n"
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
        self._last_message: JSON = None
        self._ends: dict[JSON, str] = {}
        """By uuid of a message: the last record that was composed for it."""
        self._reply: Fields | None = None
        """The last reply, to which the next message may belong as well."""
        self._held: list[Fields] = []
        """Prompts that came before the results of the calls before them."""
        self._open_calls: set[JSON] = set()
        self._time = spell_milliseconds(session.get("started_at"))

    def records(self, unit: Unit) -> Iterator[Fields]:
        """The native records of a unit."""
        if unit.native:
            self._has_native = True
            yield from self._copied(unit) if unit.start != unit.stop else ()
        elif unit.is_message:
            yield from self._composed(unit.value)

    def last_records(self) -> Iterator[Fields]:
        """What is left of a composed session, and its title."""
        yield from self._complete()
        title = self._session.get("title")
        if not self._has_native and not self._is_subagent and title:
            record = self._base("system", derived_id(self._session["id"], "title"))
            payload = {"customTitle": title, "titleSource": "manual"}
            yield self._linked(record | {"subtype": "custom_title", "systemPayload": payload})

    # Records of Qwen Code itself

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

    # Composed records

    def _composed(self, message: Fields) -> Iterator[Fields]:
        """The records that are complete, now that this message is there.

        To the client all calls of a reply stand in one record, and their results follow at once.
        """
        if message.get("timestamp") is not None:
            self._time = spell_milliseconds(message["timestamp"])
        uuid, parent = (
            message.get("uuid") or derived_id(self._session["id"], message["index"]),
            message.get("parent_uuid"),
        )
        if parent is not None and parent != self._last_message:
            yield from self._complete()
            self._last_uuid = self._ends.get(parent, parent)
        self._last_message = uuid
        if message["role"] == "assistant":
            yield from self._compose_reply(message, uuid)
        else:
            yield from self._compose_user_message(message, uuid)

    def _compose_reply(self, message: Fields, uuid: str) -> Iterator[Fields]:
        metadata = message.get("metadata") or {}
        if self._reply is None:
            yield from self._complete()
            model = (metadata.get("model") or {}).get("name") or "unknown"
            self._reply = self._base("assistant", uuid, metadata) | {"model": model}
            self._reply["message"] = {"role": "model", "parts": []}
        self._ends[uuid] = self._reply["uuid"]
        for part in (part for block in message["content"] for part in _parts(block)):
            self._reply["message"]["parts"].append(part)
            if "functionCall" in part:
                self._open_calls.add(part["functionCall"]["id"])

    def _compose_user_message(self, message: Fields, uuid: str) -> Iterator[Fields]:
        """A record for each result of a message, and one for the rest of it."""
        if self._reply is not None:
            yield self._linked(self._reply)
            self._reply = None
        metadata = message.get("metadata") or {}
        results = [block for block in message["content"] if block["type"] == "tool_result"]
        others = [block for block in message["content"] if block["type"] != "tool_result"]
        for number, block in enumerate(results):
            self._open_calls.discard(block["tool_id"])
            self._ends[uuid] = derived_id(uuid, number) if number else uuid
            yield self._linked(self._base("tool_result", self._ends[uuid], metadata) | _result_fields(block))
        if others or not results:
            self._ends[uuid] = derived_id(uuid, len(results)) if results else uuid
            record = self._base("user", self._ends[uuid], metadata)
            if not self._is_subagent:
                record["provenance"] = "system" if metadata.get("is_meta") else PERSON
            record["message"] = {"role": "user", "parts": [part for block in others for part in _parts(block)]}
            self._held.append(record)
        if not self._open_calls:
            yield from self._complete()

    def _complete(self) -> Iterator[Fields]:
        """The records that waited for others: a reply, and what was said before the results of its calls came."""
        if self._reply is not None:
            yield self._linked(self._reply)
        yield from map(self._linked, self._held)
        self._reply, self._held = None, []
        self._open_calls.clear()

    def _linked(self, record: Fields) -> Fields:
        """The record behind the last one."""
        record["parentUuid"], self._last_uuid = self._last_uuid, record["uuid"]
        return record

    def _base(self, kind: str, uuid: str, metadata: Mapping[str, JSON] = {}) -> Fields:
        """The envelope of a record."""
        record: Fields = {
            "uuid": uuid,
            "parentUuid": None,
            "sessionId": self._session_id,
            "timestamp": self._time,
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


def _result_fields(block: Fields) -> Fields:
    status = "error" if block.get("is_error") is True else "success"
    return {
        "message": {"role": "user", "parts": list(parts_of_block(block))},
        "toolCallResult": {"callId": block["tool_id"], "status": status},
    }


def _parts(block: Fields) -> Iterator[Fields]:
    match block["type"]:
        case "thinking" if block["thinking"]:
            signature = {"thoughtSignature": block["signature"]} if block.get("signature") else {}
            yield {"text": block["thinking"], "thought": True, **signature}
        case "tool_use":
            arguments = block["input"] if isinstance(block["input"], dict) else {"input": block["input"]}
            call = {"id": block["tool_id"], "name": block["tool_name"] or "unknown", "args": arguments}
            yield {"functionCall": call}
        case "unknown":
            yield block["value"] if isinstance(block["value"], dict) else {"text": dumps(block["value"]).decode()}
        case _:
            yield from parts_of_block(block)
