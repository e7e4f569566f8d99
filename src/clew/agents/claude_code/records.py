"""Claude Code's transcript format as typed records.

One JSON object per line. A line of type `user`, `assistant`, `system` or `attachment` is part of the conversation and
names its parent; every other line is bookkeeping. The client writes one line for each content block of a reply and
repeats the reply's id and usage on all of them. Only this module and `events.py` know the key names.
"""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, Raw, Struct, UnsetType

from clew.io.typed_records import RecordDecoder

SYNTHETIC_MODEL = "<synthetic>"
"""The model of messages that the client wrote itself, such as errors of the API."""

Text = str | None | UnsetType
Flag = bool | UnsetType


class CacheCreation(Struct, gc=False):
    ephemeral_5m_input_tokens: int | UnsetType = UNSET
    ephemeral_1h_input_tokens: int | UnsetType = UNSET


class OutputDetails(Struct, gc=False):
    thinking_tokens: int | UnsetType = UNSET


class ApiUsage(Struct, gc=False):
    """`input_tokens` excludes what was read from a cache or written to it."""

    input_tokens: int | UnsetType = UNSET
    output_tokens: int | UnsetType = UNSET
    cache_creation_input_tokens: int | UnsetType = UNSET
    cache_read_input_tokens: int | UnsetType = UNSET
    cache_creation: CacheCreation | None = None
    output_tokens_details: OutputDetails | None = None
    service_tier: Text = UNSET


class ReplyHead(Struct, gc=False):
    """What token usage needs of a message."""

    model: Text = UNSET
    id: str | UnsetType = UNSET
    usage: ApiUsage | None = None


class ApiMessage(ReplyHead, gc=False):
    """The message as the API has it; `content` is a text or a list of blocks."""

    content: Any = None
    stop_reason: Text = UNSET
    stopReason: Text = UNSET
    stop_sequence: Text = UNSET


class Origin(Struct, gc=False):
    kind: str | UnsetType = UNSET


class Attachment(Struct, gc=False):
    """A file, a setting, or a prompt that was typed while a turn was running (`queued_command`)."""

    type: Text = UNSET
    prompt: Any = UNSET
    origin: Origin | None = None
    content: Raw = Raw(b"null")
    """Of a `task_reminder` the task list. Others may hold whole files, so it is decoded only where it is needed."""


class ThinkingMetadata(Struct, gc=False):
    level: Text = UNSET
    disabled: Flag = UNSET
    triggers: list[Any] | UnsetType = UNSET


class TodoItem(Struct, gc=False):
    content: str | UnsetType = UNSET
    status: str | UnsetType = UNSET
    activeForm: Text = UNSET
    priority: Text = UNSET
    id: Text = UNSET


class FileBackup(Struct, gc=False):
    backupFileName: Text = UNSET
    version: int | UnsetType = UNSET
    backupTime: Text = UNSET


class FileHistorySnapshot(Struct, gc=False):
    messageId: Text = UNSET
    trackedFileBackups: dict[str, FileBackup] | UnsetType = UNSET
    timestamp: Any = UNSET


class StartedAgent(Struct, gc=False):
    """The part of a tool's result, or of a progress record, that names a sub-agent."""

    agentId: Text = UNSET


class StructuredResult(StartedAgent, gc=False):
    """What the client keeps of a tool's result for itself."""

    newTodos: Any = UNSET


class UsageRecord(Struct, gc=False):
    """What token usage needs of a line. The fields stand in the order of most lines, which decodes fastest."""

    parentUuid: Text = UNSET
    isSidechain: Flag = UNSET
    cwd: Text = UNSET
    sessionId: str | None = None
    version: Text = UNSET
    gitBranch: Text = UNSET
    slug: str | None = None
    agentId: str | None = None
    type: str | None = None
    message: ReplyHead | None = None
    uuid: Text = UNSET
    timestamp: Any = UNSET
    usage: ApiUsage | None = None
    """Some writers put it beside the message instead of inside."""


class TranscriptRecord(UsageRecord, gc=False):
    """One line of a transcript."""

    message: ApiMessage | None = None
    toolUseResult: StructuredResult | str | list[Raw] | None = None
    requestId: Text = UNSET
    userType: Text = UNSET
    isMeta: Flag = UNSET
    isCompactSummary: Flag = UNSET
    logicalParentUuid: Text = UNSET
    origin: Origin | None = None
    thinkingMetadata: ThinkingMetadata | None = None
    todos: list[TodoItem] | UnsetType = UNSET
    attachment: Attachment | None = None
    content: Any = None
    operation: Text = UNSET
    data: StartedAgent | None = None
    parentToolUseID: str | None = None
    messageId: Text = UNSET
    snapshot: FileHistorySnapshot | None = None
    isSnapshotUpdate: Flag = UNSET
    snapshotMessageId: Text = UNSET
    trackingPath: Text = UNSET
    backup: FileBackup | None = None
    leafUuid: Text = UNSET
    summary: str | UnsetType = UNSET
    aiTitle: str | UnsetType = UNSET
    customTitle: str | UnsetType = UNSET
    agentName: str | UnsetType = UNSET
    lastPrompt: str | UnsetType = UNSET
    prUrl: str | UnsetType = UNSET
    frameUrl: str | UnsetType = UNSET
    continuedInSessionId: str | UnsetType = UNSET
    parentLastUuid: Text = UNSET


TRANSCRIPT = RecordDecoder(TranscriptRecord)
USAGE = RecordDecoder(UsageRecord)
