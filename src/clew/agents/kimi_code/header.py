"""The session object: identity, place, title, and links to sub-agents."""

from __future__ import annotations

from clew.agents.base import SourceFile
from clew.agents.kimi_code import locate
from clew.analysis.facts import Facts
from clew.analysis.titles import short_title
from clew.model.json import JSON


def session_object(source: SourceFile, facts: Facts) -> dict[str, JSON]:
    """The `session` of the unified document."""
    extra = facts.extra
    session: dict[str, JSON] = {
        "id": locate.session_id(source.path),
        "workspace": facts.cwd or "",
        "workspace_encoded": locate.project_folder(source.path),
        "started_at": facts.first_time or extra.get("started_at"),
        "ended_at": facts.last_time or extra.get("started_at"),
        "source": {"type": "local", "host": None, "path": str(source.path)},
        "is_agent_session": extra.get("is_subagent", False),
        "parent_session_id": extra.get("parent_session_id"),
        "agent_id": extra.get("agent_id"),
    }
    title = facts.titles.get("title") or short_title(extra.get("generated_title") or facts.first_prompt)
    if title:
        session["title"] = title
    if facts.subagents:
        session["subagents"] = [
            {"session_id": link.session_id, "agent_id": link.agent_id, "tool_id": link.tool_id}
            for link in facts.subagents
        ]
    if "forked_from" in extra:
        session["extensions"] = {locate.AGENT: {"forked_from": extra["forked_from"]}}
    return session
