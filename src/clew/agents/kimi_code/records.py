"""Kimi Code's journal format (`wire.jsonl`) and the description of a session (`state.json`) as typed records.

A journal begins with a `metadata` record. `context.*` records build the model's context: whole messages
(`context.append_message`) and the steps of the model's loop (`context.append_loop_event`: `step.begin`,
`content.part`, `tool.call`, `tool.result`, `step.end`). Records with `kind` "event" say all of it once more. The
modules of this package know the key names, and no others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import UNSET, Struct, UnsetType

from clew.agents.model_context import ModelContext, model_context
from clew.io.typed_records import RecordDecoder, TokenCount, unknown_in, unknown_keys
from clew.model.json import JSON

STATE_ARRAY = ("records",)
"""`state.json` has no such array, so that all of it is one record."""
REPEATED_MESSAGE = "agent.message.appended"

"""A count below zero or beyond this is no count."""


class Usage(Struct, gc=False):
    """The tokens of one request. Input from a cache is no part of `inputOther`; `output` includes reasoning."""

    inputOther: TokenCount | UnsetType = UNSET
    output: TokenCount | UnsetType = UNSET
    inputCacheRead: TokenCount | UnsetType = UNSET
    inputCacheCreation: TokenCount | UnsetType = UNSET


class Origin(Struct, gc=False):
    """Who said something."""

    kind: str | None = None
    name: str | None = None
    trigger: str | None = None
    phase: str | None = None
    ownerPromptId: str | None = None


class MessageMeta(Struct, gc=False):
    """What a repeated message says about itself."""

    messageId: str | None = None
    usage: Usage | None = None
    origin: Origin | None = None


class ContextMessage(Struct):
    """A message of the model's context; a record that repeats one wraps it once more."""

    role: str | None = None
    content: Any = None
    toolCalls: Any = None
    toolCallId: str | None = None
    id: str | None = None
    origin: Origin | None = None
    isError: bool | UnsetType = UNSET
    message: ContextMessage | None = None
    meta: MessageMeta | None = None


class Result(Struct):
    """What a tool gave back."""

    output: Any = None
    isError: bool | UnsetType = UNSET


class LoopEvent(Struct):
    """One event of a step, which is one request to the model with the calls that it led to."""

    type: str | None = None
    uuid: str | None = None
    stepUuid: str | None = None
    part: Any = None
    toolCallId: str | None = None
    name: str | None = None
    args: Any = None
    parentUuid: str | None = None
    result: Result | None = None
    usage: Usage | None = None
    finishReason: str | None = None


class Environment(Struct):
    """What the model is told about its surroundings."""

    cwd: str | None = None


class WireRecord(Struct):
    """Any record of a journal."""

    type: str | None = None
    time: Any = None
    kind: str | None = None
    created_at: Any = None
    message: ContextMessage | None = None
    event: LoopEvent | None = None
    input: Any = None
    usage: Usage | None = None
    usageScope: str | None = None
    model: str | None = None
    modelAlias: str | None = None
    cwd: str | None = None
    environmentDisclosure: Environment | None = None
    summary: Any = None
    contextSummary: str | None = None
    count: int | None = None
    subagentId: str | None = None
    parentToolCallId: str | None = None
    key: str | None = None
    value: Any = None


class AgentState(Struct):
    """What `state.json` says of one agent of the session."""

    parentAgentId: str | None = None
    labels: dict[str, Any] | None = None


class State(Struct):
    """`state.json`: the session as a whole."""

    id: str | None = None
    cwd: str | None = None
    workDir: str | None = None
    title: str | None = None
    isCustomTitle: bool | None = None
    createdAt: Any = None
    updatedAt: Any = None
    forkedFrom: str | None = None
    agents: dict[str, AgentState] | None = None


WIRE = RecordDecoder(WireRecord)

_KINDS = {
    "state": "config cron forked goal interaction interruptionReminder llm mcp metadata permission plan plan_mode "
    "plugin profile runtime skill staleGuard swarm_mode tools tower_mode",
    "progress": "full_compaction prompt subagent task token_counting turn",
    "snapshot": "file_history",
    "cost": "usage",
    "copy": "agent",
}
_KIND_BY_PREFIX = {name: kind for kind, names in _KINDS.items() for name in names.split()}
_KIND_BY_TYPE = {
    "turn.prompt": "prompt",
    "turn.steer": "prompt",
    "context.undo": "rewind",
    "context.clear": "rewind",
    "context.append_loop_event": "progress",
    "context.spliced": "state",
    "llm.request": "progress",
}


def record_kind(kind: str | None) -> str:
    """The kind that a record which is no message has in the document."""
    name = kind or ""
    return _KIND_BY_TYPE.get(name) or _KIND_BY_PREFIX.get(name.partition(".")[0], "other")


_UNUSED_KEYS = frozenset(
    # of all records, and of those that open a journal
    "agentId protocol_version app_version workspaceId runtimeId profileName thinkingEffort thinkingLevel systemPrompt "
    "renderGeneration agentsMdPaths activeToolNames disallowedTools subagents subagentNames mode "
    # of turns and requests
    "origin promptId turnId reason durationMs error finishedAt target provider thinkingKeep temperature topP maxTokens "
    "betaApi toolSelect systemPromptHash toolsHash messageCount turnStep attempt projection droppedCount hash tools "
    "length tokens measured queueItemId outcome content trigger "
    # of compactions, sub-agents and tasks
    "compactedCount tokensBefore tokensAfter summaryOutputTokens keptUserMessageCount keptHeadUserMessageCount "
    "legacyTail instruction source subagentName parentAgentId callerAgentId description runInBackground taskId "
    "resultSummary contextTokens info outputTail keys "
    # of files, permissions, plans, goals and the rest
    "path entry phase entries mtimeMs toolCallId toolName action sessionApprovalRule result id version sha256 bytes "
    "goalId objective completionCriterion wallClockResumedAt status actor budgetLimits turnsUsed tokensUsed "
    "wallClockMs task ids lastFiredAt names name parameters disclosure request response serverName enabledNames "
    "collisions sessionId "
    # of the lines in which clew keeps an original
    "data".split()
)
_EVENT_KEYS = frozenset(
    "turnId step display description extras messageId providerFinishReason rawFinishReason llmFirstTokenLatencyMs "
    "llmStreamDurationMs llmRequestBuildMs llmServerFirstTokenMs llmServerDecodeMs llmClientConsumeMs "
    "llmClientBlockedMs traceId".split()
)
_MESSAGE_KEYS = frozenset({"name", "note", "partial", "tools", "providerMessageId"})
_STATE_KEYS = frozenset({"version", "archived", "custom", "lastTurnReason", "lastPrompt", "titleKind"})


def find_unknown_keys(native: Mapping[str, JSON]) -> Iterator[str]:
    """The keys of a record that this version of clew does not know."""
    if "agents" in native and "type" not in native:
        yield from unknown_keys(native, State, _STATE_KEYS)
        return
    yield from unknown_keys(native, WireRecord, _UNUSED_KEYS)
    yield from unknown_in("event", native.get("event"), LoopEvent, _EVENT_KEYS)
    yield from unknown_in("message", native.get("message"), ContextMessage, _MESSAGE_KEYS)
    yield from unknown_in("usage", native.get("usage"), Usage)


def read_model_context(native: Mapping[str, JSON]) -> ModelContext | None:
    """The system prompt of a profile or a setting, and the tools of requests."""
    match native.get("type"):
        case "profile.bind" | "config.update":
            return model_context(native.get("systemPrompt"))
        case "llm.tools_snapshot":
            return model_context(tools=native.get("tools"))
    return None
