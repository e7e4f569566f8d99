"""Claude Code's transcript format as typed records.

One JSON object per line. A line of type `user`, `assistant`, `system` or `attachment` is part of the conversation and
names its parent; every other line is bookkeeping. The client writes one line for each content block of a reply and
repeats the reply's id and usage on all of them. The modules of this package know the key names, and no others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import UNSET, Raw, Struct, UnsetType

from clew.io.typed_records import KeysByType, OptionalText, RecordDecoder, TokenCount, unknown_in
from clew.model.json import JSON
from clew.model.message import ThinkingSettings

MESSAGE_TYPES = frozenset({"user", "assistant", "system", "attachment"})

_KINDS = {
    "snapshot": "file-history-snapshot file-history-delta",
    "progress": "progress",
    "summary": "summary",
    "title": "ai-title custom-title agent-name",
    "prompt": "last-prompt",
    "queue": "queue-operation",
    "link": "pr-link frame-link continued-in fork-context-ref",
    "cost": "cost-state",
    "state": "mode permission-mode agent-setting agent-color tag bridge-session worktree-state relocated "
    "content-replacement atis-latch attribution-snapshot speculation-accept ended-by-model history-suppression "
    "isolation-latch artifact-autoreact-ledger artifact-comment-monitor marble-origami-commit "
    "marble-origami-snapshot marble-origami-reset api-request-shape api-request-blob api-request tools-used "
    "started result launched",
}
RECORD_KINDS = {name: kind for kind, names in _KINDS.items() for name in names.split()}
"""The types of records that are no messages, each with the kind it has in the document."""
RECORD_FIELDS = {
    "summary": {"text": "summary", "message_uuid": "leafUuid"},
    "last-prompt": {"text": "lastPrompt", "message_uuid": "leafUuid"},
    "ai-title": {"text": "aiTitle"},
    "custom-title": {"text": "customTitle"},
    "agent-name": {"text": "agentName"},
    "pr-link": {"text": "prUrl"},
    "frame-link": {"text": "frameUrl"},
    "continued-in": {"text": "continuedInSessionId"},
    "fork-context-ref": {"message_uuid": "parentLastUuid"},
    "file-history-snapshot": {"message_uuid": "messageId"},
    "file-history-delta": {"message_uuid": "messageId"},
}
"""By type of record: the fields of a `Record` of the document, each with the native key."""

Flag = bool | UnsetType


class CacheCreation(Struct, gc=False):
    ephemeral_5m_input_tokens: TokenCount | UnsetType = UNSET
    ephemeral_1h_input_tokens: TokenCount | UnsetType = UNSET


class OutputDetails(Struct, gc=False):
    thinking_tokens: TokenCount | UnsetType = UNSET


class ApiUsage(Struct, gc=False):
    """`input_tokens` excludes what was read from a cache or written to it."""

    input_tokens: TokenCount | UnsetType = UNSET
    output_tokens: TokenCount | UnsetType = UNSET
    cache_creation_input_tokens: TokenCount | UnsetType = UNSET
    cache_read_input_tokens: TokenCount | UnsetType = UNSET
    cache_creation: CacheCreation | None = None
    output_tokens_details: OutputDetails | None = None
    service_tier: OptionalText = UNSET


class ReplyHead(Struct, gc=False):
    """What token usage needs of a message."""

    model: OptionalText = UNSET
    id: str | UnsetType = UNSET
    usage: ApiUsage | None = None


class ApiMessage(ReplyHead, gc=False):
    """The message as the API has it; `content` is a text or a list of blocks."""

    content: Any = None
    stop_reason: OptionalText = UNSET
    stopReason: OptionalText = UNSET
    stop_sequence: OptionalText = UNSET


class Origin(Struct, gc=False):
    kind: str | UnsetType = UNSET


class Attachment(Struct, gc=False):
    """A file, a setting, or a prompt that was typed while a turn was running (`queued_command`)."""

    type: OptionalText = UNSET
    prompt: Any = UNSET
    origin: Origin | None = None
    content: Raw = Raw(b"null")
    """Of a `task_reminder` the task list. Others may hold whole files, so it is decoded only where it is needed."""


class TodoItem(Struct, gc=False):
    content: str | UnsetType = UNSET
    status: str | UnsetType = UNSET
    activeForm: OptionalText = UNSET
    priority: OptionalText = UNSET
    id: OptionalText = UNSET


class FileBackup(Struct, gc=False):
    backupFileName: OptionalText = UNSET
    version: int | UnsetType = UNSET
    backupTime: OptionalText = UNSET


class FileHistorySnapshot(Struct, gc=False):
    messageId: OptionalText = UNSET
    trackedFileBackups: dict[str, FileBackup] | UnsetType = UNSET
    timestamp: Any = UNSET


class StartedAgent(Struct, gc=False):
    """The part of a tool's result, or of a progress record, that names a sub-agent."""

    agentId: OptionalText = UNSET


class StructuredResult(StartedAgent, gc=False):
    """What the client keeps of a tool's result for itself."""

    newTodos: Any = UNSET


class UsageRecord(Struct, gc=False):
    """What token usage needs of a line. The fields stand in the order of most lines, which decodes fastest."""

    parentUuid: OptionalText = UNSET
    isSidechain: Flag = UNSET
    cwd: OptionalText = UNSET
    sessionId: str | None = None
    version: OptionalText = UNSET
    gitBranch: OptionalText = UNSET
    slug: str | None = None
    agentId: str | None = None
    type: str | None = None
    message: ReplyHead | None = None
    uuid: OptionalText = UNSET
    timestamp: Any = UNSET
    usage: ApiUsage | None = None
    """Some writers put it beside the message instead of inside."""


class TranscriptRecord(UsageRecord, gc=False):
    """One line of a transcript."""

    message: ApiMessage | None = None
    toolUseResult: StructuredResult | str | list[Raw] | None = None
    requestId: OptionalText = UNSET
    userType: OptionalText = UNSET
    isMeta: Flag = UNSET
    isCompactSummary: Flag = UNSET
    logicalParentUuid: OptionalText = UNSET
    origin: Origin | None = None
    thinkingMetadata: ThinkingSettings | None = None
    todos: list[TodoItem] | UnsetType = UNSET
    attachment: Attachment | None = None
    content: Any = None
    operation: OptionalText = UNSET
    data: StartedAgent | None = None
    parentToolUseID: str | None = None
    messageId: OptionalText = UNSET
    snapshot: FileHistorySnapshot | None = None
    isSnapshotUpdate: Flag = UNSET
    snapshotMessageId: OptionalText = UNSET
    trackingPath: OptionalText = UNSET
    backup: FileBackup | None = None
    leafUuid: OptionalText = UNSET
    summary: str | UnsetType = UNSET
    aiTitle: str | UnsetType = UNSET
    customTitle: str | UnsetType = UNSET
    agentName: str | UnsetType = UNSET
    lastPrompt: str | UnsetType = UNSET
    prUrl: str | UnsetType = UNSET
    frameUrl: str | UnsetType = UNSET
    continuedInSessionId: str | UnsetType = UNSET
    parentLastUuid: OptionalText = UNSET


TRANSCRIPT = RecordDecoder(TranscriptRecord)

# Keys that the client is known to write and that clew does not decode; all others are signs of a new format

_EVERY_RECORD = frozenset("type uuid parentUuid timestamp sessionId slug agentId".split())
_MESSAGE_RECORD = frozenset(
    # Any of them
    "session_id teamName agentName entrypoint promptId forkedFrom sessionKind permissionMode promptSource turnOrigin "
    "turnPosition sandboxed madeBy "
    # user
    "sourceToolAssistantUUID sourceToolUseID isVisibleInTranscriptOnly summarizeMetadata planContent imagePasteIds "
    "interruptedMessageId toolDenialKind classifierMetaLines mcpMeta queueSkipAttachments toolEndsTurn turnCompanion "
    "permissionDecision "
    # assistant
    "isApiErrorMessage error apiErrorStatus errorDetails quotaLimits isAbortedMidStream attributionSkill "
    "attributionPlugin attributionAgent attributionMcpServer attributionMcpTool effort perTurnEffort apiBlockIndex "
    "wireToolInputs wireIngestContext costUSD durationMs requestRef requestedModel promptCacheRequested "
    "thinkingDisplay thinkingDurationMs toolInputStreamMs supersedesUuids "
    # system
    "subtype level toolUseID commandMode compactMetadata microcompactMetadata messageCount pendingBackgroundAgentCount "
    "pendingWorkflowCount hookCount hookInfos hookErrors hookAdditionalContext preventedContinuation stopReason "
    "hasOutput cause retryInMs retryAttempt maxRetries url source "
    # system, subtype model_refusal_fallback
    "trigger direction scope originalModel fallbackModel apiRefusalCategory apiRefusalExplanation "
    "refusedUserMessageUuid retractedMessageUuids "
    # attachment
    "rendered renderedInHumanTurn renderedRole renderedBesideToolResult".split()
)
_OTHER_RECORDS = {
    "progress": "toolUseID isMeta entrypoint promptId teamName",
    "queue-operation": "reason",
    "pr-link": "prNumber prRepository",
    "frame-link": "path title artifactCount",
    "fork-context-ref": "parentSessionId contextLength",
    "cost-state": "totalCostUSD totalAPIDuration totalAPIDurationWithoutRetries totalToolDuration totalDuration "
    "totalLinesAdded totalLinesRemoved startTime hasUnknownModelCost modelUsage",
    "mode": "mode",
    "permission-mode": "permissionMode",
    "agent-setting": "agentSetting",
    "agent-color": "agentColor",
    "tag": "tag",
    "bridge-session": "bridgeSessionId lastSequenceNum ownerAccountUuid ownerOrganizationUuid",
    "worktree-state": "worktreeSession",
    "relocated": "relocatedCwd",
    "content-replacement": "replacements",
    "atis-latch": "atis",
    "api-request-shape": "shape shapeHash",
    "api-request-blob": "hash",
    "api-request": "id base keep tail params cacheControl querySource requestDigest shapeHash",
    "tools-used": "tools",
    "started": "key label phase",
    "result": "key result",
    "launched": "key label phase",
}
_KNOWN = {
    **dict.fromkeys(MESSAGE_TYPES, _MESSAGE_RECORD),
    **{kind: frozenset(_OTHER_RECORDS.get(kind, "").split()) for kind in RECORD_KINDS},
}
_BLOCK_KEYS = KeysByType(
    {
        "text": "text citations cache_control",
        "thinking": "thinking signature",
        "tool_use": "id name input caller cache_control",
        "tool_result": "tool_use_id content is_error cache_control",
        "image": "source cache_control",
        "document": "source title context citations cache_control",
    }
)
_SOURCE_KEYS = {
    "image": frozenset("type media_type data file_id url".split()),
    "document": frozenset("type media_type data file_id url content".split()),
}
_MESSAGE_KEYS = frozenset("type role container stop_details context_management diagnostics".split())
_USAGE_KEYS = frozenset("server_tool_use inference_geo iterations speed fallback_credit".split())
_QUEUED_KEYS = frozenset("commandMode source_uuid timestamp imagePasteIds".split())


def find_unknown_keys(record: Mapping[str, JSON]) -> Iterator[str]:
    """The keys of a record that are not known, each behind the name of the object that holds it."""
    kind = record.get("type")
    if not isinstance(kind, str) or kind not in _KNOWN:
        yield from unknown_in("unknown", record, known=_EVERY_RECORD)
        return
    yield from unknown_in(kind, record, TranscriptRecord, _KNOWN[kind])
    if kind not in MESSAGE_TYPES:
        return
    yield from unknown_in("thinking_metadata", record.get("thinkingMetadata"), ThinkingSettings, {"maxThinkingTokens"})
    yield from unknown_in("origin", record.get("origin"), Origin)
    attachment = record.get("attachment")
    if isinstance(attachment, dict) and attachment.get("type") == "queued_command" and "prompt" in attachment:
        yield from unknown_in("queued_command", attachment, Attachment, _QUEUED_KEYS)
        yield from unknown_in("origin", attachment.get("origin"), Origin)
        yield from _unknown_in_blocks(attachment["prompt"])
    message = record.get("message")
    if isinstance(message, dict):
        yield from unknown_in("reply" if kind == "assistant" else "prompt", message, ApiMessage, _MESSAGE_KEYS)
        yield from _unknown_in_blocks(message.get("content"))
        usage = message.get("usage")
        if isinstance(usage, dict):
            yield from unknown_in("usage", usage, ApiUsage, _USAGE_KEYS)
            yield from unknown_in("cache_creation", usage.get("cache_creation"), CacheCreation)
            yield from unknown_in("output_tokens_details", usage.get("output_tokens_details"), OutputDetails)
    if kind == "system":
        yield from _unknown_in_blocks(record.get("content"))


def _unknown_in_blocks(content: JSON) -> Iterator[str]:
    """Unknown keys of known blocks; an unknown block is reported by its type."""
    for block in content if isinstance(content, list) else ():
        yield from _BLOCK_KEYS.unknown_in(block)
        kind = block.get("type") if isinstance(block, dict) else None
        if kind == "tool_result":
            yield from _unknown_in_blocks(block.get("content"))
        elif kind in ("image", "document"):
            yield from unknown_in(f"{kind}.source", block.get("source"), known=_SOURCE_KEYS[kind])
