"""The `session` object of the unified document, for conversations, archives and saved sessions."""

from __future__ import annotations

from clew.agents.base import SourceFile
from clew.agents.sage_emacs import locate
from clew.agents.sage_emacs.events import ENDED_AT
from clew.analysis.facts import Facts
from clew.analysis.titles import short_title
from clew.model.json import JSON
from clew.model.time import parse_time, spell_time


def session_object(source: SourceFile, facts: Facts) -> dict[str, JSON]:
    """Id, folder, times and title of a session."""
    known = locate.metadata(source.path) or {}
    started, ended = _span(source, facts, known)
    session: dict[str, JSON] = {
        "id": locate.session_id(source),
        "workspace": _workspace(known, facts),
        "workspace_encoded": locate.project_folder(source.path).name,
        "started_at": started,
        "ended_at": ended,
        "source": {"type": "local", "host": None, "path": str(source.path)},
        "is_agent_session": False,
        "parent_session_id": None,
        "agent_id": None,
    }
    if (title := facts.titles.get("title") or short_title(facts.first_prompt)) is not None:
        session["title"] = title
    if (archived := locate.archive_time(source.path)) is not None:
        session["extensions"] = {locate.AGENT: {"archived_at": archived}}
    return session


def _workspace(known: dict[str, JSON], facts: Facts) -> str:
    """The folder that the metadata name, else the records; the encoded name of a project's folder cannot be decoded."""
    recorded = known.get("project_dir")
    workspace = recorded if isinstance(recorded, str) and recorded else facts.cwd or ""
    return workspace.rstrip("/") or workspace


def _span(source: SourceFile, facts: Facts, known: dict[str, JSON]) -> tuple[str | None, str | None]:
    """When the session began and ended, by its messages, else by what describes it."""
    if facts.first_time is not None:
        return facts.first_time, facts.last_time
    if locate.is_saved(source.path):
        return facts.extra.get("started_at"), facts.extra.get(ENDED_AT)
    if locate.is_archive(source.path):
        return None, locate.archive_time(source.path)
    return _canonical(known.get("created_at")), _canonical(known.get("updated_at"))


def _canonical(time: JSON) -> str | None:
    stamp = parse_time(time)
    return spell_time(stamp) if stamp is not None else None
