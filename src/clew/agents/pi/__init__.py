"""Pi: the sessions below ~/.pi/agent."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from clew.agents.base import Agent, Claim, Header, SourceFile, Unit
from clew.agents.pi import locate
from clew.agents.target_profile import TargetProfile
from clew.analysis.facts import Facts
from clew.host import Host
from clew.model.events import Event
from clew.model.json import JSON

if TYPE_CHECKING:
    from clew.agents.file_evidence import Event as FileEvidence


class Pi(Agent):
    """The agent `pi`."""

    id = locate.AGENT
    title = "Pi"
    homepage = "https://github.com/earendil-works/pi"
    newest_tested_version = "0.87.1"

    def roots(self, host: Host) -> Iterator[Path]:
        return locate.roots(host)

    def discover(self, root: Path) -> Iterator[SourceFile]:
        return locate.discover(root)

    def claims(self, path: Path, head: bytes) -> Claim:
        return locate.claims(path, head)

    def locate(self, path: Path) -> SourceFile:
        return locate.source_file(path)

    def session_id(self, source: SourceFile) -> str:
        return locate.session_id(source.path)

    def events(self, source: SourceFile) -> Iterator[Event]:
        from clew.agents.pi.events import read_events

        return read_events(source)

    def session(self, source: SourceFile, facts: Facts) -> dict[str, JSON]:
        from clew.agents.pi.header import session_object

        return session_object(source, facts)

    def unknown_keys(self, native: Mapping[str, JSON]) -> Iterator[str]:
        from clew.agents.pi.records import find_unknown_keys

        return find_unknown_keys(native)

    def file_changes(self, source: SourceFile, units: Iterator[Unit]) -> Iterator[FileEvidence]:
        from clew.agents.pi.file_changes import file_changes

        return file_changes(source, units)

    def encode(self, header: Header, units: Iterable[Unit]) -> Iterator[tuple[str, bytes]]:
        from clew.agents.pi.encode import encode

        return encode(header, units)

    def target_profile(self) -> TargetProfile:
        from clew.agents.pi.target_profile import TARGET_PROFILE

        return TARGET_PROFILE

    def target(self, header: Header) -> str:
        return locate.target(header)
