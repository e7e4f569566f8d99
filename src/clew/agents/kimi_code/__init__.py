"""Kimi Code: the sessions below ~/.kimi-code, with a journal for each agent of a session."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from clew.agents.base import Agent, Claim, Header, SourceFile, Unit
from clew.agents.kimi_code import locate
from clew.agents.target_profile import TargetProfile
from clew.analysis.facts import Facts
from clew.host import Host
from clew.model.events import Event
from clew.model.json import JSON

if TYPE_CHECKING:
    from clew.agents.file_evidence import Event as FileEvidence


class KimiCode(Agent):
    """The agent `kimi-code`."""

    id = locate.AGENT
    title = "Kimi Code"
    homepage = "https://github.com/MoonshotAI/kimi-code"
    newest_tested_version = "2.1.0"

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

    def copies(self, source: SourceFile) -> Iterator[Path]:
        return locate.copies(source.path)

    def events(self, source: SourceFile) -> Iterator[Event]:
        from clew.agents.kimi_code.events import read_events

        return read_events(source)

    def document_keys(self, head: bytes, name: str) -> tuple[str, ...] | None:
        from clew.agents.kimi_code.records import STATE_ARRAY

        return STATE_ARRAY if name == locate.STATE else None

    def session(self, source: SourceFile, facts: Facts) -> dict[str, JSON]:
        from clew.agents.kimi_code.header import session_object

        return session_object(source, facts)

    def unknown_keys(self, native: Mapping[str, JSON]) -> Iterator[str]:
        from clew.agents.kimi_code.records import find_unknown_keys

        return find_unknown_keys(native)

    def file_changes(self, source: SourceFile, units: Iterator[Unit]) -> Iterator[FileEvidence]:
        from clew.agents.kimi_code.file_changes import file_changes

        return file_changes(source, units)

    def encode(self, header: Header, units: Iterable[Unit]) -> Iterator[tuple[str, bytes]]:
        from clew.agents.kimi_code.encode import encode

        return encode(header, units)

    def target_profile(self) -> TargetProfile:
        from clew.agents.kimi_code.target_profile import TARGET_PROFILE

        return TARGET_PROFILE

    def target(self, header: Header) -> str:
        from clew.agents.kimi_code.encode import target

        return target(header)
