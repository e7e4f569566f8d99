"""What a list says of a session; derived once, the same for tables and JSON."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from clew.derive.session import derived
from clew.errors import SourceUnreadable
from clew.library import StoredSession
from clew.model.json import JSON


def row(session: StoredSession) -> dict[str, JSON]:
    """One session as a row."""
    header, facts = session.session_object, session.outline
    more = derived(header, facts)
    return {
        "id": header["id"],
        "agent": session.agent.id,
        "title": header.get("title"),
        "workspace": header["workspace"],
        "project": more.project,
        "git_branch": facts.git_branch,
        "slug": header.get("slug"),
        "models": list(facts.models),
        "started_at": header["started_at"],
        "ended_at": header["ended_at"],
        "duration_seconds": more.duration,
        "messages": facts.messages,
        "turn_count": more.turn_count,
        "prompt_count": more.prompt_count,
        "tool_calls": facts.tool_calls,
        "has_errors": facts.has_errors,
        "tokens": msgspec.to_builtins(session.usage),
        "total_tokens": more.total_tokens,
        "cache_hit_rate": more.cache_hit_rate,
        "is_agent_session": header["is_agent_session"],
        "parent_session_id": header["parent_session_id"],
        "agent_id": header["agent_id"],
        "bytes": session.source.size,
        "path": str(session.path),
    }


def rows(sessions: Iterable[StoredSession]) -> tuple[list[dict[str, JSON]], list[str]]:
    """The rows of all sessions, newest first, and what could not be read. Titles are looked for across files."""
    result, unreadable, summaries, links = [], [], {}, []
    for session in sessions:
        try:
            result.append(row(session))
        except SourceUnreadable as error:
            unreadable.append(str(error))
            continue
        summaries.update(session.outline.summaries)
        links.append((result[-1], session.outline))
        session.forget()
    for entry, facts in links:
        if not facts.titles:
            for leaf, summary in summaries.items():
                if facts.links.holds(leaf):
                    entry["title"] = summary
    result.sort(key=lambda entry: (entry["ended_at"] or "", entry["id"]), reverse=True)
    return result, unreadable
