"""VS Code's chats as typed records: what one request holds.

A request is one prompt with all replies of the model to it. `result.metadata` of GitHub Copilot has each round of the
model with its calls, and the results; `response` is what the editor displays, for any chat participant.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from clew.agents.vscode_chat.mutation_log import DELETE, INITIAL, PUSH, SET
from clew.io.compress import plain_name
from clew.io.typed_records import TokenCount, unknown_in
from clew.model.json import JSON

DOCUMENT_REQUESTS = "requests"
_LINE_KEYS = frozenset({"kind", "k", "v", "i"})
_REQUEST_KEYS = frozenset(
    "requestId timestamp message variableData agent slashCommand modelId modeInfo confirmation shouldBeRemovedOnSend "
    "editedFileEvents response responseId result responseMarkdownInfo followups modelState vote voteDownReason "
    "contentReferences usedContext codeCitations timeSpentWaiting isCanceled isHidden attempt shouldBeBlocked "
    "isCompleteAddedRequest locationData userSelectedTools elapsedMs completionTokens promptTokens "
    "promptTokenDetails completedAt isSystemInitiated systemInitiatedLabel isSteering".split()
)


class Prompt(Struct, gc=False):
    text: str | None = None


class Attachment(Struct, gc=False):
    """Something that the person attached; of images the content is here."""

    kind: str | None = None
    value: Any = None
    mimeType: str | None = None


class Attachments(Struct, gc=False):
    variables: list[Attachment] | None = None


class RoundCall(Struct, gc=False):
    id: str | None = None
    name: str | None = None
    arguments: Any = None


class Thoughts(Struct, gc=False):
    text: Any = None


class Round(Struct, gc=False):
    """One reply of the model."""

    id: str | None = None
    response: Any = None
    thinking: Thoughts | None = None
    toolCalls: list[RoundCall] | None = None
    timestamp: Any = None


class ResultMetadata(Struct, gc=False):
    toolCallRounds: list[Round] | None = None
    toolCallResults: dict[str, Any] | None = None
    promptTokens: TokenCount | None = None
    outputTokens: TokenCount | None = None
    resolvedModel: str | None = None


class ErrorDetails(Struct, gc=False):
    message: str | None = None


class RequestResult(Struct, gc=False):
    metadata: ResultMetadata | None = None
    errorDetails: ErrorDetails | None = None


class ModelState(Struct, gc=False):
    """1 is complete, 2 cancelled, 3 failed."""

    value: int | None = None


class ChatRequest(Struct, gc=False):
    """A prompt, and everything that came of it."""

    requestId: str | None = None
    timestamp: Any = None
    message: Prompt | str | None = None
    variableData: Attachments | None = None
    modelId: str | None = None
    responseId: str | None = None
    result: RequestResult | None = None
    modelState: ModelState | None = None
    isCanceled: bool | None = None
    shouldBeRemovedOnSend: Any = None


class DisplayedCall(Struct, gc=False):
    """A call among the parts of a response."""

    kind: str | None = None
    toolCallId: str | None = None
    toolId: str | None = None
    invocationMessage: Any = None
    pastTenseMessage: Any = None
    toolSpecificData: dict[str, Any] | None = None
    resultDetails: Any = None


def is_document_name(name: str) -> bool:
    """True for the file of a chat that is one JSON document."""
    return plain_name(name).endswith(".json")


def find_unknown_keys(record: Mapping[str, JSON]) -> Iterator[str]:
    """The keys of a line, and of the requests that it adds, that clew does not know."""
    if "requestId" in record:
        yield from unknown_in("request", record, known=_REQUEST_KEYS)
        return
    kind, path, value = record.get("kind"), record.get("k"), record.get("v")
    if kind not in (INITIAL, SET, PUSH, DELETE):
        return
    yield from unknown_in("line", record, known=_LINE_KEYS)
    if kind == INITIAL and isinstance(value, dict):
        yield from unknown_in("request", value.get(DOCUMENT_REQUESTS), known=_REQUEST_KEYS)
    elif kind == PUSH and path == [DOCUMENT_REQUESTS]:
        yield from unknown_in("request", value, known=_REQUEST_KEYS)
