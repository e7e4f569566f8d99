"""Cline, and the extensions Roo Code and Kilo Code that were made from it.

Cline 3 keeps a folder for each session, the extensions keep one for each task. All of their files are JSON documents
that are written anew at every change.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, ClassVar

from clew.agents.base import Agent, Claim, Header, SourceFile, Unit
from clew.agents.cline import locate
from clew.agents.target_profile import TargetProfile
from clew.analysis.facts import Facts
from clew.host import Host
from clew.model.events import Event
from clew.model.json import JSON

if TYPE_CHECKING:
    from clew.agents.file_evidence import Event as FileEvidence


class Cline(Agent):
    """The agent `cline`."""

    id = "cline"
    title = "Cline"
    homepage = "https://github.com/cline/cline"
    newest_tested_version = "3.0.65"
    extension: ClassVar[str] = "saoudrizwan.claude-dev"
    """The id of the extension, which its folder in an editor is called by."""

    def roots(self, host: Host) -> Iterator[Path]:
        yield from locate.cline_roots(host)
        yield from locate.extension_roots(host, self.extension)

    def discover(self, root: Path) -> Iterator[SourceFile]:
        return locate.discover(self.id, root)

    def beside(self, path: PurePath, content: bytes, known: Sequence[str]) -> Iterator[str]:
        manifest = path.parent / locate.manifest_name(path)
        return (name for name in known if PurePath(name) == manifest)

    def claims(self, path: Path, head: bytes) -> Claim:
        return locate.claims(self.extension, path, head)

    def locate(self, path: Path) -> SourceFile:
        return locate.source_file(self.id, path)

    def session_id(self, source: SourceFile) -> str:
        return locate.session_id(source.path)

    def document_keys(self, head: bytes, name: str) -> tuple[str, ...] | None:
        return locate.document_keys(name)

    def events(self, source: SourceFile) -> Iterator[Event]:
        from clew.agents.cline.events import read_events

        return read_events(source)

    def session(self, source: SourceFile, facts: Facts) -> dict[str, JSON]:
        from clew.agents.cline.header import session_object

        return session_object(source, facts)

    def unknown_keys(self, native: Mapping[str, JSON]) -> Iterator[str]:
        from clew.agents.cline.records import find_unknown_keys

        return find_unknown_keys(native)

    def file_changes(self, source: SourceFile, units: Iterator[Unit]) -> Iterator[FileEvidence]:
        from clew.agents.cline.file_changes import file_changes

        return file_changes(source, units)

    def target(self, header: Header) -> str:
        return locate.target(self.extension, header)

    def encode(self, header: Header, units: Iterable[Unit]) -> Iterator[tuple[str, bytes]]:
        from clew.agents.cline.encode import encode

        return encode(header, units)

    def target_profile(self) -> TargetProfile | None:
        from clew.agents.cline.target_profile import TARGET_PROFILE

        return TARGET_PROFILE


class RooCode(Cline):
    """The agent `roo-code`."""

    id = "roo-code"
    title = "Roo Code"
    homepage = "https://github.com/RooCodeInc/Roo-Code"
    newest_tested_version = ""
    extension = "rooveterinaryinc.roo-cline"

    def roots(self, host: Host) -> Iterator[Path]:
        return locate.extension_roots(host, self.extension)

    def target_profile(self) -> TargetProfile | None:
        return None


class KiloCode(RooCode):
    """The agent `kilo-code`: the extension before it moved to the database of the Kilo command line."""

    id = "kilo-code"
    title = "Kilo Code"
    homepage = "https://github.com/Kilo-Org/kilocode"
    extension = "kilocode.kilo-code"
