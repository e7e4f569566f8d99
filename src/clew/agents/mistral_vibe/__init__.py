"""Mistral Vibe: the session store of version 3 below ~/.vibe."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from clew.agents.base import Agent, Claim, Header, SourceFile, Unit
from clew.agents.mistral_vibe import locate
from clew.analysis.facts import Facts
from clew.host import Host
from clew.model.events import Event
from clew.model.json import JSON

if TYPE_CHECKING:
    from clew.agents.file_evidence import Event as FileEvidence


class MistralVibe(Agent):
    """The agent `mistral-vibe`."""

    id = locate.AGENT
    title = "Mistral Vibe"
    homepage = "https://github.com/mistralai/mistral-vibe"
    newest_tested_version = "3.0.3"

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
        folder = f"{path.parent.as_posix()}/"
        return (name for name in known if name.startswith(folder) and name != path.as_posix())

    def events(self, source: SourceFile) -> Iterator[Event]:
        from clew.agents.mistral_vibe.events import read_events

        return read_events(source)

    def document_keys(self, head: bytes, name: str) -> tuple[str, ...] | None:
        from clew.agents.mistral_vibe.records import NO_ARRAY

        if name.endswith(".jsonl"):
            return None
        return () if locate.is_chunk(name) else NO_ARRAY

    def session(self, source: SourceFile, facts: Facts) -> dict[str, JSON]:
        from clew.agents.mistral_vibe.header import session_object

        return session_object(source, facts)

    def unknown_keys(self, native: Mapping[str, JSON]) -> Iterator[str]:
        from clew.agents.mistral_vibe.records import find_unknown_keys

        return find_unknown_keys(native)

    def file_changes(self, source: SourceFile, units: Iterator[Unit]) -> Iterator[FileEvidence]:
        from clew.agents.mistral_vibe.file_changes import file_changes

        return file_changes(source, units)

    def target(self, header: Header) -> str:
        return locate.target(header)
