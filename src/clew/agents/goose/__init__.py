"""Goose: sessions in a SQLite database."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from clew.agents.base import Header, SourceFile, Unit
from clew.agents.database_agent import DatabaseAgent
from clew.agents.goose.layout import AGENT, FILE_NAME, FOLDER, LAYOUT, roots
from clew.agents.target_profile import TargetProfile
from clew.host import Host
from clew.model.events import Event
from clew.model.json import JSON

if TYPE_CHECKING:
    from clew.agents.file_evidence import Event as FileEvidence


class Goose(DatabaseAgent):
    """The agent `goose`."""

    id = AGENT
    title = "Goose"
    homepage = "https://goose-docs.ai"
    newest_tested_version = "1.52.0"
    layout = LAYOUT
    database = FOLDER / FILE_NAME

    def roots(self, host: Host) -> Iterator[Path]:
        return roots(host)

    def events(self, source: SourceFile) -> Iterator[Event]:
        from clew.agents.goose.events import read_events

        return read_events(source)

    def unknown_keys(self, native: Mapping[str, JSON]) -> Iterator[str]:
        from clew.agents.goose.records import find_unknown_keys

        return find_unknown_keys(native)

    def file_changes(self, source: SourceFile, units: Iterator[Unit]) -> Iterator[FileEvidence]:
        from clew.agents.goose.file_changes import file_changes

        return file_changes(source, units)

    def encode(self, header: Header, units: Iterable[Unit]) -> Iterator[tuple[str, bytes]]:
        from clew.agents.goose.encode import encode

        return encode(header, units)

    def target_profile(self) -> TargetProfile:
        from clew.agents.goose.target_profile import TARGET_PROFILE

        return TARGET_PROFILE
