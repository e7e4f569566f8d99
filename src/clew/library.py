"""All sessions of some homes: found, filtered by the catalog, and opened lazily."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from datetime import datetime
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from clew.agents.base import SourceFile
from clew.agents.registry import names
from clew.analysis.usage import Usage
from clew.annotations import Annotation, Annotations, Target
from clew.catalog.sync_level import SyncLevel, level_for
from clew.errors import SourceUnreadable, UnknownReference, UsageError
from clew.filters import CommitRange, Filters
from clew.host import Host, current_time
from clew.model.json import JSON
from clew.references import Reference, message_of, named_path, the_one
from clew.sources.local import Found, at_path, in_homes, is_folder, unreadable_folders
from clew.sources.wsl import host_at
from clew.stored_session import StoredSession

if TYPE_CHECKING:
    from clew.catalog.access import OpenCatalog
    from clew.catalog.stats import Stats
    from clew.catalog.sync import ShowProgress

__all__ = ["Library", "StoredSession", "every_host", "sessions"]

MAX_FOLDER_SESSIONS = 100
"""A folder with more sessions than this is not searched for the one that started all others."""
NO_AGENT = ""
"""The id of no agent."""


class Library:
    """The sessions of one or more homes; without one, of every source that is switched on.

    Filters and ids are answered by the catalog of these homes in clew's data folder, after a sync that reads what
    changed. Where the data folder cannot be written, the catalog is a temporary one.
    """

    def __init__(
        self,
        *homes: Host | Path | str,
        agents: Iterable[str] | None = None,
        reference_filters: Filters | None = None,
        catalog_folder: Path | None = None,
        find_hosts: Callable[[], Sequence[Host]] | None = None,
        sync: bool = True,
        show_progress: ShowProgress = nullcontext,
        warn: Callable[[str], None] | None = None,
    ) -> None:
        """Without homes, `find_hosts` is called when they are first needed; `sync=False` uses the catalog as it is.

        `@last`, `@2` and titles are looked for among the sessions that pass `reference_filters`.
        """
        self._named_hosts = tuple(home if isinstance(home, Host) else _host_at(Path(home)) for home in homes)
        self._find_hosts = find_hosts or every_host
        self._agents = list(agents) if agents is not None else None
        self.reference_filters: Filters = reference_filters or Filters()
        """`@last`, `@2` and titles are looked for among the sessions that pass these."""
        self._catalog_folder = catalog_folder
        self._sync, self._show_progress, self._warn = sync, show_progress, warn

    @cached_property
    def hosts(self) -> tuple[Host, ...]:
        """The homes; the clock of the first counts."""
        return self._named_hosts or tuple(self._find_hosts())

    def now(self) -> datetime:
        """The time on the clock of the first home."""
        return self._named_hosts[0].now() if self._named_hosts else current_time()

    @cached_property
    def catalog_folder(self) -> Path:
        """The folder of the catalog over these homes."""
        from clew.catalog import database

        if self._catalog_folder is not None:
            return self._catalog_folder
        return database.folder_of(self._named_hosts) if self._named_hosts else database.catalog_folder()

    def catalog(
        self, level: SyncLevel = SyncLevel.SESSIONS, filters: Filters | None = None
    ) -> AbstractContextManager[OpenCatalog]:
        """Open the catalog, up to date as far as `level`; with text where the filters look into text."""
        from clew.catalog.access import open_synced

        return open_synced(
            lambda: self.hosts,
            self.catalog_folder,
            level_for(filters, level),
            sync=self._sync,
            show_progress=self._show_progress,
            warn=self._warn,
        )

    def _of_agents(self, filters: Filters) -> Filters:
        """The filters, with the agents that this library is limited to."""
        if self._agents is None:
            return filters
        agents = [name for name in self._agents if not filters.agent or name in filters.agent]
        return msgspec.structs.replace(filters, agent=tuple(agents or [NO_AGENT]))

    def sources(self) -> Iterator[StoredSession]:
        """Every session, unopened, as the agents' folders list them; the catalog is not asked."""
        return self._sources(self._agents)

    def _sources(self, agents: Iterable[str] | None) -> Iterator[StoredSession]:
        for found in in_homes(self.hosts, agents):
            yield self._stored(found)

    def _stored(self, found: Found) -> StoredSession:
        return StoredSession(found.agent, found.source, self.hosts[0])

    def sessions(
        self, filters: Filters | None = None, *, on_unreadable: Callable[[str], None] | None = None
    ) -> Iterator[StoredSession]:
        """The sessions that pass the filters.

        `on_unreadable` is called for each folder that cannot be read, with the reason. A session that cannot be read
        passes where no filter looks into sessions; otherwise `on_unreadable` is called for it too.
        """
        filters = filters or Filters()
        if filters.without("agent") != Filters():
            yield from self._filtered(filters, on_unreadable)
            return
        asked = self._agents
        if asked is None and filters.agent:
            # A file belongs to the first agent that lists it, so agents before the last one wanted are asked too.
            known = names()
            asked = known[: max((known.index(name) + 1 for name in filters.agent if name in known), default=0)]
        if on_unreadable is not None:
            wanted = [name for name in asked or () if name in filters.agent] if filters.agent else asked
            for folder in unreadable_folders(self.hosts, wanted):
                on_unreadable(str(folder))
        for session in self._sources(asked):
            if not filters.agent or session.agent.id in filters.agent:
                yield session

    def _filtered(self, filters: Filters, on_unreadable: Callable[[str], None] | None) -> list[StoredSession]:
        from clew.catalog.filters import matching_sources
        from clew.catalog.queries import unreadable_sources
        from clew.catalog.sessions import open_sessions

        with self.catalog(filters=filters) as catalog:
            filters = self._of_agents(filters)
            numbers = matching_sources(catalog.db, filters, catalog.sources_with_text)
            found = open_sessions(catalog.db, numbers, self.hosts[0])
            unreadable = unreadable_sources(catalog.db, filters.agent)
        if on_unreadable is not None:
            for reason in unreadable:
                on_unreadable(reason)
        return found

    def find(
        self, reference: str, *, branches: bool = False, missing: bool = False, ids_only: bool = False
    ) -> list[StoredSession]:
        """The sessions that a reference names; a folder may hold many. Raises where there is none or it is ambiguous.

        A reference is an id or its unique beginning, `agent:id`, a title or its unique beginning, `@last`, `@2` for the
        session before it, or a path.

        `branches`: the caller can show the branch of `id@branch`; otherwise it is refused. `missing`: also a session
        whose file is gone, from the text in the catalog. `ids_only`: titles and paths are no references, and no folder
        is looked into.
        """
        path = named_path(reference) if not ids_only else None
        if path is not None:
            return self.sessions_at(path)
        parsed = Reference.parse(reference)
        if parsed.branch is not None and not branches:
            raise UsageError(f"{reference!r} names a branch; this command needs a whole session")
        from clew.catalog.filters import catalog_condition
        from clew.catalog.queries import moved_project_hints
        from clew.catalog.sessions import find_session

        filters = self._of_agents(self.reference_filters)
        try:
            with self.catalog(filters=filters) as catalog:
                find_text = catalog.sources_with_text
                chosen = None if filters == Filters() else catalog_condition(catalog.db, filters, find_text)
                try:
                    host = self.hosts[0]
                    return [
                        find_session(catalog.db, parsed, host, missing=missing, condition=chosen, ids_only=ids_only)
                    ]
                except UnknownReference as error:
                    hints = moved_project_hints(catalog.db, filters.folders) if filters.folders else []
                    raise UnknownReference("; ".join([str(error), *hints])) from None
        except UnknownReference as error:
            # A session comes before a folder of the same name.
            if ids_only or not is_folder(Path(reference)):
                from clew.archive.restore import in_archive

                raise in_archive(parsed.id, parsed.agent) or error from None
        return self.sessions_at(Path(reference))

    def sessions_at(self, path: Path) -> list[StoredSession]:
        """The session in a file, or every session below a folder; the catalog is not asked."""
        return [self._stored(found) for found in at_path(path, self.hosts, self._warn)]

    def get(
        self, reference: str, *, branches: bool = False, missing: bool = False, ids_only: bool = False
    ) -> StoredSession:
        """The one session that a reference names. The sub-agents of a session in its folder belong to it."""
        found = self.find(reference, branches=branches, missing=missing, ids_only=ids_only)
        if 1 < len(found) <= MAX_FOLDER_SESSIONS:
            found = [session for session in found if not _is_subagent(session)] or found
        return the_one(reference, found)

    @property
    def annotations(self) -> Annotations:
        """The stars, labels and notes of all sessions, whatever their home: clew keeps them in its data folder."""
        return Annotations()

    def annotate(
        self,
        reference: str | StoredSession,
        message: int | None = None,
        *,
        starred: bool | None = None,
        add_labels: Iterable[str] = (),
        remove_labels: Iterable[str] = (),
        note: str | None = None,
        title: str | None = None,
    ) -> Annotation:
        """Set the star, labels or note of a session or of one message, `#12` in the reference or `message=12`.

        A session can have a title too. What is not named stays as it is. Returns the annotation as it is now.
        """
        if isinstance(reference, str):
            message = message if message is not None else message_of(reference)
            reference = self.get(reference, missing=True)
        return self.annotations.change(
            Target.of(reference, message),
            starred=starred,
            add_labels=add_labels,
            remove_labels=remove_labels,
            note=note,
            title=title,
            now=self.now(),
        )

    def subagents(self, session: StoredSession) -> Callable[[str], SourceFile | None]:
        """A function that finds the sub-agents of a session by id: in the catalog, or in the folder of the session.

        In its folder first if the session is outside of the homes, as one that is named by its path may be.
        """
        from clew.catalog.sessions import sources_by_id

        @cache
        def in_catalog() -> Mapping[str, SourceFile]:
            with self.catalog() as catalog:
                return sources_by_id(catalog.db, session.agent.id)

        @cache
        def in_folder() -> Mapping[str, SourceFile]:
            known = {}
            for found in at_path(session.path.parent):
                if found.agent.id == session.agent.id:
                    with suppress(SourceUnreadable):
                        known[found.agent.session_id(found.source)] = found.source
            return known

        is_in_home = any(host.holds(session.path) for host in self.hosts)
        places = (in_catalog, in_folder) if is_in_home else (in_folder, in_catalog)
        return lambda identity: next((place()[identity] for place in places if identity in place()), None)

    def commits(
        self,
        revisions: str | None = None,
        repository: Path | str = ".",
        *,
        session: StoredSession | None = None,
        limit: int | None = None,
    ) -> dict[str, JSON]:
        """The commits of a git range with their sessions, evidence and cost: what `clew commits --json` prints.

        Without `revisions`, the newest commits up to HEAD. With `session`, the commits of that session alone; without
        `revisions` on all branches.
        """
        from clew.catalog.commit_links import commits_of, commits_since, find_links
        from clew.catalog.commit_report import commit_report
        from clew.catalog.ids import session_key
        from clew.io.git import open_repository
        from clew.io.paths import path_for_display, path_to_text

        opened = open_repository(Path(repository))
        wanted = CommitRange(str(repository), revisions or "")
        with self.catalog(SyncLevel.MESSAGES) as catalog:
            key = session_key(session.agent.id, session.id) if session is not None else None
            if key is not None and revisions is None:
                log = commits_since(catalog.db, opened, key, limit)
            else:
                log = commits_of(opened, wanted, limit)
            links = find_links(catalog.db, opened, log.commits)
            report = commit_report(catalog.db, log.commits, links.by_commit, {key} if key is not None else ())
        where = opened.worktrees[0] if opened.worktrees else opened.folder.resolve()
        return {
            "repository": path_for_display(path_to_text(str(where))),
            "range": revisions,
            "is_shallow": opened.is_shallow,
            "is_cut": log.is_cut or links.is_cut,
            **report,
        }

    def usage(self, filters: Filters | None = None) -> dict[str, Usage]:
        """Tokens by model; a call that several files repeat counts once. Filters hold for each call."""
        with self._stats(filters, SyncLevel.SESSIONS) as stats:
            return stats.tokens_by_model()

    def totals(self, filters: Filters | None = None) -> dict[str, Any]:
        """Sessions, sub-agents, messages, tokens, cost and so on: the `totals` of `clew stats --json`."""
        with self._stats(filters, SyncLevel.MESSAGES) as stats:
            return stats.totals()

    @contextmanager
    def _stats(self, filters: Filters | None, level: SyncLevel) -> Iterator[Stats]:
        from clew.catalog.stats import catalog_stats

        filters = self._of_agents(filters or Filters())
        with self.catalog(level, filters) as catalog:
            yield catalog_stats(catalog.db, filters, catalog.sources_with_text)


def _is_subagent(session: StoredSession) -> bool:
    try:
        return session.is_subagent
    except SourceUnreadable:
        return False


def every_host() -> tuple[Host, ...]:
    """The user's own home, and every other source that is switched on and can be read now."""
    from clew.sources.registry import chosen, hosts, sources

    return hosts(chosen(sources(), ()))


def _host_at(home: Path) -> Host:
    if not home.is_dir():
        raise SourceUnreadable(f"{home}: no such folder")
    return host_at(home)


def sessions(home: Path | str | None = None, **filters: JSON) -> Iterator[StoredSession]:
    """All sessions of a home folder (default: of every source), filtered by `agent=`, `project=`, `since=`, ..."""
    library = Library() if home is None else Library(home)
    return library.sessions(Filters.of(**filters))
