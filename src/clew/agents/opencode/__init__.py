"""OpenCode 1 and 2, and Kilo, which shares their format: sessions in a SQLite database."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from clew.agents.base import Header, SourceFile, Unit
from clew.agents.database_agent import DatabaseAgent
from clew.agents.opencode.layout import make_layout, roots
from clew.agents.target_profile import TargetProfile
from clew.analysis.facts import Facts
from clew.host import Host
from clew.model.events import Event
from clew.model.json import JSON

if TYPE_CHECKING:
    from clew.agents.file_evidence import Event as FileEvidence

_OTHER_FOLDERS = frozenset({"snapshot", "log", "bin", "storage", "tool-output", "worktree", "repos"})
"""Folders beside the database, which may hold very many files."""


class OpenCode(DatabaseAgent):
    """The agent `opencode`."""

    id = "opencode"
    title = "OpenCode"
    homepage = "https://opencode.ai"
    newest_tested_version = "1.18.18"
    layout = make_layout("opencode")
    database = Path(".local/share/opencode/opencode.db")

    def roots(self, host: Host) -> Iterator[Path]:
        return roots(host, self.id)

    def ignores(self, below: PurePath) -> bool:
        return below.parts[0] in _OTHER_FOLDERS

    def events(self, source: SourceFile) -> Iterator[Event]:
        from clew.agents.opencode.events import read_events

        return read_events(source)

    def session(self, source: SourceFile, facts: Facts) -> dict[str, JSON]:
        project = facts.extra.get("extension", {}).get("project_id")
        found = super().session(source, facts)
        return {**found, "workspace_encoded": str(project)} if project else found

    def unknown_keys(self, native: Mapping[str, JSON]) -> Iterator[str]:
        from clew.agents.opencode.records import find_unknown_keys

        return find_unknown_keys(native)

    def encode(self, header: Header, units: Iterable[Unit]) -> Iterator[tuple[str, bytes]]:
        from clew.agents.opencode.encode import encode

        return encode(header, units)

    def target_profile(self) -> TargetProfile:
        from clew.agents.opencode.target_profile import make_profile

        return make_profile(self.id, self.layout)

    def file_changes(self, source: SourceFile, units: Iterator[Unit]) -> Iterator[FileEvidence]:
        from clew.agents.opencode.file_changes import file_changes

        return file_changes(source, units)


class Kilo(OpenCode):
    """The agent `kilo`: the command line and the extension of 2026."""

    id = "kilo"
    title = "Kilo"
    homepage = "https://kilo.ai"
    newest_tested_version = ""
    layout = make_layout("kilo")
    database = Path(".local/share/kilo/kilo.db")
