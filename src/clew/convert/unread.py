"""Words in a form that clew does not expect where they stand: kept as they are, and still part of the conversation."""

from __future__ import annotations

from collections.abc import Mapping

from clew.model.json import JSON

_WITHIN = ("payload", "message")
"""What the records of some agents wrap."""


def unread(value: Mapping[str, JSON], *names: str) -> JSON:
    """What a message or block of another form holds under one of these names; None where it holds nothing."""
    for own in (value.get("extensions") or {}).values():
        rest = own.get("rest") if isinstance(own, dict) else None
        for place in _places(rest):
            for name in names:
                if place.get(name):
                    return place[name]
    return None


def _places(rest: JSON) -> list[dict[str, JSON]]:
    if not isinstance(rest, dict):
        return []
    return [rest, *(rest[name] for name in _WITHIN if isinstance(rest.get(name), dict))]
