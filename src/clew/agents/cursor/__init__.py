"""Cursor: the chats of the editor, in its database of keys and values."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from clew.agents.base import SourceFile, Unit
from clew.agents.cursor.layout import AGENT, FILE_NAME, FOLDER, LAYOUT, roots
from clew.agents.database_agent import DatabaseAgent
from clew.host import Host
from clew.model.events import Event

if TYPE_CHECKING:
    from clew.agents.file_evidence import Event as FileEvidence


class Cursor(DatabaseAgent):
    """The agent `cursor`."""

    id = AGENT
    title = "Cursor"
    homepage = "https://cursor.com"
    layout = LAYOUT
    database = FOLDER / FILE_NAME

    def roots(self, host: Host) -> Iterator[Path]:
        return roots(host)

    def events(self, source: SourceFile) -> Iterator[Event]:
        from clew.agents.cursor.events import read_events

        return read_events(source)

    def file_changes(self, source: SourceFile, units: Iterator[Unit]) -> Iterator[FileEvidence]:
        from clew.agents.cursor.file_changes import file_changes

        return file_changes(units, self.facts(source).cwd)
