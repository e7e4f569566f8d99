"""Goose: sessions in a SQLite database."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

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
from clew.agents.database import is_header
from clew.agents.goose.layout import AGENT, FILE_NAME, FOLDER, LAYOUT, roots
from clew.agents.target_profile import TargetProfile
from clew.analysis.facts import Facts
from clew.analysis.titles import short_title
from clew.host import Host
from clew.io.database_paths import session_path
from clew.model.events import Event
from clew.model.json import JSON

if TYPE_CHECKING:
    from clew.agents.file_evidence import Event as FileEvidence


class Goose(Agent):
    """The agent `goose`."""

    id = AGENT
    title = "Goose"
    homepage = "https://goose-docs.ai"
    newest_tested_version = "1.52.0"
    layout = LAYOUT

    def roots(self, host: Host) -> Iterator[Path]:
        return roots(host)

    def discover(self, root: Path) -> Iterator[SourceFile]:
        return discover_in_databases(self.id, root, self.layout)

    def claims(self, path: Path, head: bytes) -> Claim:
        return Claim.YES if is_header(head, self.id) else Claim.NO

    def locate(self, path: Path) -> SourceFile:
        return locate_rows(self.id, path, self.layout)

    def session_id(self, source: SourceFile) -> str:
        return session_id_of_rows(source)

    def events(self, source: SourceFile) -> Iterator[Event]:
        from clew.agents.goose.events import read_events

        return read_events(source)

    def session(self, source: SourceFile, facts: Facts) -> dict[str, JSON]:
        extra = facts.extra
        found: dict[str, JSON] = {
            "id": self.session_id(source),
            "workspace": facts.cwd or "",
            "workspace_encoded": source.path.parent.name,
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
        if facts.subagents:
            found["subagents"] = [
                {"session_id": one.session_id, "agent_id": one.agent_id, "tool_id": one.tool_id}
                for one in facts.subagents
            ]
        if extra.get("goose"):
            found["extensions"] = {self.id: extra["goose"]}
        return found

    def unknown_keys(self, native: Mapping[str, JSON]) -> Iterator[str]:
        from clew.agents.goose.records import find_unknown_keys

        return find_unknown_keys(native)

    def file_changes(self, source: SourceFile, units: Iterator[Unit]) -> Iterator[FileEvidence]:
        from clew.agents.goose.file_changes import file_changes

        return file_changes(units)

    def encode(self, header: Header, units: Iterable[Unit]) -> Iterator[tuple[str, bytes]]:
        from clew.agents.goose.encode import encode

        return encode(header, units)

    def target_profile(self) -> TargetProfile:
        from clew.agents.goose.target_profile import TARGET_PROFILE

        return TARGET_PROFILE

    def target(self, header: Header) -> str:
        return session_path(FOLDER / FILE_NAME, str(header.session["id"])).as_posix()
