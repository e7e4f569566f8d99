"""Which user messages are the words of a person, and what else stands in the place of a user's words."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from clew.model.json import JSON
    from clew.model.message import Message

MARKERS = (
    "<command-name>",
    "<command-message>",
    "<local-command-stdout>",
    "<local-command-stderr>",
    "<local-command-caveat>",
    "Caveat:",
    "<bash-input>",
    "<bash-stdout>",
    "<bash-stderr>",
    "<system-reminder>",
    "<task-notification>",
    "<agent-notification>",
    "<teammate-message",
    "<user-memory-input>",
    "<ide_opened_file>",
    "<ide_selection>",
    "<ide_diagnostics>",
    "[Request interrupted by user",
)
"""How injected text begins. People can type these too, so flags come first."""


def is_prompt(message: dict[str, JSON]) -> bool:
    """True for a message that a person wrote: no tool result, nothing injected, not on a sidechain."""
    if message["role"] != "user":
        return False
    metadata = message.get("metadata") or {}
    if metadata.get("is_meta") or metadata.get("is_compact_summary") or metadata.get("is_sidechain"):
        return False
    blocks = message["content"]
    if any(block["type"] == "tool_result" for block in blocks):
        return False
    if metadata.get("origin") is not None:
        return bool(metadata["origin"] == "human")
    texts = [block["text"] for block in blocks if block["type"] == "text"]
    if any(text.startswith(MARKERS) for text in texts):
        return False
    return bool(texts) or any(block["type"] in ("image", "document") for block in blocks)


def is_prompt_message(message: Message) -> bool:
    """True for a message that a person wrote: no tool result, nothing injected, not on a sidechain."""
    from msgspec import UNSET

    from clew.model.blocks import DocumentBlock, Image, Text, ToolResult

    if message.role != "user":
        return False
    metadata = message.metadata
    if metadata is not UNSET:
        if metadata.is_meta is True or metadata.is_compact_summary is True or metadata.is_sidechain is True:
            return False
        if metadata.origin is not UNSET:
            return metadata.origin == "human"
    if any(type(block) is ToolResult for block in message.content):
        return False
    texts = [block.text for block in message.content if type(block) is Text]
    if any(text.startswith(MARKERS) for text in texts):
        return False
    return bool(texts) or any(type(block) in (Image, DocumentBlock) for block in message.content)
