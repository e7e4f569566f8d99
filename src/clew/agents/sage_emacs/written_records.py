"""Records as clew's store writes them; `records.py` has the lenient types for reading."""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType

from clew.model.json import JSON

Role = Literal["user", "assistant", "system"]


class ToolRun(msgspec.Struct, kw_only=True):
    """A tool call together with its result."""

    id: str | UnsetType = UNSET
    name: str
    args: JSON
    result: str | UnsetType = UNSET
    duration_ms: float | UnsetType = UNSET
    success: bool | UnsetType = UNSET


class ConversationRecord(msgspec.Struct, kw_only=True):
    """One message of a conversation."""

    role: Role
    content: str
    timestamp: str
    uuid: str
    session_id: str
    tool_calls: list[ToolRun] | UnsetType = UNSET
    tokens: dict[str, int] | UnsetType = UNSET
    usage: dict[str, JSON] | UnsetType = UNSET
