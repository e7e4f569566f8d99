"""The header of a session: what holds for it as a whole, kept as JSON in its row."""

from __future__ import annotations

from typing import TypeAlias

from clew.agents.base import Agent, SourceFile, session_object
from clew.analysis.facts import Facts
from clew.analysis.session import derived
from clew.model.json import JSON

Header: TypeAlias = dict[str, JSON]


def header_of(agent: Agent, source: SourceFile, facts: Facts, session: dict[str, JSON] | None = None) -> Header:
    """What holds for a session as a whole."""
    session = session_object(agent, source, facts) if session is None else session
    more = derived(session, facts)
    return {
        "id": session["id"],
        "title": session.get("title"),
        "workspace": session["workspace"],
        "workspace_encoded": session["workspace_encoded"],
        "project": more.project,
        "git_branch": facts.git_branch,
        "slug": session.get("slug"),
        "models": list(facts.models),
        "started_at": session["started_at"],
        "ended_at": session["ended_at"],
        "span": [facts.first_time, facts.last_time],
        "duration_seconds": more.duration,
        "messages": facts.messages,
        "turn_count": more.turn_count,
        "prompt_count": more.prompt_count,
        "tool_calls": facts.tool_calls,
        "tools": list(facts.tools),
        "has_errors": facts.has_errors,
        "has_thinking": facts.has_thinking,
        "starts_subagents": bool(session.get("subagents")),
        # Without the sub-agents that are known by their own files alone.
        "has_subagent_records": bool(facts.subagents),
        "is_agent_session": session["is_agent_session"],
        "parent_session_id": session["parent_session_id"],
        "agent_id": session["agent_id"],
        "agent_version": facts.version,
        "source": session["source"],
        "is_titled": bool(facts.titles),
        "summaries": facts.summaries,
    }
