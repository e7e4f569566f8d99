"""Which catalog a command means, and whether it can answer."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from clew.agents import registry
from clew.agents.base import Agent, SourceFile
from clew.catalog import database
from clew.cli.sourcing import REFRESH, wanted_sources
from clew.errors import UnknownReference
from clew.filters import Filters
from clew.host import Host
from clew.library import Library, StoredSession
from clew.model.json import JSON
from clew.references import Reference, named_path, resolve

if TYPE_CHECKING:
    from clew.catalog.opening import Remembered


def folder_for(context: click.Context, homes: tuple[str, ...], hosts: Sequence[Host]) -> Path:
    """The catalog over the homes and sources that were named; without any, over the default sources."""
    named = bool(context.find_root().obj["homes"] or homes or wanted_sources(context))
    return database.folder_of(hosts) if named else database.catalog_folder()


def fresh_folder(context: click.Context, homes: tuple[str, ...], hosts: Sequence[Host]) -> Path | None:
    """The same, where the catalog is there and nothing has changed since; None: the sources must be asked."""
    from clew.catalog.sync import is_up_to_date as is_fresh

    if context.meta.get(REFRESH):
        return None
    folder = folder_for(context, homes, hosts)
    return folder if is_fresh(folder) else None


@contextmanager
def fresh_catalog(
    context: click.Context, homes: tuple[str, ...], shelf: Library
) -> Iterator[sqlite3.Connection | None]:
    """The catalog, opened for reading, where it is fresh."""
    folder = fresh_folder(context, homes, shelf.hosts)
    db = database.open_reader(folder) if folder is not None else None
    try:
        yield db
    finally:
        if db is not None:
            db.close()


def listed(
    context: click.Context, homes: tuple[str, ...], shelf: Library, filters: Filters
) -> tuple[list[dict[str, JSON]], list[str]]:
    """The rows of a list, and what could not be read: from the catalog where it is fresh, else from the sources."""
    from clew.catalog.listed import can_answer
    from clew.catalog.listed import listed as from_catalog
    from clew.cli.rows import rows

    with fresh_catalog(context, homes, shelf) as db:
        if db is not None and can_answer(filters) and not _has_unreadable(db):
            return from_catalog(db, filters), []
    return rows(shelf.sessions(filters))


def _has_unreadable(db: sqlite3.Connection) -> bool:
    query = "SELECT 1 FROM source f LEFT JOIN session s ON s.id = f.id WHERE s.id IS NULL AND f.state <> 'gone'"
    return db.execute(query).fetchone() is not None


class _Known:
    """A session in the catalog, as a reference is resolved."""

    def __init__(self, name: str, id: str, is_subagent: bool, path: str, notes: str) -> None:
        from clew.catalog.discovery import source_from_json

        self.id, self.is_subagent = id, bool(is_subagent)
        self.agent: Agent = registry.get(name)
        self.source: SourceFile = source_from_json(name, path, notes)


def find(
    context: click.Context, homes: tuple[str, ...], shelf: Library, reference: str, *, branches: bool = False
) -> StoredSession:
    """The one session a reference means; a fresh catalog knows where it is without a look at all the others."""
    if named_path(reference) is None:
        with fresh_catalog(context, homes, shelf) as db:
            if db is not None and not Path(reference).is_dir():
                query = "SELECT s.agent, s.native_id, s.is_agent_session, f.path, f.found FROM session s"
                query += " JOIN source f ON f.id = s.id WHERE f.state <> 'gone' ORDER BY f.agent, f.path"
                known = [_Known(*row) for row in db.execute(query)]
                with suppress(UnknownReference):
                    found = resolve(Reference.parse(reference), known)
                    return StoredSession(found.agent, found.source, shelf.hosts[0])
    try:
        return shelf.get(reference, branches=branches)
    except UnknownReference:
        if named_path(reference) is None and (kept := _gone(context, homes, shelf, reference)) is not None:
            return kept
        raise


def _gone(context: click.Context, homes: tuple[str, ...], shelf: Library, reference: str) -> Remembered | None:
    """The session that a reference means, where its source is gone; None where the catalog knows of none."""
    from clew.catalog.listed import sessions
    from clew.catalog.opening import Remembered
    from clew.catalog.remembered import messages_of, session_of
    from clew.cli.output import say

    db = database.open_reader(folder_for(context, homes, shelf.hosts))
    if db is None:
        return None
    stored = {one.path: one for one in sessions(db, "gone")}
    nothing = '{"parts":[],"sides":[],"origin":null}'
    known = [_Known(one.agent, one.header["id"], False, path, nothing) for path, one in stored.items()]
    try:
        found = resolve(Reference.parse(reference), known)
    except UnknownReference:
        return None
    kept = stored[str(found.source.path)]
    say(f"clew: {kept.path} is gone; this is what the catalog keeps of it")
    return Remembered(found.agent, found.source, session_of(kept), messages_of(db, kept))
