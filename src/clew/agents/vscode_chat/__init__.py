"""VS Code Copilot Chat: the chats of VS Code and of editors made from it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from clew.agents.base import Agent, Claim, Header, SourceFile, Unit
from clew.agents.vscode_chat import locate
from clew.analysis.facts import Facts
from clew.host import Host
from clew.model import Problem
from clew.model.events import Event
from clew.model.json import JSON

if TYPE_CHECKING:
    from clew.agents.file_evidence import Event as FileEvidence


class VSCodeChat(Agent):
    """The agent `vscode-chat`."""

    id = locate.AGENT
    title = "VS Code Copilot Chat"
    homepage = "https://github.com/microsoft/vscode"

    def roots(self, host: Host) -> Iterator[Path]:
        return locate.roots(host)

    def discover(self, root: Path) -> Iterator[SourceFile]:
        return locate.discover(root)

    def beside(self, path: PurePath, content: bytes, known: Sequence[str]) -> Iterator[str]:
        return locate.beside(path, known)

    def ignores(self, below: PurePath) -> bool:
        return locate.is_of_extensions(below)

    def claims(self, path: Path, head: bytes) -> Claim:
        return locate.claims(path, head)

    def locate(self, path: Path) -> SourceFile:
        return locate.source_file(path)

    def session_id(self, source: SourceFile) -> str:
        return locate.session_id(source.path)

    def events(self, source: SourceFile) -> Iterator[Event]:
        from clew.agents.vscode_chat.events import read_events

        return read_events(source)

    def document_keys(self, head: bytes, name: str) -> tuple[str, ...] | None:
        from clew.agents.vscode_chat.records import DOCUMENT_REQUESTS, is_document_name

        return (DOCUMENT_REQUESTS,) if is_document_name(name) else None

    def session(self, source: SourceFile, facts: Facts) -> dict[str, JSON]:
        from clew.agents.vscode_chat.header import session_object

        return session_object(source, facts)

    def check(self, source: SourceFile, facts: Facts) -> Iterator[Problem]:
        from clew.agents.vscode_chat.events import check

        return check(source)

    def file_changes(self, source: SourceFile, units: Iterator[Unit]) -> Iterator[FileEvidence]:
        from clew.agents.vscode_chat.file_changes import file_changes

        return file_changes(source, units)

    def unknown_keys(self, native: Mapping[str, JSON]) -> Iterator[str]:
        from clew.agents.vscode_chat.records import find_unknown_keys

        return find_unknown_keys(native)

    def target(self, header: Header) -> str:
        return locate.target(header)
