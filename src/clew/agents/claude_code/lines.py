"""What the first pass wants of a line: structs that name only the wanted fields, so that the rest is skipped."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from clew.io.codec import dumps
from clew.model.json import JSON


class Block(msgspec.Struct, gc=False):
    type: str | None = None
    text: msgspec.Raw | UnsetType = UNSET
    id: str | None = None
    name: str | None = None
    input: msgspec.Raw | UnsetType = UNSET
    tool_use_id: str | None = None
    is_error: bool | None = None


class Created(msgspec.Struct, gc=False):
    ephemeral_5m_input_tokens: int | None = None
    ephemeral_1h_input_tokens: int | None = None


class Details(msgspec.Struct, gc=False):
    thinking_tokens: int | None = None


class Usage(msgspec.Struct, gc=False):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation: Created | None = None
    output_tokens_details: Details | None = None

    def counts(self) -> tuple[int | None, ...]:
        created, details = self.cache_creation, self.output_tokens_details
        return (
            self.input_tokens,
            self.output_tokens,
            self.cache_creation_input_tokens,
            self.cache_read_input_tokens,
            created.ephemeral_5m_input_tokens if created else None,
            created.ephemeral_1h_input_tokens if created else None,
            details.thinking_tokens if details else None,
        )


class Message(msgspec.Struct, gc=False):
    model: str | None = None
    id: str | None = None
    content: str | list[Block] | None = None
    usage: Usage | None = None


class Result(msgspec.Struct, gc=False):
    agentId: str | None = None


class Origin(msgspec.Struct, gc=False):
    kind: str | None = None


class Attachment(msgspec.Struct, gc=False):
    type: str | None = None
    prompt: msgspec.Raw | UnsetType = UNSET
    origin: Origin | None = None


class Progress(msgspec.Struct, gc=False):
    agentId: str | None = None


class Line(msgspec.Struct, gc=False):
    """In the order of most records: a key is looked for behind the one before it first."""

    parentUuid: str | None = None
    isSidechain: bool | None = None
    cwd: str | None = None
    sessionId: str | None = None
    version: str | None = None
    gitBranch: str | None = None
    slug: str | None = None
    agentId: str | None = None
    type: str | None = None
    message: Message | None = None
    toolUseResult: Result | str | list[msgspec.Raw] | None = None
    uuid: str | None = None
    timestamp: str | int | float | None = None
    isMeta: bool | None = None
    logicalParentUuid: str | None = None
    isCompactSummary: bool | None = None
    usage: Usage | None = None
    origin: Origin | None = None
    attachment: Attachment | None = None
    data: Progress | None = None
    parentToolUseID: str | None = None
    summary: str | None = None
    aiTitle: str | None = None
    customTitle: str | None = None
    leafUuid: str | None = None


LACKING: dict[str, dict[str, None]] = {
    name: dict.fromkeys(field for struct in structs for field in struct.__struct_fields__)
    for name, structs in {"user": (Line,), "assistant": (Line,), "prompt": (Message,), "reply": (Message,)}.items()
}
"""What the structs of the second pass say where a record lacks a key, so that they can be seen like a `Line`."""
WANTED = (
    "",
    "type",
    "uuid",
    "parentUuid",
    "logicalParentUuid",
    "timestamp",
    "sessionId",
    "version",
    "isSidechain",
    "message.id",
    "message.content",
    "toolUseResult",
)
"""What the scanner takes of every record; the empty path is the record itself."""
Told = tuple[Any, ...]
"""These values of a record."""


def told(line: Line) -> Told:
    """What is wanted of a line."""
    message = line.message
    return (
        line,
        line.type,
        line.uuid,
        line.parentUuid,
        line.logicalParentUuid,
        line.timestamp,
        line.sessionId,
        line.version,
        line.isSidechain,
        message.id if message is not None else None,
        message.content if message is not None else None,
        line.toolUseResult,
    )


def outline(value: JSON, struct: type[msgspec.Struct]) -> dict[str, Any]:
    """Of an odd record only those fields that have the expected type."""
    result: dict[str, Any] = {}
    for field in msgspec.structs.fields(struct):
        if field.name in value:
            item = value[field.name]
            nested = _struct(field.type) if isinstance(item, dict) else None
            if nested is not None:
                item = outline(item, nested)
            if isinstance(item, list) and field.name == "content":
                item = [outline(block, Block) if isinstance(block, dict) else {} for block in item]
            if field.name in ("prompt", "text", "input"):
                result[field.name] = msgspec.Raw(dumps(item))
                continue
            try:
                msgspec.convert(item, field.type)
            except msgspec.ValidationError:
                continue
            result[field.name] = item
    return result


def _struct(annotation: Any) -> type[msgspec.Struct] | None:
    """The struct that an annotation allows, if it does."""
    kinds = getattr(annotation, "__args__", (annotation,))
    return next((kind for kind in kinds if isinstance(kind, type) and issubclass(kind, msgspec.Struct)), None)
