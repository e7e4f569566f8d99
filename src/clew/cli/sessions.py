"""Which sessions a command works on: by reference, by filters, or of clew's own store."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from clew.agents.sage_agent.locate import AGENT
from clew.catalog.filters import SourcesWithText
from clew.catalog.sync_level import SyncLevel, level_for
from clew.cli.options import open_library
from clew.cli.output import print_message
from clew.errors import Busy, SourceUnreadable, UsageError
from clew.filters import Filters
from clew.io.paths import refuse_link_to_session
from clew.library import Library
from clew.references import message_of
from clew.stored_session import StoredSession

if TYPE_CHECKING:
    from clew.store.session import Session


def find_session(context: click.Context, homes: tuple[str, ...], reference: str) -> StoredSession:
    """The one session that a reference names, also one whose file is gone."""
    from clew.catalog.sessions import CatalogOnlySession

    session = open_library(context, homes).get(reference, branches=True, missing=True)
    if isinstance(session, CatalogOnlySession):
        from clew.archive.restore import in_archive

        archived = in_archive(session.id, session.agent.id)
        gap = "" if session.is_complete else "; some of its messages were not read before"
        print_message(f"clew: {session.path} was deleted; this is the text that the catalog keeps{gap}")
        if archived:
            print_message(f"clew: {archived}")
    return session


def user_titles() -> dict[tuple[str, str], str]:
    """The titles that the user gave to sessions, by agent and id; none if they cannot be read."""
    from clew.annotations import Annotations, AnnotationsUnreadable

    try:
        return Annotations().index().titles
    except (Busy, AnnotationsUnreadable) as error:
        print_message(f"clew: {error}")
        return {}


@contextmanager
def open_catalog_of(
    library: Library, filters: Filters, paths: Sequence[Path], level: SyncLevel = SyncLevel.SESSIONS
) -> Iterator[tuple[sqlite3.Connection, SourcesWithText]]:
    """The catalog of the library, or one in memory of the sessions at these paths; and what finds text in it."""
    if paths:
        from clew.catalog.memory import memory_catalog, memory_text_finder

        sessions = [session for path in paths for session in library.sessions_at(path)]
        with memory_catalog(
            sessions, level_for(filters, level), lambda problem: print_message(f"clew: {problem}")
        ) as db:
            yield db, memory_text_finder(db)
        return
    with library.catalog(level, filters) as catalog:
        if not filters.sessions:
            print_unreadable(catalog.db, filters.agent)
        yield catalog.db, catalog.sources_with_text


def print_unreadable(db: sqlite3.Connection, agents: Collection[str] = ()) -> None:
    """Warn about files and folders that cannot be read, of some agents or of all: the result lacks what is in them."""
    from clew.catalog.queries import unreadable_sources

    for problem in unreadable_sources(db, agents, with_old_rows=True):
        print_message(f"clew: {problem}")


def print_unknown_formats(db: sqlite3.Connection) -> None:
    """Warn about records that this version of clew does not know: sessions may hold more than it shows."""
    from clew.catalog.unknown_formats import unknown_formats

    for found in unknown_formats(db):
        print_message(f"clew: {found}; `clew doctor` lists them")


def print_problem(problem: str) -> None:
    """Report a session that cannot be read."""
    print_message(f"clew: {problem}")


def for_each_session(
    library: Library,
    references: tuple[str, ...],
    filters: Filters,
    work: Callable[[StoredSession], object],
    report: Callable[[str], object] = print_problem,
) -> int:
    """Do the work for the sessions that are named, or for all, that pass the filters.

    Returns how many could not be read; each is reported.
    """
    for reference in references:
        if message_of(reference) is not None:
            raise UsageError(f"{reference} names a message; only `clew show` takes one")
    if references:
        named = (session for name in references for session in library.find(name))
        return do_each(named, lambda session: [work(one) for one in _passing(session, filters)], report)
    unreadable: list[str] = []
    found = library.sessions(filters, on_unreadable=unreadable.append)
    failed = do_each(found, work, report)
    for reason in unreadable:
        report(reason)
    return failed + len(unreadable)


def do_each(
    sessions: Iterable[StoredSession],
    work: Callable[[StoredSession], object],
    report: Callable[[str], object] = print_problem,
) -> int:
    """Do the work for every session; returns how many could not be read, each of which is reported."""
    unreadable = 0
    for session in sessions:
        try:
            work(session)
        except SourceUnreadable as error:
            report(str(error))
            unreadable += 1
        session.forget()
    return unreadable


def _passing(session: StoredSession, filters: Filters) -> Iterator[StoredSession]:
    if filters == Filters():
        return iter([session])
    from clew.catalog.memory import filter_sessions

    return filter_sessions([session], filters)


def suggest_moved_project(library: Library, *folders: Sequence[str]) -> None:
    """Say which sessions may belong to folders in which none was found; each with all paths it is known by."""
    from clew.catalog.queries import moved_project_hints

    known = [paths for paths in folders if paths]
    if known:
        with library.catalog() as catalog:
            hints = [hint for paths in known for hint in moved_project_hints(catalog.db, paths)]
        for hint in hints:
            print_message(f"clew: {hint}")


def print_unscanned(sessions: int) -> None:
    """Say how many sessions were not scanned for secrets."""
    from clew.render.tables import counted

    if sessions:
        print_message(f"clew: {counted(sessions, 'session')} could not be scanned", mask=False)


def own_session(context: click.Context, homes: tuple[str, ...], reference: str, *, branches: bool = False) -> Session:
    """The session of clew's own store that a reference names."""
    if message_of(reference) is not None:
        raise UsageError(f"{reference} names a message; give the number of the message after the session")
    library = open_library(context, homes)
    session = library.get(reference, branches=branches)
    for host in library.hosts:
        refuse_link_to_session(session.path, host.base or host.home)
    return _own(session, reference)


def _own(session: StoredSession, reference: str) -> Session:
    # Loading the store takes 40 ms, which commands such as `show` would wait for.
    from clew.store.session import Session

    if session.agent.id != AGENT or session.path.name != "messages.jsonl":
        where = f"{reference} is a session of {session.agent.title}, not of clew's own store"
        raise UsageError(f"{where}; --home DIR reads the store in a folder")
    return Session(session.path.parent)


def branch_path(session: StoredSession, branch: str) -> list[str]:
    """The uuids of the messages that lead to a branch."""
    return _own(session, session.id).path(branch)
