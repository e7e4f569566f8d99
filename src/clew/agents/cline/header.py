"""The session object of a session or a task."""

from __future__ import annotations

from clew.agents.base import SourceFile
from clew.agents.cline import locate
from clew.agents.cline.events import ENDED_AT, FORKED_FROM
from clew.analysis.facts import Facts
from clew.analysis.titles import short_title
from clew.model.json import JSON


def session_object(source: SourceFile, facts: Facts) -> dict[str, JSON]:
    """The `session` of the unified document."""
    is_subagent = bool(facts.extra.get("is_subagent"))
    session: dict[str, JSON] = {
        "id": locate.session_id(source.path),
        "workspace": facts.cwd or "",
        "workspace_encoded": source.path.parent.name,
        "started_at": facts.first_time or facts.extra.get("started_at"),
        "ended_at": facts.last_time or facts.extra.get(ENDED_AT),
        "source": {"type": "local", "host": None, "path": str(source.path)},
        "is_agent_session": is_subagent,
        "parent_session_id": facts.extra.get("parent_session_id"),
        "agent_id": facts.extra.get("agent_id"),
    }
    title = short_title(facts.titles.get("title") or facts.first_prompt)
    if title is not None:
        session["title"] = title
    if facts.subagents:
        session["subagents"] = [
            {"session_id": each.session_id, "agent_id": each.agent_id, "tool_id": each.tool_id}
            for each in facts.subagents
        ]
    if FORKED_FROM in facts.extra:
        session["extensions"] = {source.agent: {FORKED_FROM: facts.extra[FORKED_FROM]}}
    return session
