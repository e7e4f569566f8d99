"""sage-emacs: the conversation and the archives of every project, and saved sessions.

Saved sessions, sage/sessions/<name>.json, are a store of their own, to which no other agent's sessions go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from clew.agents.base import Agent, Claim, Header, SourceFile, Unit
from clew.agents.sage_emacs import locate
from clew.agents.target_profile import TargetProfile
from clew.analysis.facts import Facts
from clew.host import Host
from clew.model import Problem
from clew.model.events import Event
from clew.model.json import JSON

if TYPE_CHECKING:
    from clew.agents.file_evidence import Event as FileEvidence


class SageEmacs(Agent):
    """The agent `sage-emacs`."""

    id = locate.AGENT
    title = "sage-emacs"
    homepage = "https://github.com/aygp-dr/sage.el"

    def roots(self, host: Host) -> Iterator[Path]:
        return locate.roots(host)

    def discover(self, root: Path) -> Iterator[SourceFile]:
        return locate.discover(root)

    def beside(self, path: PurePath, content: bytes, known: Sequence[str]) -> Iterator[str]:
        if locate.is_saved(path):
            return iter(())
        # An archive lies in a folder of the project that the metadata describe.
        places = (path.parent / locate.METADATA, path.parent.parent / locate.METADATA)
        return (name for name in known if PurePath(name) in places)

    def claims(self, path: Path, head: bytes) -> Claim:
        from clew.agents.sage_emacs.sniff import claims

        return claims(path, head)

    def locate(self, path: Path) -> SourceFile:
        return locate.source_file(path)

    def session_id(self, source: SourceFile) -> str:
        return locate.session_id(source)

    def events(self, source: SourceFile) -> Iterator[Event]:
        # Looking for sessions need not load what reads them.
        from clew.agents.sage_emacs.events import read_events

        return read_events(source)

    def document_keys(self, head: bytes, name: str) -> tuple[str, ...] | None:
        from clew.agents.sage_emacs.records import MESSAGES

        return (MESSAGES,) if locate.is_saved(PurePath(name)) else None

    def session(self, source: SourceFile, facts: Facts) -> dict[str, JSON]:
        from clew.agents.sage_emacs.metadata import session_object

        return session_object(source, facts)

    def unknown_keys(self, native: Mapping[str, JSON]) -> Iterator[str]:
        from clew.agents.sage_emacs.records import find_unknown_keys

        return find_unknown_keys(native)

    def file_changes(self, source: SourceFile, units: Iterator[Unit]) -> Iterator[FileEvidence]:
        from clew.agents.sage_emacs.file_changes import file_changes

        return file_changes(source, units)

    def encode(self, header: Header, units: Iterable[Unit]) -> Iterator[tuple[str, bytes]]:
        from clew.agents.sage_emacs.encode import encode

        return encode(header, units)

    def target(self, header: Header) -> str:
        return locate.target(header).as_posix()

    def target_profile(self) -> TargetProfile:
        from clew.agents.sage_emacs.target_profile import TARGET_PROFILE

        return TARGET_PROFILE

    def check(self, source: SourceFile, facts: Facts) -> Iterator[Problem]:
        from clew.agents.sage_emacs.check import check

        return check(source)
