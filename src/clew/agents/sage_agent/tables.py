"""The records of Sage Agent, key by key: the form of its design, that of its code, and the older one."""

from __future__ import annotations

from clew.agents.calls import Inverse, Listed, Spelled
from clew.agents.folding import own_extension
from clew.agents.jsonl import Form
from clew.agents.mapping import (
    COUNT,
    FLAG,
    LIST,
    OPTIONAL_TEXT,
    TEXT,
    Blocks,
    Each,
    Field,
    Fixed,
    Kind,
    Leaf,
    Nest,
    Shared,
    Table,
    Time,
)
from clew.agents.sage_agent.locate import AGENT
from clew.model.json import JSON

_SOMETHING = frozenset({str, int, float, bool, dict, list})

CALLS, RESULTS, OUTER_RESULTS, TRACKED, BACKUPS = "calls", "results", "outer_results", "tracked", "backups"
"""Slots between table and fold; a document never shows them."""
SEQUENCE, OLD_ROLE, ERROR = "sequence", "old_role", "error"
"""Slots that tell the form of a record; the document keeps them in the extension."""

BRANCH, ERASED = "branch", "erased"
"""Records that clew's own store writes: a branch was named or gone to; a record was erased and keeps its place."""

SNAPSHOT_TYPES = ("file_history_snapshot", "file-history-snapshot")
OLD_ROLES = {"user": "user", "assistant": "assistant", "system": "system", "tool": "user"}

_BLOCKS = {"text": Kind("text", Table("text", Fixed("type", "text"), Leaf("text", "text", TEXT)), ("text",))}


def _call(name: str, *more: str) -> Kind:
    fields = (Leaf("id", "tool_id", TEXT), Leaf("name", "tool_name", TEXT), Leaf("arguments", "input", _SOMETHING))
    return Kind("tool_use", Table(name, *fields, known=more))


def _result(table: str, call: str, tool: str, *more: str) -> Kind:
    fields = (Leaf(call, "tool_id", TEXT), Leaf(tool, "tool_name", TEXT), Spelled("content", "output"))
    return Kind("tool_result", Table(table, *fields, Inverse("success", "is_error"), known=["error", *more]))


_CALL_NEEDS = ("tool_id", "tool_name", "input")
_CALLS = Listed("toolCalls", CALLS, _call("call"), fill=_CALL_NEEDS)
_RESULT = _result("result", "toolCallId", "toolName")

_USAGE = Table(
    "usage",
    Leaf("inputTokens", "usage.input_tokens", COUNT),
    Leaf("outputTokens", "usage.output_tokens", COUNT),
    Leaf("cacheReadTokens", "usage.cache_read_tokens", COUNT),
    Leaf("cacheWriteTokens", "usage.cache_creation_tokens", COUNT),
    known=["costEstimate"],
)
_THINKING = Table(
    "thinking_metadata",
    Leaf("level", "thinking.level", OPTIONAL_TEXT),
    Leaf("disabled", "thinking.disabled", FLAG),
    Leaf("triggers", "thinking.triggers", LIST),
)
_CONTEXT = Table(
    "context",
    Leaf("cwd", "metadata.cwd", OPTIONAL_TEXT),
    Leaf("gitBranch", "metadata.git_branch", OPTIONAL_TEXT),
    Leaf("platform", "metadata.platform", OPTIONAL_TEXT),
    Leaf("userType", "metadata.user_type", OPTIONAL_TEXT),
)
_TODO = Table(
    "todo",
    Leaf("content", "content", TEXT),
    Leaf("status", "status", TEXT),
    Leaf("activeForm", "active_form", OPTIONAL_TEXT),
    Leaf("priority", "priority", OPTIONAL_TEXT),
    Leaf("id", "id", OPTIONAL_TEXT),
)
_INNER: tuple[Field, ...] = (
    Blocks("content", _BLOCKS),
    _CALLS,
    Listed("toolResults", RESULTS, _RESULT, fill=("tool_id",)),
)


def _message(kind: Field, inner: Table) -> tuple[Field, ...]:
    """A message in the order of the design's own example."""
    return (
        kind,
        Leaf("uuid", "uuid", TEXT),
        Leaf("parentUuid", "parent_uuid", OPTIONAL_TEXT),
        Time("timestamp", "timestamp"),
        Shared("sessionId", "session_id"),
        Leaf("version", "metadata.agent_version", OPTIONAL_TEXT),
        Nest("context", _CONTEXT),
        Nest("message", inner),
        Listed("toolResults", OUTER_RESULTS, _RESULT, fill=("tool_id",)),
        Nest("usage", _USAGE),
        Nest("thinkingMetadata", _THINKING),
        Each("todos", "metadata.todos", _TODO),
        Leaf("isSidechain", "metadata.is_branch", FLAG),
    )


_MESSAGE = _message(Shared("type", "role"), Table("inner", Shared("role", "role"), *_INNER))
_MESSAGE_KEYS = ("metadata", "branchId", "branchParentUuid")

MESSAGE = Table("message", *_MESSAGE, known=_MESSAGE_KEYS)
FAILURE = Table(
    "error",
    *_message(Leaf("type", ERROR, TEXT), Table("error.inner", Fixed("role", "error"), *_INNER)),
    known=_MESSAGE_KEYS,
)
WRAPPED = Table(
    "wrapper",
    Leaf("seq", SEQUENCE, COUNT),
    Shared("sessionId", "session_id"),
    Nest("payload", Table("payload", Fixed("recordType", "message"), *_MESSAGE, known=_MESSAGE_KEYS)),
    known=["timestamp"],
)
OLD = Table(
    "old",
    Leaf("role", OLD_ROLE, TEXT),
    Blocks("content", _BLOCKS),
    Listed("tool_calls", CALLS, _call("old_call", "timestamp"), fill=_CALL_NEEDS),
    Listed("tool_results", RESULTS, _result("old_result", "tool_call_id", "tool_name", "timestamp"), fill=("tool_id",)),
    Time("timestamp", "timestamp"),
    known=["metadata"],
)

_TRACKED_FILE = Table(
    "tracked",
    Leaf("originalContent", "original_content", OPTIONAL_TEXT),
    Leaf("contentHash", "content_hash", OPTIONAL_TEXT),
    Leaf("size", "size", COUNT),
    Leaf("state", "state", TEXT),
)
_BACKUP = Table(
    "backup", Leaf("backupPath", "backup", OPTIONAL_TEXT), Leaf("originalHash", "original_hash", OPTIONAL_TEXT)
)
SNAPSHOT = Table(
    "snapshot_record",
    Leaf("type", "type", TEXT),
    Leaf("messageId", "snapshot.message_uuid", OPTIONAL_TEXT),
    Time("timestamp", "snapshot.timestamp"),
    Leaf("isSnapshotUpdate", "snapshot.is_update", FLAG),
    Nest(
        "snapshot",
        Table(
            "snapshot",
            Each("trackedFiles", f"snapshot.{TRACKED}", _TRACKED_FILE, named=True),
            Each("fileBackups", f"snapshot.{BACKUPS}", _BACKUP, named=True),
        ),
    ),
    known=["erased", "metadata"],
)
_BRANCH = Table(
    "branch",
    Leaf("type", "type", TEXT),
    Time("timestamp", "timestamp"),
    Shared("sessionId", "session_id"),
    Leaf("name", "text", TEXT),
    Leaf("messageId", "message_uuid", OPTIONAL_TEXT),
    known=["uuid", "action", "branchId", "fromId", "todos", "metadata"],
)
_ERASED = Table(
    "erased",
    Leaf("type", "type", TEXT),
    Leaf("uuid", "uuid", TEXT),
    Leaf("parentUuid", "parent_uuid", OPTIONAL_TEXT),
    Time("timestamp", "timestamp"),
    Shared("sessionId", "session_id"),
    known=["was", "erased", "isSidechain", "metadata", "branchId", "branchParentUuid"],
)


def _note(name: str) -> Table:
    """A record with the envelope of a message whose content is one text."""
    return Table(
        name,
        Leaf("type", "type", TEXT),
        Leaf("uuid", "uuid", TEXT),
        Leaf("parentUuid", "parent_uuid", OPTIONAL_TEXT),
        Time("timestamp", "timestamp"),
        Shared("sessionId", "session_id"),
        Nest("message", Table(f"{name}.message", Leaf("content", "text", TEXT), known=["role"])),
        known=["version", "context", "todos", "isSidechain", "usage", "thinkingMetadata", *_MESSAGE_KEYS],
    )


_MESSAGES = {
    "user": Form(MESSAGE, "user"),
    "assistant": Form(MESSAGE, "assistant"),
    "system": Form(MESSAGE, "system"),
    "tool_result": Form(MESSAGE, "user"),
    "error": Form(FAILURE, "system"),
}
_RECORDS = {
    "summary": Form(_note("summary"), kind="summary"),
    "custom_title": Form(_note("custom_title"), kind="title"),
    BRANCH: Form(_BRANCH, kind="state"),
    ERASED: Form(_ERASED),
    **{name: Form(SNAPSHOT, kind="snapshot") for name in SNAPSHOT_TYPES},
}
_WRAPPED = {name: Form(WRAPPED, form.role) for name, form in _MESSAGES.items()}
_OLD = {name: Form(OLD, role) for name, role in OLD_ROLES.items()}
_UNKNOWN = Form(Table("unknown", Leaf("type", "type", TEXT), Shared("sessionId", "session_id")), kind="unknown")


def choose(record: dict[str, JSON]) -> Form:
    """The form of a native record."""
    kind = record.get("type")
    if type(kind) is str:
        return _MESSAGES.get(kind) or _RECORDS.get(kind) or _UNKNOWN
    if "type" not in record:
        role = record.get("role")
        return _wrapped(record) or (_OLD.get(role) if type(role) is str else None) or _UNKNOWN
    return _UNKNOWN


def _wrapped(record: dict[str, JSON]) -> Form | None:
    payload = record.get("payload")
    if type(record.get("seq")) is not int or type(payload) is not dict or payload.get("recordType") != "message":
        return None
    kind = payload.get("type")
    return _WRAPPED.get(kind) if type(kind) is str else None


def chosen(is_message: bool, value: dict[str, JSON]) -> Form:
    """The same choice from the unified side."""
    if not is_message:
        return _RECORDS.get(value.get("type") or "") or _UNKNOWN
    own = own_extension(value, AGENT)
    if SEQUENCE in own:
        return _WRAPPED[value["role"]]
    if ERROR in own:
        return _MESSAGES["error"]
    return _OLD["user"] if OLD_ROLE in own else _MESSAGES[value["role"]]
