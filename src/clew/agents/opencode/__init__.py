"""OpenCode 1 and 2, and Kilo, which shares their format: sessions in a SQLite database."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePath

from clew.agents.base import SourceFile
from clew.agents.database_agent import DatabaseAgent
from clew.agents.opencode.layout import make_layout, roots
from clew.agents.target_profile import TargetProfile
from clew.analysis.facts import Facts
from clew.host import Host
from clew.model.json import JSON

_OTHER_FOLDERS = frozenset({"snapshot", "log", "bin", "storage", "tool-output", "worktree", "repos"})
"""Folders beside the database, which may hold very many files."""


class OpenCode(DatabaseAgent):
    """The agent `opencode`."""

    id = "opencode"
    title = "OpenCode"
    homepage = "https://opencode.ai"
    package = __name__
    newest_tested_version = "1.18.18"
    layout = make_layout("opencode")
    database = Path(".local/share/opencode/opencode.db")

    def roots(self, host: Host) -> Iterator[Path]:
        return roots(host, self.id)

    def ignores(self, below: PurePath) -> bool:
        return below.parts[0] in _OTHER_FOLDERS

    def session(self, source: SourceFile, facts: Facts) -> dict[str, JSON]:
        project = facts.extra.get("extension", {}).get("project_id")
        found = super().session(source, facts)
        return {**found, "workspace_encoded": str(project)} if project else found

    def target_profile(self) -> TargetProfile:
        from clew.agents.opencode.target_profile import make_profile

        return make_profile(self.id, self.layout)


class Kilo(OpenCode):
    """The agent `kilo`: the command line and the extension of 2026."""

    id = "kilo"
    title = "Kilo"
    homepage = "https://kilo.ai"
    newest_tested_version = ""
    layout = make_layout("kilo")
    database = Path(".local/share/kilo/kilo.db")
