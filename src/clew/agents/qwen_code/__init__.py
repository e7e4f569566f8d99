"""Qwen Code: the transcripts below ~/.qwen/projects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from clew.agents.base import Agent, Claim, Header, SourceFile, Unit
from clew.agents.gemini_content import OPAQUE_PARTS
from clew.agents.native_records import first_value
from clew.agents.qwen_code import locate
from clew.agents.target_profile import TargetProfile
from clew.analysis.facts import Facts
from clew.host import Host
from clew.model.events import Event
from clew.model.json import JSON

if TYPE_CHECKING:
    from clew.agents.file_evidence import Event as FileEvidence


class QwenCode(Agent):
    """The agent `qwen-code`."""

    id = locate.AGENT
    title = "Qwen Code"
    homepage = "https://github.com/QwenLM/qwen-code"
    newest_tested_version = "0.24.4"
    opaque_blocks = OPAQUE_PARTS

    def roots(self, host: Host) -> Iterator[Path]:
        return locate.roots(host)

    def discover(self, root: Path) -> Iterator[SourceFile]:
        return locate.discover(root)

    def copies(self, source: SourceFile) -> Iterator[Path]:
        return locate.copies(source.path)

    def claims(self, path: Path, head: bytes) -> Claim:
        return locate.claims(path, head)

    def locate(self, path: Path) -> SourceFile:
        return locate.source_file(path)

    def session_id(self, source: SourceFile) -> str:
        path = source.path
        return locate.named_session(path) or first_value(path, "sessionId") or locate.stem(path)

    def events(self, source: SourceFile) -> Iterator[Event]:
        from clew.agents.qwen_code.events import read_events

        return read_events(source)

    def session(self, source: SourceFile, facts: Facts) -> dict[str, JSON]:
        from clew.agents.qwen_code.header import session_object

        return session_object(source, facts)

    def unknown_keys(self, native: Mapping[str, JSON]) -> Iterator[str]:
        from clew.agents.qwen_code.records import find_unknown_keys

        return find_unknown_keys(native)

    def file_changes(self, source: SourceFile, units: Iterator[Unit]) -> Iterator[FileEvidence]:
        from clew.agents.qwen_code.file_changes import file_changes

        return file_changes(source, units)

    def encode(self, header: Header, units: Iterable[Unit]) -> Iterator[tuple[str, bytes]]:
        from clew.agents.qwen_code.encode import encode

        return encode(header, units)

    def target_profile(self) -> TargetProfile:
        from clew.agents.qwen_code.target_profile import TARGET_PROFILE

        return TARGET_PROFILE

    def target(self, header: Header) -> str:
        return locate.target(header.session)
