"""Pi's session format as typed records.

One JSON object per line. The first is the header, of type `session`. Every other line is an entry of a tree: it has an
id and names its parent. Version 1 had neither: entries followed each other. The modules of this package know the key
names, and no others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import UNSET, Struct, UnsetType

from clew.agents.model_context import ModelContext, model_context
from clew.io.typed_records import KeysByType, OptionalText, RecordDecoder, TokenCount, unknown_in
from clew.model.json import JSON

HEADER = "session"

RECORD_KINDS = {
    HEADER: "state",
    "model_change": "state",
    "thinking_level_change": "state",
    "context_edit": "state",
    "custom": "state",
    "usage": "cost",
    "label": "link",
    "session_info": "title",
}
"""The types of entries that are no messages, each with the kind it has in the document."""


class Usage(Struct, gc=False):
    """`input` excludes what was read from a cache or written to it; `reasoning` is part of `output`."""

    input: TokenCount | UnsetType = UNSET
    output: TokenCount | UnsetType = UNSET
    cacheRead: TokenCount | UnsetType = UNSET
    cacheWrite: TokenCount | UnsetType = UNSET
    cacheWrite1h: TokenCount | UnsetType = UNSET
    reasoning: TokenCount | UnsetType = UNSET


class AgentMessage(Struct, gc=False):
    """What a `message` entry holds; which keys there are depends on the role."""

    role: str | None = None
    content: Any = None
    timestamp: Any = UNSET
    model: OptionalText = UNSET
    usage: Usage | None = None
    stopReason: OptionalText = UNSET
    errorMessage: str | None = None
    thinkingLevel: str | None = None
    toolCallId: str | None = None
    toolName: str | None = None
    isError: bool | UnsetType = UNSET
    command: str | None = None
    output: str | None = None
    summary: str | None = None


class SessionRecord(Struct, gc=False):
    """One line of a session."""

    type: str | None = None
    id: str | UnsetType = UNSET
    parentId: OptionalText = UNSET
    timestamp: Any = UNSET
    message: AgentMessage | None = None
    version: int | None = None
    cwd: str | None = None
    parentSession: str | None = None
    branchedFrom: str | None = None
    """`parentSession` in version 1."""
    modelId: str | None = None
    model: str | None = None
    usage: Usage | None = None
    summary: str | None = None
    fromHook: bool | None = None
    content: Any = None
    targetId: OptionalText = UNSET
    label: str | None = None
    name: str | None = None


SESSION_LINES = RecordDecoder(SessionRecord)


# Keys that the client is known to write; all others are signs of a new format

_ENTRY = "type id parentId timestamp"
_ENTRY_KEYS = KeysByType(
    {
        HEADER: "version cwd parentSession branchedFrom provider modelId thinkingLevel",
        "message": "message",
        "model_change": "provider modelId",
        "thinking_level_change": "thinkingLevel",
        "usage": "kind provider model usage note",
        "compaction": "summary firstKeptEntryId firstKeptEntryIndex tokensBefore systemMessage usage details fromHook",
        "branch_summary": "fromId summary usage details fromHook",
        "context_edit": "targetId replacement",
        "custom": "customType data",
        "custom_message": "customType content display details",
        "label": "targetId label",
        "session_info": "name",
    },
    _ENTRY,
)
_MESSAGE_KEYS = KeysByType(
    {
        "system": "content sections toolsAdded toolsRemoved replace",
        "user": "content",
        "assistant": "content api provider model responseModel responseId providerThinkingLevel thinkingLevel "
        "diagnostics usage stopReason deferred errorMessage rawStopReason endTurn",
        "toolResult": "toolCallId toolName content details usage isError",
        "bashExecution": "command output exitCode cancelled truncated fullOutputPath excludeFromContext",
        "custom": "customType content display details",
        "hookMessage": "customType content display details",
        "branchSummary": "summary fromId",
        "compactionSummary": "summary tokensBefore",
    },
    "role timestamp",
    type_key="role",
)
_BLOCK_KEYS = KeysByType(
    {
        "text": "text textSignature",
        "thinking": "thinking thinkingSignature redacted",
        "toolCall": "id name arguments partialJson thoughtSignature namespace",
        "image": "data mimeType",
    }
)
_USAGE_KEYS = frozenset(("totalTokens", "cost"))


def find_unknown_keys(record: Mapping[str, JSON]) -> Iterator[str]:
    """The unknown keys of a record, as `object.key`."""
    kind = record.get("type")
    if kind not in _ENTRY_KEYS:
        yield from unknown_in("unknown", record, known=_ENTRY.split())
        return
    yield from _ENTRY_KEYS.unknown_in(record)
    message = record.get("message") if kind == "message" else None
    yield from _MESSAGE_KEYS.unknown_in(message)
    for holder in (record, message if isinstance(message, dict) else {}):
        yield from unknown_in("usage", holder.get("usage"), Usage, _USAGE_KEYS)
        yield from _BLOCK_KEYS.unknown_in(holder.get("content"))


def read_model_context(record: Mapping[str, JSON]) -> ModelContext | None:
    """The tools that a system message adds; its text is a message of the session."""
    message = record.get("message")
    if not isinstance(message, Mapping) or message.get("role") != "system":
        return None
    return model_context(tools=message.get("toolsAdded"))
