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
from clew.io.compress import plain_name
from clew.io.paths import safe_relative
from clew.model import Problem
from clew.model.events import Event
from clew.model.json import JSON

if TYPE_CHECKING:
    from clew.agents.file_evidence import Event as FileEvidence

_CURRENT_FORM = re.compile(rb'"(?:context|toolResults|toolCalls|message)"\s*:\s*[\[{]')
_SNAPSHOT = re.compile(rb'"type"\s*:\s*"file_history_snapshot"')
_OLDER_FORM = re.compile(rb'"role"\s*:\s*"')


class SageAgent(Agent):
    """The agent `sage-agent`."""

    id = locate.AGENT
    title = "Sage Agent"
    homepage = "https://github.com/majiayu000/sage"
    file_changes_outside_calls = True

    def roots(self, host: Host) -> Iterator[Path]:
        return locate.roots(host)

    def discover(self, root: Path) -> Iterator[SourceFile]:
        return locate.discover(root)

    def copies(self, source: SourceFile) -> Iterator[Path]:
        return iter(locate.backup_folders(source))

    def claims(self, path: Path, head: bytes) -> Claim:
        name = plain_name(path.name)
        if _SNAPSHOT.search(head) and name.endswith(".jsonl"):
            return Claim.YES
        if name != locate.MESSAGES:
            return Claim.NO
        if _CURRENT_FORM.search(head) or _OLDER_FORM.search(head):
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
        from clew.agents.sage_agent.metadata import session_object

        return session_object(source, facts)

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
