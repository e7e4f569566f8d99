"""What all agents have in common whose sessions are rows of a SQLite database."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from clew.agents.base import (
    Agent,
    Claim,
    Header,
    SourceFile,
    discover_in_databases,
    locate_rows,
    session_id_of_rows,
)
from clew.agents.database import Layout, is_header
from clew.analysis.facts import Facts
from clew.analysis.titles import short_title
from clew.io.database_paths import session_path
from clew.model.json import JSON


class DatabaseAgent(Agent):
    """An agent that names its database and the layout of it; its decoder reads rows."""

    layout: ClassVar[Layout]
    database: ClassVar[Path]
    """The usual place of the database below a home."""

    def discover(self, root: Path) -> Iterator[SourceFile]:
        return discover_in_databases(self.id, root, self.layout)

    def claims(self, path: Path, head: bytes) -> Claim:
        return Claim.YES if is_header(head, self.id) else Claim.NO

    def locate(self, path: Path) -> SourceFile:
        return locate_rows(self.id, path, self.layout)

    def session_id(self, source: SourceFile) -> str:
        return session_id_of_rows(source)

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
        if title := facts.titles.get("title") or short_title(facts.first_prompt):
            found["title"] = title
        if facts.slug:
            found["slug"] = facts.slug
        if facts.subagents:
            found["subagents"] = [
                {"session_id": one.session_id, "agent_id": one.agent_id, "tool_id": one.tool_id}
                for one in facts.subagents
            ]
        if extra.get("extension"):
            found["extensions"] = {self.id: extra["extension"]}
        return found

    def target(self, header: Header) -> str:
        return session_path(self.database, str(header.session["id"])).as_posix()
