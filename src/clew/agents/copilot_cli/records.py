"""GitHub Copilot CLI's session events as typed records.

A line of `events.jsonl` is an envelope `{type, data, id, timestamp, parentId, agentId}`. `parentId` is the event before
it in the file, whatever agent wrote that: it is no tree of the conversation. `agentId` names the sub-agent that an
event belongs to. The types of events are those of the npm package @github/copilot-sdk 1.0.14, and those that version
1.0.102 of the client was seen to write. The modules of this package know the key names, and no others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from clew.agents.model_context import ModelContext, model_context
from clew.io.typed_records import RecordDecoder, TokenCount, unknown_in
from clew.model.json import JSON

_KINDS = {
    "state": "session.start session.resume session.model_change session.mode_changed session.context_changed "
    "session.context_cleared session.permissions_changed session.session_limits_changed session.auto_mode_resolved "
    "session.remote_steerable_changed session.plan_changed session.workspace_file_changed session.todos_changed "
    "session.binary_asset session.handoff session.mode_notice_delivered session.autopilot_objective_changed "
    "session.schedule_created session.schedule_cancelled session.schedule_rearmed session.canvas.recorded "
    "session.canvas.removed session.auto_tier_recommendation session.auto_tier_switch_failed "
    "session.managed_settings_resolved session.managed_settings_enforced session.custom_agents_updated "
    "session.tools_updated session.skills_loaded session.mcp_servers_loaded session.extensions_loaded "
    "system.message skill.invoked subagent.selected subagent.deselected subagent.configured tool_search.activated",
    "progress": "assistant.turn_start assistant.turn_end assistant.reasoning assistant.intent assistant.idle "
    "tool.execution_start tool.user_requested subagent.started subagent.completed subagent.failed session.info "
    "session.warning session.error session.idle session.truncation session.compaction_start session.task_complete "
    "session.completion_receipt session.fusion_route_started session.fusion_route_failed session.fusion_resolved "
    "session.fusion_completed session.custom_notification session.background_tasks_changed hook.start hook.end "
    "permission.requested permission.completed permission.carriedForward permission.messageAuthorization "
    "permission.messageAuthorizationRead permission.messageAuthorizationDegraded permission.assentDetected "
    "permission.contextualAuthorization external_tool.requested external_tool.completed user_input.requested "
    "user_input.completed elicitation.requested elicitation.completed exit_plan_mode.requested "
    "exit_plan_mode.completed factory.run_started factory.run_updated factory.run_settled command.queued "
    "command.execute command.completed abort model.call_failure model.call_finished model.turn_started "
    "model.model_call_started model.model_call_success model.model_call_failure model.message model.response "
    "model.turn_ended model.messages_snapshot",
    "cost": "session.usage_record session.usage_checkpoint session.usage_info session.shutdown assistant.usage",
    "summary": "session.compaction_complete",
    "title": "session.title_changed",
}
RECORD_KINDS = {name: kind for kind, names in _KINDS.items() for name in names.split()}
"""The types of events that are no messages, each with the kind it has in the document."""

_ENVELOPE_KEYS = frozenset("type data id timestamp parentId agentId ephemeral".split())
_UNUSED_KEYS = {
    "user.message": "transformedContent agentMode messageId interactionId turnId parentAgentTaskId delivery "
    "supportedNativeDocumentMimeTypes nativeDocumentPathFallbackPaths",
    "assistant.message": "originatingMessageId interactionId turnId requestId clientRequestId serviceRequestId rte "
    "phase chunkIndex chunkCount citations serverTools fusion encryptedContent reasoningBlocks reasoningWireField",
    "tool.execution_complete": "model interactionId turnId rte fusion isUserRequested mcpMeta sandboxed "
    "toolDescription toolTelemetry fileEdits",
}
"""Keys of messages that clew knows and does not decode, by the type of the event."""
_CALL_KEYS = frozenset("type intentionSummary toolTitle caller mcpServerName mcpToolName".split())


class Usage(Struct, gc=False):
    """The usage of one request, or of all requests to a model.

    `inputTokens` includes what was read from a cache or written to it; `outputTokens` includes reasoning.
    """

    model: str | None = None
    apiCallId: str | None = None
    inputTokens: TokenCount | None = None
    outputTokens: TokenCount | None = None
    cacheReadTokens: TokenCount | None = None
    cacheWriteTokens: TokenCount | None = None
    reasoningTokens: TokenCount | None = None


class ModelMetric(Struct, gc=False):
    """The requests to one model over the session, in the event of a shutdown."""

    usage: Usage | None = None


class Context(Struct, gc=False):
    """Where the client runs."""

    cwd: str | None = None
    branch: str | None = None


class ToolRequest(Struct, gc=False):
    """A call in a reply. `arguments` are JSON, or were spelled as text by early builds."""

    toolCallId: str | None = None
    name: str | None = None
    arguments: Any = None


class BinaryReference(Struct, gc=False):
    """An image or other content that a result or a prompt has: here, or in an earlier `session.binary_asset`."""

    assetId: str | None = None
    mimeType: str | None = None
    data: str | None = None


class Result(Struct, gc=False):
    """What a tool gave back to the model; `text_result_for_llm` is the key of some early builds."""

    content: str | None = None
    text_result_for_llm: str | None = None
    binaryResultsForLlm: Any = None


class Failure(Struct, gc=False):
    message: str | None = None


class ShellExecution(Struct, gc=False):
    exitCode: int | None = None


class EventData(Struct, gc=False):
    """The content of an event of any type."""

    content: Any = None
    # user.message
    attachments: Any = None
    source: str | None = None
    isAutopilotContinuation: bool | None = None
    # assistant.message
    messageId: str | None = None
    apiCallId: str | None = None
    model: str | None = None
    toolRequests: Any = None
    reasoningText: str | None = None
    reasoningOpaque: str | None = None
    outputTokens: TokenCount | None = None
    parentToolCallId: str | None = None
    # Tools
    toolCallId: str | None = None
    toolName: str | None = None
    arguments: Any = None
    success: bool | None = None
    result: Result | None = None
    error: Failure | str | None = None
    shellExecution: ShellExecution | None = None
    # The session
    sessionId: str | None = None
    copilotVersion: str | None = None
    startTime: Any = None
    selectedModel: str | None = None
    newModel: str | None = None
    reasoningEffort: str | None = None
    context: Context | str | None = None
    cwd: str | None = None
    branch: str | None = None
    title: str | None = None
    summaryContent: str | None = None
    # Content
    assetId: str | None = None
    mimeType: str | None = None
    data: str | None = None
    # Tokens
    usage: Usage | None = None
    compactionTokensUsed: Usage | None = None
    modelMetrics: dict[str, ModelMetric] | None = None


class SessionEvent(Struct, gc=False):
    """One line."""

    type: str | None = None
    data: EventData | None = None
    id: str | None = None
    timestamp: Any = None
    agentId: str | None = None


EVENTS = RecordDecoder(SessionEvent)


def find_unknown_keys(record: Mapping[str, JSON]) -> Iterator[str]:
    """The keys of a record that clew does not know, each behind the name of the object it stands in."""
    yield from unknown_in("event", record, known=_ENVELOPE_KEYS)
    kind, data = record.get("type"), record.get("data")
    if isinstance(kind, str) and kind in _UNUSED_KEYS and isinstance(data, dict):
        yield from unknown_in(kind, data, EventData, frozenset(_UNUSED_KEYS[kind].split()))
        yield from unknown_in(f"{kind}.toolRequests", data.get("toolRequests"), ToolRequest, _CALL_KEYS)


def read_model_context(record: Mapping[str, JSON]) -> ModelContext | None:
    """The system prompt that the client sent."""
    data = record.get("data")
    if record.get("type") != "system.message" or not isinstance(data, Mapping):
        return None
    return model_context(data.get("content"))
