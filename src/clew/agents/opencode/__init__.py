"""OpenCode 1 and 2, and Kilo, which shares their format: sessions in a SQLite database."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, ClassVar

from clew.agents.base import (
    Agent,
    Claim,
    Header,
    SourceFile,
    Unit,
    discover_in_databases,
    locate_rows,
    session_id_of_rows,
)
from clew.agents.database import Layout, is_header
from clew.agents.opencode.layout import make_layout, roots
from clew.agents.target_profile import TargetProfile
from clew.analysis.facts import Facts
from clew.analysis.titles import short_title
from clew.host import Host
from clew.io.database_paths import session_path
from clew.model.events import Event
from clew.model.json import JSON

if TYPE_CHECKING:
    from clew.agents.file_evidence import Event as FileEvidence

_OTHER_FOLDERS = frozenset({"snapshot", "log", "bin", "storage", "tool-output", "worktree", "repos"})
"""Folders beside the database, which may hold very many files."""


class OpenCode(Agent):
    """The agent `opencode`."""

    id = "opencode"
    title = "OpenCode"
    homepage = "https://opencode.ai"
    newest_tested_version = "1.18.18"
    layout: ClassVar[Layout] = make_layout("opencode")

    def roots(self, host: Host) -> Iterator[Path]:
        return roots(host, self.id)

    def discover(self, root: Path) -> Iterator[SourceFile]:
        return discover_in_databases(self.id, root, self.layout)

    def ignores(self, below: PurePath) -> bool:
        return below.parts[0] in _OTHER_FOLDERS

    def claims(self, path: Path, head: bytes) -> Claim:
        return Claim.YES if is_header(head, self.id) else Claim.NO

    def locate(self, path: Path) -> SourceFile:
        return locate_rows(self.id, path, self.layout)

    def session_id(self, source: SourceFile) -> str:
        return session_id_of_rows(source)

    def events(self, source: SourceFile) -> Iterator[Event]:
        from clew.agents.opencode.events import read_events

        return read_events(source)

    def session(self, source: SourceFile, facts: Facts) -> dict[str, JSON]:
        extra = facts.extra
        found: dict[str, JSON] = {
            "id": self.session_id(source),
            "workspace": facts.cwd or "",
            "workspace_encoded": str(extra.get("opencode", {}).get("project_id") or source.path.parent.name),
            "started_at": facts.first_time or extra.get("started_at"),
            "ended_at": facts.last_time or extra.get("started_at"),
            "source": {"type": "local", "host": None, "path": str(source.path)},
            "is_agent_session": bool(extra.get("is_subagent")),
            "parent_session_id": extra.get("parent_session_id"),
            "agent_id": extra.get("agent_id"),
        }
        title = facts.titles.get("title") or short_title(facts.first_prompt)
        if title:
            found["title"] = title
        if facts.slug:
            found["slug"] = facts.slug
        if facts.subagents:
            found["subagents"] = [
                {"session_id": one.session_id, "agent_id": one.agent_id, "tool_id": one.tool_id}
                for one in facts.subagents
            ]
        if extra.get("opencode"):
            found["extensions"] = {self.id: extra["opencode"]}
        return found

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

        return file_changes(units)

    def target(self, header: Header) -> str:
        database = Path(".local", "share", self.id, f"{self.id}.db")
        return session_path(database, str(header.session["id"])).as_posix()


class Kilo(OpenCode):
    """The agent `kilo`: the command line and the extension of 2026."""

    id = "kilo"
    title = "Kilo"
    homepage = "https://kilo.ai"
    newest_tested_version = ""
    layout = make_layout("kilo")
