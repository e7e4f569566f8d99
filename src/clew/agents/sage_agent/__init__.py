"""Sage Agent: every session below .sage/sessions. Its trajectories are not read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from clew.agents.base import Agent, Claim, Header, SourceFile, Unit
from clew.agents.sage_agent import locate
from clew.agents.target_profile import TargetProfile
from clew.analysis.facts import Facts
from clew.host import Host
from clew.io.paths import safe_relative
from clew.model import Problem
from clew.model.events import Event
from clew.model.json import JSON
from clew.model.time import parse_time, spell_time

if TYPE_CHECKING:
    from clew.agents.file_evidence import Event as FileEvidence

_NEW = re.compile(rb'"(?:context|toolResults|toolCalls|message)"\s*:\s*[\[{]')
_SNAPSHOT = re.compile(rb'"type"\s*:\s*"file_history_snapshot"')
_OLD = re.compile(rb'"role"\s*:\s*"')


class SageAgent(Agent):
    """The agent `sage-agent`."""

    id = locate.AGENT
    title = "Sage Agent"
    homepage = "https://github.com/majiayu000/sage"

    def roots(self, host: Host) -> Iterator[Path]:
        return locate.roots(host)

    def discover(self, root: Path) -> Iterator[SourceFile]:
        return locate.discover(root)

    def copies(self, source: SourceFile) -> Iterator[Path]:
        folder = source.path.parent
        yield folder / locate.BACKUPS
        yield folder.parent.parent / locate.BACKUPS / locate.session_id(source)

    def claims(self, path: Path, head: bytes) -> Claim:
        name = locate.plain_name(path.name)
        if _SNAPSHOT.search(head) and name.endswith(".jsonl"):
            return Claim.YES
        if name != locate.MESSAGES:
            return Claim.NO
        if _NEW.search(head) or _OLD.search(head):
            return Claim.YES
        return Claim.MAYBE if not head.strip() or ".sage" in path.parts else Claim.NO

    def locate(self, path: Path) -> SourceFile:
        return locate.source_file(path)

    def session_id(self, source: SourceFile) -> str:
        return locate.session_id(source)

    def events(self, source: SourceFile) -> Iterator[Event]:
        # Looking for sessions need not load what reads them.
        from clew.agents.sage_agent.events import read_events

        return read_events(source)

    def unknown_keys(self, native: Mapping[str, JSON]) -> Iterator[str]:
        from clew.agents.sage_agent.records import find_unknown_keys

        return find_unknown_keys(native)

    def file_changes(self, source: SourceFile, units: Iterator[Unit]) -> Iterator[FileEvidence]:
        from clew.agents.sage_agent.file_changes import file_changes

        return file_changes(source, units)

    def session(self, source: SourceFile, facts: Facts) -> dict[str, JSON]:
        from clew.agents.sage_agent.metadata import title_of

        known = locate.metadata(source.path) or {}
        session = locate.session_id(source)
        parent = known.get("parentSessionId")
        return {
            "id": session,
            "workspace": facts.cwd or _text(known, "workingDirectory") or "",
            "workspace_encoded": source.path.parent.name,
            "started_at": facts.first_time or _canonical(known.get("createdAt")),
            "ended_at": facts.last_time or _canonical(known.get("updatedAt")),
            "source": {"type": "local", "host": None, "path": str(source.path)},
            "is_agent_session": known.get("isSidechain") is True,
            "parent_session_id": parent if isinstance(parent, str) else None,
            "agent_id": None,
            "title": title_of(known, facts, session),
        }

    def encode(self, header: Header, units: Iterable[Unit]) -> Iterator[tuple[str, bytes]]:
        from clew.agents.sage_agent.encode import encode

        return encode(header, units)

    def target_profile(self) -> TargetProfile:
        from clew.agents.sage_agent.target_profile import TARGET_PROFILE

        return TARGET_PROFILE

    def target(self, header: Header) -> str:
        return f".sage/sessions/{safe_relative(header.session['id'])}/{locate.MESSAGES}"

    def check(self, source: SourceFile, facts: Facts) -> Iterator[Problem]:
        from clew.agents.sage_agent.check import check

        return check(source)


def _text(known: dict[str, JSON], name: str) -> str | None:
    value = known.get(name)
    return value if isinstance(value, str) and value else None


def _canonical(time: JSON) -> str | None:
    stamp = parse_time(time)
    return spell_time(stamp) if stamp is not None else None
