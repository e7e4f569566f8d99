"""Continue's session format as typed records.

A session is one JSON document with the array `history`. An element holds a message, the context that was attached to
it, and the states of the tools that it calls, with their results. Messages have neither ids nor times. The modules of
this package know the key names, and no others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import UNSET, Struct, UnsetType

from clew.io.typed_records import KeysByType, TokenCount, unknown_in
from clew.model.json import JSON

HISTORY = ("history",)
"""The key of the array that holds the records."""
UNTITLED = "Untitled Session"
"""The title of a session that has none."""


class PromptDetails(Struct):
    cached_tokens: TokenCount | UnsetType = UNSET
    cache_write_tokens: TokenCount | UnsetType = UNSET


class CompletionDetails(Struct):
    reasoning_tokens: TokenCount | UnsetType = UNSET


class Usage(Struct):
    """`prompt_tokens` includes what was read from a cache or written to it."""

    prompt_tokens: TokenCount | UnsetType = UNSET
    completion_tokens: TokenCount | UnsetType = UNSET
    prompt_tokens_details: PromptDetails | None = None
    completion_tokens_details: CompletionDetails | None = None
    model: str | None = None


class Function(Struct):
    name: str | None = None
    arguments: Any = None
    """JSON as text."""


class ToolCall(Struct):
    id: str | None = None
    function: Function | None = None


class ChatMessage(Struct):
    role: str | None = None
    content: Any = None
    """A text, or parts: texts and images."""
    toolCalls: Any = None
    toolCallId: str | None = None
    usage: Usage | None = None
    signature: str | UnsetType = UNSET


class ContextItem(Struct):
    """A file or another text that the person attached, or a part of a tool's result."""

    content: str | None = None
    name: str | None = None


class ToolCallState(Struct):
    toolCallId: str | None = None
    status: str | None = None
    output: Any = None


class HistoryItem(Struct):
    """An element of `history`."""

    message: ChatMessage | None = None
    contextItems: Any = None
    toolCallStates: Any = None
    conversationSummary: str | None = None


class SessionDocument(Struct):
    """The document without its history."""

    sessionId: str | None = None
    title: str | None = None
    workspaceDirectory: str | None = None


# Keys that the client is known to write and that clew does not decode; all others are signs of a new format

_DOCUMENT_KEYS = frozenset(("history", "mode", "chatModelTitle", "usage"))
_ITEM_KEYS = frozenset("editorState promptLogs appliedRules reasoning isGatheringContext modifiers".split())
_MESSAGE_KEYS = frozenset("redactedThinking reasoning_details metadata id".split())
_STATE_KEYS = frozenset("toolCall parsedArgs processedArgs tool mcpUiState".split())
_PART_KEYS = KeysByType({"text": "text", "imageUrl": "imageUrl"})


def is_document(record: Mapping[str, JSON]) -> bool:
    """True for the document itself, False for an element of its history."""
    return "sessionId" in record or "history" in record


def find_unknown_keys(record: Mapping[str, JSON]) -> Iterator[str]:
    """The keys of a record that are not known, each behind the name of the object that holds it."""
    if is_document(record):
        yield from unknown_in("session", record, SessionDocument, _DOCUMENT_KEYS)
        return
    yield from unknown_in("item", record, HistoryItem, _ITEM_KEYS)
    yield from unknown_in("state", record.get("toolCallStates"), ToolCallState, _STATE_KEYS)
    message = record.get("message")
    if not isinstance(message, dict):
        return
    yield from unknown_in("message", message, ChatMessage, _MESSAGE_KEYS)
    yield from unknown_in("usage", message.get("usage"), Usage, ("total_tokens", "cost_cents"))
    yield from _PART_KEYS.unknown_in(message.get("content"))
