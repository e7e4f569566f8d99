"""For agents whose records and messages are not one to one: units are reshaped behind the tables, and numbered anew."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeAlias

from clew.agents.base import Unit
from clew.agents.derived import derived_id as derived_id
from clew.agents.jsonl import JsonlReading
from clew.model.json import JSON

Message: TypeAlias = dict[str, JSON]
Step: TypeAlias = tuple[bool, dict[str, JSON]]
"""A message (True) or another record (False), as JSON of the unified document."""
Fold: TypeAlias = Callable[[bool, dict[str, JSON]], Iterable[Step]]


class FoldedReading:
    """A reading whose every unit is folded into one or more."""

    def __init__(self, inner: JsonlReading, fold: Fold) -> None:
        self._inner, self._fold = inner, fold
        self.unknown_types, self.unknown_keys = inner.unknown_types, inner.unknown_keys
        self.carried_raw = 0
        self.damage: str | None = None

    def __iter__(self) -> Iterator[Unit]:
        index = 0
        for unit in self._inner:
            self.carried_raw = self._inner.carried_raw
            for is_message, value in self._fold(unit.is_message, unit.value):
                index += is_message
                value["index" if is_message else "after"] = index
                yield unit._replace(is_message=is_message, value=value)
                # What a record gives beyond its first unit has no bytes of its own.
                unit = unit._replace(start=unit.stop, findings=())
        self.damage = self._inner.damage

    def extensions(self) -> dict[str, JSON]:
        return self._inner.extensions()


def own_extension(value: Mapping[str, JSON], agent: str) -> dict[str, JSON]:
    """What an agent noted on a message, record or block; empty where it noted nothing."""
    extensions = value.get("extensions") or {}
    own = extensions.get(agent)
    return own if isinstance(own, dict) else {}


def note(value: dict[str, JSON], agent: str, **facts: JSON) -> None:
    """Add to what an agent notes on a message, record or block."""
    value.setdefault("extensions", {}).setdefault(agent, {}).update(facts)


class Chain:
    """Ids and parents for messages that have none: ids from what a message says, parents from the order.

    Both are noted as derived, so that the writer leaves them out.
    """

    def __init__(self, agent: str, scope: str, parents: Mapping[str, str | None] | None = None) -> None:
        self._agent, self._scope, self._parents = agent, scope, parents
        self._seen: Counter[str] = Counter()
        self.last: str | None = None
        self.gave_last = False
        """True when the last message had no uuid of its own."""

    def identify(self, message: Message) -> bool:
        """Give the message a uuid if it has none; True when it was given one."""
        self.gave_last = message.get("uuid") is None
        if not self.gave_last:
            return False
        identity = derived_id(self._scope, message["role"], message.get("timestamp"), message["content"])
        self._seen[identity] += 1
        repeated = self._seen[identity] - 1
        message["uuid"] = derived_id(identity, repeated) if repeated else identity
        self._note(message, "uuid")
        return True

    def attach(self, message: Message) -> None:
        """Make the message follow the one before it, if it names no parent of its own."""
        if "parent_uuid" in message:
            return
        parent = self._parents.get(message["uuid"]) if self._parents is not None else self.last
        if parent is not None:
            message["parent_uuid"] = parent
            self._note(message, "parent_uuid")

    def _note(self, message: Message, slot: str) -> None:
        derived = own_extension(message, self._agent).get("derived", [])
        note(message, self._agent, derived=[*derived, slot])


def without_derived(message: Message, agent: str) -> Message:
    """A copy of the message that lacks what was derived."""
    derived = own_extension(message, agent).get("derived", ())
    return {name: item for name, item in message.items() if name not in derived}
