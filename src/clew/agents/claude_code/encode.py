"""Messages and records as the lines that Claude Code reads.

A unit with a native record gives that record. Every other message is composed with all keys that the client's own
reader looks for, so that `claude --resume` finds it and goes on with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain

from clew.agents.claude_code.records import RECORD_FIELDS
from clew.agents.derived_ids import derived_id
from clew.agents.encoding import UNKNOWN, Fields, json_line, select_renamed
from clew.agents.target_profile import Header
from clew.model.json import JSON
from clew.model.unit import Unit

SESSION_KEYS = ("sessionId", "session_id")
"""The keys under which records name their own session."""
CLIENT_VERSION = "2.1.0"
"""Records name the version that wrote them; the client asks for no certain one."""

# Unified names and native keys, in the order in which the keys are written.
_ENVELOPE_START = {
    "logical_parent_uuid": "logicalParentUuid",
    "is_sidechain": "isSidechain",
    "user_type": "userType",
    "cwd": "cwd",
}
_ENVELOPE_MIDDLE = {"agent_version": "version", "git_branch": "gitBranch"}
_ENVELOPE_END = {"is_meta": "isMeta", "request_id": "requestId"}
_USAGE_START = {
    "input_tokens": "input_tokens",
    "cache_creation_tokens": "cache_creation_input_tokens",
    "cache_read_tokens": "cache_read_input_tokens",
}
_CACHE_CREATION = {
    "cache_creation_5m_tokens": "ephemeral_5m_input_tokens",
    "cache_creation_1h_tokens": "ephemeral_1h_input_tokens",
}
_TODO = {"content": "content", "status": "status", "active_form": "activeForm", "priority": "priority", "id": "id"}
_THINKING_SETTINGS = {"level": "level", "disabled": "disabled", "triggers": "triggers"}
_TRACKED_FILE = {"backup": "backupFileName", "version": "version", "time": "backupTime"}
_BOUNDARY = {"subtype": "compact_boundary", "level": "info", "compactMetadata": {"trigger": "manual", "preTokens": 0}}
_RECORD_START = {"type": "type", "uuid": "uuid", "parent_uuid": "parentUuid", "timestamp": "timestamp"}


def encode(header: Header, units: Iterable[Unit]) -> Iterator[tuple[str, bytes]]:
    """The lines of a session's main file."""
    encoder = _Encoder(header.session)
    for record in chain(chain.from_iterable(map(encoder.records, units)), encoder.last_records()):
        yield "", json_line(record)


class _Encoder:
    """What must be known of earlier units to encode the next one."""

    def __init__(self, session: Mapping[str, JSON]) -> None:
        self._session = session
        is_subagent = session.get("is_agent_session")
        self._session_id = session.get("parent_session_id") if is_subagent else session["id"]
        self._has_native = False
        self._not_written: dict[JSON, JSON] = {}
        """Messages whose native record has no uuid, each with its parent: the next record must name that instead."""
        self._last_uuid: str | None = None
        self._is_summary = False
        """The last message was part of a summary, or the boundary before it."""
        self._reply_id: str | None = None
        self._time = session.get("started_at")

    def records(self, unit: Unit) -> Iterator[Fields]:
        """The native records of a unit."""
        if unit.native:
            self._has_native = True
            record = self._copied(unit) if unit.start != unit.stop else None
            if record is not None:
                yield record
        elif unit.is_message:
            yield from self._messages(unit.value)
        elif (record := self._other(unit.value)) is not None:
            yield record

    def last_records(self) -> Iterator[Fields]:
        """The title, and the message at which a composed session ends."""
        if self._has_native:
            return
        if self._session.get("title"):
            yield self._bookkeeping({"type": "custom-title", "text": self._session["title"]}, "custom-title")
        if self._last_uuid is not None:
            yield self._bookkeeping({"type": "last-prompt", "message_uuid": self._last_uuid}, "last-prompt")

    # Records of Claude Code itself

    def _copied(self, unit: Unit) -> Fields | None:
        """The native record, with the parent that its message has."""
        value = unit.value
        if not unit.is_message and value["kind"] == "copy":
            return None  # the earlier record is written
        record = dict(unit.native)
        if unit.is_message and "uuid" not in record and value.get("uuid") is not None:
            self._not_written[value["uuid"]] = value.get("parent_uuid")
            return record
        if "parent_uuid" in value and "parentUuid" in record:
            parent = value["parent_uuid"]
            while parent in self._not_written:
                parent = self._not_written[parent]
            record["parentUuid"] = parent
        return record

    # Composed records

    def _messages(self, value: Fields) -> Iterator[Fields]:
        """The record of a message; before a summary also the boundary, which the client looks for."""
        metadata = value.get("metadata") or {}
        is_summary = bool(metadata.get("is_compact_summary"))
        if is_summary and not self._is_summary and self._last_uuid is not None:
            boundary = {
                "index": value["index"],
                "uuid": derived_id(self._session["id"], "compaction", value["index"]),
                "parent_uuid": None,
                "role": "system",
                "content": [{"type": "text", "text": "Conversation compacted"}],
                "metadata": {"logical_parent_uuid": self._last_uuid},
            }
            yield self._message(boundary)
            value = {**value, "parent_uuid": boundary["uuid"]}
        self._is_summary = is_summary or "logical_parent_uuid" in metadata
        yield self._message(value)

    def _message(self, value: Fields) -> Fields:
        role = value["role"]
        self._time = value.get("timestamp") or self._time
        self._last_uuid = value.get("uuid") or derived_id(self._session["id"], value["index"])
        # To the client, everything the model says up to the next message of another author is one reply.
        self._reply_id = (self._reply_id or f"msg_{self._last_uuid}") if role == "assistant" else None
        metadata = self._metadata(value)
        record: Fields = {"parentUuid": value.get("parent_uuid")}
        record |= select_renamed(metadata, _ENVELOPE_START)
        record |= self._session_field()
        record |= select_renamed(metadata, _ENVELOPE_MIDDLE)
        record |= self._names()
        record |= select_renamed(metadata, _ENVELOPE_END)
        record |= {"type": role, "uuid": self._last_uuid}
        if self._time is not None or "timestamp" in value:
            record["timestamp"] = self._time
        if role == "system":
            is_boundary = metadata.get("logical_parent_uuid") is not None
            return record | {"content": _content(value["content"])} | (_BOUNDARY if is_boundary else {})
        if role == "user":
            record |= _user_fields(metadata)
        return record | {"message": _api_message(role, value["content"], metadata)}

    def _metadata(self, value: Fields) -> Fields:
        """The metadata of a message, with what the client expects to be there."""
        metadata: Fields = {
            "is_sidechain": bool(self._session.get("is_agent_session")),
            "user_type": "external",
            "cwd": self._session["workspace"],
            "agent_version": CLIENT_VERSION,
            "git_branch": "",
            **(value.get("metadata") or {}),
        }
        if value["role"] == "assistant":
            metadata["message_id"] = metadata.get("message_id") or self._reply_id
            has_calls = any(block["type"] == "tool_use" for block in value["content"])
            stop_reason = "tool_use" if has_calls else "end_turn"
            model = {"name": UNKNOWN, "stop_reason": stop_reason, "stop_sequence": None}
            metadata["model"] = {**model, **(metadata.get("model") or {})}
        return metadata

    def _session_field(self) -> Fields:
        return {} if self._session_id is None else {"sessionId": self._session_id}

    def _names(self) -> Fields:
        """The slug of the session and the id of the sub-agent, where there are any."""
        names = {"slug": self._session.get("slug"), "agentId": self._session.get("agent_id")}
        return {key: name for key, name in names.items() if name is not None}

    def _other(self, value: Fields) -> Fields | None:
        # Of other records, such as progress, a document does not tell all.
        kind = value.get("type")
        return self._bookkeeping(value, kind) if kind in RECORD_FIELDS else None

    def _bookkeeping(self, value: Fields, kind: str) -> Fields:
        """A title, summary, link or snapshot: a record that is no message."""
        record = select_renamed(value, _RECORD_START) | self._session_field() | self._names()
        record |= select_renamed(value, RECORD_FIELDS[kind])
        snapshot = value.get("snapshot") or {}
        if kind == "file-history-snapshot":
            record |= _snapshot_fields(snapshot)
        elif kind == "file-history-delta":
            record |= select_renamed(snapshot, {"message_uuid": "snapshotMessageId"})
            for path, file in (snapshot.get("files") or {}).items():
                record |= {"trackingPath": path, "backup": select_renamed(file, _TRACKED_FILE)}
        return record


def _user_fields(metadata: Fields) -> Fields:
    fields: Fields = {}
    if "origin" in metadata:
        fields["origin"] = {"kind": metadata["origin"]}
    if "is_compact_summary" in metadata:
        fields["isCompactSummary"] = metadata["is_compact_summary"]
    if settings := select_renamed(metadata.get("thinking") or {}, _THINKING_SETTINGS):
        fields["thinkingMetadata"] = settings
    if metadata.get("todos") is not None:
        fields["todos"] = [select_renamed(todo, _TODO) for todo in metadata["todos"]]
    return fields


def _api_message(role: str, content: list[Fields], metadata: Fields) -> Fields:
    model = metadata.get("model") or {}
    message = select_renamed(model, {"name": "model"}) | select_renamed(metadata, {"message_id": "id"})
    message |= {"role": role, "content": _content(content)}
    message |= select_renamed(model, {"stop_reason": "stop_reason", "stop_sequence": "stop_sequence"})
    if usage := _usage(metadata.get("token_usage") or {}):
        message["usage"] = usage
    return message | ({"type": "message"} if role == "assistant" else {})


def _usage(counts: Fields) -> Fields:
    usage = select_renamed(counts, _USAGE_START)
    if created := select_renamed(counts, _CACHE_CREATION):
        usage["cache_creation"] = created
    usage |= select_renamed(counts, {"output_tokens": "output_tokens"})
    if "reasoning_tokens" in counts:
        usage["output_tokens_details"] = {"thinking_tokens": counts["reasoning_tokens"]}
    return usage | select_renamed(counts, {"service_tier": "service_tier"})


def _content(blocks: list[Fields]) -> JSON:
    """The content of a message; the client writes a lone text as a string."""
    if len(blocks) == 1 and blocks[0]["type"] == "text":
        return blocks[0].get("text", "")
    return [_block(block) for block in blocks]


def _block(block: JSON) -> JSON:
    kind = block["type"] if isinstance(block, dict) else None
    match kind:
        case "text":
            return {"type": kind, **select_renamed(block, {"text": "text"})}
        case "thinking":
            return {"type": kind, **select_renamed(block, {"thinking": "thinking", "signature": "signature"})}
        case "tool_use":
            return {"type": kind, **select_renamed(block, {"tool_id": "id", "tool_name": "name", "input": "input"})}
        case "tool_result":
            return _tool_result(block)
        case "image" | "document":
            return _embedded(block, kind)
        case "unknown":
            return block["value"]
    return block


def _tool_result(block: Fields) -> Fields:
    result: Fields = {**select_renamed(block, {"tool_id": "tool_use_id"}), "type": "tool_result"}
    output = block.get("output")
    if output is not None:
        result["content"] = [_block(item) for item in output] if isinstance(output, list) else output
    return result | select_renamed(block, {"is_error": "is_error"})


def _embedded(block: Fields, kind: str) -> Fields:
    """An image or a document: its bytes, or its address."""
    source = select_renamed(block, {"encoding": "type"})
    if block.get("encoding") == "url" and block.get(kind) is not None:
        source["url"] = block[kind]
    else:
        source |= select_renamed(block, {"media_type": "media_type", kind: "data"})
    embedded: Fields = {"type": kind, **({"source": source} if source else {})}
    return embedded | (select_renamed(block, {"title": "title"}) if kind == "document" else {})


def _snapshot_fields(snapshot: Fields) -> Fields:
    inner = select_renamed(snapshot, {"message_uuid": "messageId"})
    files = snapshot.get("files")
    if files is not None:
        inner["trackedFileBackups"] = {path: select_renamed(file, _TRACKED_FILE) for path, file in files.items()}
    inner |= select_renamed(snapshot, {"timestamp": "timestamp"})
    return ({"snapshot": inner} if inner else {}) | select_renamed(snapshot, {"is_update": "isSnapshotUpdate"})
