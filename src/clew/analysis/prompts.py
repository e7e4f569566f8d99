"""Which user messages are the words of a person, and what else stands in the place of a user's words."""

from __future__ import annotations

from msgspec import UNSET

from clew.analysis.commands import parse_command
from clew.model.blocks import DocumentBlock, Image, Text, ToolResult
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
    "<ci-monitor-event>",
    "<teammate-message",
    "<user-memory-input>",
    "<ide_opened_file>",
    "<ide_selection>",
    "<ide_diagnostics>",
    "<qwen:user-prompt-submit-context>",
    "[Request interrupted by user",
)
"""How injected text begins. People can type these too, so flags come first."""


_SHELL_INPUT = "<bash-input>"


def typed_text(text: str) -> str | None:
    """What a person typed, of a text in a user message; None for text that the agent or the editor put there.

    A slash command with arguments and a shell command behind `!` are the person's own words.
    """
    if not text.startswith(MARKERS):
        return text
    if text.startswith(_SHELL_INPUT):
        return "!" + text.removeprefix(_SHELL_INPUT).partition("</bash-input>")[0].strip()
    command = parse_command(text)
    if command is not None and command.args and command.args.strip():
        return f"{command.name} {command.args.strip()}"
    return None


def is_prompt(message: dict[str, JSON]) -> bool:
    """True for a message that a person wrote: no tool result, nothing injected, not on a sidechain."""
    metadata = message.get("metadata") or {}
    if message["role"] != "user" or any(metadata.get(flag) for flag in _NOT_A_PERSON):
        return False
    blocks = message["content"]
    if any(block["type"] == "tool_result" for block in blocks):
        return False
    if metadata.get("origin") is not None:
        return bool(metadata["origin"] == "human")
    texts = [block["text"] for block in blocks if block["type"] == "text"]
    return _is_typed(texts, any(block["type"] in ("image", "document") for block in blocks))


def is_prompt_message(message: Message) -> bool:
    """The same for a typed message."""
    metadata = message.metadata
    if message.role != "user" or any(type(block) is ToolResult for block in message.content):
        return False
    if metadata is not UNSET:
        if any(getattr(metadata, flag) is True for flag in _NOT_A_PERSON):
            return False
        if metadata.origin is not UNSET:
            return metadata.origin == "human"
    texts = [block.text for block in message.content if type(block) is Text]
    return _is_typed(texts, any(type(block) in (Image, DocumentBlock) for block in message.content))


_NOT_A_PERSON = ("is_meta", "is_compact_summary", "is_sidechain")


def _is_typed(texts: list[str], has_attachment: bool) -> bool:
    typed = [text for text in texts if typed_text(text) is not None]
    return bool(typed) or (has_attachment and not texts)
