"""The session object of a rollout: identity, place, title, lineage, and links to sub-agents."""

from __future__ import annotations

from clew.agents.base import SourceFile
from clew.agents.codex import locate, names
from clew.agents.codex.events import session_id
from clew.agents.codex.injected_context import request_of
from clew.agents.codex.records import EVENT_LINE
from clew.derive.facts import Facts
from clew.derive.titles import short_title
from clew.model.json import JSON
from clew.model.time import parse_time, spell_time


def session_object(source: SourceFile, facts: Facts) -> dict[str, JSON]:
    """The `session` of the unified document."""
    extra = facts.extra
    thread, started_at = extra.get("claimed"), _shortest(extra.get("started_at"))
    session: dict[str, JSON] = {
        "id": session_id(source, thread),
        "workspace": facts.cwd or "",
        "workspace_encoded": locate.filed_under(source.path),
        "started_at": facts.first_time or started_at,
        "ended_at": facts.last_time or _shortest(extra.get("last_record_time")) or started_at,
        "source": {"type": "local", "host": None, "path": str(source.path)},
        "is_agent_session": extra.get("is_subagent", False),
        "parent_session_id": extra.get("parent_session_id"),
        "agent_id": extra.get("agent_id"),
    }
    named = names.title_of(source.path, thread or session_id(source, None), facts.titles.get(EVENT_LINE))
    title = named or short_title(request_of(facts.first_prompt))
    if title is not None:
        session["title"] = title
    if facts.subagents:
        session["subagents"] = [
            {"session_id": link.session_id, "agent_id": link.agent_id, "tool_id": link.tool_id}
            for link in facts.subagents
        ]
    if "extensions" in extra:
        session["extensions"] = extra["extensions"]
    return session


def _shortest(time: JSON) -> str | None:
    """A time without zeros behind its seconds."""
    stamp = parse_time(time)
    return spell_time(stamp) if stamp is not None else None
