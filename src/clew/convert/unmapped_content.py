"""Words in a form that the decoder does not expect where they stand: they are still part of the conversation."""

from __future__ import annotations

from collections.abc import Mapping

from clew.model.json import JSON

_WITHIN = ("payload", "message")
"""What the records of some agents wrap."""


def unread(native: Mapping[str, JSON], name: str) -> JSON:
    """What a native record holds under a name; None where it holds nothing."""
    places = [native, *(native[key] for key in _WITHIN if isinstance(native.get(key), dict))]
    return next((place[name] for place in places if place.get(name)), None)
