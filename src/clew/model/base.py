"""The common parent of every part of the unified document."""

from __future__ import annotations

import msgspec


class Part(msgspec.Struct):
    """A part of the document. A field that is UNSET was absent; None was an explicit null."""
