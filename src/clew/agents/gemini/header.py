"""What only Gemini CLI records about a session: its folder and times, and the links to sub-agents."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from clew.agents.base import SourceFile, file_stem
from clew.agents.gemini import locate
from clew.agents.gemini.project_registry import workspace_of
from clew.analysis.facts import Facts
from clew.model.json import JSON
from clew.model.time import is_canonical, is_later, parse_time, spell_time

_PATH = re.compile(r"(?:/|[A-Za-z]:[\\/])[^\s\"'`<>|*?]+")
_EXTENSIONS = {
    "projectHash": "project_hash",
    "directories": "directories",
    "summary": "summary",
    "memoryScratchpad": "memory_scratchpad",
    "lastUpdated": "last_updated",
    "kind": "kind",
}


def session_fields(source: SourceFile, facts: Facts, session: str) -> dict[str, JSON]:
    """Folder, times, sub-agents and extensions of the session with this id."""
    state: dict[str, JSON] = facts.extra.get("state", {})
    is_agent = locate.parent_folder(source.path) is not None or state.get("kind") == "subagent"
    started, ended = _span(source, facts, state)
    found: dict[str, JSON] = {
        "workspace": _workspace(source, facts, state),
        "started_at": started,
        "ended_at": ended,
        "is_agent_session": is_agent,
        "parent_session_id": _parent(source.path, session) if is_agent else None,
        "agent_id": session if is_agent else None,
    }
    if subagents := list(_subagents(source.path, session, facts)):
        found["subagents"] = subagents
    extension = {name: state[key] for key, name in _EXTENSIONS.items() if key in state}
    tag = locate.saved_tag(source.path)
    if tag is not None:
        extension |= {"saved_as": tag, "times": "of the file"}
    if extension:
        found["extensions"] = {locate.AGENT: extension}
    return found


def _workspace(source: SourceFile, facts: Facts, state: dict[str, JSON]) -> str:
    project_hash = state.get("projectHash")
    directories = state.get("directories")
    hints = [each for each in directories if isinstance(each, str)] if isinstance(directories, list) else []
    hints += _PATH.findall(facts.extra.get("context") or "")
    hints += facts.extra.get("hints", [])
    return workspace_of(
        locate.project_folder(source.path), project_hash if isinstance(project_hash, str) else None, hints
    )


def _span(source: SourceFile, facts: Facts, state: dict[str, JSON]) -> tuple[str | None, str | None]:
    """When the session began and ended; late notes move the time of the last update, early ends leave it behind."""
    updated = _canonical(state.get("lastUpdated"))
    started = _canonical(state.get("startTime")) or facts.first_time or locate.file_time(source.path)
    ended = facts.last_time or updated
    if ended is not None and updated is not None and is_later(updated, ended):
        ended = updated
    if started is None and source.mtime and not state:
        # A saved chat knows no times.
        started = ended = _canonical(source.mtime)
    return started, ended or started


def _canonical(time: JSON) -> str | None:
    if isinstance(time, str) and is_canonical(time):
        return time
    stamp = parse_time(time)
    return spell_time(stamp) if stamp is not None else None


def _parent(path: Path, session: str) -> str | None:
    """The session that started a sub-agent: the one whose id the folder spells, else the one that names it."""
    folder = locate.parent_folder(path)
    if folder is None:
        return locate.caller(path, session)
    chats = path.parent.parent
    for name in locate.chat_names(chats):
        if locate.safe_id(locate.short_id(name)) == folder[:8]:
            claimed = locate.claimed_id(chats / name)
            if claimed is not None and locate.safe_id(claimed) == folder:
                return claimed
    return folder


def _subagents(path: Path, session: str, facts: Facts) -> Iterator[dict[str, JSON]]:
    calls: dict[str, str] = facts.extra.get("calls", {})
    seen: set[str] = set()
    for file in locate.subagent_files(path, session):
        agent = locate.claimed_id(file) or file_stem(file)
        seen.add(agent)
        yield {"session_id": agent, "agent_id": agent, "tool_id": calls.get(agent)}
    for agent, call in calls.items():
        if agent not in seen and any(locate.claimed_id(file) == agent for file in locate.named_after(path, agent)):
            yield {"session_id": agent, "agent_id": agent, "tool_id": call}
