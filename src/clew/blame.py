"""Which session, message and prompt wrote each line of a file: from every session that names the file."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from clew.agents.file_evidence import absolute
from clew.agents.registry import load_all
from clew.catalog.queries import sources_changing, sources_of_agents, unreadable_sources
from clew.catalog.sessions import open_sessions
from clew.catalog.sync_level import SyncLevel
from clew.errors import SourceUnreadable, UsageError
from clew.file_history.blame import Line, Version, blame, mentions, plain_part, spellings, versions
from clew.file_history.history import FileHistory
from clew.io.compress import open_regular
from clew.io.paths import escape_invalid_utf8
from clew.library import Library
from clew.model.json import JSON
from clew.sources import moved_projects
from clew.stored_session import StoredSession

_CALL_TEXT = frozenset({"input", "file"})
"""The kinds of text that are arguments of calls."""


class BlamedFile(NamedTuple):
    """The lines of a file as it is now, and the sessions that may have written them."""

    lines: list[Line]
    sessions: list[StoredSession]
    """The sessions that may name the file; none if nothing is known."""
    unread: int = 0
    """How many of them were not read because the time was over."""

    def sessions_of(self, lines: list[Line]) -> list[StoredSession]:
        """The sessions that wrote some lines."""
        ids = {line.origin.session for line in lines if line.origin is not None}
        return [session for session in self.sessions if session.id in ids]


def blame_file(
    library: Library,
    path: Path,
    recorded: str | None = None,
    warn: Callable[[str], object] = lambda _: None,
    *,
    seconds: float = math.inf,
) -> BlamedFile:
    """The lines of a file with their origins. `recorded` is its path in the records, if it was moved since.

    `warn` is called for each session and folder that cannot be read. Sessions with a recorded change of the file are
    read first. After so many seconds, no more of the others are read: most of them mean another file of this name.
    """
    try:
        opened, _ = open_regular(path)
        with opened:
            now = opened.readall()
    except OSError as error:
        raise SourceUnreadable(f"{path}: {error.strerror}") from None
    except ValueError:
        raise UsageError(f"{str(path)!r} is not a path") from None
    names = spellings(path) if recorded is None else {absolute(recorded, None)}
    moved = moved_projects.load()
    names = {known for name in names for known in moved_projects.recorded_paths(name, moved)}
    changing, naming = _sessions_naming(library, names, warn)
    sessions, deadline = [*changing, *naming], time.monotonic() + seconds
    found: list[tuple[str, Version]] = []
    unread = 0
    for number, session in enumerate(sessions):
        if number >= len(changing) and time.monotonic() > deadline:
            unread = len(sessions) - number
            break
        try:
            found += versions(FileHistory(session.agent, session.source), session.id, names)
        except SourceUnreadable as error:
            warn(str(error))
    found.sort(key=lambda pair: pair[0])
    return BlamedFile(blame(now, [version for _, version in found]), sessions if found else [], unread)


def _sessions_naming(
    library: Library, names: set[str], warn: Callable[[str], object]
) -> tuple[list[StoredSession], list[StoredSession]]:
    """The sessions that may have changed a file: their calls name it, or their agent records changes elsewhere too.

    Those with a recorded change of the file come apart from the others.

    The catalog finds the calls. What an agent records elsewhere is not in the catalog, so the files of its other
    sessions are searched for the name. The caller reads each session: only its records prove who wrote which line.
    """
    agents = [agent for agent in load_all() if agent.has_file_changes]
    parts = {plain_part(name) for name in names}
    # A name that JSON may spell in several ways is not searched for.
    unsure = [agent.id for agent in agents if agent.file_changes_outside_calls or "" in parts]
    with library.catalog(SyncLevel.TEXT) as catalog:
        naming = set[int]().union(*(catalog.sources_with_text(part, _CALL_TEXT) for part in parts if part))
        changing = sources_changing(catalog.db, names)
        first = open_sessions(catalog.db, changing, library.hosts[0])
        found = open_sessions(catalog.db, naming - changing, library.hosts[0])
        others = open_sessions(catalog.db, sources_of_agents(catalog.db, unsure) - naming - changing, library.hosts[0])
        for problem in unreadable_sources(catalog.db, with_old_rows=True):
            warn(problem)
    found = [session for session in found if session.agent in agents]
    found += [session for session in others if any(mentions(session.source, name) for name in names)]
    first = [session for session in first if session.agent in agents]
    return first, sorted(found, key=lambda session: (session.agent.id, session.path))


def line_row(line: Line) -> dict[str, JSON]:
    """A line as JSON."""
    row: dict[str, JSON] = {"line": line.number, "text": line_text(line), "session": None}
    if line.origin is not None:
        prompt = line.origin.prompt
        row |= {
            "session": line.origin.session,
            "agent": line.origin.agent,
            "message": line.origin.message,
            "time": line.origin.time,
            "prompt": {"message": prompt[0], "text": prompt[1]} if prompt is not None else None,
            "certainty": line.origin.certainty,
            "how": line.origin.how,
        }
    return row


def line_text(line: Line) -> str:
    """The text of a line, without its end."""
    return escape_invalid_utf8(line.text.rstrip("\r\n"))
