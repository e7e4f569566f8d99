"""What a record said beyond the model, as its reader kept it in the extensions."""

from __future__ import annotations

from clew.model.json import JSON


def native_rest(value: dict[str, JSON]) -> dict[str, JSON]:
    """The native keys of a message or record that have no place in the model; empty where there are none."""
    extensions = value.get("extensions")
    if isinstance(extensions, dict):
        for own in extensions.values():
            rest = own.get("rest") if isinstance(own, dict) else None
            if isinstance(rest, dict):
                return rest
    return {}


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
