"""Agent-neutral events: what every agent's history is decoded into.

An agent turns its native records into a stream of these, in file order. Everything else in clew (facts, token usage,
search, pages, documents, conversion) works on events and never sees a native key.
"""

from __future__ import annotations

from msgspec import Struct

from clew.model.json import JSON
from clew.model.message import Message
from clew.model.problem import Problem
from clew.model.record import Record
from clew.model.usage import TokenUsage


class SessionInfo(Struct, kw_only=True, gc=False):
    """Facts about the session as a whole. The first event that sets a field decides it, but for the version."""

    session_id: str | None = None
    """The id that the records claim; the file name may say another one."""
    cwd: str | None = None
    git_branch: str | None = None
    agent_version: str | None = None
    slug: str | None = None
    agent_id: str | None = None
    """The sub-agent that wrote the file."""
    parent_session_id: str | None = None
    """The session that started the sub-agent."""
    is_subagent: bool = False
    started_at: str | None = None
    """When the session began, by its head; messages may come later, or never."""
    leaf_uuid: str | None = None
    """The message at which the conversation stands; empty where everything was rolled back. The last event counts."""
    has_derived_parents: bool = False
    """True where the decoder knows who follows whom for every message, tool results included: it works that out where
    the agent's log names no parents."""
    has_message_times: bool = True
    """False where the agent's log has no times of messages: then it is no problem that they have none."""
    title: str | None = None
    """The title that the agent gave the session; the last one counts."""
    extra: dict[str, JSON] | None = None
    """What only the agent's own header and checks need; it goes to `Facts.extra`."""


class SubagentStarted(Struct, kw_only=True, gc=False):
    """A tool call started a sub-agent, or a sub-agent's messages begin inside this file."""

    session_id: str | None = None
    """The session of the sub-agent. A later event for the same session replaces an earlier one."""
    agent_id: str | None = None
    tool_id: str | None = None
    root_uuid: str | None = None
    """The first message of a sub-agent whose messages are in the file of its parent."""


class UsageReport(Struct, kw_only=True, gc=False):
    """Token usage that an agent reports apart from the message it belongs to.

    It stands before its message, which then holds the sum of its reports as `token_usage`; or behind it, and then the
    message holds none. So usage counts once.
    """

    call_id: str
    usage: TokenUsage
    model: str | None = None
    timestamp: str | None = None
    message_index: int = 0
    """The message it belongs to; 0 where it belongs to none, such as a compaction."""


Event = Message | Record | SessionInfo | SubagentStarted | UsageReport | Problem
