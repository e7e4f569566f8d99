"""Which session, message and prompt wrote each line of a file: from every session that names the file."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from clew.agents.file_evidence import absolute
from clew.agents.registry import load_all
from clew.catalog.access import OpenCatalog
from clew.catalog.queries import sources_changing, sources_of_agents, unreadable_sources, workspaces
from clew.catalog.sessions import open_sessions
from clew.catalog.sync_level import SyncLevel
from clew.errors import SourceUnreadable, UsageError
from clew.file_history.blame import Line, Version, blame, mentions, plain_part, spellings, versions
from clew.file_history.history import FileHistory
from clew.io.compress import open_regular
from clew.io.paths import escape_invalid_utf8
from clew.library import Library
from clew.model.json import JSON
from clew.render.tables import counted
from clew.sources import moved_projects
from clew.stored_session import StoredSession

_CALL_TEXT = frozenset({"input", "file"})
"""The kinds of text that are arguments of calls."""


class BlamedFile(NamedTuple):
    """The lines of a file as it is now, and the sessions that may have written them."""

    lines: list[Line]
    sessions: list[StoredSession]
    """The sessions that were read for it; none if nothing is known."""
    unread: int
    """How many sessions were not read because their calls name the file, but not its folder."""

    @property
    def note(self) -> str:
        """Says which sessions were not read, where one of them may have written a line; else empty."""
        if not self.unread or all(line.origin is not None for line in self.lines):
            return ""
        return f"not read: {counted(self.unread, 'session')} where calls name the file, but not its folder"

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
    all_sessions: bool = False,
) -> BlamedFile:
    """The lines of a file with their origins. `recorded` is its path in the records, if it was moved since.

    `warn` is called for each session and folder that cannot be read. Sessions that never name the folder of the file
    are read only with `all_sessions`: nearly all of them mean another file of this name.
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
    near, distant = _sessions_naming(library, names, warn)
    sessions = [*near, *distant] if all_sessions else near
    found: list[tuple[str, Version]] = []
    for session in sessions:
        try:
            found += versions(FileHistory(session.agent, session.source), session.id, names)
        except SourceUnreadable as error:
            warn(str(error))
    found.sort(key=lambda pair: pair[0])
    lines = blame(now, [version for _, version in found])
    return BlamedFile(lines, sessions if found else [], 0 if all_sessions else len(distant))


class _NamingSessions(NamedTuple):
    """The sessions whose records may tell who wrote a file."""

    near: list[StoredSession]
    """With a recorded change of the file, or with a call that names both the file and its folder."""
    distant: list[StoredSession]
    """With calls that name a file of this name, and not its folder."""


def _sessions_naming(library: Library, names: set[str], warn: Callable[[str], object]) -> _NamingSessions:
    """The sessions that may have changed a file: their calls name it, or their agent records changes elsewhere too.

    The catalog finds the calls. What an agent records elsewhere is not in the catalog, so the files of its other
    sessions are searched for the name. The caller reads each session: only its records prove who wrote which line.
    """
    agents = [agent for agent in load_all() if agent.has_file_changes]
    # A name that JSON may spell in several ways is not searched for.
    is_searchable = all(map(plain_part, names))
    unsure = [agent.id for agent in agents if agent.file_changes_outside_calls or not is_searchable]
    with library.catalog(SyncLevel.TEXT) as catalog:
        naming = set[int]().union(*(_sources_naming(catalog, name) for name in names))
        near = sources_changing(catalog.db, names).union(*(_sources_near(catalog, naming, name) for name in names))
        near_sessions = open_sessions(catalog.db, near, library.hosts[0])
        distant = open_sessions(catalog.db, naming - near, library.hosts[0])
        others = open_sessions(catalog.db, sources_of_agents(catalog.db, unsure) - naming - near, library.hosts[0])
        for problem in unreadable_sources(catalog.db, with_old_rows=True):
            warn(problem)
    near_sessions += [session for session in others if any(mentions(session.source, name) for name in names)]
    return _NamingSessions(
        [session for session in near_sessions if session.agent in agents],
        [session for session in distant if session.agent in agents],
    )


def _sources_naming(catalog: OpenCatalog, path: str) -> Collection[int]:
    """The sources with a call that contains the name of a file."""
    part = plain_part(path)
    if part == path.rpartition("/")[2]:
        return catalog.sources_with_phrases([part], _CALL_TEXT)
    # The characters around this part of the name may belong to the same words.
    return catalog.sources_with_text(part, _CALL_TEXT) if part else ()


def _sources_near(catalog: OpenCatalog, naming: set[int], path: str) -> set[int]:
    """Those of some sources with a call that names the folder of a file too, from the root or from their workspace."""
    folder, _, name = path.rpartition("/")
    near = naming & catalog.sources_with_phrases([folder, name], _CALL_TEXT)
    sources_of: dict[PurePosixPath, set[int]] = {}
    for number, workspace in workspaces(catalog.db, naming - near).items():
        if workspace and PurePosixPath(folder).is_relative_to(root := absolute(workspace, None)):
            sources_of.setdefault(PurePosixPath(folder).relative_to(root), set()).add(number)
    for inside, numbers in sources_of.items():
        folders = [str(inside)] if inside.parts else []
        near |= numbers & catalog.sources_with_phrases([*folders, name], _CALL_TEXT)
    return near


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
