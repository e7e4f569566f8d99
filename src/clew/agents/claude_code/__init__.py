"""Claude Code: the transcripts below ~/.claude/projects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from clew.agents.base import Agent, Claim, Header, SourceFile, Unit
from clew.agents.claude_code import locate
from clew.agents.derived_ids import derived_id
from clew.agents.native_records import first_value
from clew.agents.target_profile import TargetProfile
from clew.analysis.facts import Facts
from clew.host import Host
from clew.io.paths import safe_relative
from clew.model.events import Event
from clew.model.json import JSON

if TYPE_CHECKING:
    from clew.agents.file_evidence import Event as FileEvidence


class ClaudeCode(Agent):
    """The agent `claude-code`."""

    id = locate.AGENT
    title = "Claude Code"
    homepage = "https://claude.com/claude-code"
    newest_tested_version = "2.1.325"
    # The first names a tool that was found, the second marks where in a reply another model took over.
    opaque_blocks = frozenset({"tool_reference", "fallback"})

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
        from clew.agents.claude_code.events import read_events

        return read_events(source)

    def session(self, source: SourceFile, facts: Facts) -> dict[str, JSON]:
        from clew.agents.claude_code.header import session_object

        return session_object(source, facts)

    def unknown_keys(self, native: Mapping[str, JSON]) -> Iterator[str]:
        from clew.agents.claude_code.records import find_unknown_keys

        return find_unknown_keys(native)

    def file_changes(self, source: SourceFile, units: Iterator[Unit]) -> Iterator[FileEvidence]:
        from clew.agents.claude_code.file_changes import file_changes

        return file_changes(source, units)

    def encode(self, header: Header, units: Iterable[Unit]) -> Iterator[tuple[str, bytes]]:
        from clew.agents.claude_code.encode import encode

        return encode(header, units)

    def target_profile(self) -> TargetProfile:
        from clew.agents.claude_code.target_profile import TARGET_PROFILE

        return TARGET_PROFILE

    def target(self, header: Header) -> str:
        session = header.session
        folder = safe_relative(locate.folder_for(session))
        name = safe_relative(f"{session['id']}.jsonl")
        if not locate.is_transcript(name, Path()):
            # A file that somebody called otherwise would be taken for another agent's.
            name = f"{derived_id(self.id, name)}.jsonl"
        # Sub-agents of older clients lay beside their session, and go back there.
        was_flat = Path(str(session.get("source", {}).get("path", ""))).parent.name == folder
        if session.get("is_agent_session") and session.get("parent_session_id") and not was_flat:
            return f".claude/projects/{folder}/{safe_relative(session['parent_session_id'])}/subagents/{name}"
        return f".claude/projects/{folder}/{name}"
