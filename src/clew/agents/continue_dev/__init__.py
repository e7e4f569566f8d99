"""Continue: the sessions below ~/.continue, of its command line and its editors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from clew.agents.base import Agent, Claim, Header, SourceFile, Unit
from clew.agents.continue_dev import locate
from clew.agents.target_profile import TargetProfile
from clew.analysis.facts import Facts
from clew.host import Host
from clew.model.events import Event
from clew.model.json import JSON

if TYPE_CHECKING:
    from clew.agents.file_evidence import Event as FileEvidence


class Continue(Agent):
    """The agent `continue`."""

    id = locate.AGENT
    title = "Continue"
    homepage = "https://continue.dev"
    newest_tested_version = "1.5.47"

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

    def beside(self, path: PurePath, content: bytes, known: Sequence[str]) -> Iterator[str]:
        # The list of sessions says when each began.
        index = str(path.with_name(locate.INDEX))
        return (name for name in known if name == index)

    def events(self, source: SourceFile) -> Iterator[Event]:
        from clew.agents.continue_dev.events import read_events

        return read_events(source)

    def document_keys(self, head: bytes, name: str) -> tuple[str, ...] | None:
        from clew.agents.continue_dev.records import HISTORY

        return HISTORY

    def session(self, source: SourceFile, facts: Facts) -> dict[str, JSON]:
        from clew.agents.continue_dev.header import session_object

        return session_object(source, facts)

    def unknown_keys(self, native: Mapping[str, JSON]) -> Iterator[str]:
        from clew.agents.continue_dev.records import find_unknown_keys

        return find_unknown_keys(native)

    def file_changes(self, source: SourceFile, units: Iterator[Unit]) -> Iterator[FileEvidence]:
        from clew.agents.continue_dev.file_changes import file_changes

        return file_changes(source, units)

    def encode(self, header: Header, units: Iterable[Unit]) -> Iterator[tuple[str, bytes]]:
        from clew.agents.continue_dev.encode import encode

        return encode(header, units)

    def target_profile(self) -> TargetProfile:
        from clew.agents.continue_dev.target_profile import TARGET_PROFILE

        return TARGET_PROFILE

    def target(self, header: Header) -> str:
        return locate.target(header)
