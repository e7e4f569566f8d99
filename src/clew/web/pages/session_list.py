"""The list of sessions beside a transcript, in parts that its script loads."""

from __future__ import annotations

from datetime import date, timedelta
from hashlib import sha256
from itertools import groupby
from typing import NamedTuple

from starlette.responses import Response

from clew.catalog import queries
from clew.catalog.queries import Entry
from clew.catalog.session_index import IndexedSession, SessionIndex, by_project, top_level
from clew.model.time import from_microseconds
from clew.timezone import local_time
from clew.web.context import AppContext
from clew.web.pages.home import running_sessions
from clew.web.request import PageRequest, respond

ROWS = 60
"""Sessions that are loaded at once, without their sub-agents."""
MAX_ROWS = 600
MAX_RUNNING = 50
STATE_HEADER = "X-Clew-State"
"""Another value when the list may have changed."""


class Group(NamedTuple):
    """Sessions of one day or of one project."""

    key: str
    title: str
    entries: list[Entry]


def view(request: PageRequest) -> Response:
    """Some rows of the list: those that were asked for, or those around the session that is shown.

    The answer is empty while the list is as it was at `state`.
    """
    context = request.context
    running = {entry.number for entry in running_sessions(context, MAX_RUNNING)}
    today = local_time(context.now()).date()
    state = _state(context.catalog_state(), sorted(running), today, request.profile, request.annotations)
    if state == request.param("state"):
        return Response(status_code=204)
    index = session_index(context)
    current = index.get(request.param("current") or "")
    words, is_by_project = request.param("q") or "", request.param("group") == "project"
    matching = index.find(words, request.session_labels) if words else []
    listed = index.family(matching) if words else index.sessions
    tops = by_project(top_level(listed)) if is_by_project else top_level(listed)
    rows = max(1, request.number("rows", ROWS, MAX_ROWS))
    first = min(request.number("from", _first_row(index, tops, current)), len(tops))
    found = queries.entries(context.db, [session.number for session in tops[first : first + rows]])
    entries = queries.with_children(context.db, found, {session.number for session in listed} if words else None)
    response = respond(
        request,
        "session_list.html",
        groups=_groups(entries, is_by_project, today),
        is_by_project=is_by_project,
        current=current.key if current else "",
        opened=_opened(index, [*matching, *([current] if current else [])]),
        running=running,
        first=first,
        end=first + len(entries),
        total=len(tops),
        words=words,
    )
    response.headers[STATE_HEADER] = state
    return response


def session_index(context: AppContext) -> SessionIndex:
    """The names of all sessions as they are now."""
    return context.cached("session index", lambda: SessionIndex.load(context.db))


def _state(*values: object) -> str:
    return sha256(repr(values).encode()).hexdigest()[:16]


def _first_row(index: SessionIndex, tops: list[IndexedSession], current: IndexedSession | None) -> int:
    """The row with which the list begins, so that the session that is shown is among the first rows."""
    top = index.top_level(current) if current else None
    position = tops.index(top) if top in tops else 0
    return 0 if position < ROWS else position - ROWS // 2


def _opened(index: SessionIndex, sessions: list[IndexedSession]) -> set[str]:
    """The keys of the sessions whose sub-agents are unfolded, because one of them is shown or was searched for."""
    opened: set[str] = set()
    for session in sessions:
        while (parent := index.get(session.parent)) and parent.key not in opened:
            opened.add(parent.key)
            session = parent
    return opened


def _groups(entries: list[Entry], is_by_project: bool, today: date) -> list[Group]:
    if is_by_project:
        projects = groupby(entries, key=lambda entry: entry.project)
        return [Group(project, project or "No project", list(together)) for project, together in projects]
    days = groupby(entries, key=_day)
    return [Group(day.isoformat() if day else "", _name_of_day(day, today), list(same)) for day, same in days]


def _day(entry: Entry) -> date | None:
    return local_time(from_microseconds(entry.ended_us)).date() if entry.ended_us > 0 else None


def _name_of_day(day: date | None, today: date) -> str:
    if day is None:
        return "No time"
    near = {today: "Today", today - timedelta(days=1): "Yesterday"}
    return near.get(day) or f"{day:%a} {day.day} {day:%b %Y}"
