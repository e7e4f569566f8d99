"""Sage Agent: every session below .sage/sessions, read and written byte for byte. Its trajectories are not read."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from clew.agents.base import Claim, Header, SourceFile, Unit
from clew.agents.legacy import LegacyAgent
from clew.agents.receiving import Receiver
from clew.agents.sage_agent import locate
from clew.derive.facts import Facts
from clew.host import Host
from clew.io.paths import safe_relative
from clew.model import Problem
from clew.model.json import JSON
from clew.model.time import parse_time, spell_time

if TYPE_CHECKING:
    from clew.agents.folding import FoldedReading

_NEW = re.compile(rb'"(?:context|toolResults|toolCalls|message)"\s*:\s*[\[{]')
_SNAPSHOT = re.compile(rb'"type"\s*:\s*"file_history_snapshot"')
_OLD = re.compile(rb'"role"\s*:\s*"')


class SageAgent(LegacyAgent):
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

    def scan(self, source: SourceFile) -> Facts:
        # Who only looks for sessions need not load what reads them.
        from clew.agents.sage_agent import tables
        from clew.derive.collect import Collector

        collector = Collector()
        reading = self._reading(source, None)
        claims: Counter[str] = Counter()
        for unit in reading:
            collector.add(unit.is_message, unit.value)
            _note_claim(claims, unit.value)
            if unit.is_message and unit.value["role"] != "system":
                # A sidechain is a branch of this conversation, so the end of the log is where it stands.
                collector.facts.leaf_uuid = unit.value["uuid"]
            if unit.value.get("type") == tables.BRANCH and unit.value.get("message_uuid"):
                collector.facts.leaf_uuid = unit.value["message_uuid"]
            if unit.value.get("kind") in ("title", "summary") and unit.value.get("text"):
                collector.facts.titles[unit.value["kind"]] = unit.value["text"]
        facts = collector.facts
        facts.sessions.update(claims)
        return facts

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

    def read(self, source: SourceFile, facts: Facts) -> Iterator[Unit]:
        claimed = facts.sessions.most_common(1)[0][0] if facts.sessions else None
        return iter(self._reading(source, claimed))

    def _reading(self, source: SourceFile, claimed: str | None) -> FoldedReading:
        from clew.agents.folding import Chain, FoldedReading
        from clew.agents.jsonl import JsonlReading
        from clew.agents.sage_agent import tables
        from clew.agents.sage_agent.fold import folding

        model = _text(locate.metadata(source.path) or {}, "model")
        # Also a claim of nobody's is noted: then the writer adds no session id either.
        extra = {"session_id": claimed} if claimed != locate.session_id(source) else None
        inner = JsonlReading(self.id, source, tables.choose, {"session_id": claimed}, extra=extra)
        return FoldedReading(inner, folding(Chain(self.id, locate.session_id(source)), model))

    def encode(self, header: Header, units: Iterable[Unit]) -> Iterator[tuple[str, bytes]]:
        from clew.agents.jsonl import JsonlWriter
        from clew.agents.sage_agent import tables
        from clew.agents.sage_agent.compose import composed
        from clew.agents.sage_agent.fold import unfolded
        from clew.agents.sage_agent.metadata import spelled

        steps = ((unit.is_message, unit.value) for unit in units)
        own = header.extensions.get(self.id) or {}
        shared = {"session_id": own.get("session_id", header.session["id"])}
        if "orders" in own:
            yield from JsonlWriter(self.id, header, tables.chosen, shared).files(unfolded(steps))
            return
        header = header._replace(extensions={self.id: {"parts": [locate.SNAPSHOTS]}})
        records = 0
        for name, line in JsonlWriter(self.id, header, tables.chosen, shared).lines(composed(steps, header.session)):
            records += not name
            yield name, line
        yield locate.METADATA, spelled(_described(header.session, records))

    def receiver(self) -> Receiver:
        from clew.agents.sage_agent.receive import RECEIVER

        return RECEIVER

    def target(self, header: Header) -> str:
        return f".sage/sessions/{safe_relative(header.session['id'])}/{locate.MESSAGES}"

    def check(self, source: SourceFile, facts: Facts) -> Iterator[Problem]:
        from clew.agents.sage_agent.check import check

        return check(source)


def _note_claim(claims: Counter[str], value: dict[str, JSON]) -> None:
    rest = ((value.get("extensions") or {}).get(locate.AGENT) or {}).get("rest") or {}
    if isinstance(rest.get("sessionId"), str):
        claims[rest["sessionId"]] += 1


def _described(session: dict[str, JSON], records: int) -> dict[str, JSON]:
    """The metadata without which the program does not see a session."""
    from clew.agents.sage_agent.metadata import VERSION

    described: dict[str, JSON] = {
        "id": session["id"],
        "customTitle": session.get("title"),
        "createdAt": session["started_at"],
        "updatedAt": session["ended_at"] or session["started_at"],
        "workingDirectory": session["workspace"],
        "version": VERSION,
        "messageCount": records,
        "state": "completed",
        "isSidechain": bool(session["is_agent_session"]),
        "parentSessionId": session.get("parent_session_id"),
        "metadata": {},
    }
    return {name: item for name, item in described.items() if item is not None}


def _text(known: dict[str, JSON], name: str) -> str | None:
    value = known.get(name)
    return value if isinstance(value, str) and value else None


def _canonical(time: JSON) -> str | None:
    stamp = parse_time(time)
    return spell_time(stamp) if stamp is not None else None
