"""Claude Code: every transcript below ~/.claude/projects, read and written byte for byte."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from clew.agents.base import Claim, Header, Reading, SourceFile
from clew.agents.claude_code import locate, scan, tables
from clew.agents.claude_code.header import claimed_session, named_session, session_object
from clew.agents.claude_code.reading import ClaudeReading, read_message
from clew.agents.jsonl import JsonlWriter
from clew.derive.facts import Facts
from clew.host import Host
from clew.io.paths import encode_claude, safe_relative
from clew.model import Problem
from clew.model.json import JSON

_RECORD = re.compile(rb'"(?:sessionId|parentUuid|uuid|leafUuid|isSidechain|messageId|customTitle|aiTitle)"\s*:')
_SAGE = re.compile(rb'"context"\s*:\s*\{|"toolResults"|"toolCalls"')
_TYPE = re.compile(
    rb'"type"\s*:\s*"(?:user|assistant|summary|system|file-history-snapshot|queue-operation|attachment)"'
)


class ClaudeCode:
    """The agent `claude-code`."""

    id = locate.AGENT
    title = "Claude Code"
    homepage = "https://claude.com/claude-code"

    def roots(self, host: Host) -> Iterator[Path]:
        return locate.roots(host)

    def discover(self, root: Path) -> Iterator[SourceFile]:
        return locate.discover(root)

    def claims(self, path: Path, head: bytes) -> Claim:
        name = path.name.removesuffix(".gz").removesuffix(".zst")
        if not name.endswith(".jsonl") or path.name.startswith("rollout-"):
            return Claim.NO
        # Sage Agent uses the same keys, but nests where it was and what it called.
        if path.name == "messages.jsonl" and _SAGE.search(head):
            return Claim.NO
        if _RECORD.search(head) and _TYPE.search(head):
            return Claim.YES
        if _TYPE.search(head) or ".claude" in path.parts:
            return Claim.YES
        return Claim.MAYBE if not head.strip() or b'"type"' in head else Claim.NO

    def locate(self, path: Path) -> SourceFile:
        return locate.source_file(path)

    def session_id(self, source: SourceFile) -> str:
        return named_session(source.path) or scan.first_claim(source) or locate.stem(source.path)

    def scan(self, source: SourceFile) -> Facts:
        return scan.scan(source)

    def outline(self, source: SourceFile) -> Facts:
        return scan.scan(source, tree=False)

    def session(self, source: SourceFile, facts: Facts) -> dict[str, JSON]:
        return session_object(source, facts)

    def read(self, source: SourceFile, facts: Facts) -> Reading:
        context = {"session_id": claimed_session(facts), "slug": facts.slug, "agent_id": facts.extra.get("agent_id")}
        return ClaudeReading(source, context, _claims(source, facts))

    def read_message(self, text: bytes) -> dict[str, JSON]:
        return read_message(text)

    def write(self, header: Header, units: Iterator[tuple[bool, dict[str, JSON]]]) -> Iterator[tuple[str, bytes]]:
        session = header.session
        own = header.extensions.get(self.id) or {}
        default = session.get("parent_session_id") if session.get("is_agent_session") else session["id"]
        context = {
            "session_id": own.get("session_id", default),
            "slug": session.get("slug"),
            "agent_id": own.get("agent_id", session.get("agent_id")),
        }
        yield from JsonlWriter(self.id, header, tables.chosen, context).files(units)

    def target(self, header: Header) -> str:
        session = header.session
        folder = safe_relative(session.get("workspace_encoded") or encode_claude(session["workspace"]))
        name = safe_relative(f"{session['id']}.jsonl")
        if session.get("is_agent_session") and session.get("parent_session_id"):
            return f".claude/projects/{folder}/{safe_relative(session['parent_session_id'])}/subagents/{name}"
        return f".claude/projects/{folder}/{name}"

    def check(self, source: SourceFile, facts: Facts) -> Iterator[Problem]:
        return iter(())


def _claims(source: SourceFile, facts: Facts) -> dict[str, JSON]:
    """What records claim, where the session object says otherwise."""
    session = session_object(source, facts, links=False)
    default = session["parent_session_id"] if session["is_agent_session"] else session["id"]
    claimed = claimed_session(facts)
    extra: dict[str, JSON] = {}
    if claimed != default:
        extra["session_id"] = claimed
    if facts.extra.get("agent_id") != session["agent_id"]:
        extra["agent_id"] = facts.extra.get("agent_id")
    return extra
