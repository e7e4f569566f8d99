"""Which session, message and prompt wrote each line of a file: from every session that names the file."""

from __future__ import annotations

from collections.abc import Callable, Collection
from itertools import accumulate
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
from clew.file_history.diffs import without_line_end
from clew.io.compress import open_regular
from clew.io.paths import escape_invalid_utf8
from clew.library import Library
from clew.model.json import JSON
from clew.sources import moved_projects
from clew.stored_session import StoredSession

_CALL_TEXT = frozenset({"input", "file"})
"""The kinds of text that are arguments of calls."""
_MAX_RELATIVE_PARTS = 16
"""The most parts of a relative path that is looked for together with the folder that it is relative to."""


class BlamedFile(NamedTuple):
    """The lines of a file as it is now, and the sessions that may have written them."""

    lines: list[Line]
    sessions: list[StoredSession]
    """The sessions that were read for it; none if nothing is known."""
    unread_sessions: int
    """How many sessions that name a file of this name were not read."""

    @property
    def may_miss_origins(self) -> bool:
        """True if a line has no known origin, and a session that was not read may have written it."""
        return self.unread_sessions > 0 and any(line.origin is None for line in self.lines)

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
    max_bytes: int | None = None,
) -> BlamedFile:
    """The lines of a file with their origins. `recorded` is its path in the records, if it was moved since.

    `warn` is called for each session and folder that cannot be read. Sessions that never name the folder of the file
    are read only with `all_sessions`: nearly all of them mean another file of this name. Without it, `max_bytes` limits
    the size of the sessions that are read, the newest first; sessions that changed the file are always read.
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
    candidates = _find_candidates(library, names, warn)
    sessions = candidates.all() if all_sessions else candidates.likely(max_bytes)
    found: list[tuple[str, Version]] = []
    for session in sessions:
        try:
            found += versions(session.agent, session.source, session.id, names)
        except SourceUnreadable as error:
            warn(str(error))
    found.sort(key=lambda pair: pair[0])
    lines = blame(now, [version for _, version in found])
    return BlamedFile(lines, sessions if found else [], len(candidates.all()) - len(sessions))


class _Candidates(NamedTuple):
    """The sessions that may have changed a file, each in one list."""

    changing: list[StoredSession]
    """By the catalog, a call of a tool changed the file."""
    naming_path: list[StoredSession]
    """A call names the file and its folder; or the agent records changes outside of calls, and names the file."""
    naming_file: list[StoredSession]
    """A call names a file of this name, but not its folder."""

    def all(self) -> list[StoredSession]:
        return [*self.changing, *self.naming_path, *self.naming_file]

    def likely(self, max_bytes: int | None) -> list[StoredSession]:
        """The sessions that changed the file, and the newest that name its path, up to a size of all together."""
        if max_bytes is None:
            return [*self.changing, *self.naming_path]
        newest = sorted(self.naming_path, key=lambda session: session.source.mtime, reverse=True)
        sizes = accumulate(session.source.size for session in [*self.changing, *newest])
        within = sum(size <= max_bytes for size in sizes)
        return [*self.changing, *newest][: max(within, len(self.changing))]


def _find_candidates(library: Library, names: set[str], warn: Callable[[str], object]) -> _Candidates:
    """The sessions that may have changed a file; only their records prove who wrote which line.

    The catalog finds calls. What an agent records outside of calls is not in the catalog, so the files of all its
    sessions are searched for the name.
    """
    agents = [agent for agent in load_all() if agent.has_file_changes]
    # A name that JSON may spell in several ways cannot be searched for: all sessions name it.
    is_searchable = all(map(plain_part, names))
    searched_agents = [agent.id for agent in agents if agent.file_changes_outside_calls or not is_searchable]
    with library.catalog(SyncLevel.TEXT) as catalog:
        changing = sources_changing(catalog.db, names)
        naming_file = set[int]().union(*(_sources_naming_file(catalog, name) for name in names))
        naming_path = set[int]().union(*(_sources_naming_path(catalog, name, naming_file) for name in names)) - changing
        searched = sources_of_agents(catalog.db, searched_agents) - changing - naming_path
        naming_file -= changing | naming_path | searched
        known = sources_of_agents(catalog.db, [agent.id for agent in agents])
        groups = [
            open_sessions(catalog.db, group & known, library.hosts[0])
            for group in (changing, naming_path, naming_file, searched)
        ]
        for problem in unreadable_sources(catalog.db, with_old_rows=True):
            warn(problem)
    mentioning = [session for session in groups[3] if any(mentions(session.source, name) for name in names)]
    return _Candidates(groups[0], [*groups[1], *mentioning], groups[2])


def _sources_naming_file(catalog: OpenCatalog, path: str) -> Collection[int]:
    """The sources with a call that contains the name of a file."""
    part = plain_part(path)
    found = None
    if part == path.rpartition("/")[2]:  # else the characters around this part may belong to the same words
        found = catalog.sources_with_phrases([[part]], _CALL_TEXT)
    return found if found is not None else catalog.sources_with_text(part, _CALL_TEXT) if part else ()


def _sources_naming_path(catalog: OpenCatalog, path: str, naming_file: set[int]) -> set[int]:
    """Those of some sources with a call that names the folder of a file too, from the root or from their workspace."""
    found = catalog.sources_with_phrases(_folders_and_rests(path), _CALL_TEXT)
    if found is None:
        return naming_file
    naming_path = naming_file & found
    sources_by_relative_path: dict[str, set[int]] = {}
    for number, workspace in workspaces(catalog.db, naming_file - naming_path).items():
        if workspace and PurePosixPath(path).is_relative_to(root := absolute(workspace, None)):
            relative = str(PurePosixPath(path).relative_to(root))
            sources_by_relative_path.setdefault(relative, set()).add(number)
    for relative, numbers in sources_by_relative_path.items():
        found = catalog.sources_with_phrases(_folders_and_rests(relative), _CALL_TEXT)
        naming_path |= numbers if found is None else numbers & found
    return naming_path


def _folders_and_rests(path: str) -> list[list[str]]:
    """A path in all ways in which a call may name a working folder and the rest of the path; a plain name as it is."""
    parts = path.strip("/").split("/")
    cuts = range(max(1, len(parts) - _MAX_RELATIVE_PARTS), len(parts))
    return [["/".join(parts[:cut]), "/".join(parts[cut:])] for cut in cuts] or [[path]]


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
    return escape_invalid_utf8(without_line_end(line.text))
