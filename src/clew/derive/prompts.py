"""Which user messages are the words of a person, and what else stands in the place of a user's words."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from clew.model.json import JSON

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
