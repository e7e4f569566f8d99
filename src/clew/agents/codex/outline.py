"""What the first pass over a rollout leaves for the second, and for the header."""

from __future__ import annotations

import msgspec

from clew.agents.codex.lines import Payload
from clew.agents.codex.requests import Spent

NO_IDS: frozenset[str] = frozenset()


class Outline(msgspec.Struct):
    """What the second pass and the header need beside the facts."""

    thread: str
    """What derived ids begin with."""
    meta: Payload | None = None
    repeated: frozenset[str] = NO_IDS
    """Ids that several items of the file have."""
    lone: frozenset[int] = frozenset()
    """Lines with an event whose words no item repeats."""
    inherited: int = 0
    """Up to this line the file copies another thread."""
    parents: list[str] = []
    """Threads whose beginning was copied into this one."""
    spent: Spent = msgspec.field(default_factory=Spent)
    last_line_time: str | None = None
    cwd: str | None = None
