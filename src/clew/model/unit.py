"""A message or another record together with the agent's own record behind it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from clew.model.json import JSON


class Unit(NamedTuple):
    """A message or another record of a session as JSON of the unified document, and the native record behind it."""

    is_message: bool
    value: dict[str, JSON]
    line: int
    start: int
    """Offset of the native record. What a record gives beyond its first unit has no bytes: it starts where it stops."""
    stop: int
    findings: tuple[str, ...]
    """What is wrong with the bytes of the native record."""
    part: int = 0
    """Which file of the session: 0 is the main one."""
    native: Mapping[str, JSON] = MappingProxyType({})
    """The agent's own record; empty for a fragment."""
    claimed_session: str | None = None
    """The session that the record says it belongs to."""
