"""Keys that Claude Code is known to write and that clew does not decode; all others are signs of a new format."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct

from clew.agents.claude_code.events import MESSAGE_TYPES, RECORD_KINDS
from clew.agents.claude_code.records import (
    ApiMessage,
    ApiUsage,
    Attachment,
    CacheCreation,
    Origin,
    OutputDetails,
    ThinkingMetadata,
    TranscriptRecord,
)
from clew.io.typed_records import unknown_keys as keys_beyond
from clew.model.json import JSON

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
_BLOCK_KEYS = {
    "text": "text citations cache_control",
    "thinking": "thinking signature",
    "tool_use": "id name input caller cache_control",
    "tool_result": "tool_use_id content is_error cache_control",
    "image": "source cache_control",
    "document": "source title context citations cache_control",
}
_KNOWN_BLOCK_KEYS = {kind: frozenset(["type", *keys.split()]) for kind, keys in _BLOCK_KEYS.items()}
_SOURCE_KEYS = {
    "image": frozenset("type media_type data file_id url".split()),
    "document": frozenset("type media_type data file_id url content".split()),
}
_MESSAGE_KEYS = frozenset("type role container stop_details context_management diagnostics".split())
_USAGE_KEYS = frozenset("server_tool_use inference_geo iterations speed fallback_credit".split())
_QUEUED_KEYS = frozenset("commandMode source_uuid timestamp imagePasteIds".split())


def unknown_keys(record: Mapping[str, JSON]) -> Iterator[str]:
    """The keys of a record that are not known, each behind the name of the object that holds it."""
    kind = record.get("type")
    if not isinstance(kind, str) or kind not in _KNOWN:
        yield from (f"unknown.{key}" for key in record if key not in _EVERY_RECORD)
        return
    yield from _unknown(kind, record, TranscriptRecord, _KNOWN[kind])
    if kind not in MESSAGE_TYPES:
        return
    yield from _inside("thinking_metadata", record.get("thinkingMetadata"), ThinkingMetadata, {"maxThinkingTokens"})
    yield from _inside("origin", record.get("origin"), Origin)
    attachment = record.get("attachment")
    if isinstance(attachment, dict) and attachment.get("type") == "queued_command" and "prompt" in attachment:
        yield from _unknown("queued_command", attachment, Attachment, _QUEUED_KEYS)
        yield from _inside("origin", attachment.get("origin"), Origin)
        yield from _unknown_in_blocks(attachment["prompt"])
    yield from _unknown_in_message(record.get("message"), "reply" if kind == "assistant" else "prompt")
    if kind == "system":
        yield from _unknown_in_blocks(record.get("content"))


def _unknown(
    name: str, value: Mapping[str, JSON], record_type: type[Struct], known: frozenset[str] | set[str]
) -> Iterator[str]:
    return (f"{name}.{key}" for key in keys_beyond(value, record_type, known))


def _inside(
    name: str, value: JSON, record_type: type[Struct], known: frozenset[str] | set[str] = frozenset()
) -> Iterator[str]:
    return _unknown(name, value, record_type, known) if isinstance(value, dict) else iter(())


def _unknown_in_message(message: JSON, name: str) -> Iterator[str]:
    if not isinstance(message, dict):
        return
    yield from _unknown(name, message, ApiMessage, _MESSAGE_KEYS)
    yield from _unknown_in_blocks(message.get("content"))
    usage = message.get("usage")
    if isinstance(usage, dict):
        yield from _unknown("usage", usage, ApiUsage, _USAGE_KEYS)
        yield from _inside("cache_creation", usage.get("cache_creation"), CacheCreation)
        yield from _inside("output_tokens_details", usage.get("output_tokens_details"), OutputDetails)


def _unknown_in_blocks(content: JSON) -> Iterator[str]:
    """Unknown keys of known blocks; an unknown block is reported by its type."""
    for block in content if isinstance(content, list) else ():
        kind = block.get("type") if isinstance(block, dict) else None
        if not isinstance(kind, str) or kind not in _KNOWN_BLOCK_KEYS:
            continue
        yield from (f"{kind}.{key}" for key in block if key not in _KNOWN_BLOCK_KEYS[kind])
        if kind == "tool_result":
            yield from _unknown_in_blocks(block.get("content"))
        source = block.get("source")
        if kind in _SOURCE_KEYS and isinstance(source, dict):
            yield from (f"{kind}.source.{key}" for key in source if key not in _SOURCE_KEYS[kind])
