"""Images inside a session, as far as a page shows them."""

from __future__ import annotations

from clew.render.outline import decoded_size
from clew.render.parts import Picture

MAX_PICTURE = 8 << 20
_PICTURES = frozenset(f"image/{kind}" for kind in ("png", "jpeg", "gif", "webp", "avif", "svg+xml"))
_DIGITS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


def inlined(picture: Picture) -> str | None:
    """The base64 of an image that a page can show; None for any other."""
    if picture.media_type.lower() not in _PICTURES or decoded_size(picture.base64) > MAX_PICTURE:
        return None
    text = picture.base64.rstrip()
    body = text.removesuffix("=").removesuffix("=")
    digits, padding = _digits(body) or _digits("".join(body.split())), text[len(body) :]
    # Browsers take base64 without its padding, but none with too much or too little of it.
    if digits is None or (padding and (len(digits) + len(padding)) % 4):
        return None
    return digits + padding


def _digits(text: str) -> str | None:
    """The digits of base64; None where there is anything else, nothing, or one that is left over."""
    if not text.isascii() or len(text) % 4 == 1:
        return None
    return text if text and not text.encode().translate(None, _DIGITS) else None
