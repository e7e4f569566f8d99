"""The session object of a chat."""

from __future__ import annotations

from clew.agents.base import SourceFile
from clew.agents.vscode_chat import locate
from clew.analysis.facts import Facts
from clew.analysis.titles import short_title
from clew.model.json import JSON
from clew.model.time import canonical_time


def session_object(source: SourceFile, facts: Facts) -> dict[str, JSON]:
    """The `session` of the unified document."""
    state: dict[str, JSON] = facts.extra.get("state", {})
    created = canonical_time(state.get("creationDate")) or None
    session: dict[str, JSON] = {
        "id": locate.session_id(source.path),
        "workspace": locate.workspace_of(source.path),
        "workspace_encoded": locate.storage_folder(source.path),
        "started_at": facts.first_time or created,
        "ended_at": facts.last_time or created,
        "source": {"type": "local", "host": None, "path": str(source.path)},
        "is_agent_session": False,
        "parent_session_id": None,
        "agent_id": None,
    }
    named = next((state[key] for key in ("customTitle", "computedTitle") if isinstance(state.get(key), str)), None)
    title = short_title(named or facts.first_prompt)
    if title is not None:
        session["title"] = title
    return session
