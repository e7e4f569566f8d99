"""The session object: identity, place, title, and the sub-agents inside the session's own file."""

from __future__ import annotations

import re

from clew.agents.backups import read_inside
from clew.agents.base import SourceFile
from clew.agents.copilot_cli import locate
from clew.analysis.facts import Facts
from clew.analysis.titles import short_title
from clew.io.codec import NOT_JSON, loads
from clew.model.json import JSON

_NAME = re.compile(r"^name:[ \t]+(\S.*?)[ \t]*$", re.MULTILINE)
_MAX_WORKSPACE_BYTES = 1 << 20
_BLOCK_SCALARS = ("|", ">", "&", "*", "!")


def session_object(source: SourceFile, facts: Facts) -> dict[str, JSON]:
    """The `session` of the unified document."""
    started = facts.extra.get("started_at")
    session: dict[str, JSON] = {
        "id": locate.session_id(source.path),
        "workspace": facts.cwd or "",
        "workspace_encoded": source.path.parent.name,
        "started_at": facts.first_time or started,
        "ended_at": facts.last_time or facts.extra.get("last_record_time") or started,
        "source": {"type": "local", "host": None, "path": str(source.path)},
        "is_agent_session": False,
        "parent_session_id": None,
        "agent_id": None,
    }
    title = _workspace_title(source) or facts.titles.get("session.title_changed") or facts.first_prompt
    if (title := short_title(title)) is not None:
        session["title"] = title
    if facts.subagents:
        session["subagents"] = [
            {"session_id": None, "agent_id": link.agent_id, "tool_id": link.tool_id, "root_uuid": link.root_uuid}
            for link in facts.subagents
        ]
    return session


def _workspace_title(source: SourceFile) -> str | None:
    """The name of the session in the file beside it, which is YAML of one level."""
    if locate.WORKSPACE_FILE not in source.sides:
        return None
    text = read_inside(source.path.parent, locate.WORKSPACE_FILE, _MAX_WORKSPACE_BYTES)
    found = _NAME.search(text.decode(errors="replace")) if text is not None else None
    if found is None or found[1].startswith(_BLOCK_SCALARS):
        return None
    name = found[1]
    if name[:1] == '"':
        # Texts in double quotes are spelled as in JSON, but for a few escapes that nobody types.
        try:
            name = str(loads(name))
        except NOT_JSON:
            return None
    elif name[:1] == "'":
        name = name[1:-1].replace("''", "'")
    return name
