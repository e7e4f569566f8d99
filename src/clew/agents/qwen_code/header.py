"""The session object of a transcript: identity, place, title, and links to sub-agents."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from clew.agents.base import SourceFile
from clew.agents.qwen_code import locate
from clew.agents.qwen_code.records import read_meta
from clew.analysis.facts import Facts
from clew.analysis.titles import short_title
from clew.model.json import JSON


def session_object(source: SourceFile, facts: Facts) -> dict[str, JSON]:
    """The `session` of the unified document."""
    path, claimed = source.path, facts.extra.get("claimed")
    is_agent = locate.is_agent_file(path)
    session: dict[str, JSON] = {
        "id": locate.named_session(path) or claimed or locate.stem(path),
        "workspace": facts.cwd or facts.extra.get("cwd") or "",
        "workspace_encoded": locate.project_path(path).name,
        "started_at": facts.first_time,
        "ended_at": facts.last_time,
        "source": {"type": "local", "host": None, "path": str(path)},
        "is_agent_session": is_agent,
        "parent_session_id": _parent(path, claimed) if is_agent else None,
        "agent_id": (facts.extra.get("agent_id") or _agent_id(path)) if is_agent else None,
    }
    title = facts.titles.get("custom_title") or short_title(facts.first_prompt)
    if title:
        session["title"] = title
    if subagents := list(_subagents(path, session["id"])):
        session["subagents"] = subagents
    extensions = {name: facts.extra[name] for name in ("forked_from", "started_by") if name in facts.extra}
    if extensions:
        session["extensions"] = {locate.AGENT: extensions}
    return session


def _agent_id(path: Path) -> str:
    return locate.stem(path).removeprefix(locate.AGENT_FILE)


def _parent(path: Path, claimed: JSON) -> JSON:
    """The session that started a sub-agent: another sub-agent, else the session that its records name."""
    above = read_meta(path).parentAgentId
    return f"{locate.AGENT_FILE}{locate.safe_id(above)}" if above else claimed


def _subagents(path: Path, session: str) -> Iterator[dict[str, JSON]]:
    """Links to the sub-agents that this session started; those of sub-agents lie in the same folder."""
    own = _agent_id(path) if locate.is_agent_file(path) else None
    for file in locate.subagent_files(path, session):
        meta = read_meta(file)
        above = locate.safe_id(meta.parentAgentId) if meta.parentAgentId else None
        if above == own and file != path:
            agent = meta.agentId or _agent_id(file)
            yield {"session_id": locate.stem(file), "agent_id": agent, "tool_id": meta.toolUseId}
