"""Goose's rows and the JSON in their columns, as structs.

A message is a row of `messages`. Its `content_json` is a list of items, each with a `type`; `metadata_json` says who
sees it and, for the first row of a reply, what the request used. `usage_ledger` has a row for each request.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from clew.agents.database_rows import json_in_column
from clew.agents.goose.layout import CONVERTED_KEY
from clew.io.typed_records import KeysByType, TokenCount, unknown_in
from clew.model.json import JSON


class SessionRow(msgspec.Struct):
    """A row of `sessions`. The `accumulated` counts are those of all requests; sub-agents count for themselves."""

    id: str | None = None
    name: str | None = None
    description: str | None = None
    user_set_name: int | None = None
    session_type: str | None = None
    working_dir: str | None = None
    created_at: str | None = None
    accumulated_input_tokens: TokenCount | None = None
    accumulated_output_tokens: TokenCount | None = None
    accumulated_cache_read_tokens: TokenCount | None = None
    accumulated_cache_write_tokens: TokenCount | None = None
    extension_data: str | None = None
    provider_name: str | None = None
    model_config_json: str | None = None
    archived_at: str | None = None
    project_id: str | None = None
    parent_session_id: str | None = None


class MessageRow(msgspec.Struct):
    """A row of `messages`."""

    id: int | None = None
    message_id: str | None = None
    role: str | None = None
    content_json: str | None = None
    created_timestamp: int | None = None
    metadata_json: str | None = None


class LedgerRow(msgspec.Struct):
    """A row of `usage_ledger`: what one request used."""

    id: int | None = None
    created_timestamp: int | None = None
    model: str | None = None
    input_tokens: TokenCount | None = None
    output_tokens: TokenCount | None = None
    cache_read_tokens: TokenCount | None = None
    cache_write_tokens: TokenCount | None = None


class Converted(msgspec.Struct):
    """The ids that clew gave a session that it converted: its own, and that of its parent."""

    session: str | None = None
    parent: str | None = None


class ExtensionData(msgspec.Struct, rename={"converted": CONVERTED_KEY}):
    """The JSON in `extension_data`."""

    converted: Converted | None = None


class ModelConfig(msgspec.Struct):
    """The JSON in `model_config_json`."""

    model_name: str | None = None


class Inference(msgspec.Struct):
    """What wrote a reply."""

    requestedModel: str | None = None


class MessageUsage(msgspec.Struct):
    """The usage of a reply; `inputTokens` includes what was read from a cache or written to it."""

    inputTokens: TokenCount | None = None
    outputTokens: TokenCount | None = None
    cacheReadTokens: TokenCount | None = None
    cacheWriteTokens: TokenCount | None = None


class MessageMetadata(msgspec.Struct):
    """The JSON in `metadata_json`."""

    userVisible: bool = True
    agentVisible: bool = True
    """False for what was compacted: people see it, and the model does not."""
    turnContext: bool = False
    inference: Inference | None = None
    usage: MessageUsage | None = None


class Outcome(msgspec.Struct):
    """A call, or the result of one; there is an error in its place where it failed."""

    status: str | None = None
    value: JSON = None
    error: JSON = None
    name: str | None = None
    """A call without a status around it."""
    arguments: JSON = None
    content: JSON = None
    """A result without a status around it."""


class CallValue(msgspec.Struct):
    """What is called."""

    name: str | None = None
    arguments: JSON = None


class ResultMeta(msgspec.Struct):
    """The metadata of a tool result."""

    subagent_session_id: str | None = None


class ResultValue(msgspec.Struct, rename={"meta": "_meta"}):
    """What a tool gave back. Older clients keep its `content` alone."""

    content: JSON = None
    isError: bool | None = None
    meta: ResultMeta | None = None


class RequestMeta(msgspec.Struct, rename={"provider_index": "goose.toolCall.providerIndex"}):
    """What the client notes of a call."""

    provider_index: int | None = None
    """The number of the call in its reply, from 0."""


class Item(msgspec.Struct, rename={"meta": "_meta"}):
    """An item of the content of a message; which keys there are depends on its type."""

    type: str | None = None
    text: str | None = None
    data: JSON = None
    mimeType: str | None = None
    thinking: str | None = None
    signature: str | None = None
    id: str | None = None
    toolCall: Outcome | None = None
    toolResult: Outcome | None = None
    meta: RequestMeta | None = None
    msg: str | None = None


_ITEM_KEYS = KeysByType(
    {
        "text": "text annotations _meta",
        "image": "data mimeType annotations _meta",
        "thinking": "thinking signature",
        "redactedThinking": "data",
        "reasoning": "text",
        "toolRequest": "id toolCall metadata _meta",
        "toolResponse": "id toolResult metadata",
        "frontendToolRequest": "id toolCall",
        "toolConfirmationRequest": "id toolName arguments prompt",
        "actionRequired": "data",
        "systemNotification": "notificationType msg data",
        "summarizationRequested": "msg",
        "contextLengthExceeded": "msg",
        "conversationCompacted": "msg",
    }
)
_METADATA_KEYS = frozenset(("custom",))
_USAGE_KEYS = frozenset(("totalTokens", "elapsedMs", "timeToFirstTokenMs"))
_INFERENCE_KEYS = frozenset(("provider", "responseModel"))


def find_unknown_keys(native: Mapping[str, JSON]) -> Iterator[str]:
    """Keys of the JSON in a message that no struct has; columns may be added at any time and are not looked at."""
    if native.get("table") != "messages":
        return
    yield from _ITEM_KEYS.unknown_in(json_in_column(native, "content_json"))
    metadata = json_in_column(native, "metadata_json")
    if isinstance(metadata, dict):
        yield from unknown_in("metadata", metadata, MessageMetadata, _METADATA_KEYS)
        yield from unknown_in("usage", metadata.get("usage"), MessageUsage, _USAGE_KEYS)
        yield from unknown_in("inference", metadata.get("inference"), Inference, _INFERENCE_KEYS)
