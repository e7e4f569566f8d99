"""Extracts the text of each block of a message, and its kind, for the catalog and the text index."""

from __future__ import annotations

from typing import Any, NamedTuple

from msgspec import UNSET

from clew.analysis.prompts import is_prompt_message, typed_text
from clew.model.blocks import Block, DocumentBlock, Text, Thinking, ToolResult, ToolUse, Unknown
from clew.model.json import JSON, strings_in
from clew.model.message import Message, Metadata

PROMPT, ANSWER, THINKING, INPUT, OUTPUT, TITLE, FILE = "prompt answer thinking input output title file".split()
"""The kinds of text."""

_NO_METADATA = Metadata()


class BlockText(NamedTuple):
    """One block of a message. `kind` is that of its text, "" where it has none."""

    type: str
    kind: str
    text: str
    call_id: str = ""
    tool_name: str = ""
    arguments: dict[str, JSON] | None = None
    """The arguments of a tool call."""
    is_error: bool = False


def metadata_of(message: Message) -> Metadata:
    """The metadata of a message; empty where it has none."""
    return message.metadata if message.metadata is not UNSET else _NO_METADATA


def is_injected(message: Message) -> bool:
    """True for a user message that neither a person wrote nor the agent that asks a sub-agent."""
    return message.role == "user" and metadata_of(message).is_sidechain is not True and not is_prompt_message(message)


def block_texts(message: Message) -> list[BlockText]:
    """The blocks of a message, with their text."""
    kind = OUTPUT if is_injected(message) else text_kind(message.role)
    return [_block_text(block, kind) for block in message.content]


def text_kind(role: str) -> str:
    """The kind of a text block, by the role of its message."""
    return PROMPT if role == "user" else ANSWER if role == "assistant" else OUTPUT


def _block_text(block: Block, kind: str) -> BlockText:
    match block:
        case Text():
            is_injected = kind == PROMPT and typed_text(block.text) is None
            return BlockText("text", OUTPUT if is_injected else kind, block.text)
        case Thinking():
            return BlockText("thinking", THINKING, block.thinking)
        case ToolUse():
            arguments = block.input if isinstance(block.input, dict) else None
            text = text_in(block.input)
            return BlockText("tool_use", INPUT, text, block.tool_id or "", block.tool_name or "", arguments)
        case ToolResult():
            is_error = block.is_error is True
            return BlockText("tool_result", OUTPUT, _output_text(block.output), block.tool_id or "", is_error=is_error)
        case DocumentBlock():
            content = block.document if block.encoding == "text" else None
            return BlockText("document", kind, "\n".join(text for text in (block.title, content) if text))
        case Unknown():
            return BlockText("unknown", OUTPUT, text_in(block.value))
    return BlockText("image", "", "")


def _output_text(output: Any) -> str:
    """The texts of the output of a tool; images and documents have none."""
    if isinstance(output, str):
        return output
    if output is UNSET:
        return ""
    if not isinstance(output, list):
        return text_in(output)
    return "\n".join(_part_text(part) for part in output if not _is_attachment(part))


def _part_text(part: JSON) -> str:
    text = part.get("text") if isinstance(part, dict) else None
    return text if isinstance(text, str) else text_in(part)


def _is_attachment(part: JSON) -> bool:
    return isinstance(part, dict) and part.get("type") in ("image", "document")


def text_in(value: JSON) -> str:
    """Every text inside a JSON value, a line for each."""
    return value if isinstance(value, str) else "\n".join(strings_in(value))
