"""Messages as the catalog indexes them: one entry per message, one per block with its searchable text."""

from __future__ import annotations

from typing import Any, NamedTuple

from msgspec import UNSET

from clew.analysis.prompts import is_prompt_message, typed_text
from clew.model.blocks import Block, DocumentBlock, Text, Thinking, ToolResult, ToolUse, Unknown
from clew.model.json import JSON, strings_in
from clew.model.message import Message, Metadata

PROMPT, ANSWER, THINKING, INPUT, OUTPUT, TITLE, FILE = "prompt answer thinking input output title file".split()
"""The kinds of text that can be searched for."""

_NO_METADATA = Metadata()


class BlockEntry(NamedTuple):
    """One block of a message. `kind` is that of its text, "" where it has none."""

    type: str
    kind: str
    text: str
    call_id: str = ""
    tool_name: str = ""
    arguments: dict[str, JSON] | None = None
    """The arguments of a call."""
    is_error: bool = False


class MessageEntry(NamedTuple):
    """One message of a source."""

    uuid: str | None
    parent: str | None
    time: str | None
    role: str
    model: str
    git_branch: str
    is_sidechain: bool
    is_meta: bool
    is_summary: bool
    blocks: list[BlockEntry]

    @property
    def kind(self) -> str:
        """What the message is, by role and content."""
        if any(block.type == "tool_result" for block in self.blocks):
            return "tool_result"
        if self.is_summary:
            return "summary"
        return "meta" if self.is_meta and self.role == "user" else self.role


class ApiCall(NamedTuple):
    """What one request to a model used.

    `key` is the same in every file that repeats the request; `counts` are in the order of `analysis.usage.FIELDS`, None
    where nothing is known; `message` is the index of the message that it belongs to, or 0.
    """

    key: str
    model: str
    counts: tuple[int | None, ...]
    message: int


def entry_of(message: Message) -> MessageEntry:
    """A message as it is indexed."""
    metadata = message.metadata if message.metadata is not UNSET else _NO_METADATA
    model = metadata.model.name if metadata.model is not UNSET else None
    role = message.role
    is_person = role != "user" or metadata.is_sidechain is True or is_prompt_message(message)
    return MessageEntry(
        message.uuid or None,
        message.parent_uuid or None,
        message.timestamp or None,
        role,
        model or "",
        metadata.git_branch or "",
        metadata.is_sidechain is True,
        metadata.is_meta is True,
        metadata.is_compact_summary is True,
        [_block(block, text_kind(role) if is_person else OUTPUT) for block in message.content],
    )


def text_kind(role: str) -> str:
    """The kind of a text block, by who wrote the message."""
    return PROMPT if role == "user" else ANSWER if role == "assistant" else OUTPUT


def _block(block: Block, said: str) -> BlockEntry:
    match block:
        case Text():
            is_injected = said == PROMPT and typed_text(block.text) is None
            return BlockEntry("text", OUTPUT if is_injected else said, block.text)
        case Thinking():
            return BlockEntry("thinking", THINKING, block.thinking)
        case ToolUse():
            arguments = block.input if isinstance(block.input, dict) else None
            text = text_in(block.input)
            return BlockEntry("tool_use", INPUT, text, block.tool_id or "", block.tool_name or "", arguments)
        case ToolResult():
            is_error = block.is_error is True
            return BlockEntry("tool_result", OUTPUT, _output(block.output), block.tool_id or "", is_error=is_error)
        case DocumentBlock():
            content = block.document if block.encoding == "text" else None
            return BlockEntry("document", said, "\n".join(text for text in (block.title, content) if text))
        case Unknown():
            return BlockEntry("unknown", OUTPUT, text_in(block.value))
    return BlockEntry("image", "", "")


def _output(output: Any) -> str:
    """The texts that a tool gave back; images and documents have none."""
    if isinstance(output, str):
        return output
    if output is UNSET:
        return ""
    if not isinstance(output, list):
        return text_in(output)
    return "\n".join(_part(part) for part in output if not _is_attachment(part))


def _part(part: JSON) -> str:
    text = part.get("text") if isinstance(part, dict) else None
    return text if isinstance(text, str) else text_in(part)


def _is_attachment(part: JSON) -> bool:
    return isinstance(part, dict) and part.get("type") in ("image", "document")


def text_in(value: JSON) -> str:
    """Every text inside a JSON value, a line for each."""
    return value if isinstance(value, str) else "\n".join(strings_in(value))
