"""sage-emacs: the conversation and the archives of every project, and saved sessions, read and written byte for byte.

Saved sessions, sage/sessions/<name>.json, are a store of their own, to which no other agent's sessions go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePath

from clew.agents.base import Claim, Header, SourceFile, Unit
from clew.agents.legacy import LegacyAgent
from clew.agents.receiving import Receiver
from clew.agents.sage_emacs import locate
from clew.derive.facts import Facts
from clew.derive.titles import short_title
from clew.host import Host
from clew.io.paths import encode_sage, file_name
from clew.model import Problem
from clew.model.json import JSON
from clew.model.time import parse_time, spell_time


class SageEmacs(LegacyAgent):
    """The agent `sage-emacs`."""

    id = locate.AGENT
    title = "sage-emacs"
    homepage = "https://github.com/aygp-dr/sage.el"

    def roots(self, host: Host) -> Iterator[Path]:
        return locate.roots(host)

    def discover(self, root: Path) -> Iterator[SourceFile]:
        return locate.discover(root)

    def beside(self, path: PurePath, content: bytes, known: Sequence[str]) -> Iterator[str]:
        if locate.is_saved(path):
            return iter(())
        # An archive lies in a folder of the project that the metadata describe.
        places = (path.parent / locate.METADATA, path.parent.parent / locate.METADATA)
        return (name for name in known if PurePath(name) in places)

    def claims(self, path: Path, head: bytes) -> Claim:
        from clew.agents.sage_emacs.sniff import claims

        return claims(path, head)

    def locate(self, path: Path) -> SourceFile:
        return locate.source_file(path)

    def session_id(self, source: SourceFile) -> str:
        return locate.session_id(source)

    def scan(self, source: SourceFile) -> Facts:
        # Who only looks for sessions need not load what reads them.
        from clew.agents.sage_emacs.scan import scan

        return scan(source)

    def session(self, source: SourceFile, facts: Facts) -> dict[str, JSON]:
        if locate.is_saved(source.path):
            from clew.agents.sage_emacs.saved import session_object

            return session_object(source, facts)
        known = locate.metadata(source.path) or {}
        started, ended = _span(source, facts, known)
        session: dict[str, JSON] = {
            "id": locate.session_id(source),
            "workspace": _workspace(known, facts),
            "workspace_encoded": locate.project_folder(source.path).name,
            "started_at": started,
            "ended_at": ended,
            "source": {"type": "local", "host": None, "path": str(source.path)},
            "is_agent_session": False,
            "parent_session_id": None,
            "agent_id": None,
        }
        if (title := short_title(facts.first_prompt)) is not None:
            session["title"] = title
        if (archived := locate.archive_time(source.path)) is not None:
            session["extensions"] = {self.id: {"archived_at": archived}}
        return session

    def read(self, source: SourceFile, facts: Facts) -> Iterator[Unit]:
        from clew.agents.sage_emacs.scan import reading_of

        claims = facts.extra.get("claims", {})
        extra: dict[str, JSON] = {"claims": claims} if claims else {}
        is_saved = locate.is_saved(source.path)
        extra |= locate.saved_place(source.path) if is_saved else locate.place(source.path)
        return iter(reading_of(source, claims, facts.extra.get("parents"), extra))

    def encode(self, header: Header, units: Iterable[Unit]) -> Iterator[tuple[str, bytes]]:
        from clew.agents.jsonl import JsonlWriter
        from clew.agents.sage_emacs import tables
        from clew.agents.sage_emacs.fold import unfolded
        from clew.agents.sage_emacs.scan import CLAIMS

        steps = ((unit.is_message, unit.value) for unit in units)
        own = header.extensions.get(self.id) or {}
        if "orders" not in own:
            yield from self._compose(header, steps)
            return
        shared = dict.fromkeys(CLAIMS) | own.get("claims", {})
        writer = JsonlWriter
        if "saved" in own:
            from clew.agents.jsondoc import DocumentsWriter as writer
        yield from writer(self.id, header, tables.chosen, shared).files(unfolded(steps))

    def _compose(self, header: Header, units: Iterator[tuple[bool, dict[str, JSON]]]) -> Iterator[tuple[str, bytes]]:
        from clew.agents.jsonl import JsonlWriter
        from clew.agents.sage_emacs import tables
        from clew.agents.sage_emacs.compose import composed
        from clew.agents.sage_emacs.metadata import describe

        records = size = 0
        shared = {"session_id": header.session["id"], "sessionId": None}
        for _, line in JsonlWriter(self.id, header, tables.chosen, shared).lines(composed(units)):
            records, size = records + 1, size + len(line)
            yield "", line
        yield locate.METADATA, describe(header.session, records, size, {})

    def receiver(self) -> Receiver:
        from clew.agents.sage_emacs.receive import RECEIVER

        return RECEIVER

    def target(self, header: Header) -> str:
        own = header.extensions.get(self.id) or {}
        if "saved" in own:
            return locate.saved_target(own)
        session = header.session
        aligned = encode_sage(session["workspace"])
        known = session.get("workspace_encoded")
        # Its own sessions go back to where they were; two folders of one project must not fall together.
        encoded = known or aligned if "orders" in own else aligned or known
        return locate.target(own, file_name(encoded or "-"))

    def check(self, source: SourceFile, facts: Facts) -> Iterator[Problem]:
        from clew.agents.sage_emacs.check import check

        return check(source)


def _workspace(known: dict[str, JSON], facts: Facts) -> str:
    """The folder the metadata name; the folder's encoded name cannot be decoded."""
    recorded = known.get("project_dir")
    workspace = recorded if isinstance(recorded, str) and recorded else facts.cwd or ""
    return workspace.rstrip("/") or workspace


def _span(source: SourceFile, facts: Facts, known: dict[str, JSON]) -> tuple[str | None, str | None]:
    if facts.first_time is not None:
        return facts.first_time, facts.last_time
    if locate.is_archive(source.path):
        return None, locate.archive_time(source.path)
    return _canonical(known.get("created_at")), _canonical(known.get("updated_at"))


def _canonical(time: JSON) -> str | None:
    stamp = parse_time(time)
    return spell_time(stamp) if stamp is not None else None
