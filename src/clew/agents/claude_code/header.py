"""The session object of a transcript: identity, place, title, and links to sub-agents."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from clew.agents.base import SourceFile
from clew.agents.claude_code import locate
from clew.agents.native_records import first_value
from clew.analysis.facts import Facts
from clew.analysis.titles import short_title
from clew.errors import SourceUnreadable
from clew.model.json import JSON


def session_object(source: SourceFile, facts: Facts) -> dict[str, JSON]:
    """The `session` of the unified document."""
    is_agent = locate.is_agent_file(source.path)
    claimed = facts.extra.get("claimed")
    session: dict[str, JSON] = {
        "id": locate.named_session(source.path) or claimed or locate.stem(source.path),
        "workspace": facts.cwd or facts.extra.get("cwd") or "",
        "workspace_encoded": locate.project_folder(source.path),
        "started_at": facts.first_time,
        "ended_at": facts.last_time,
        "source": {"type": "local", "host": None, "path": str(source.path)},
        "is_agent_session": is_agent,
        "parent_session_id": claimed if is_agent else None,
        "agent_id": locate.stem(source.path).removeprefix("agent-") if is_agent else None,
    }
    title = own_title(facts)
    if title is not None:
        session["title"] = title
    if facts.slug is not None:
        session["slug"] = facts.slug
    if subagents := list(find_subagents(source, facts, session["id"])):
        session["subagents"] = subagents
    return session


def own_title(facts: Facts) -> str | None:
    """The title this file itself gives: the person's, the agent's, a summary of its own leaf, or the first prompt."""
    for kind in ("custom-title", "ai-title"):
        if kind in facts.titles:
            return facts.titles[kind]
    for leaf, summary in reversed(facts.summaries.items()):
        if facts.links.holds(leaf):
            return summary
    return short_title(facts.first_prompt)


def find_subagents(source: SourceFile, facts: Facts, session: str) -> Iterator[dict[str, JSON]]:
    """Links to sub-agents: own folder, flat files beside, and chains inside this very file."""
    calls: dict[str, str] = facts.extra.get("calls", {})
    if not locate.is_agent_file(source.path):
        for path in (*locate.subagent_files(source.path), *_flat_agents(source.path).get(session, ())):
            agent = locate.stem(path).removeprefix("agent-")
            yield {"session_id": locate.stem(path), "agent_id": agent, "tool_id": calls.get(agent)}
    for link in facts.subagents:
        yield {"session_id": None, "agent_id": None, "tool_id": link.tool_id, "root_uuid": link.root_uuid}


def _flat_agents(path: Path) -> dict[str, list[Path]]:
    """Sub-agent files that lie beside a session in its project's folder, by the session they belong to."""
    folder = locate.folder_of(path)
    try:
        return _read_flat_agents(folder, os.stat(folder).st_mtime_ns)  # noqa: PTH116 - there are many sessions
    except OSError:
        return {}


@lru_cache(64)
def _read_flat_agents(folder: str, _changed: int) -> dict[str, list[Path]]:
    found: dict[str, list[Path]] = {}
    for path in locate.flat_agents(Path(folder)):
        # A file that cannot be read belongs to no session.
        with suppress(SourceUnreadable):
            parent = first_value(path, "sessionId")
            if parent is not None:
                found.setdefault(parent, []).append(path)
    return found
