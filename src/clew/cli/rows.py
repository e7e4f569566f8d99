"""What a list says of a session; derived once, the same for tables and JSON."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from clew.analysis.links import holds
from clew.catalog.listing import header_of, row_of
from clew.errors import SourceUnreadable
from clew.io.workers import run_in_workers
from clew.library import StoredSession
from clew.model.json import JSON

WORTH_SPREADING = 32 << 20
"""From this many bytes on, several processes are quicker than one."""


def row(session: StoredSession) -> dict[str, JSON]:
    """One session as a row, as the catalog has it."""
    header = header_of(session.agent, session.source, session.facts, session.session_object)
    return row_of(session.agent.id, header, session.facts.ledger.total(), session.source.size, str(session.path))


def rows(sessions: Iterable[StoredSession]) -> tuple[list[dict[str, JSON]], list[str]]:
    """The rows of all sessions, newest first, and what could not be read."""
    chosen = list(sessions)
    looks = _looks(chosen)
    projects: dict[str, list[dict[str, JSON]]] = defaultdict(list)
    for session, look in zip(chosen, looks, strict=True):
        if "row" in look:
            projects[str(session.path.parent)].append(look)
    for found in projects.values():
        _find_titles(found)
    result = [look["row"] for look in looks if "row" in look]
    result.sort(key=lambda entry: (entry["ended_at"] or "", entry["id"]), reverse=True)
    return result, [look["unreadable"] for look in looks if "unreadable" in look]


def _looks(sessions: list[StoredSession]) -> list[dict[str, JSON]]:
    """A look at each; the largest are dealt out first, so that each process gets about the same."""
    order = sorted(range(len(sessions)), key=lambda at: sessions[at].source.size, reverse=True)
    total = sum(session.source.size for session in sessions)
    found = run_in_workers(_look, [sessions[at] for at in order], workers=1 if total < WORTH_SPREADING else None)
    looks: list[dict[str, JSON]] = [{}] * len(sessions)
    for at, look in zip(order, found, strict=True):
        looks[at] = look
    return looks


def _look(session: StoredSession) -> dict[str, JSON]:
    """A session's row, and what tells its title from other files."""
    try:
        look: dict[str, JSON] = {"row": row(session)}
    except SourceUnreadable as error:
        return {"unreadable": str(error)}
    facts = session.facts
    if facts.summaries:
        look["summaries"] = facts.summaries
    if not facts.titles:
        look["uuids"] = facts.links.uuids
    session.forget()
    return look


def _find_titles(looks: list[dict[str, JSON]]) -> None:
    """A summary of a session may stand in any later file of its project."""
    summaries = {leaf: text for look in looks for leaf, text in look.get("summaries", {}).items()}
    for look in looks:
        for leaf, summary in summaries.items():
            if "uuids" in look and holds(look["uuids"], leaf):
                look["row"]["title"] = summary
