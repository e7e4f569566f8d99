"""Gemini CLI: every chat below ~/.gemini/tmp, read and written byte for byte."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from clew.agents.base import Agent, Claim, Header, SourceFile, Unit
from clew.agents.gemini import locate
from clew.agents.gemini_content import OPAQUE_PARTS
from clew.agents.target_profile import TargetProfile
from clew.analysis.facts import Facts
from clew.host import Host
from clew.io.compress import plain_name
from clew.model import Problem
from clew.model.events import Event
from clew.model.json import JSON

if TYPE_CHECKING:
    from clew.agents.file_evidence import Event as FileEvidence

_HEADER = re.compile(rb'"sessionId"\s*:\s*"')
_PROJECT = re.compile(rb'"(?:projectHash|startTime|lastUpdated)"\s*:')
_SPOKEN = re.compile(rb'"type"\s*:\s*"(?:gemini|user|info|warning|error|model)"')
_EVENT = re.compile(rb'"\$(?:set|rewindTo)"\s*:')
_TURN = re.compile(rb'"role"\s*:\s*"(?:user|model)"')
_LOGGED = re.compile(rb'"messageId"\s*:\s*\d+')
_FOREIGN = re.compile(rb'"(?:parentUuid|isSidechain|schema_version|leafUuid)"\s*:')


class Gemini(Agent):
    """The agent `gemini`."""

    id = locate.AGENT
    title = "Gemini CLI"
    homepage = "https://github.com/google-gemini/gemini-cli"
    newest_tested_version = "0.61.0"
    opaque_blocks = OPAQUE_PARTS

    def roots(self, host: Host) -> Iterator[Path]:
        return locate.roots(host)

    def discover(self, root: Path) -> Iterator[SourceFile]:
        return locate.discover(root)

    def companions(self, host: Host) -> Iterator[Path]:
        from clew.agents.gemini.project_registry import REGISTRY, TRUSTED

        yield from (root.parent / name for root in locate.roots(host) for name in (REGISTRY, TRUSTED))

    def copies(self, source: SourceFile) -> Iterator[Path]:
        from clew.agents.gemini.project_registry import MARKER

        project = locate.project_folder(source.path)
        yield from (project / name for name in (MARKER, locate.LOG, "checkpoints"))
        yield project.parent.parent / "history" / project.name

    def beside(self, path: PurePath, content: bytes, known: Sequence[str]) -> Iterator[str]:
        return locate.beside(path, known)

    def claims(self, path: Path, head: bytes) -> Claim:
        name = plain_name(path.name)
        if not name.endswith((".json", ".jsonl")) or _FOREIGN.search(head):
            return Claim.NO
        first = head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
        if first == b"[":
            if _LOGGED.search(head) and _HEADER.search(head):
                return Claim.YES
            return Claim.MAYBE if _TURN.search(head) and b'"parts"' in head else Claim.NO
        if _HEADER.search(head) and _PROJECT.search(head) and (_SPOKEN.search(head) or b'"messages"' in head):
            return Claim.YES
        if (_HEADER.search(head) and b'"projectHash"' in head) or _EVENT.search(head):
            return Claim.YES
        if locate.saved_tag(path) is not None and b'"history"' in head and _TURN.search(head):
            return Claim.YES
        is_place = locate.is_chat(path) and ".gemini" in path.parts
        return Claim.MAYBE if is_place and (not head.strip() or first == b"{") else Claim.NO

    def locate(self, path: Path) -> SourceFile:
        return locate.source_file(path)

    def session_id(self, source: SourceFile) -> str:
        return locate.session_id(source)

    def events(self, source: SourceFile) -> Iterator[Event]:
        from clew.agents.gemini.events import read_events

        return read_events(source)

    def document_keys(self, head: bytes, name: str) -> tuple[str, ...] | None:
        from clew.agents.gemini.records import document_keys

        return document_keys(head, name)

    def session(self, source: SourceFile, facts: Facts) -> dict[str, JSON]:
        from clew.agents.gemini.header import session_object

        return session_object(source, facts)

    def encode(self, header: Header, units: Iterable[Unit]) -> Iterator[tuple[str, bytes]]:
        from clew.agents.gemini.encode import encode

        return encode(header, units)

    def target(self, header: Header) -> str:
        from clew.agents.gemini.encode import target

        return target(header)

    def target_profile(self) -> TargetProfile:
        from clew.agents.gemini.target_profile import TARGET_PROFILE

        return TARGET_PROFILE

    def check(self, source: SourceFile, facts: Facts) -> Iterator[Problem]:
        from clew.agents.gemini.check import check

        return check(source, facts, self.units(source))

    def unknown_keys(self, native: Mapping[str, JSON]) -> Iterator[str]:
        from clew.agents.gemini.records import find_unknown_keys

        return find_unknown_keys(native)

    def file_changes(self, source: SourceFile, units: Iterator[Unit]) -> Iterator[FileEvidence]:
        from clew.agents.gemini.file_changes import file_changes

        return file_changes(source, units)
