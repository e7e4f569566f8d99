"""Claude Code: the transcripts below ~/.claude/projects."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from clew.agents.backups import is_plain_file
from clew.agents.base import Agent, Claim, Header, SourceFile, first_lines, source_at
from clew.agents.claude_code.locate import agent_id, home_of, is_agent_file, is_transcript, stem
from clew.agents.derived_ids import derived_id, is_uuid
from clew.agents.extension_points import ConfigFile, Hook, McpConfig, file_in_folder
from clew.agents.folders import files_below
from clew.agents.native_records import first_value
from clew.analysis.facts import Facts
from clew.analysis.titles import short_title
from clew.host import Host
from clew.io.codec import NOT_JSON, loads
from clew.io.compress import plain_name
from clew.io.paths import encode_claude, safe_relative
from clew.model.json import JSON

_PROJECT = re.compile(r"-|[A-Za-z]--")
"""How the encoded name of a folder begins: every path does with a slash, or with a drive."""
_OWN_KEYS = frozenset({"parentUuid", "isSidechain", "leafUuid"})
_CUT_RECORD = re.compile(rb'\s*\{(?![^{}]*"role"\s*:)[^{}]*"(?:parentUuid|isSidechain|leafUuid)"\s*:')
_QWEN = re.compile(rb'"message"\s*:\s*\{\s*"role"\s*:\s*"\w+"\s*,\s*"parts"\s*:|"systemPayload"\s*:')
_CLAIM_LINES = 64
"""So many lines at most decide whether a file is a transcript."""


class ClaudeCode(Agent):
    """The agent `claude-code`."""

    id = "claude-code"
    title = "Claude Code"
    homepage = "https://claude.com/claude-code"
    package = __name__
    is_shown_by_hugging_face = True
    newest_tested_version = "2.1.325"
    # Without a time limit of its own, a hook at the end of a session is stopped after 1.5 seconds.
    hook = Hook("settings.json", {"timeout": 10})
    # The first names a tool that was found, the second marks where in a reply another model took over.
    opaque_blocks = frozenset({"tool_reference", "fallback"})

    def roots(self, host: Host) -> Iterator[Path]:
        """The configured folders; else the usual one, and the one that very old installations used."""
        entries = map(str.strip, host.env.get("CLAUDE_CONFIG_DIR", "").split(","))
        if configured := [entry for entry in entries if entry]:
            yield from (host.expand(folder) / "projects" for folder in configured)
            return
        yield host.home / ".claude" / "projects"
        yield host.home / ".config" / "claude" / "projects"

    def config_file(self, host: Host, name: str) -> ConfigFile:
        return file_in_folder(host, "CLAUDE_CONFIG_DIR", ".claude", name)

    def mcp_config(self, host: Host, project: Path | None = None) -> McpConfig:
        own = file_in_folder(host, "CLAUDE_CONFIG_DIR", "", ".claude.json")
        return McpConfig(ConfigFile(project, ".mcp.json") if project else own, "mcpServers", entry={"type": "stdio"})

    def discover(self, root: Path) -> Iterator[SourceFile]:
        """Every transcript below the root, sub-agents and workflow agents included."""
        return (self.locate(path) for path in files_below(root, self.session_files) if is_transcript(path))

    def claims(self, path: Path, head: bytes) -> Claim:
        name = plain_name(path.name)
        if not name.endswith(".jsonl") or name.startswith("rollout-") or name == "history.jsonl":
            return Claim.NO
        if not head.strip():
            is_place = is_uuid(stem(path)) or is_agent_file(path) or home_of(path) is not None
            return Claim.MAYBE if is_place and is_transcript(path) else Claim.NO
        # Qwen Code has the same envelope, but around parts instead of content.
        if _QWEN.search(head):
            return Claim.NO
        # What the records say comes before where they lie: sage-emacs keeps conversations in this tree too.
        return max(_claim_of_line(line, name) for line in first_lines(head, _CLAIM_LINES))

    def locate(self, path: Path) -> SourceFile:
        if is_agent_file(path) and is_plain_file(path.parent / (meta := f"{stem(path)}.meta.json")):
            return source_at(self.id, path, (meta,))
        return source_at(self.id, path)

    def session_id(self, source: SourceFile) -> str:
        """The name of the file, where it looks like an id; else the session that its records name."""
        name = stem(source.path)
        is_named = is_agent_file(source.path) or is_uuid(name)
        return name if is_named else first_value(source.path, "sessionId") or name

    def copies(self, source: SourceFile) -> Iterator[Path]:
        """The folders that hold a session's copies of files, its tasks and its long outputs."""
        name, home = stem(source.path), home_of(source.path)
        if home is not None:
            yield from (home / "file-history" / name, home / "tasks" / name)
            yield home / "todos" / f"{name}-agent-{name}.json"
        yield source.path.parent / name / "tool-results"

    def session(self, source: SourceFile, facts: Facts) -> dict[str, JSON]:
        from clew.agents.claude_code.subagents import find_subagents

        is_agent = is_agent_file(source.path)
        session = super().session(source, facts) | {
            "is_agent_session": is_agent,
            "parent_session_id": facts.extra.get("claimed") if is_agent else None,
            "agent_id": agent_id(source.path) if is_agent else None,
        }
        if subagents := list(find_subagents(source, facts, session["id"])):
            session["subagents"] = subagents
        return session

    def workspace_folder(self, source: SourceFile) -> str:
        """The project folder that a transcript is filed under."""
        home = home_of(source.path)
        below = source.path.relative_to(home / "projects").parts if home is not None else ()
        return below[0] if len(below) > 1 else source.path.parent.name

    def session_title(self, source: SourceFile, facts: Facts) -> str | None:
        """The title that a person gave, or the agent; else a summary of the file's own leaf, else the first prompt."""
        for kind in ("custom-title", "ai-title"):
            if kind in facts.titles:
                return facts.titles[kind]
        for leaf, summary in reversed(facts.summaries.items()):
            if facts.links.holds(leaf):
                return summary
        return short_title(facts.first_prompt)

    def target(self, header: Header) -> str:
        session = header.session
        recorded = header.recorded_path
        folder = safe_relative(session.get("workspace_encoded") or "-")
        encoded = encode_claude(session["workspace"])
        is_project = (_PROJECT.match(folder) or f"claude/projects/{folder}/" in str(recorded)) and folder != "-"
        if encoded and not is_project:
            # It lies in some folder of the person's own.
            folder = safe_relative(encoded)
        name = safe_relative(f"{session['id']}.jsonl")
        if not is_transcript(Path(name)):
            # A file with another name would be taken for one of another agent.
            name = f"{derived_id(self.id, name)}.jsonl"
        # Sub-agents of older clients lay beside their session, and go back there.
        was_flat = recorded.parent.name == folder
        if session.get("is_agent_session") and session.get("parent_session_id") and not was_flat:
            return f".claude/projects/{folder}/{safe_relative(session['parent_session_id'])}/subagents/{name}"
        return f".claude/projects/{folder}/{name}"


def _claim_of_line(line: bytes, name: str) -> Claim:
    """How sure it is that a line is of a transcript, by the keys that only Claude Code has; it may be cut off."""
    from clew.agents.claude_code.records import MESSAGE_TYPES, RECORD_KINDS

    try:
        record = loads(line)
    except NOT_JSON:
        return Claim.YES if _CUT_RECORD.match(line) else Claim.NO
    # sage-emacs writes the same keys, with a `role` in every record.
    if not isinstance(record, dict) or "role" in record:
        return Claim.NO
    kind, message = record.get("type"), record.get("message")
    # Sage Agent uses the same keys, but nests where it was and what it called.
    if name == "messages.jsonl" and record.keys() & {"context", "toolResults", "toolCalls"}:
        return Claim.NO
    if record.keys() & _OWN_KEYS or (kind in MESSAGE_TYPES and "uuid" in record):
        return Claim.YES
    if isinstance(kind, str) and kind in RECORD_KINDS and record.keys() & {"sessionId", "messageId", "agentId"}:
        return Claim.YES if "-" in kind else Claim.MAYBE
    return Claim.MAYBE if isinstance(message, dict) and (kind in MESSAGE_TYPES or "sessionId" in record) else Claim.NO
