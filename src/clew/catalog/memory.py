"""Filters for sessions that no catalog holds, as a file that is named by its path: its rows are made in memory."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing

from clew.catalog.filters import matching_sources
from clew.catalog.ingest import Ingested, ingest
from clew.catalog.lookup import TextReader
from clew.catalog.row_writer import RowWriter
from clew.catalog.schema import create
from clew.catalog.search import sources_with_text
from clew.catalog.sync_level import SyncLevel
from clew.catalog.text_store import ChunkPacker, SourceTextWriter
from clew.filters import Filters
from clew.stored_session import StoredSession

_SOURCE_ID = 1


def filter_sessions(sessions: Iterable[StoredSession], filters: Filters) -> Iterator[StoredSession]:
    """Those of the sessions that pass the filters. Raises SourceUnreadable for one that cannot be read."""
    for session in sessions:
        if filters == Filters() or _passes(session, filters):
            yield session


def _passes(session: StoredSession, filters: Filters) -> bool:
    if filters.agent and session.agent.id not in filters.agent:
        return False
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        create(db)
        rows, chunks = RowWriter(db), SourceTextWriter(db, _SOURCE_ID)
        texts = ChunkPacker(lambda chunk: chunks.write([chunk]))
        level = SyncLevel.TEXT if filters.needs_text else SyncLevel.SESSIONS
        for step in ingest(session.agent, session.source, _SOURCE_ID, level):
            if isinstance(step, Ingested):
                rows.write_session(_SOURCE_ID, step.session)
                continue
            rows.write(step)
            for text in step.texts:
                texts.add(*text)
        texts.flush()
        return bool(matching_sources(db, filters, sources_with_text(db, TextReader())))
