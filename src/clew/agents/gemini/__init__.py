"""Gemini CLI: every chat below ~/.gemini/tmp, read and written byte for byte."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path, PurePath

from clew.agents.backups import is_link
from clew.agents.base import Agent, Claim, Header, SourceFile
from clew.agents.extension_points import ConfigFile, Hook, McpConfig
from clew.agents.folders import file_names, subfolders
from clew.agents.gemini import locate
from clew.agents.gemini.locate import CHATS, LOG
from clew.agents.gemini.project_registry import MARKER, REGISTRY, TRUSTED, copies_of, folders_of_hashes
from clew.agents.gemini_content import OPAQUE_PARTS
from clew.analysis.facts import Facts
from clew.analysis.titles import short_title
from clew.host import Host
from clew.io.compress import plain_name
from clew.model import Problem
from clew.model.json import JSON

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
    package = __name__
    newest_tested_version = "0.61.0"
    # The name is what `/hooks disable` takes.
    hook = Hook("settings.json", {"name": "clew"})
    opaque_blocks = OPAQUE_PARTS

    def roots(self, host: Host) -> Iterator[Path]:
        yield _home(host) / ".gemini" / "tmp"

    def config_file(self, host: Host, name: str) -> ConfigFile:
        return ConfigFile(_home(host), f".gemini/{name}")

    def mcp_config(self, host: Host, project: Path | None = None) -> McpConfig:
        return McpConfig(ConfigFile(project or _home(host), ".gemini/settings.json"), "mcpServers")

    def discover(self, root: Path) -> Iterator[SourceFile]:
        """Every chat, sub-agents included, every saved chat, and logs of prompts whose chats are gone."""
        copies = copies_of(root)
        for project in subfolders(root):
            newer = copies.get(project.name)
            chats = project / CHATS
            for folder in () if is_link(chats) else (chats, *subfolders(chats)):
                names = locate.chat_names(folder)
                if newer is not None:
                    names = [name for name in names if not _is_copied(folder / name, project, newer)]
                yield from (locate.source_of(folder, group) for group in locate.group_sessions(folder, names))
            for path in (project / name for name in file_names(project)):
                is_log = plain_name(path.name) == LOG
                if locate.saved_tag(path) is not None or (is_log and locate.gone_sessions(path)):
                    yield locate.source_of(project, [path.name])

    def companions(self, host: Host) -> Iterator[Path]:
        yield from (root.parent / name for root in self.roots(host) for name in (REGISTRY, TRUSTED))

    def copies(self, source: SourceFile) -> Iterator[Path]:
        project = locate.project_folder(source.path)
        yield from (project / name for name in (MARKER, LOG, "checkpoints"))
        yield project.parent.parent / "history" / project.name

    def beside(self, path: PurePath, content: bytes, known: Sequence[str]) -> Iterator[str]:
        """What names the project; and for a log of prompts the chats, because it tells of those that are gone."""
        above = next((folder for folder in path.parents if folder.name == CHATS), None)
        project = above.parent if above is not None else path.parent
        needs_chats = plain_name(path.name) == LOG
        for name in known:
            other = PurePath(name)
            if other == project / MARKER or (needs_chats and other.is_relative_to(project / CHATS)):
                yield name

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
        """The session that a file belongs to, with its other files."""
        folder, short_id = path.parent, locate.short_id(path.name)
        if locate.is_chat(path):
            alike = [name for name in locate.chat_names(folder) if locate.short_id(name) == short_id]
            for group in locate.group_sessions(folder, alike):
                if path.name in group:
                    return locate.source_of(folder, group)
        return locate.source_of(folder, [path.name])

    def session_id(self, source: SourceFile) -> str:
        return locate.session_id(source)

    def document_keys(self, head: bytes, name: str) -> tuple[str, ...] | None:
        from clew.agents.gemini.records import document_keys

        return document_keys(head, name)

    def session(self, source: SourceFile, facts: Facts) -> dict[str, JSON]:
        from clew.agents.gemini.header import session_fields

        session = super().session(source, facts)
        return session | session_fields(source, facts, session["id"])

    def workspace_folder(self, source: SourceFile) -> str:
        return locate.project_folder(source.path).name

    def folders_of_hashes(self, hashes: Collection[str], folders: Iterable[str]) -> dict[str, str]:
        return folders_of_hashes(hashes, folders)

    def session_title(self, source: SourceFile, facts: Facts) -> str | None:
        return facts.titles.get("title") or locate.saved_tag(source.path) or short_title(facts.first_prompt)

    def target(self, header: Header) -> str:
        from clew.agents.gemini.encode import target

        return target(header)

    def check(self, source: SourceFile, facts: Facts) -> Iterator[Problem]:
        from clew.agents.gemini.check import check

        return check(source, facts, self.units(source))


def _home(host: Host) -> Path:
    configured = host.env.get("GEMINI_CLI_HOME")
    return Path(configured) if configured else host.home


def _is_copied(path: Path, project: Path, newer: Path) -> bool:
    """True when the project's newer folder has the same chat, no shorter: it was copied there, not moved."""
    try:
        return (newer / path.relative_to(project)).stat().st_size >= path.stat().st_size
    except OSError:
        return False
