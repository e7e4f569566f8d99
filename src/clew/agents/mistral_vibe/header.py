"""The session object of a Mistral Vibe session."""

from __future__ import annotations

from clew.agents.base import SourceFile
from clew.agents.mistral_vibe import locate
from clew.analysis.facts import Facts
from clew.analysis.titles import short_title
from clew.model.json import JSON


def session_object(source: SourceFile, facts: Facts) -> dict[str, JSON]:
    """The `session` of the unified document."""
    session: dict[str, JSON] = {
        "id": locate.session_id(source.path),
        "workspace": facts.cwd or "",
        "workspace_encoded": source.path.parent.parent.name,
        "started_at": facts.first_time or facts.extra.get("started_at"),
        "ended_at": facts.last_time or facts.extra.get("started_at"),
        "source": {"type": "local", "host": None, "path": str(source.path)},
        "is_agent_session": False,
        "parent_session_id": None,
        "agent_id": None,
    }
    title = short_title(facts.titles.get("title") or facts.first_prompt)
    if title is not None:
        session["title"] = title
    if "extensions" in facts.extra:
        session["extensions"] = facts.extra["extensions"]
    return session
