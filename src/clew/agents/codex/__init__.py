"""Codex CLI: every rollout below ~/.codex, of all generations."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePath

from clew.agents.base import Agent, Claim, Header, SourceFile, first_lines
from clew.agents.codex import locate
from clew.agents.extension_points import ConfigFile, Hook, McpConfig, file_in_folder
from clew.analysis.facts import Facts
from clew.analysis.titles import short_title
from clew.host import Host
from clew.io.codec import NOT_JSON, loads
from clew.io.compress import plain_name
from clew.model.json import JSON
from clew.model.time import parse_time, spell_time

_HEAD = re.compile(rb'^[^\n]*"session_meta"[^\n]*', re.MULTILINE)
_UUID = re.compile(rb"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_LINE_TYPES = frozenset(
    "session_meta turn_context response_item event_msg compacted world_state inter_agent_communication "
    "inter_agent_communication_metadata token_usage_record".split()
)
_CLAIM_LINES = 8
"""So many lines at most decide whether a file is a rollout."""
_ENVELOPE_START = re.compile(
    rb'\s*\{\s*(?:"timestamp"\s*:\s*"[^"]*"\s*,\s*)?(?:"ordinal"\s*:\s*\d+\s*,\s*)?'
    rb'"type"\s*:\s*"(?:session_meta|response_item|event_msg|turn_context|compacted|world_state)"'
)
_BARE_HEAD_START = re.compile(rb'\s*\{\s*"id"\s*:\s*"[^"]*"\s*,\s*"timestamp"\s*:\s*"[^"]*"\s*,\s*"instructions"\s*:')
_DOCUMENT_START = re.compile(rb'\s*\{\s*"session"\s*:\s*\{[^{}]*"id"\s*:[^{}]*"instructions"\s*:')
_HOOK_NOTE = "Codex runs a new hook only after you approved it: start `codex`, and approve it there or with /hooks"


class Codex(Agent):
    """The agent `codex`."""

    id = locate.AGENT
    title = "Codex CLI"
    homepage = "https://github.com/openai/codex"
    package = __name__
    is_shown_by_hugging_face = True
    newest_tested_version = "0.166.0"
    hook = Hook("hooks.json", {"timeout": 3}, _HOOK_NOTE)  # the longest time that Codex allows at this event
    opaque_blocks = frozenset({"encrypted_content"})

    def roots(self, host: Host) -> Iterator[Path]:
        home = host.configured_folder("CODEX_HOME", ".codex")
        return (home / name for name in (locate.SESSIONS, locate.ARCHIVED))

    def config_file(self, host: Host, name: str) -> ConfigFile:
        return file_in_folder(host, "CODEX_HOME", ".codex", name)

    def mcp_config(self, host: Host, project: Path | None = None) -> McpConfig | None:
        return McpConfig(self.config_file(host, "config.toml"), "mcp_servers", "toml") if project is None else None

    def discover(self, root: Path) -> Iterator[SourceFile]:
        return map(self.locate, locate.rollouts_below(root))

    def companions(self, host: Host) -> Iterator[Path]:
        yield from {root.parent / locate.THREAD_INDEX for root in self.roots(host)}

    def beside(self, path: PurePath, content: bytes, known: Sequence[str]) -> Iterator[str]:
        """The rollouts of the threads whose heads are in this one: comparing shows what it copied from them."""
        named = {uuid.decode() for head in _HEAD.findall(content) for uuid in _UUID.findall(head)}
        own = locate.parse_name(path)
        named -= {own.rollout or own.thread} if own else set()
        for name in known if named else ():
            found = locate.parse_name(PurePath(name))
            if found is not None and (found.rollout or found.thread) in named:
                yield name

    def claims(self, path: Path, head: bytes) -> Claim:
        name = plain_name(path.name)
        if name.endswith(".json"):
            return Claim.YES if _DOCUMENT_START.match(head) else Claim.NO
        if not name.endswith(".jsonl"):
            return Claim.NO
        if any(map(_is_rollout_line, first_lines(head, _CLAIM_LINES))):
            return Claim.YES
        is_empty = not head.removeprefix(b"\xef\xbb\xbf").strip()
        return Claim.MAYBE if is_empty and locate.is_rollout(path.name) else Claim.NO

    def session_id(self, source: SourceFile) -> str:
        from clew.agents.codex.events import first_thread_id, session_id

        return session_id(source, first_thread_id(source))

    def document_keys(self, head: bytes, name: str) -> tuple[str, ...] | None:
        from clew.agents.codex.records import DOCUMENT_ITEMS, is_document_name

        return (DOCUMENT_ITEMS,) if is_document_name(name) else None

    def session(self, source: SourceFile, facts: Facts) -> dict[str, JSON]:
        session = super().session(source, facts)
        session["ended_at"] = session["ended_at"] or facts.extra.get("last_record_time")
        for name, time in (("started_at", facts.first_time), ("ended_at", facts.last_time)):
            if time is None and (stamp := parse_time(session[name])) is not None:
                # A time of a head is shown without zeros behind its seconds.
                session[name] = spell_time(stamp)
        return session

    def workspace_folder(self, source: SourceFile) -> str:
        """The folder of a rollout below Codex's home, else the name of its folder."""
        home, folder = locate.home_of(source.path), source.path.parent
        return folder.relative_to(home).as_posix() if home is not None else folder.name

    def session_title(self, source: SourceFile, facts: Facts) -> str | None:
        from clew.agents.codex.events import session_id
        from clew.agents.codex.items import request_of
        from clew.agents.codex.records import EVENT_LINE
        from clew.agents.codex.thread_names import thread_title

        thread = facts.extra.get("claimed") or session_id(source, None)
        named = thread_title(source.path, thread, facts.titles.get(EVENT_LINE))
        return named or short_title(request_of(facts.first_prompt))

    def target(self, header: Header) -> str:
        from clew.agents.codex.encode import target

        return target(header)


def _is_rollout_line(line: bytes) -> bool:
    """True for a line of a rollout; it may be cut off. The stream of `codex exec --json` has dotted types."""
    if _BARE_HEAD_START.match(line):
        return True
    try:
        record = loads(line)
    except NOT_JSON:
        return _ENVELOPE_START.match(line) is not None
    kind = record.get("type") if isinstance(record, dict) else None
    return isinstance(kind, str) and kind in _LINE_TYPES and isinstance(record.get("payload"), dict)
