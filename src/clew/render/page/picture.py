"""Images in a session: which of them a page shows."""

from __future__ import annotations

from clew.render.outline import decoded_size
from clew.render.parts import Picture

MAX_PICTURE_BYTES = 8 << 20
MEDIA_TYPES = frozenset(f"image/{kind}" for kind in ("png", "jpeg", "gif", "webp", "avif", "svg+xml"))
BASE64_DIGITS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


def inline_base64(picture: Picture) -> str | None:
    """The base64 of an image, without white space; None if browsers cannot show it, or it is too large."""
    if picture.media_type.lower() not in MEDIA_TYPES or decoded_size(picture.base64) > MAX_PICTURE_BYTES:
        return None
    text = picture.base64.rstrip()
    body = text.removesuffix("=").removesuffix("=")
    digits, padding = _digits(body) or _digits("".join(body.split())), text[len(body) :]
    # Browsers accept base64 without padding, but not with too much or too little of it.
    if digits is None or (padding and (len(digits) + len(padding)) % 4):
        return None
    return digits + padding


def _digits(text: str) -> str | None:
    """The text if it is base64 without padding, else None."""
    if not text.isascii() or len(text) % 4 == 1:
        return None
    return text if text and not text.encode().translate(None, BASE64_DIGITS) else None
