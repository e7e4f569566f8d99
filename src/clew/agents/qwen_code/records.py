"""Qwen Code's transcript format as typed records.

One JSON object per line. Records of type `user`, `assistant` and `tool_result` hold a message in the form of Gemini's
API; records of type `system` are bookkeeping, named by their subtype. All of them are links of the parent chain. The
modules of this package know the key names, and no others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import UNSET, Struct, UnsetType, field

from clew.agents.backups import read_inside
from clew.agents.gemini_content import find_unknown_part_keys
from clew.agents.qwen_code.locate import meta_name
from clew.io.typed_records import OptionalText, RecordDecoder, TokenCount, unknown_in
from clew.model.json import JSON

_KINDS = {
    "link": "parent_session branch_checkpoint",
    "progress": "ui_telemetry at_command turn_result",
    "prompt": "slash_command",
    "rewind": "rewind",
    "snapshot": "file_history_snapshot",
    "state": "agent_bootstrap agent_launch_prompt agent_retry attribution_snapshot chat_compression goal_state "
    "session_artifact_event session_artifact_snapshot session_model session_source user_text_elements",
    "title": "custom_title",
}
RECORD_KINDS = {name: kind for kind, names in _KINDS.items() for name in names.split()}
"""The subtypes of records that are no messages, each with the kind it has in the document."""
ARTIFACT_SUBTYPES = ("session_artifact_event", "session_artifact_snapshot")
"""Records that are no part of the parent chain to the client."""
_MAX_META_BYTES = 1 << 20


class Content(Struct, gc=False):
    """A message in the form of Gemini's API. In old files the parts may be a string."""

    parts: Any = UNSET


class UsageMetadata(Struct, gc=False):
    """Counts of one request. What was cached is part of the prompt."""

    promptTokenCount: TokenCount | None = None
    cachedContentTokenCount: TokenCount | None = None
    candidatesTokenCount: TokenCount | None = None
    thoughtsTokenCount: TokenCount | None = None
    totalTokenCount: TokenCount | None = None


class ToolCallResult(Struct, gc=False):
    status: str | None = None
    resultDisplay: Any = UNSET


class ForkedFrom(Struct, gc=False):
    """Where a record of a branched session was copied from."""

    sessionId: str | None = None


class UiEvent(UsageMetadata, gc=False):
    """A request or a call as the client's telemetry counts it, under other names."""

    promptTokenCount: TokenCount | None = field(default=None, name="input_token_count")
    cachedContentTokenCount: TokenCount | None = field(default=None, name="cached_content_token_count")
    candidatesTokenCount: TokenCount | None = field(default=None, name="output_token_count")
    thoughtsTokenCount: TokenCount | None = field(default=None, name="thoughts_token_count")
    totalTokenCount: TokenCount | None = field(default=None, name="total_token_count")
    name: str | None = field(default=None, name="event.name")
    model: str | None = None
    prompt_id: str = ""
    subagent_id: str | None = None


class SystemPayload(Struct, gc=False):
    """What a record holds beside a message, as far as it is decoded."""

    customTitle: OptionalText = UNSET
    rawCommand: OptionalText = UNSET
    phase: str | None = None
    parentSessionId: str | None = None
    compressedHistory: Any = UNSET
    uiEvent: UiEvent | None = None


class ChatRecord(Struct):
    """One line."""

    uuid: OptionalText = UNSET
    parentUuid: OptionalText = UNSET
    sessionId: str | None = None
    timestamp: Any = UNSET
    type: str | None = None
    subtype: str | None = None
    provenance: str | None = None
    cwd: OptionalText = UNSET
    version: OptionalText = UNSET
    gitBranch: OptionalText = UNSET
    model: OptionalText = UNSET
    message: Content | None = None
    usageMetadata: UsageMetadata | None = None
    toolCallResult: ToolCallResult | None = None
    systemPayload: SystemPayload | None = None
    agentId: str | None = None
    isSidechain: bool | UnsetType = UNSET
    forkedFrom: ForkedFrom | None = None


CHAT = RecordDecoder(ChatRecord)


class AgentMeta(Struct):
    """What the client notes about a sub-agent in a file beside its transcript."""

    agentId: str | None = None
    parentAgentId: str | None = None
    toolUseId: str | None = None
    model: str | None = None


def read_meta(transcript: Path) -> AgentMeta:
    """What is noted about the sub-agent with this transcript; nothing where the note cannot be read."""
    content = read_inside(transcript.parent, meta_name(transcript), _MAX_META_BYTES)
    try:
        return msgspec.json.decode(content or b"{}", type=AgentMeta)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return AgentMeta()


_OTHER_RECORD_KEYS = (
    "contextWindowSize agentName agentColor agentRunId agentRound externalInputKind goalContext".split()
)
_OTHER_USAGE_KEYS = (
    "toolUsePromptTokenCount promptTokensDetails cacheTokensDetails candidatesTokensDetails "
    "toolUsePromptTokensDetails trafficType".split()
)
_OTHER_RESULT_KEYS = (
    "callId error errorType executionStatus durationMs contentLength persistedOutputFiles modelOverride terminateTurn "
    "visionBridgeNotice artifacts boundaryArtifact responseParts".split()
)


def find_unknown_keys(native: Mapping[str, JSON]) -> Iterator[str]:
    """The keys of a native record that this version of clew does not know, each behind the kind of its object."""
    kind = native.get("subtype") or native.get("type")
    yield from unknown_in(kind if type(kind) is str else "record", native, ChatRecord, _OTHER_RECORD_KEYS)
    message = native.get("message")
    if type(message) is dict:
        yield from unknown_in("message", message, Content, ("role",))
        parts = message.get("parts")
        for part in parts if type(parts) is list else ():
            yield from find_unknown_part_keys(part)
    yield from unknown_in("usageMetadata", native.get("usageMetadata"), UsageMetadata, _OTHER_USAGE_KEYS)
    yield from unknown_in("toolCallResult", native.get("toolCallResult"), ToolCallResult, _OTHER_RESULT_KEYS)
