"""Pictures and documents on their way: what the provider of the target's model takes, and what it does not."""

from __future__ import annotations

import mimetypes
from urllib.parse import urlsplit

from clew.agents.target_profile import Capacity
from clew.model.json import JSON

_WEB = ("http", "https")
_SPELLINGS = {"image/jpg": "image/jpeg"}
"""Types that are called otherwise by those who are strict."""


def fitted(block: dict[str, JSON], capacity: Capacity, title: str) -> dict[str, JSON] | str:
    """The block as the target takes it, or why it does not."""
    slot = block["type"]
    content = block.get(slot)
    if not content:
        return "the session names it without its bytes"
    kept = {name: item for name, item in block.items() if name not in ("extensions", "title")}
    media = _SPELLINGS.get(str(block.get("media_type")), block.get("media_type"))
    if block.get("encoding") == "url":
        return _linked(kept, media, capacity, title)
    if block.get("encoding") != "text" and not _is_taken(media, slot, capacity):
        return f"{title} does not take the type {media or 'unknown'}"
    return kept if media is None else {**kept, "media_type": media}


def _linked(block: dict[str, JSON], media: JSON, capacity: Capacity, title: str) -> dict[str, JSON] | str:
    """What stands elsewhere, by its address."""
    parts = _split(block[block["type"]])
    if parts is None or parts[0] not in _WEB:
        return "its address is one that only its own agent can read"
    media = media or mimetypes.guess_type(parts[1])[0]
    if capacity.typed_links and not media:
        return f"{title} must be told its type, and its address does not tell it"
    if media and not _is_taken(media, block["type"], capacity):
        return f"{title} does not take the type {media}"
    return {**block, "media_type": media} if capacity.typed_links else block


def _split(address: str) -> tuple[str, str] | None:
    try:
        found = urlsplit(address)
    except ValueError:
        return None
    return found.scheme, found.path


def _is_taken(media: JSON, slot: str, capacity: Capacity) -> bool:
    types = capacity.image_types if slot == "image" else capacity.document_types
    return str(media or "").startswith(types)
