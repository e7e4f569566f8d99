"""Records as clew's store writes them; `records.py` has the lenient types for reading."""

from __future__ import annotations

from collections.abc import Mapping
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


def with_ids(record: Mapping[str, JSON], uuid: str | None, session: str) -> dict[str, JSON] | None:
    """Return a record with the ids that it lacks; None where it lacks none."""
    added: dict[str, JSON] = {}
    if "uuid" not in record and uuid is not None:
        added["uuid"] = uuid
    if "session_id" not in record and "sessionId" not in record:
        added["session_id"] = session
    return {**record, **added} if added else None


def with_estimated_tokens(record: Mapping[str, JSON]) -> dict[str, JSON] | None:
    """Return a record with the estimate that sage-emacs itself makes: a token for every four characters.

    None where the record has a count, or no text.
    """
    content = record.get("content")
    if "tokens" in record or "usage" in record or not isinstance(content, str):
        return None
    return {**record, "tokens": {"estimated": -(-len(content) // 4)}}
