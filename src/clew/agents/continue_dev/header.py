"""The session object of a Continue session."""

from __future__ import annotations

from clew.agents.base import SourceFile
from clew.agents.continue_dev import locate
from clew.agents.continue_dev.records import UNTITLED
from clew.analysis.facts import Facts
from clew.analysis.titles import short_title
from clew.model.json import JSON
from clew.model.time import canonical_time


def session_object(source: SourceFile, facts: Facts) -> dict[str, JSON]:
    """The `session` of the unified document. Its messages have no times: it ended when its file was written."""
    named = facts.titles.get("title")
    written = canonical_time(source.mtime) if source.mtime else None
    session: dict[str, JSON] = {
        "id": locate.session_id(source.path),
        "workspace": facts.cwd or "",
        "workspace_encoded": source.path.parent.name,
        "started_at": facts.extra.get("started_at") or written or None,
        "ended_at": written or facts.extra.get("started_at"),
        "source": {"type": "local", "host": None, "path": str(source.path)},
        "is_agent_session": False,
        "parent_session_id": None,
        "agent_id": None,
    }
    title = short_title(named if named and named != UNTITLED else facts.first_prompt)
    if title is not None:
        session["title"] = title
    return session
