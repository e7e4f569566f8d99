"""Pi: the sessions below ~/.pi/agent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from clew.agents.base import Agent, Claim, Header, SourceFile
from clew.agents.pi import locate
from clew.analysis.facts import Facts
from clew.host import Host
from clew.model.events import Event
from clew.model.json import JSON


class Pi(Agent):
    """The agent `pi`."""

    id = locate.AGENT
    title = "Pi"
    homepage = "https://github.com/earendil-works/pi"

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

    def target(self, header: Header) -> str:
        return locate.target(header)
