"""What all agents have in common whose sessions are rows of a SQLite database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

from clew.agents.base import Agent, Claim, Header, SourceFile
from clew.agents.database import (
    Layout,
    Snapshot,
    StoredRows,
    databases_in,
    is_header,
    restored_files,
    session_in_header,
)
from clew.agents.native_records import HEAD_BYTES
from clew.agents.source import estimated_bytes, source_at
from clew.analysis.facts import Facts
from clew.errors import SourceUnreadable
from clew.io.compress import open_source
from clew.io.database_paths import database_of, session_of, session_path
from clew.model import Problem


class DatabaseAgent(Agent):
    """An agent that names its database and the layout of it; its decoder reads rows."""

    layout: ClassVar[Layout]
    database: ClassVar[Path]
    """Default path below a home."""

    def discover(self, root: Path) -> Iterator[SourceFile]:
        """The sessions in the databases of a folder, and those that were restored beside them as files.

        A database that cannot be read is left out here; `clew.sources.local` reports it.
        """
        seen: set[Path] = set()
        for database in databases_in(root, self.layout):
            with suppress(SourceUnreadable):
                for source in sources_in_database(self.id, database, self.layout):
                    seen.add(source.path)
                    yield source
        yield from (source_at(self.id, path) for path in restored_files(root, self.layout) if path not in seen)

    def claims(self, path: Path, head: bytes) -> Claim:
        return Claim.YES if is_header(head, self.id) else Claim.NO

    def locate(self, path: Path) -> SourceFile:
        return locate_rows(self.id, path, self.layout)

    def session_id(self, source: SourceFile) -> str:
        """The id in the path of the rows; in a file of rows, the one in its header."""
        if not source.change_token and source.path.is_file():
            with suppress(SourceUnreadable), open_source(source.path) as stream:
                session = session_in_header(stream.readline(HEAD_BYTES))
                if session is not None:
                    return session
        return session_of(source.path)

    def check(self, source: SourceFile, facts: Facts) -> Iterator[Problem]:
        """The problems that the decoder found in the rows."""
        return (event for event in self.events(source) if isinstance(event, Problem))

    def target(self, header: Header) -> str:
        return session_path(self.database, str(header.session["id"])).as_posix()


def sources_in_database(agent: str, database: Path, layout: Layout) -> list[SourceFile]:
    """The sessions in a database. Raises SourceUnreadable."""
    with Snapshot(database, layout) as snapshot:
        return [_source_of_rows(agent, database, rows) for rows in snapshot.sessions()]


def locate_rows(agent: str, path: Path, layout: Layout) -> SourceFile:
    """The session with the path of its rows: in a database, or in a file."""
    database = database_of(path)
    if database is not None:
        with suppress(SourceUnreadable), Snapshot(database, layout) as snapshot:
            rows = snapshot.find(session_of(path))
            if rows is not None:
                return _source_of_rows(agent, database, rows)
    return source_at(agent, path)


def _source_of_rows(agent: str, database: Path, rows: StoredRows) -> SourceFile:
    path, size = session_path(database, rows.session), estimated_bytes(rows.row_count)
    return SourceFile(agent, path, size=size, mtime=rows.mtime, change_token=rows.change_token)
