"""The records of the store as they stand in its files: seed shapes as types, key for key in their order."""

from __future__ import annotations

import math
from enum import Enum
from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType

from clew.errors import UsageError
from clew.model.json import JSON

Level = Literal["none", "low", "medium", "high"]
Status = Literal["pending", "in_progress", "completed"]
MessageType = Literal["user", "assistant", "tool_result", "system", "error"]

SNAPSHOT, BRANCH, TITLE, SUMMARY, ERASED = "file_history_snapshot", "branch", "custom_title", "summary", "erased"
MESSAGES = frozenset({"user", "assistant", "tool_result", "system", "error"})


_PLAIN = frozenset({str, int, bool, type(None)})
_WORDS: list[tuple[tuple[type, ...], str]] = [
    ((bytes, bytearray, memoryview), "bytes are no text; decode them, or spell them out as base64"),
    ((set, frozenset), "a set has no order; make a list of it"),
]


def refuse_odd(value: JSON, where: str) -> None:
    """Refuse what JSON has no place for and would be written as something else: bytes, sets, names that are no text,
    numbers that are none."""
    try:
        _refuse_odd(value, where)
    except RecursionError:
        raise UsageError(f"{where}: it cannot be written as JSON: it is nested too deeply") from None


def _refuse_odd(value: JSON, where: str) -> None:
    kind = value.__class__
    if kind in _PLAIN:
        return
    if kind is float:
        if not math.isfinite(value):
            raise UsageError(f"{where}: {value} is no number that JSON has; leave it out where it is not known")
    elif isinstance(value, dict):
        for name, inner in value.items():
            if not isinstance(name, str):
                raise UsageError(f"{where}: the name {name!r} is no text, as names are in JSON")
            _refuse_odd(inner, f"{where}.{name}")
    elif isinstance(value, list | tuple):
        for inner in value:
            _refuse_odd(inner, where)
    elif not isinstance(value, Enum) or value.value.__class__ not in _PLAIN:
        words = next((words for kinds, words in _WORDS if isinstance(value, kinds)), None)
        raise UsageError(f"{where}: {words or f'JSON has no {kind.__name__}; spell it out as text'}")


class Wire(msgspec.Struct, rename="camel", gc=False):
    """What all parts of a record share: camelCase, and absent where nothing is known."""


class Context(Wire, kw_only=True):
    """The surroundings of a message when it was written."""

    cwd: str
    git_branch: str | UnsetType = UNSET
    platform: str
    user_type: str | UnsetType = UNSET


class ToolCall(Wire, kw_only=True):
    """A tool that the model wants to run."""

    id: str
    name: str
    arguments: JSON

    def __post_init__(self) -> None:
        """Refused here, and not when it is written: that must be quick."""
        if self.arguments:
            refuse_odd(self.arguments, "the arguments of a tool call")


class ToolResult(Wire, kw_only=True):
    """What became of a call."""

    tool_call_id: str
    tool_name: str
    content: str
    success: bool = True
    error: str | None = None

    def __post_init__(self) -> None:
        """As with calls."""
        if self.content.__class__ is not str:
            raise UsageError(f"the content of a tool result is no text: {self.content.__class__.__name__}")


class Usage(Wire, kw_only=True):
    """Token counts of one reply; what is not known is absent, not zero."""

    input_tokens: int | UnsetType = UNSET
    output_tokens: int | UnsetType = UNSET
    cache_read_tokens: int | UnsetType = UNSET
    cache_write_tokens: int | UnsetType = UNSET
    cost_estimate: float | UnsetType = UNSET

    def __post_init__(self) -> None:
        """Counts that cannot be; what is not known is left out."""
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if value is UNSET:
                continue
            kinds = (int, float) if name == "cost_estimate" else (int,)
            if isinstance(value, bool) or not isinstance(value, kinds) or not 0 <= value < math.inf:
                raise UsageError(
                    f"usage: {name} is {value!r}, not a number from 0 on; leave it out where it is not known"
                )


class Thinking(Wire, kw_only=True):
    """How much the model is to think."""

    level: Level
    disabled: bool = False
    triggers: list[str] = msgspec.field(default_factory=list)


class TodoItem(Wire, kw_only=True):
    """One item of the task list."""

    content: str
    status: Status = "pending"
    active_form: str | UnsetType = UNSET


class Said(Wire, kw_only=True):
    """The words of a message."""

    role: str
    content: JSON
    tool_calls: list[ToolCall] | UnsetType = UNSET

    def __post_init__(self) -> None:
        """As with calls."""
        if self.content.__class__ is not str:
            refuse_odd(self.content, "the content")


class MessageRecord(Wire, kw_only=True):
    """One message of the log."""

    type: MessageType
    uuid: str
    parent_uuid: str | None = None
    timestamp: str | UnsetType = UNSET
    session_id: str | UnsetType = UNSET
    version: str | UnsetType = UNSET
    context: Context | UnsetType = UNSET
    message: Said | UnsetType = UNSET
    tool_results: list[ToolResult] | UnsetType = UNSET
    usage: Usage | UnsetType = UNSET
    thinking_metadata: Thinking | UnsetType = UNSET
    todos: list[TodoItem] | msgspec.Raw | UnsetType = UNSET
    is_sidechain: bool = False
    branch_id: str | UnsetType = UNSET
    branch_parent_uuid: str | None | UnsetType = UNSET
    metadata: dict[str, JSON] | UnsetType = UNSET


class TrackedFile(Wire, kw_only=True):
    """A file at a message: what it held before, and what became of it."""

    original_content: str | None | UnsetType = None
    """None: there was no file. Absent: what it held is kept apart, or is not known."""
    content_hash: str | None = None
    size: int = 0
    state: Literal["created", "modified", "deleted", "unchanged"]


class FileBackup(Wire, kw_only=True):
    """Where the bytes of a file before the message are kept."""

    backup_path: str
    original_hash: str | UnsetType = UNSET


class FileMaps(Wire, kw_only=True):
    """The two maps of a snapshot, both by path."""

    tracked_files: dict[str, TrackedFile] = msgspec.field(default_factory=dict)
    file_backups: dict[str, FileBackup] = msgspec.field(default_factory=dict)


class OwnFile(Wire, kw_only=True):
    """What the two maps have no place for."""

    existed: bool
    mode_before: int | UnsetType = UNSET
    mode: int | UnsetType = UNSET
    missing: str | UnsetType = UNSET
    """Why what it held before could not be kept."""
    missing_after: str | UnsetType = UNSET
    """The same of what it held behind."""
    link_before: bytes | UnsetType = UNSET
    """Where it led before, in base64, if it was a link."""
    link: bytes | UnsetType = UNSET
    """The same behind."""
    raw: str | UnsetType = UNSET
    """The path's bytes in base64, where they are no text."""


class FoundState(Wire, kw_only=True):
    """A file as a look at a whole folder saw it; empty where there was none."""

    hash: str | UnsetType = UNSET
    mode: int | UnsetType = UNSET
    missing: str | UnsetType = UNSET
    """Why its content is not kept."""
    link: bytes | UnsetType = UNSET
    """Where it led, in base64, if it was a link."""


class FoundFile(Wire, kw_only=True):
    """A file that is not as the look before saw it, or not as the records since then left it."""

    before: FoundState | UnsetType = UNSET
    """As that look saw it; absent where there was none."""
    now: FoundState
    raw: str | UnsetType = UNSET
    """As in other files."""


class OwnFiles(Wire, kw_only=True):
    """The store's own part of a snapshot."""

    root: str
    """The folder that paths are relative to."""
    open: bool | UnsetType = UNSET
    """It was made before a tool ran; the next record for its message tells what the tool did."""
    late: bool | UnsetType = UNSET
    """It was made long behind the tool, which was cut off: others may have changed the files too."""
    log: int | UnsetType = UNSET
    """How long the log of messages was then: times do not tell what came first within a moment."""
    ignored: list[str] | UnsetType = UNSET
    """What was left out, where the whole folder was looked at."""
    scan: str | UnsetType = UNSET
    """The SHA-256 of the index of a scan of the whole folder, a blob in the session's folder `scans`."""
    since: str | UnsetType = UNSET
    """The message of the look before, at the same whole folder."""
    lost: bool | UnsetType = UNSET
    """What that look saw is not known any more: anything may have changed since, and nothing tells."""
    found: dict[str, FoundFile] | UnsetType = UNSET
    """What had changed since that look: by somebody, or as other records tell."""
    files: dict[str, OwnFile]


class SnapshotMetadata(Wire, kw_only=True):
    """Where the store's own part stands, as in messages."""

    clew: OwnFiles


class SnapshotRecord(Wire, kw_only=True):
    """Files at a message, so that they can be put back."""

    type: str = SNAPSHOT
    message_id: str
    timestamp: str
    is_snapshot_update: bool = False
    snapshot: FileMaps
    metadata: SnapshotMetadata | UnsetType = UNSET


class NoteRecord(Wire, kw_only=True):
    """A title or a summary of the session."""

    type: str
    uuid: str
    parent_uuid: str | None
    timestamp: str
    session_id: str
    message: Said
    metadata: dict[str, JSON]


Move = Literal["switch", "undo", "redo"]


class BranchRecord(Wire, kw_only=True):
    """A branch was named, or the conversation was moved to a message: both are appended, nothing is changed."""

    type: str = BRANCH
    uuid: str
    timestamp: str
    session_id: str
    action: Literal["name"] | Move
    branch_id: str
    name: str | UnsetType = UNSET
    message_id: str | None | UnsetType = UNSET
    """Where the conversation stands from here on; None: before its first message."""
    from_id: str | None | UnsetType = UNSET
    """Where it stood, if files went back or on with it."""
    todos: list[TodoItem] | msgspec.Raw | UnsetType = UNSET
    metadata: dict[str, JSON]


encode_lines = msgspec.json.Encoder().encode_lines
