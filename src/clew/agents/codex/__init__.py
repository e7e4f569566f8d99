"""Codex CLI: every rollout below ~/.codex, of all generations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from clew.agents.base import Agent, Claim, Header, SourceFile, Unit
from clew.agents.codex import locate
from clew.agents.target_profile import TargetProfile
from clew.analysis.facts import Facts
from clew.host import Host
from clew.model import Problem
from clew.model.events import Event
from clew.model.json import JSON

if TYPE_CHECKING:
    from clew.agents.file_evidence import Event as FileEvidence


class Codex(Agent):
    """The agent `codex`."""

    id = locate.AGENT
    title = "Codex CLI"
    homepage = "https://github.com/openai/codex"
    newest_tested_version = "0.166.0"
    opaque_blocks = frozenset({"encrypted_content"})

    def roots(self, host: Host) -> Iterator[Path]:
        return locate.roots(host)

    def discover(self, root: Path) -> Iterator[SourceFile]:
        return locate.discover(root)

    def companions(self, host: Host) -> Iterator[Path]:
        yield from {root.parent / locate.THREAD_INDEX for root in locate.roots(host)}

    def beside(self, path: PurePath, content: bytes, known: Sequence[str]) -> Iterator[str]:
        return locate.beside(path, content, known)

    def claims(self, path: Path, head: bytes) -> Claim:
        return locate.claims(path, head)

    def locate(self, path: Path) -> SourceFile:
        return locate.source_file(path)

    def session_id(self, source: SourceFile) -> str:
        from clew.agents.codex.events import first_thread_id, session_id

        return session_id(source, first_thread_id(source))

    def events(self, source: SourceFile) -> Iterator[Event]:
        from clew.agents.codex.events import read_events

        return read_events(source)

    def document_keys(self, head: bytes, name: str) -> tuple[str, ...] | None:
        from clew.agents.codex.records import DOCUMENT_ITEMS, is_document_name

        return (DOCUMENT_ITEMS,) if is_document_name(name) else None

    def session(self, source: SourceFile, facts: Facts) -> dict[str, JSON]:
        from clew.agents.codex.header import session_object

        return session_object(source, facts)

    def encode(self, header: Header, units: Iterable[Unit]) -> Iterator[tuple[str, bytes]]:
        from clew.agents.codex.encode import encode

        return encode(header, units)

    def target_profile(self) -> TargetProfile:
        from clew.agents.codex.target_profile import TARGET_PROFILE

        return TARGET_PROFILE

    def target(self, header: Header) -> str:
        from clew.agents.codex.encode import target

        return target(header)

    def check(self, source: SourceFile, facts: Facts) -> Iterator[Problem]:
        from clew.agents.codex.check import check

        return check(source)

    def unknown_keys(self, native: Mapping[str, JSON]) -> Iterator[str]:
        from clew.agents.codex.records import find_unknown_keys

        return find_unknown_keys(native)

    def file_changes(self, source: SourceFile, units: Iterator[Unit]) -> Iterator[FileEvidence]:
        from clew.agents.codex.file_changes import file_changes

        return file_changes(source, units)
