"""The session object of a rollout: identity, place, title, lineage, and links to sub-agents."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET

from clew.agents.base import SourceFile
from clew.agents.codex import locate, names
from clew.agents.codex.lines import Payload
from clew.agents.codex.outline import Outline
from clew.agents.codex.words import request_of
from clew.derive.facts import Facts
from clew.derive.titles import short_title
from clew.io.codec import loads_text
from clew.model.json import JSON
from clew.model.time import parse_time, spell_time


def session_id(source: SourceFile, thread: str | None) -> str:
    """The id of a session: that of its thread, and of its rollout where that replaces another."""
    named = locate.parse_name(source.path)
    name = thread or (named.thread if named else locate.stem(source.path.name))
    return f"{name}_{named.rollout}" if named is not None and named.rollout else name


def session_object(source: SourceFile, facts: Facts, outline: Outline) -> dict[str, JSON]:
    """The `session` of the unified document."""
    meta = outline.meta or Payload()
    spawned = spawn_of(meta)
    thread = meta.id or session_id(source, None)
    session: dict[str, JSON] = {
        "id": session_id(source, meta.id),
        "workspace": facts.cwd or meta.cwd or outline.cwd or "",
        "workspace_encoded": locate.filed_under(source.path),
        "started_at": facts.first_time or _canonical(meta.timestamp),
        "ended_at": facts.last_time or _canonical(outline.last_line_time) or _canonical(meta.timestamp),
        "source": {"type": "local", "host": None, "path": str(source.path)},
        "is_agent_session": spawned is not None,
        "parent_session_id": _parent(meta, spawned),
        "agent_id": _agent(meta, spawned),
    }
    title = names.title_of(source.path, thread, facts.titles.get("name")) or short_title(request_of(facts.first_prompt))
    if title is not None:
        session["title"] = title
    if facts.subagents:
        session["subagents"] = [
            {"session_id": link.session_id, "agent_id": link.agent_id, "tool_id": link.tool_id}
            for link in facts.subagents
        ]
    if lineage := dict(_lineage(source, outline, meta)):
        session["extensions"] = {locate.AGENT: lineage}
    return session


def spawn_of(meta: Payload) -> dict[str, JSON] | None:
    """What the head of a sub-agent, or of a session that Codex runs for itself, says of its origin."""
    source = _opened(meta.source)
    if isinstance(source, dict) and ("subagent" in source or "internal" in source):
        inner = source.get("subagent", source.get("internal"))
        spawn = inner.get("thread_spawn") if isinstance(inner, dict) else None
        if isinstance(spawn, dict):
            return spawn
        return {"agent_role": inner if isinstance(inner, str) else _first_value(inner)}
    if meta.parent_thread_id or _opened(meta.thread_source) == "subagent":
        return {}
    return None


def _first_value(value: JSON) -> JSON:
    return next(iter(value.values()), None) if isinstance(value, dict) else None


def _parent(meta: Payload, spawned: dict[str, JSON] | None) -> str | None:
    parent = meta.parent_thread_id or (spawned or {}).get("parent_thread_id")
    return parent if isinstance(parent, str) else None


def _agent(meta: Payload, spawned: dict[str, JSON] | None) -> str | None:
    if spawned is None:
        return None
    ranks = (meta.agent_path, spawned.get("agent_path"), meta.agent_nickname, spawned.get("agent_nickname"))
    more = (spawned.get("agent_role"), spawned.get("agent_type"))
    return next((name for name in (*ranks, *more) if isinstance(name, str) and name), None)


def _lineage(source: SourceFile, outline: Outline, meta: Payload) -> Any:
    """Where the thread comes from, as far as its head tells."""
    named = locate.parse_name(source.path)
    told = {
        "thread": meta.id if named is not None and named.rollout else None,
        "root_session": meta.session_id if meta.session_id != meta.id else None,
        "forked_from": meta.forked_from_id or (outline.parents[0] if outline.inherited and outline.parents else None),
        "history_mode": meta.history_mode,
        "history_base": _opened(meta.history_base),
        "source": _opened(meta.source),
        "archived": True if locate.ARCHIVED in source.path.parts else None,
    }
    return ((name, fact) for name, fact in told.items() if fact is not None)


def _opened(raw: Any) -> JSON:
    return None if raw is UNSET else loads_text(raw)


def _canonical(time: JSON) -> str | None:
    stamp = parse_time(time)
    return spell_time(stamp) if stamp is not None else None
