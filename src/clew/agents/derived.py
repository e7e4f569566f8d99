"""Ids for what has none, made of facts. Loads nothing heavy: looking for sessions begins here."""

from __future__ import annotations

import uuid

from clew.io.codec import dumps
from clew.model.json import JSON

_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_DNS, "clew")


def derived_id(*facts: JSON) -> str:
    """An id that is the same whenever the facts are."""
    return str(uuid.uuid5(_NAMESPACE, dumps(facts).decode()))
