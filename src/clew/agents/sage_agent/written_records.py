"""Records as clew's store writes them: every field typed, and keys in the order of the format.

`records.py` has the lenient types for reading. Fields are in snake_case here and in camelCase in the file; a field
that is UNSET is not written.
"""

from __future__ import annotations

import math
from enum import Enum
from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType

from clew.agents.sage_agent.records import BRANCH, SNAPSHOT
from clew.errors import UsageError
from clew.model.json import JSON

Level = Literal["none", "low", "medium", "high"]
Status = Literal["pending", "in_progress", "completed"]
MessageType = Literal["user", "assistant", "tool_result", "system", "error"]

_JSON_TYPES = frozenset({str, int, bool, type(None)})
_ADVICE: list[tuple[tuple[type, ...], str]] = [
    ((bytes, bytearray, memoryview), "bytes are not text; decode them, or write them as base64"),
    ((set, frozenset), "a set has no order; make a list of it"),
]


def refuse_odd(value: JSON, where: str) -> None:
    """Refuse values that JSON does not have and that would be written as something else: bytes, sets, keys that are
    not text, and numbers such as infinity."""
    try:
        _refuse_odd(value, where)
    except RecursionError:
        raise UsageError(f"{where}: it cannot be written as JSON: it is nested too deeply") from None


def _refuse_odd(value: JSON, where: str) -> None:
    kind = value.__class__
    if kind in _JSON_TYPES:
        return
    if kind is float:
        if not math.isfinite(value):
            raise UsageError(f"{where}: {value} is not a number that JSON has; leave it out where it is not known")
    elif isinstance(value, dict):
        for name, inner in value.items():
            if not isinstance(name, str):
                raise UsageError(f"{where}: the name {name!r} is not text, as names are in JSON")
            _refuse_odd(inner, f"{where}.{name}")
    elif isinstance(value, list | tuple):
        for inner in value:
            _refuse_odd(inner, where)
    elif not isinstance(value, Enum) or value.value.__class__ not in _JSON_TYPES:
        advice = next((advice for kinds, advice in _ADVICE if isinstance(value, kinds)), None)
        raise UsageError(f"{where}: {advice or f'JSON has no {kind.__name__}; write it as text'}")


class Record(msgspec.Struct, rename="camel", gc=False):
    """A record, or a part of one."""


class Context(Record, kw_only=True):
    """Working folder, git branch, platform and kind of user when a message was written."""

    cwd: str
    git_branch: str | UnsetType = UNSET
    platform: str
    user_type: str | UnsetType = UNSET


class ToolCall(Record, kw_only=True):
    """A tool call of the model."""

    id: str
    name: str
    arguments: JSON

    def __post_init__(self) -> None:
        """Refuse values that JSON does not have."""
        if self.arguments:
            refuse_odd(self.arguments, "the arguments of a tool call")


class ToolResult(Record, kw_only=True):
    """The result of a tool call."""

    tool_call_id: str
    tool_name: str
    content: str
    success: bool = True
    error: str | None = None

    def __post_init__(self) -> None:
        """Refuse values that JSON does not have."""
        if self.content.__class__ is not str:
            raise UsageError(f"the content of a tool result is not text: {self.content.__class__.__name__}")


class Usage(Record, kw_only=True):
    """Token counts of one reply; what is not known is absent, not zero."""

    input_tokens: int | UnsetType = UNSET
    output_tokens: int | UnsetType = UNSET
    cache_read_tokens: int | UnsetType = UNSET
    cache_write_tokens: int | UnsetType = UNSET
    cost_estimate: float | UnsetType = UNSET

    def __post_init__(self) -> None:
        """Refuse counts that are not numbers from 0 on."""
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if value is UNSET:
                continue
            kinds = (int, float) if name == "cost_estimate" else (int,)
            if isinstance(value, bool) or not isinstance(value, kinds) or not 0 <= value < math.inf:
                raise UsageError(
                    f"usage: {name} is {value!r}, not a number from 0 on; leave it out where it is not known"
                )


class Thinking(Record, kw_only=True):
    """How much the model is to think."""

    level: Level
    disabled: bool = False
    triggers: list[str] = msgspec.field(default_factory=list)


class TodoItem(Record, kw_only=True):
    """One item of the task list."""

    content: str
    status: Status = "pending"
    active_form: str | UnsetType = UNSET


class MessageBody(Record, kw_only=True):
    """Role, content and tool calls of a message."""

    role: str
    content: JSON
    tool_calls: list[ToolCall] | UnsetType = UNSET

    def __post_init__(self) -> None:
        """Refuse values that JSON does not have."""
        if self.content.__class__ is not str:
            refuse_odd(self.content, "the content")


class MessageRecord(Record, kw_only=True):
    """One message of the log."""

    type: MessageType
    uuid: str
    parent_uuid: str | None = None
    timestamp: str | UnsetType = UNSET
    session_id: str | UnsetType = UNSET
    version: str | UnsetType = UNSET
    context: Context | UnsetType = UNSET
    message: MessageBody | UnsetType = UNSET
    tool_results: list[ToolResult] | UnsetType = UNSET
    usage: Usage | UnsetType = UNSET
    thinking_metadata: Thinking | UnsetType = UNSET
    todos: list[TodoItem] | msgspec.Raw | UnsetType = UNSET
    is_sidechain: bool = False
    branch_id: str | UnsetType = UNSET
    branch_parent_uuid: str | None | UnsetType = UNSET
    metadata: dict[str, JSON] | UnsetType = UNSET


class TrackedFile(Record, kw_only=True):
    """A file at a message: what it held before, and what became of it."""

    original_content: str | None | UnsetType = None
    """None: there was no file. Absent: what it held is kept apart, or is not known."""
    content_hash: str | None = None
    size: int = 0
    state: Literal["created", "modified", "deleted", "unchanged"]


class FileBackup(Record, kw_only=True):
    """Where the bytes of a file before the message are kept."""

    backup_path: str
    original_hash: str | UnsetType = UNSET


class FileMaps(Record, kw_only=True):
    """The two maps of a snapshot, both by path."""

    tracked_files: dict[str, TrackedFile] = msgspec.field(default_factory=dict)
    file_backups: dict[str, FileBackup] = msgspec.field(default_factory=dict)


class ClewFileData(Record, kw_only=True):
    """What clew records about a file besides the two maps."""

    existed: bool
    mode_before: int | UnsetType = UNSET
    mode: int | UnsetType = UNSET
    missing: str | UnsetType = UNSET
    """Why what it held before could not be kept."""
    missing_after: str | UnsetType = UNSET
    """Why what it held after could not be kept."""
    link_before: bytes | UnsetType = UNSET
    """The target of a symbolic link before, in base64."""
    link: bytes | UnsetType = UNSET
    """The target of a symbolic link after."""
    raw: str | UnsetType = UNSET
    """The bytes of the path in base64, where they are not valid UTF-8."""


class FoundState(Record, kw_only=True):
    """A file in a workspace scan; empty where there was none."""

    hash: str | UnsetType = UNSET
    mode: int | UnsetType = UNSET
    missing: str | UnsetType = UNSET
    """Why its content is not kept."""
    link: bytes | UnsetType = UNSET
    """The target of a symbolic link, in base64."""


class FoundFile(Record, kw_only=True):
    """A file that differs from the previous workspace scan, or from the records since then."""

    before: FoundState | UnsetType = UNSET
    """As the previous scan found it; absent where there was none."""
    now: FoundState
    raw: str | UnsetType = UNSET
    """The bytes of the path in base64, where they are not valid UTF-8."""


class ClewSnapshotData(Record, kw_only=True):
    """What clew adds to a snapshot."""

    root: str
    """The folder that paths are relative to."""
    open: bool | UnsetType = UNSET
    """It was made before a tool ran; the next record for its message has what the tool did."""
    late: bool | UnsetType = UNSET
    """It was made long after the tool, which was interrupted: others may have changed the files too."""
    log: int | UnsetType = UNSET
    """The size of messages.jsonl at that time, in bytes: timestamps do not order what happens in one millisecond."""
    ignored: list[str] | UnsetType = UNSET
    """The ignore patterns of a scan of the whole workspace."""
    scan: str | UnsetType = UNSET
    """The SHA-256 of the index of a scan of the whole workspace, a blob in the session's folder `scans`."""
    since: str | UnsetType = UNSET
    """The message of the previous scan of this workspace."""
    lost: bool | UnsetType = UNSET
    """The previous scan is lost: any file may have changed since."""
    found: dict[str, FoundFile] | UnsetType = UNSET
    """The files that changed since the previous scan."""
    files: dict[str, ClewFileData]


class SnapshotMetadata(Record, kw_only=True):
    """The metadata of a snapshot."""

    clew: ClewSnapshotData


class SnapshotRecord(Record, kw_only=True):
    """The state of files at a message."""

    type: str = SNAPSHOT
    message_id: str
    timestamp: str
    is_snapshot_update: bool = False
    snapshot: FileMaps
    metadata: SnapshotMetadata | UnsetType = UNSET


class NoteRecord(Record, kw_only=True):
    """A title or a summary of the session."""

    type: str
    uuid: str
    parent_uuid: str | None
    timestamp: str
    session_id: str
    message: MessageBody
    metadata: dict[str, JSON]


Move = Literal["switch", "undo", "redo"]


class BranchRecord(Record, kw_only=True):
    """A branch was named, or the conversation continues at another message."""

    type: str = BRANCH
    uuid: str
    timestamp: str
    session_id: str
    action: Literal["name"] | Move
    branch_id: str
    name: str | UnsetType = UNSET
    message_id: str | None | UnsetType = UNSET
    """The message that the next one follows; None: the next message is a first one."""
    from_id: str | None | UnsetType = UNSET
    """The message that the conversation was at, where an undo or redo changed files too."""
    todos: list[TodoItem] | msgspec.Raw | UnsetType = UNSET
    metadata: dict[str, JSON]


encode_lines = msgspec.json.Encoder().encode_lines
