"""Makes the markers that replace masked values.

`[REDACTED:rule:tag]`: the tag is a keyed digest, so equal values have equal tags under one key, and a guess cannot be
tested without the key. `Marker(None)` makes the plain `[REDACTED]`.
"""

from __future__ import annotations

import hmac
from base64 import b32encode

from clew.redact.lazy_pattern import lazy_compile

PLAIN = "[REDACTED]"
# A marker in a text is never scanned again, whether plain or with rule and tag.
MARKER = lazy_compile(r"\[REDACTED(?::[a-z0-9_.-]{1,64}:[a-z2-7]{8})?\]")
TAGGED_MARKER = lazy_compile(r"\[REDACTED:([a-z0-9_.-]{1,64}):([a-z2-7]{8})\]")
"""A marker with its rule and tag."""
MARKER_BYTES = lazy_compile(MARKER.pattern.encode())


class Marker:
    """Makes markers under one key; without a key, plain ones."""

    def __init__(self, key: bytes | None = None) -> None:
        self._key = key

    def __call__(self, value: str, rule: str) -> str:
        """Return the marker of a value that a rule found."""
        if self._key is None:
            return PLAIN
        return f"[REDACTED:{rule}:{self.tag(value)}]"

    def tag(self, value: str) -> str:
        """Return the tag of a value; equal values have equal tags."""
        digest = hmac.digest(self._key or b"", value.encode("utf-8", "surrogatepass"), "sha256")
        return b32encode(digest[:5]).decode().lower()
