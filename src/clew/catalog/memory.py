"""A catalog in memory, for sessions that no catalog holds, such as files that are named by their paths."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager

from clew.agents.source import source_state
from clew.catalog.dedupe import update_visible_copies
from clew.catalog.discovery import host_name, source_to_json
from clew.catalog.filters import SourcesWithText, matching_sources
from clew.catalog.ingest import Ingested, ingest
from clew.catalog.lookup import TextReader
from clew.catalog.row_writer import RowWriter
from clew.catalog.schema import create
from clew.catalog.search import sources_with_text
from clew.catalog.sync_level import SyncLevel, level_for
from clew.catalog.text_store import ChunkPacker, SourceTextWriter
from clew.catalog.titles import update_titles
from clew.errors import SourceUnreadable
from clew.filters import Filters
from clew.io.paths import path_to_text
from clew.stored_session import StoredSession


@contextmanager
def memory_catalog(
    sessions: Iterable[StoredSession], level: SyncLevel, on_unreadable: Callable[[str], None] | None = None
) -> Iterator[sqlite3.Connection]:
    """A catalog of these sessions, read as far as `level`, without a text index.

    A session that cannot be read is reported and left out, or raises SourceUnreadable.
    """
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        create(db)
        for number, session in enumerate({session.path: session for session in sessions}.values(), 1):
            try:
                _write_session(db, number, session, level)
            except SourceUnreadable as error:
                if on_unreadable is None:
                    raise
                RowWriter(db).delete_source(number)
                on_unreadable(str(error))
        update_titles(db)
        update_visible_copies(db)
        yield db


def _write_session(db: sqlite3.Connection, number: int, session: StoredSession, level: SyncLevel) -> None:
    source, stat = session.source, source_state(session.source)
    row = (number, path_to_text(str(session.path)), session.agent.id, stat.st_size, stat.st_mtime_ns)
    values = (*row, host_name(source), source_to_json(source))
    db.execute("INSERT INTO source VALUES (?, ?, ?, 'live', ?, ?, -1, -1, x'', ?, ?, '[]')", values)
    rows, chunks = RowWriter(db), SourceTextWriter(db, number)
    texts = ChunkPacker(lambda chunk: chunks.write([chunk]))
    for step in ingest(session.agent, source, number, level):
        if isinstance(step, Ingested):
            rows.write_session(number, step.session, step.message_uuids)
            continue
        rows.write(step)
        for text in step.texts:
            texts.add(*text)
    texts.flush()


def memory_text_finder(db: sqlite3.Connection) -> SourcesWithText:
    """Finds text in a catalog in memory, which has no text index."""
    return sources_with_text(db, TextReader())


def filter_sessions(sessions: Iterable[StoredSession], filters: Filters) -> Iterator[StoredSession]:
    """Those of the sessions that pass the filters. Raises SourceUnreadable for one that cannot be read."""
    for session in sessions:
        if filters == Filters() or _passes(session, filters):
            yield session


def _passes(session: StoredSession, filters: Filters) -> bool:
    if filters.agent and session.agent.id not in filters.agent:
        return False
    with memory_catalog([session], level_for(filters)) as db:
        return bool(matching_sources(db, filters, memory_text_finder(db)))
