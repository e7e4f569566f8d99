"""How much of the sources a sync reads."""

from __future__ import annotations

from enum import IntEnum


class SyncLevel(IntEnum):
    """What is up to date after a sync; each level includes those before it."""

    SESSIONS = 1
    """Sessions and token usage."""
    MESSAGES = 2
    """Messages, blocks, tool calls, file changes and todos, and the stored text."""
    TEXT = 3
    """The text index."""
