"""Ids for what has none, made of facts, and parents from the order of messages."""

from __future__ import annotations

import re
import uuid
from collections import Counter
from collections.abc import Mapping

from msgspec import UNSET, to_builtins

from clew.io.codec import dumps
from clew.model.json import JSON
from clew.model.message import Message

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_NAMESPACE = uuid.UUID("8dc8f04f-c1ba-511e-afc7-e3f7724845a9")
"""`uuid5(NAMESPACE_DNS, "clew")`, as a constant: computing it loads all algorithms of OpenSSL."""


def is_uuid(name: str) -> bool:
    """True for a UUID, as sessions have them: no two have the same, unless one is a copy."""
    return _UUID.fullmatch(name) is not None


def derived_id(*facts: JSON) -> str:
    """An id that is the same whenever the facts are."""
    return str(uuid.uuid5(_NAMESPACE, dumps(facts).decode()))


class MessageChain:
    """Gives each message of a session, in file order, what it lacks.

    `scope` names the session or project: two messages that say the same in different scopes have different ids.
    `parents` gives the parent by the uuid of a message, where the order of the file is not that of the conversation.
    """

    def __init__(self, scope: str, parents: Mapping[str, str] | None = None) -> None:
        self._scope, self._parents = scope, parents
        self._seen: Counter[str] = Counter()
        self.last: str | None = None
        """The uuid that the next message follows."""
        self.derived_last = False
        """True when the last message had no uuid of its own."""

    def add(self, message: Message) -> None:
        """Give the next message an id and a parent, where it lacks them."""
        uuid = self.identify(message)
        self.attach(message)
        self.last = uuid

    def identify(self, message: Message) -> str:
        """Give the message a uuid if it has none; returns its uuid."""
        self.derived_last = not isinstance(message.uuid, str)
        if isinstance(message.uuid, str):
            return message.uuid
        time = None if message.timestamp is UNSET else message.timestamp
        identity = derived_id(self._scope, message.role, time, to_builtins(message.content))
        self._seen[identity] += 1
        repeated = self._seen[identity] - 1
        message.uuid = derived_id(identity, repeated) if repeated else identity
        return message.uuid

    def attach(self, message: Message) -> None:
        """Make the message follow the one before it, if it names no parent of its own."""
        if message.parent_uuid is UNSET:
            parent = self.last if self._parents is None else self._parents.get(str(message.uuid))
            message.parent_uuid = UNSET if parent is None else parent
