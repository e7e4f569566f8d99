"""Transitional: an agent that still reads through field tables."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator

import msgspec

from clew.agents.base import Agent, SourceFile, Unit
from clew.derive.facts import Facts
from clew.model import Message, Record
from clew.model.events import Event
from clew.model.json import JSON


class LegacyAgent(Agent):
    """Events from units, instead of units from events."""

    @abstractmethod
    def scan(self, source: SourceFile) -> Facts:
        """The facts."""

    @abstractmethod
    def read(self, source: SourceFile, facts: Facts) -> Iterator[Unit]:
        """The units."""

    def facts(self, source: SourceFile) -> Facts:
        return self.scan(source)

    def units(self, source: SourceFile) -> Iterator[Unit]:
        for unit in self.read(source, self.scan(source)):
            yield unit._replace(native=native_rest(unit.value))

    def events(self, source: SourceFile) -> Iterator[Event]:
        for unit in self.units(source):
            value = _without_extensions(unit.value)
            yield msgspec.convert(value, Message) if unit.is_message else msgspec.convert(value, Record)


def _without_extensions(value: JSON) -> JSON:
    if isinstance(value, dict):
        return {key: _without_extensions(item) for key, item in value.items() if key != "extensions"}
    return [_without_extensions(item) for item in value] if isinstance(value, list) else value


def native_rest(value: dict[str, JSON]) -> dict[str, JSON]:
    """The native keys that the tables keep."""
    for own in (value.get("extensions") or {}).values():
        rest = own.get("rest") if isinstance(own, dict) else None
        if isinstance(rest, dict):
            return rest
    return {}
