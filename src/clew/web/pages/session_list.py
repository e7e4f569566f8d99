"""The list of sessions beside a transcript, in parts that its script loads."""

from __future__ import annotations

from datetime import date, timedelta
from hashlib import sha256
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from starlette.responses import Response

from clew.catalog import queries
from clew.catalog.queries import Entry
from clew.catalog.running import running_sessions
from clew.catalog.session_index import IndexedSession, SessionIndex, grouped, top_level
from clew.model.time import from_microseconds
from clew.timezone import local_time
from clew.web.context import AppContext
from clew.web.request import PageRequest, respond

ROWS = 60
"""Sessions that are loaded at once, without their sub-agents; the script reads it from the page."""
MAX_ROWS = 600
GROUPINGS = ("day", "project", "agent")
STATE_HEADER = "X-Clew-State"
"""Changes whenever the list may have changed."""


class LoadedIndex(NamedTuple):
    """The names of all sessions, and the state of the catalog that they were read from."""

    sessions: SessionIndex
    catalog_state: object


class Group(NamedTuple):
    """Sessions of one day, project or agent."""

    key: str
    title: str
    entries: list[Entry]


def view(request: PageRequest) -> Response:
    """Some rows of the list: those that were asked for, or those around the session that is shown.

    The answer is empty while the list is as it was at `state`.
    """
    context, current_key = request.context, request.param("current") or ""
    index, catalog_state = session_index(context, current_key)
    running, today = running_sessions(context.db, context.now()), local_time(context.now()).date()
    state = _hash(catalog_state, running, today, request.profile, request.annotations.all)
    if state == request.param("state"):
        return Response(status_code=204)
    current = index.get(current_key)
    words, grouping = request.param("q") or "", request.param("group") or "day"
    matching = index.find(words, request.annotations.marks) if words else []
    listed = index.family(matching) if words else index.sessions
    tops = top_level(listed) if grouping not in GROUPINGS[1:] else grouped(top_level(listed), grouping)
    rows = max(1, request.number("rows", ROWS, MAX_ROWS))
    first = max(0, min(request.number("from", _first_row(index, tops, current)), len(tops) - 1))
    found = queries.entries(context.db, [session.number for session in tops[first : first + rows]])
    entries = queries.with_children(context.db, found, {session.number for session in listed} if words else None)
    response = respond(
        request,
        "session_list.html",
        groups=_groups(entries, grouping, today),
        grouping=grouping,
        current=current_key,
        opened=_opened(index, [*matching, *([current] if current else [])]),
        running=running,
        first=first,
        end=first + rows,
        total=len(tops),
        words=words,
    )
    response.headers[STATE_HEADER] = state
    return response


def session_index(context: AppContext, key: str = "") -> LoadedIndex:
    """The names of all sessions as they were a moment ago; as they are now, if they do not have the session `key`."""

    def load() -> LoadedIndex:
        catalog_state = context.catalog_state()
        return LoadedIndex(SessionIndex.load(context.db), catalog_state)

    loaded = context.recent("session index", load)
    return loaded if not key or loaded.sessions.get(key) else context.cached("session index", load)


def _hash(*values: object) -> str:
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


def _groups(entries: list[Entry], grouping: str, today: date) -> list[Group]:
    if grouping in GROUPINGS[1:]:
        named = groupby(entries, key=attrgetter(grouping))
        return [Group(name, name or f"No {grouping}", list(same)) for name, same in named]
    near: dict[date | None, str] = {today: "Today", today - timedelta(days=1): "Yesterday", None: "No time"}
    groups = []
    for day, same in groupby(entries, key=_local_day):
        title = near[day] if day is None or day in near else f"{day:%a} {day.day} {day:%b %Y}"
        groups.append(Group(str(day or ""), title, list(same)))
    return groups


def _local_day(entry: Entry) -> date | None:
    return local_time(from_microseconds(entry.ended_us)).date() if entry.ended_us > 0 else None
