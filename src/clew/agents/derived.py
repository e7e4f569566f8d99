"""Ids for what has none, made of facts. Loads nothing heavy: looking for sessions begins here."""

from __future__ import annotations

import uuid

from clew.io.codec import dumps
from clew.model.json import JSON

_NAMESPACE = uuid.UUID("8dc8f04f-c1ba-511e-afc7-e3f7724845a9")
"""That of the name "clew" among those of domains, told: to work it out loads all algorithms of OpenSSL."""


def derived_id(*facts: JSON) -> str:
    """An id that is the same whenever the facts are."""
    return str(uuid.uuid5(_NAMESPACE, dumps(facts).decode()))
