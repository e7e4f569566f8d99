"""Small questions about messages that are given as JSON."""

from __future__ import annotations

from clew.model.json import JSON


def metadata_of(message: dict[str, JSON]) -> dict[str, JSON]:
    """The metadata of a message; empty where it has none."""
    metadata = message.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def is_sidechain(message: dict[str, JSON]) -> bool:
    """True for a message that is flagged as beside the main chain."""
    return metadata_of(message).get("is_sidechain") is True


def text_of(message: dict[str, JSON]) -> str | None:
    """The text blocks of a message, joined."""
    texts = [block["text"] for block in message["content"] if block["type"] == "text"]
    return "\n".join(texts) or None
