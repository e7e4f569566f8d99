"""The files of Cline as typed records. The modules of this package know the key names, and no others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import UNSET, Struct

from clew.agents.model_context import ModelContext, model_context
from clew.io.typed_records import KeysByType, TokenCount, unknown_in
from clew.model.json import JSON


class ModelInfo(Struct, gc=False):
    """The model behind a reply. Cline 3 calls it `id`, the extensions `modelId`."""

    id: str | None = None
    modelId: str | None = None

    @property
    def name(self) -> str | None:
        return self.id or self.modelId


class Metrics(Struct, gc=False):
    """Counts of one request. `inputTokens` includes what was read from and written to a cache."""

    inputTokens: TokenCount | None = None
    outputTokens: TokenCount | None = None
    cacheReadTokens: TokenCount | None = None
    cacheWriteTokens: TokenCount | None = None


class MessageRecord(Struct, gc=False):
    """An element of the list of messages; `content` is a text or a list of blocks."""

    id: str | None = None
    role: Any = None
    content: Any = None
    ts: Any = UNSET
    modelInfo: ModelInfo | None = None
    metrics: Metrics | None = None
    isSummary: bool = False
    """True for the summary that replaces earlier messages, in tasks of Roo Code."""


class Origin(Struct, gc=False):
    version: str | None = None
    parentThreadId: str | None = None
    subagent: str | None = None


class SessionHeader(Struct, gc=False):
    """The keys beside the messages of a session."""

    sessionId: str | None = None
    agent: str | None = None
    updated_at: Any = UNSET
    origin: Origin | None = None


class Git(Struct, gc=False):
    branch: str | None = None


class Fork(Struct, gc=False):
    forkedFromSessionId: str | None = None


class ManifestMetadata(Struct, gc=False):
    title: str | None = None
    git: Git | None = None
    fork: Fork | None = None


class Manifest(Struct, gc=False):
    """The file that describes a session. The client writes it anew when the session is resumed."""

    started_at: Any = UNSET
    cwd: str | None = None
    workspace_root: str | None = None
    prompt: str | None = None
    source: str | None = None
    status: str | None = None
    metadata: ManifestMetadata | None = None


class DisplayRecord(Struct, gc=False):
    """What the editor displayed: a message, a question, or the costs of a request."""

    ts: Any = UNSET
    type: str | None = None
    say: str | None = None
    ask: str | None = None
    text: Any = None
    modelInfo: ModelInfo | None = None


class RequestCosts(Struct, gc=False):
    """The text of a display record about a request, as JSON. `tokensIn` excludes the cache."""

    tokensIn: TokenCount | None = None
    tokensOut: TokenCount | None = None
    cacheWrites: TokenCount | None = None
    cacheReads: TokenCount | None = None


class HistoryItem(Struct, gc=False):
    """The file that describes a task of Roo Code."""

    workspace: str | None = None
    cwdOnTaskInitialization: str | None = None
    cwd: str | None = None


_HEADER_KEYS = ("version", "updated_at", "agent", "sessionId", "taskType", "origin", "system_prompt", "messages")
_ORIGIN_KEYS = ("source", "mode", "sessionId", "parentThreadId", "subagent", "version", "trigger")
_MESSAGE_KEYS = "agent sessionId metadata condenseId condenseParent model truncationParent isTruncationMarker".split()
_METRICS_KEYS = ("cost", "tokens")
_MODEL_KEYS = ("provider", "providerId", "family", "mode")
_DISPLAY_KEYS = (
    "images files partial reasoning conversationHistoryIndex conversationHistoryDeletedRange lastCheckpointHash "
    "isCheckpointCheckedOut isOperationOutsideWorkspace commandCompleted multiCommandState progressStatus checkpoint "
    "contextCondense contextTruncation apiProtocol metadata isProtected isAnswered"
).split()
_BLOCK_KEYS = KeysByType(
    {
        "text": "text signature call_id reasoning_details",
        "thinking": "thinking signature call_id details summary",
        "redacted_thinking": "data call_id",
        "reasoning": "text summary encrypted_content id",
        "tool_use": "id call_id name input signature reasoning_details",
        "tool_result": "tool_use_id call_id name content is_error",
        "image": "data mediaType source",
        "document": "source title",
        "file": "path content source",
        "media": "media",
    },
    "type cache_control ts",
)


def find_unknown_keys(native: Mapping[str, JSON]) -> Iterator[str]:
    """The keys of a native record that are not known, each after the name of the object that holds it."""
    if "role" in native:
        yield from _unknown_in_message(native)
    elif native.get("type") in ("say", "ask"):
        yield from unknown_in("displayed", native, DisplayRecord, _DISPLAY_KEYS)
        yield from unknown_in("model", native.get("modelInfo"), ModelInfo, _MODEL_KEYS)
    elif "messages" in native:
        yield from unknown_in("header", native, known=_HEADER_KEYS)
        yield from unknown_in("origin", native.get("origin"), known=_ORIGIN_KEYS)
    else:
        yield from unknown_in("other", native)


def _unknown_in_message(message: Mapping[str, JSON]) -> Iterator[str]:
    yield from unknown_in("message", message, MessageRecord, _MESSAGE_KEYS)
    yield from unknown_in("model", message.get("modelInfo"), ModelInfo, _MODEL_KEYS)
    yield from unknown_in("metrics", message.get("metrics"), Metrics, _METRICS_KEYS)
    yield from _BLOCK_KEYS.unknown_in(message.get("content"))


def read_model_context(native: Mapping[str, JSON]) -> ModelContext | None:
    """The system prompt in the header of a session."""
    return model_context(native.get("system_prompt")) if "role" not in native else None
