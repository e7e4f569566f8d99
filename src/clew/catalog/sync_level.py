"""How much of the sources a sync reads."""

from __future__ import annotations

from enum import IntEnum

TYPE_CHECKING = False
if TYPE_CHECKING:
    from clew.filters import Filters


class SyncLevel(IntEnum):
    """What is up to date after a sync; each level includes those before it."""

    SESSIONS = 1
    """Sessions and token usage. Messages of an earlier sync stay; `unread_messages` lists their sources."""
    MESSAGES = 2
    """Messages, blocks, tool calls, file changes and todos, and the stored text."""
    TEXT = 3
    """The text index."""


def level_for(filters: Filters | None, level: SyncLevel = SyncLevel.SESSIONS) -> SyncLevel:
    """The level that a question needs whose filters may look into text."""
    if filters is not None and filters.needs_text:
        return SyncLevel.TEXT
    return max(level, SyncLevel.MESSAGES) if filters is not None and filters.commits is not None else level
