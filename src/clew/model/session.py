"""A session: one conversation, and where it came from."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from clew.model.base import Part
from clew.model.json import Extensions


class Source(Part, kw_only=True):
    """Where the session was read from."""

    type: Literal["local", "wsl", "windows", "remote"]
    host: Annotated[str | None, Meta(description="Remote host or WSL distribution.")] = None
    path: str


class Subagent(Part, kw_only=True):
    """A link from a session to one that it started."""

    session_id: Annotated[str | None, Meta(description="Null where it lives inside the parent's own file.")] = None
    agent_id: str | None = None
    tool_id: Annotated[str | None, Meta(description="The call that started it.")] = None
    root_uuid: str | None | UnsetType = UNSET


class Session(Part, kw_only=True):
    """What holds for the conversation as a whole."""

    id: str
    workspace: Annotated[str, Meta(description="The project's folder as the agent knew it.")]
    workspace_encoded: Annotated[str, Meta(description="The folder name it is filed under.")]
    started_at: Annotated[str | None, Meta(description="Earliest time in the session; null if none has one.")]
    ended_at: str | None
    source: Source
    is_agent_session: bool
    parent_session_id: str | None = None
    agent_id: str | None = None
    title: str | None | UnsetType = UNSET
    slug: str | None | UnsetType = UNSET
    subagents: list[Subagent] | UnsetType = UNSET
    extensions: Extensions | UnsetType = UNSET
