"""Claude Code's records, key by key. Keys listed as known stay in the rest; all others are reported as unknown."""

from __future__ import annotations

from clew.agents.jsonl import Form
from clew.agents.mapping import (
    ANY,
    COUNT,
    FLAG,
    LIST,
    OPTIONAL_TEXT,
    TEXT,
    Alias,
    Blocks,
    Context,
    Copy,
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
from clew.model.json import JSON

_SOURCE_KEYS = ("file_id",)


class Kept(Kind):
    """A kind of block that is known and has no place in the document: kept as it is, and not reported as unknown."""

    def __init__(self, name: str) -> None:
        super().__init__("unknown", Table(name))

    def take(self, value: dict[str, JSON], context: Context) -> dict[str, JSON]:
        return {"type": self.unified, "value": value}


BLOCKS: dict[str, Kind] = {}
BLOCKS.update(
    {
        "text": Kind(
            "text",
            Table("text", Fixed("type", "text"), Leaf("text", "text", TEXT), known=["citations", "cache_control"]),
            ("text",),
        ),
        "thinking": Kind(
            "thinking",
            Table(
                "thinking",
                Fixed("type", "thinking"),
                Leaf("thinking", "thinking", TEXT),
                Leaf("signature", "signature", TEXT),
            ),
            ("thinking",),
        ),
        "tool_use": Kind(
            "tool_use",
            Table(
                "tool_use",
                Fixed("type", "tool_use"),
                Leaf("id", "tool_id", TEXT),
                Leaf("name", "tool_name", TEXT),
                Leaf("input", "input", ANY),
                known=["caller", "cache_control"],
            ),
            ("tool_id", "tool_name", "input"),
        ),
        "tool_result": Kind(
            "tool_result",
            Table(
                "tool_result",
                Leaf("tool_use_id", "tool_id", TEXT),
                Fixed("type", "tool_result"),
                Blocks("content", BLOCKS, slot="output", wrap=False),
                Leaf("is_error", "is_error", FLAG),
                known=["cache_control"],
            ),
            ("tool_id",),
        ),
        "image": Kind(
            "image",
            Table(
                "image",
                Fixed("type", "image"),
                Nest(
                    "source",
                    Table(
                        "image.source",
                        Leaf("type", "encoding", TEXT),
                        Leaf("media_type", "media_type", TEXT),
                        Leaf("data", "image", TEXT),
                        known=[*_SOURCE_KEYS, "url"],
                    ),
                ),
                known=["cache_control"],
            ),
        ),
        "document": Kind(
            "document",
            Table(
                "document",
                Fixed("type", "document"),
                Nest(
                    "source",
                    Table(
                        "document.source",
                        Leaf("type", "encoding", TEXT),
                        Leaf("media_type", "media_type", TEXT),
                        Leaf("data", "document", TEXT),
                        known=[*_SOURCE_KEYS, "url", "content"],
                    ),
                ),
                Leaf("title", "title", OPTIONAL_TEXT),
                known=["context", "citations", "cache_control"],
            ),
        ),
        "tool_reference": Kept("tool_reference"),
    }
)

USAGE = Table(
    "usage",
    Leaf("input_tokens", "usage.input_tokens", COUNT),
    Leaf("cache_creation_input_tokens", "usage.cache_creation_tokens", COUNT),
    Leaf("cache_read_input_tokens", "usage.cache_read_tokens", COUNT),
    Nest(
        "cache_creation",
        Table(
            "cache_creation",
            Leaf("ephemeral_5m_input_tokens", "usage.cache_creation_5m_tokens", COUNT),
            Leaf("ephemeral_1h_input_tokens", "usage.cache_creation_1h_tokens", COUNT),
        ),
    ),
    Leaf("output_tokens", "usage.output_tokens", COUNT),
    Nest(
        "output_tokens_details",
        Table("output_tokens_details", Leaf("thinking_tokens", "usage.reasoning_tokens", COUNT)),
    ),
    Leaf("service_tier", "usage.service_tier", OPTIONAL_TEXT),
    known=["server_tool_use", "inference_geo", "iterations", "speed", "fallback_credit"],
)

_MESSAGE: tuple[Field, ...] = (
    Leaf("model", "model.name", OPTIONAL_TEXT),
    Leaf("id", "metadata.message_id", TEXT),
    Shared("role", "role"),
    Blocks("content", BLOCKS),
    Leaf("stop_reason", "model.stop_reason", OPTIONAL_TEXT),
    Alias("stopReason", "stop_reason"),
    Leaf("stop_sequence", "model.stop_sequence", OPTIONAL_TEXT),
    Nest("usage", USAGE),
)
_MESSAGE_KEYS = ["type", "container", "stop_details", "context_management", "diagnostics"]
PROMPT = Table("prompt", *_MESSAGE, known=_MESSAGE_KEYS)
REPLY = Table("reply", *_MESSAGE, Fixed("type", "message"), known=_MESSAGE_KEYS)

TODO = Table(
    "todo",
    Leaf("content", "content", TEXT),
    Leaf("status", "status", TEXT),
    Leaf("activeForm", "active_form", OPTIONAL_TEXT),
    Leaf("priority", "priority", OPTIONAL_TEXT),
    Leaf("id", "id", OPTIONAL_TEXT),
)

ENVELOPE: tuple[Field, ...] = (
    Leaf("parentUuid", "parent_uuid", OPTIONAL_TEXT),
    Leaf("logicalParentUuid", "metadata.logical_parent_uuid", OPTIONAL_TEXT),
    Leaf("isSidechain", "metadata.is_sidechain", FLAG),
    Leaf("userType", "metadata.user_type", OPTIONAL_TEXT),
    Leaf("cwd", "metadata.cwd", OPTIONAL_TEXT),
    Shared("sessionId", "session_id"),
    Leaf("version", "metadata.agent_version", OPTIONAL_TEXT),
    Leaf("gitBranch", "metadata.git_branch", OPTIONAL_TEXT),
    Shared("slug", "slug"),
    Shared("agentId", "agent_id"),
    Leaf("isMeta", "metadata.is_meta", FLAG),
    Leaf("requestId", "metadata.request_id", OPTIONAL_TEXT),
    Shared("type", "role"),
    Leaf("uuid", "uuid", OPTIONAL_TEXT),
    Time("timestamp", "timestamp"),
)

_COMMON = (
    "session_id teamName agentName entrypoint promptId forkedFrom sessionKind permissionMode origin "
    "promptSource turnOrigin turnPosition sandboxed madeBy"
).split()

_ORIGIN = Nest("origin", Table("origin", Leaf("kind", "metadata.origin", TEXT)))

_USER: tuple[Field, ...] = (
    *ENVELOPE,
    _ORIGIN,
    Leaf("isCompactSummary", "metadata.is_compact_summary", FLAG),
    Nest(
        "thinkingMetadata",
        Table(
            "thinking_metadata",
            Leaf("level", "thinking.level", OPTIONAL_TEXT),
            Leaf("disabled", "thinking.disabled", FLAG),
            Leaf("triggers", "thinking.triggers", LIST),
            known=["maxThinkingTokens"],
        ),
    ),
    Each("todos", "metadata.todos", TODO),
)
_USER_KEYS = (
    "toolUseResult sourceToolAssistantUUID sourceToolUseID isVisibleInTranscriptOnly "
    "summarizeMetadata planContent imagePasteIds interruptedMessageId toolDenialKind "
    "classifierMetaLines mcpMeta queueSkipAttachments toolEndsTurn turnCompanion permissionDecision"
).split()
_ASSISTANT_KEYS = (
    "isApiErrorMessage error apiErrorStatus errorDetails quotaLimits isAbortedMidStream "
    "attributionSkill attributionPlugin attributionAgent attributionMcpServer attributionMcpTool "
    "effort perTurnEffort apiBlockIndex wireToolInputs wireIngestContext costUSD durationMs "
    "requestRef requestedModel promptCacheRequested thinkingDisplay thinkingDurationMs "
    "toolInputStreamMs"
).split()

# Some writers put usage beside the message instead of inside it.
_OUTER_USAGE = Copy("usage", USAGE, "usage")

USER = Table("user", *_USER, Nest("message", PROMPT), _OUTER_USAGE, known=[*_COMMON, *_USER_KEYS])
ASSISTANT = Table("assistant", *ENVELOPE, Nest("message", REPLY), _OUTER_USAGE, known=[*_COMMON, *_ASSISTANT_KEYS])

SYSTEM = Table(
    "system",
    *ENVELOPE,
    Blocks("content", BLOCKS),
    known=[
        *_COMMON,
        *(
            "subtype level toolUseID commandMode compactMetadata microcompactMetadata durationMs "
            "messageCount pendingBackgroundAgentCount pendingWorkflowCount hookCount hookInfos hookErrors "
            "hookAdditionalContext preventedContinuation stopReason hasOutput error cause retryInMs "
            "retryAttempt maxRetries url"
        ).split(),
    ],
)

_ATTACHED = ["rendered", "renderedInHumanTurn", "renderedRole", "renderedBesideToolResult"]

ATTACHMENT = Table("attachment", *ENVELOPE, known=[*_COMMON, *_ATTACHED, "attachment"])

QUEUED = Table(
    "queued",
    *ENVELOPE,
    Nest(
        "attachment",
        Table(
            "queued_command",
            Fixed("type", "queued_command"),
            Blocks("prompt", BLOCKS),
            _ORIGIN,
            known=["commandMode", "source_uuid", "timestamp", "imagePasteIds"],
        ),
    ),
    known=[*_COMMON, *_ATTACHED],
)


def _note(name: str, *fields: Field, known: str = "") -> Table:
    common = (
        Leaf("type", "type", OPTIONAL_TEXT),
        Leaf("uuid", "uuid", OPTIONAL_TEXT),
        Leaf("parentUuid", "parent_uuid", OPTIONAL_TEXT),
        Time("timestamp", "timestamp"),
        Shared("sessionId", "session_id"),
        Shared("slug", "slug"),
        Shared("agentId", "agent_id"),
    )
    return Table(name, *common, *fields, known=known.split())


TRACKED = Table(
    "tracked",
    Leaf("backupFileName", "backup", OPTIONAL_TEXT),
    Leaf("version", "version", COUNT),
    Leaf("backupTime", "time", OPTIONAL_TEXT),
)

SNAPSHOT = _note(
    "file-history-snapshot",
    Leaf("messageId", "message_uuid", OPTIONAL_TEXT),
    Nest(
        "snapshot",
        Table(
            "snapshot",
            Leaf("messageId", "snapshot.message_uuid", OPTIONAL_TEXT),
            Each("trackedFileBackups", "snapshot.files", TRACKED, named=True),
            Time("timestamp", "snapshot.timestamp"),
        ),
    ),
    Leaf("isSnapshotUpdate", "snapshot.is_update", FLAG),
)

PROGRESS = _note(
    "progress",
    known="isSidechain userType cwd version gitBranch data toolUseID parentToolUseID isMeta entrypoint promptId",
)

RECORDS: dict[str, Form] = {
    "file-history-snapshot": Form(SNAPSHOT, kind="snapshot"),
    "file-history-delta": Form(
        _note(
            "file-history-delta",
            Leaf("messageId", "message_uuid", OPTIONAL_TEXT),
            known="snapshotMessageId trackingPath backup",
        ),
        kind="snapshot",
    ),
    "progress": Form(PROGRESS, kind="progress"),
    "summary": Form(
        _note("summary", Leaf("summary", "text", TEXT), Leaf("leafUuid", "message_uuid", OPTIONAL_TEXT), known="cwd"),
        kind="summary",
    ),
    "ai-title": Form(_note("ai-title", Leaf("aiTitle", "text", TEXT)), kind="title"),
    "custom-title": Form(_note("custom-title", Leaf("customTitle", "text", TEXT)), kind="title"),
    "agent-name": Form(_note("agent-name", Leaf("agentName", "text", TEXT)), kind="title"),
    "last-prompt": Form(
        _note("last-prompt", Leaf("lastPrompt", "text", TEXT), Leaf("leafUuid", "message_uuid", OPTIONAL_TEXT)),
        kind="prompt",
    ),
    "queue-operation": Form(
        _note("queue-operation", Leaf("content", "text", TEXT), known="operation reason"), kind="queue"
    ),
    "pr-link": Form(_note("pr-link", Leaf("prUrl", "text", TEXT), known="prNumber prRepository"), kind="link"),
    "frame-link": Form(
        _note("frame-link", Leaf("frameUrl", "text", TEXT), known="path title artifactCount"), kind="link"
    ),
    "continued-in": Form(_note("continued-in", Leaf("continuedInSessionId", "text", TEXT)), kind="link"),
    "fork-context-ref": Form(
        _note(
            "fork-context-ref",
            Leaf("parentLastUuid", "message_uuid", OPTIONAL_TEXT),
            known="parentSessionId contextLength",
        ),
        kind="link",
    ),
    "cost-state": Form(
        _note(
            "cost-state",
            known="totalCostUSD totalAPIDuration totalAPIDurationWithoutRetries totalToolDuration totalDuration "
            "totalLinesAdded totalLinesRemoved startTime hasUnknownModelCost modelUsage",
        ),
        kind="cost",
    ),
}

_STATES = {
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
    "attribution-snapshot": "",
    "speculation-accept": "",
    "ended-by-model": "",
    "history-suppression": "",
    "isolation-latch": "",
    "artifact-autoreact-ledger": "",
    "artifact-comment-monitor": "",
    "marble-origami-commit": "",
    "marble-origami-snapshot": "",
    "marble-origami-reset": "",
    "api-request-shape": "shape shapeHash version",
    "api-request-blob": "hash message",
    "api-request": "id base keep tail params cacheControl querySource requestDigest shapeHash version",
    "tools-used": "tools",
    "started": "key label phase",
    "result": "key result",
    "launched": "key label phase",
}
RECORDS.update({name: Form(_note(name, known=keys), kind="state") for name, keys in _STATES.items()})

UNKNOWN = Form(_note("unknown"), kind="unknown")
MESSAGES = {
    "user": Form(USER, "user"),
    "assistant": Form(ASSISTANT, "assistant"),
    "system": Form(SYSTEM, "system"),
    "attachment": Form(ATTACHMENT, "system"),
}
QUEUED_PROMPT = Form(QUEUED, "user")


def choose(record: dict[str, JSON]) -> Form:
    """The form of a native record."""
    kind = record.get("type")
    if type(kind) is not str:
        return UNKNOWN
    if kind == "attachment" and _is_queued(record.get("attachment")):
        return QUEUED_PROMPT
    return MESSAGES.get(kind) or RECORDS.get(kind) or UNKNOWN


def _is_queued(attachment: JSON) -> bool:
    return type(attachment) is dict and attachment.get("type") == "queued_command" and "prompt" in attachment


def chosen(is_message: bool, value: dict[str, JSON]) -> Form:
    """The same choice from the unified side."""
    if not is_message:
        return RECORDS.get(str(value.get("type"))) or UNKNOWN
    own = (value.get("extensions") or {}).get("claude-code") or {}
    kind = str((own.get("rest") or {}).get("type", value["role"]))
    if kind == "attachment" and value["role"] == "user":
        return QUEUED_PROMPT
    return MESSAGES.get(kind) or MESSAGES[value["role"]]
