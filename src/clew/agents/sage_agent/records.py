"""Sage Agent's log format as typed records.

One JSON object per line. A message has a `type`, ids and a `message` with its text and tool calls; its results are in
the message or beside it. A second form wraps that object (`seq`, `payload`), and the older form has a `role` instead of
a type, and no ids. clew's own store writes the first form, and two kinds of records of its own: `branch` and `erased`.
The modules of this package know the key names, and no others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import UNSET, Struct, UnsetType, json

from clew.agents.sage_format import text_objects
from clew.io.codec import NOT_JSON
from clew.io.typed_records import OptionalText, RecordDecoder, TokenCount, unknown_in
from clew.model.json import JSON
from clew.model.message import Role

BRANCH, ERASED = "branch", "erased"
"""Records of clew's own store: a branch was named or switched to; a record was erased, and this takes its place."""
SNAPSHOT, TITLE, SUMMARY = "file_history_snapshot", "custom_title", "summary"
SNAPSHOT_TYPES = (SNAPSHOT, "file-history-snapshot")
MESSAGE_ROLES: dict[str, Role] = {
    "user": "user",
    "assistant": "assistant",
    "system": "system",
    "tool_result": "user",
    "error": "system",
}
"""The types of messages, each with the role that it has in the document."""
PROMPTS_AND_REPLIES = frozenset({"user", "assistant"})
"""Every other record belongs to the prompt or reply that it follows."""
ADVANCING_TYPES = frozenset(MESSAGE_ROLES) - {"error"}
"""The next message follows the last record of these types."""
_OLD_TYPES = {"tool": "tool_result"}
"""The type of a message of the older form, by its role."""
_UNDO_ACTIONS = ("undo", "redo")
OLD_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "system": "system", "tool": "user"}
"""The roles of the older form, likewise."""

Flag = bool | UnsetType


class ToolCall(Struct, gc=False):
    id: str | None = None
    name: str | None = None
    arguments: Any = None


class _AnyToolResult(Struct, gc=False):
    """`error` is the reason of a failure, where the content is empty."""

    content: Any = None
    success: bool | None | UnsetType = UNSET
    error: str | None = None


class ToolResult(_AnyToolResult, gc=False):
    toolCallId: str | None = None
    toolName: str | UnsetType = UNSET


class OldToolResult(_AnyToolResult, gc=False):
    tool_call_id: str | None = None
    tool_name: str | UnsetType = UNSET


class InnerMessage(Struct, gc=False):
    """`content` is a text or a list of blocks."""

    content: Any = None
    toolCalls: list[Any] | None = None
    toolResults: list[Any] | None = None


class Context(Struct, gc=False):
    cwd: OptionalText = UNSET
    gitBranch: OptionalText = UNSET
    platform: OptionalText = UNSET
    userType: OptionalText = UNSET


class Usage(Struct, gc=False):
    inputTokens: TokenCount | UnsetType = UNSET
    outputTokens: TokenCount | UnsetType = UNSET
    cacheReadTokens: TokenCount | UnsetType = UNSET
    cacheWriteTokens: TokenCount | UnsetType = UNSET


class ThinkingMetadata(Struct, gc=False):
    level: OptionalText = UNSET
    disabled: Flag = UNSET
    triggers: list[Any] | UnsetType = UNSET


class TodoItem(Struct, gc=False):
    content: str | UnsetType = UNSET
    status: str | UnsetType = UNSET
    activeForm: OptionalText = UNSET
    priority: OptionalText = UNSET
    id: OptionalText = UNSET


class TrackedFile(Struct, gc=False):
    originalContent: OptionalText = UNSET
    contentHash: OptionalText = UNSET
    size: int | UnsetType = UNSET
    state: str | UnsetType = UNSET


class FileBackup(Struct, gc=False):
    backupPath: OptionalText = UNSET
    originalHash: OptionalText = UNSET


class FileSnapshot(Struct, gc=False):
    """The values of both maps are objects: `TrackedFile` and `FileBackup`."""

    trackedFiles: dict[str, Any] | UnsetType = UNSET
    fileBackups: dict[str, Any] | UnsetType = UNSET


class MessageRecord(Struct, gc=False):
    """A message, on a line of its own or inside a wrapper."""

    type: Any = UNSET
    uuid: str | UnsetType = UNSET
    parentUuid: OptionalText = UNSET
    timestamp: Any = UNSET
    version: OptionalText = UNSET
    context: Context | None = None
    message: InnerMessage | None = None
    toolResults: list[Any] | None = None
    usage: Usage | None = None
    thinkingMetadata: ThinkingMetadata | None = None
    todos: list[TodoItem] | UnsetType = UNSET
    isSidechain: Flag = UNSET


class WrappedMessage(MessageRecord, gc=False):
    """The payload of a wrapper; only one with the record type `message` is a message."""

    recordType: Any = UNSET


class LogRecord(MessageRecord, gc=False):
    """One line of a log, of any form."""

    sessionId: str | None = None
    seq: Any = None
    payload: WrappedMessage | None = None
    role: Any = None
    content: Any = None
    tool_calls: list[Any] | None = None
    tool_results: list[Any] | None = None
    messageId: OptionalText = UNSET
    isSnapshotUpdate: Flag = UNSET
    snapshot: FileSnapshot | None = None
    name: str | UnsetType = UNSET


LOG = RecordDecoder(LogRecord)


class RecordHeader(Struct, rename="camel", gc=False):
    """The ids of a record, and what is needed to place it in the conversation."""

    type: str = ""
    uuid: str | None = None
    parent_uuid: str | None = None
    branch_id: str | None = None
    message_id: str | None = None
    from_id: str | None = None
    action: str | None = None
    name: str | None = None
    was: str = ""
    role: JSON = ""
    """Set in messages of the older form only, which have no type and mostly no id."""

    @property
    def kind(self) -> str:
        """The type of the record, or the type that it had before it was erased."""
        if self.is_old:
            return _OLD_TYPES.get(self.role) or str(self.role)
        return self.was if self.type == ERASED else self.type

    @property
    def is_old(self) -> bool:
        """True for a message of the older form."""
        return not self.type and isinstance(self.role, str) and self.role in OLD_ROLES

    @property
    def is_significant(self) -> bool:
        """True for a prompt or a reply."""
        return self.kind in PROMPTS_AND_REPLIES

    @property
    def is_switch(self) -> bool:
        """True for a record that continues the conversation at another message."""
        if self.type != BRANCH:
            return False
        return self.action in _UNDO_ACTIONS or (self.action == "switch" and self.message_id is not None)

    @property
    def advances_head(self) -> bool:
        """True when the next message follows this record."""
        return self.kind in ADVANCING_TYPES and self.uuid is not None


class _Own(Struct):
    seq: int = 0


class _Numbers(Struct):
    clew: _Own | None = None


class _Numbered(Struct):
    metadata: _Numbers | None = None


_decode = json.Decoder(RecordHeader)
_decode_number = json.Decoder(_Numbered).decode


def parse_header(line: bytes) -> RecordHeader | None:
    """Decode the header of a line; None where the line is no record."""
    try:
        return _decode.decode(line)
    except NOT_JSON:
        return None


def number_of(line: bytes) -> int:
    """Return the number of a record in its log; 0 where another program wrote it."""
    try:
        found = _decode_number(line).metadata
    except NOT_JSON:
        return 0
    return found.clew.seq if found is not None and found.clew is not None else 0


def parse_all_headers(lines: bytes) -> list[RecordHeader] | None:
    """Decode the headers of many lines; None where a line is no record."""
    try:
        return _decode.decode_lines(lines)
    except NOT_JSON:
        return None


def parse_headers(lines: bytes) -> list[RecordHeader]:
    """Decode the headers of many lines, without those that are no records."""
    found = parse_all_headers(lines)
    return (
        found if found is not None else [one for line in lines.split(b"\n") if (one := parse_header(line)) is not None]
    )


def message_body(record: Mapping[str, JSON]) -> Mapping[str, JSON] | None:
    """The object of a native record that has the ids of a message; None where the record is no message."""
    if "type" in record:
        kind = record["type"]
        return record if type(kind) is str and kind in MESSAGE_ROLES else None
    payload = record.get("payload")
    if type(record.get("seq")) is int and type(payload) is dict and payload.get("recordType") == "message":
        kind = payload.get("type")
        if type(kind) is str and kind in MESSAGE_ROLES:
            return payload
    return record if is_old_form(record) else None


def is_old_form(record: Mapping[str, JSON]) -> bool:
    """True for a message of the older form, which has a role and no type."""
    role = record.get("role")
    return "type" not in record and type(role) is str and role in OLD_ROLES


def counts_as_message(record: Mapping[str, JSON]) -> bool:
    """True for a record that `messageCount` counts: everything but snapshots."""
    return record.get("type") not in SNAPSHOT_TYPES


_UNUSED_KEYS = ("sessionId", "metadata", "branchId", "branchParentUuid")
"""The keys of messages that are not decoded."""
_NOTE_KEYS = (
    *("type", "uuid", "parentUuid", "timestamp", "message", "version", "context", "todos", "isSidechain", "usage"),
    *("thinkingMetadata", *_UNUSED_KEYS),
)
_KNOWN_KEYS: dict[JSON, tuple[str, ...]] = {
    "summary": _NOTE_KEYS,
    "custom_title": _NOTE_KEYS,
    BRANCH: (
        *("type", "uuid", "timestamp", "sessionId", "name", "messageId", "action", "branchId", "fromId", "todos"),
        "metadata",
    ),
    ERASED: ("type", "uuid", "parentUuid", "timestamp", "was", "erased", "isSidechain", *_UNUSED_KEYS),
    **dict.fromkeys(
        SNAPSHOT_TYPES,
        ("type", "messageId", "timestamp", "isSnapshotUpdate", "snapshot", "erased", "metadata"),
    ),
}
"""The keys of records that are no messages, by their type."""


def find_unknown_keys(record: Mapping[str, JSON]) -> Iterator[str]:
    """The keys of a native record that are not known, each after the name of the object that holds it."""
    body = message_body(record)
    if body is None:
        kind = record.get("type")
        known = _KNOWN_KEYS.get(kind) if type(kind) is str else None
        if known is None:
            yield from unknown_in("unknown", record, known=("type", "sessionId"))
            return
        yield from unknown_in(str(kind), record, known=known)
        if kind in SNAPSHOT_TYPES:
            yield from unknown_in("snapshot", record.get("snapshot"), FileSnapshot)
        elif known is _NOTE_KEYS:
            yield from unknown_in("message", record.get("message"), known=("role", "content"))
    elif is_old_form(body):
        keys = ("role", "content", "tool_calls", "tool_results", "timestamp", "metadata")
        yield from unknown_in("message", record, known=keys)
        yield from unknown_in("text", text_objects(record.get("content")), known=("type", "text"))
        yield from unknown_in("call", record.get("tool_calls"), ToolCall, ("timestamp",))
        yield from unknown_in("result", record.get("tool_results"), OldToolResult, ("timestamp",))
    else:
        if body is not record:
            yield from unknown_in("wrapper", record, known=("seq", "sessionId", "payload", "timestamp"))
        record_type = MessageRecord if body is record else WrappedMessage
        yield from unknown_in("message", body, record_type, _UNUSED_KEYS)
        yield from unknown_in("context", body.get("context"), Context)
        yield from unknown_in("usage", body.get("usage"), Usage, ("costEstimate",))
        yield from unknown_in("thinkingMetadata", body.get("thinkingMetadata"), ThinkingMetadata)
        yield from unknown_in("result", body.get("toolResults"), ToolResult)
        inner = body.get("message")
        if type(inner) is dict:
            yield from unknown_in("message.message", inner, InnerMessage, ("role",))
            yield from unknown_in("text", text_objects(inner.get("content")), known=("type", "text"))
            yield from unknown_in("call", inner.get("toolCalls"), ToolCall)
            yield from unknown_in("result", inner.get("toolResults"), ToolResult)


def message_text(record: Mapping[str, JSON]) -> str | None:
    """The text of a message record; None where its content is empty or a list of blocks."""
    inner = record.get("message")
    content = inner.get("content") if isinstance(inner, dict) else None
    return content if isinstance(content, str) and content else None


def summary_line(record: Mapping[str, JSON]) -> str:
    """Text, tool names and results of a record in one line."""
    inner = record.get("message")
    # A message of the older form has no inner object.
    inner = inner if isinstance(inner, dict) else record
    content = inner.get("content")
    calls = [call.get("name") for call in inner.get("toolCalls") or () if isinstance(call, dict)]
    results = [result.get("content") for result in record.get("toolResults") or () if isinstance(result, dict)]
    blocks = content if isinstance(content, list) else []
    # Other programs may have written anything.
    words = [block.get("text") for block in blocks if isinstance(block, dict)]
    words = [content, *words] if isinstance(content, str) else words
    return " ".join(" ".join(str(word) for word in (*words, *calls, *results) if word).split())
