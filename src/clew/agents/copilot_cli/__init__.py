"""GitHub Copilot CLI: every session below ~/.copilot/session-state."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from clew.agents.backups import is_plain_file, read_inside
from clew.agents.base import Agent, Claim, Header, SourceFile, first_lines, source_at
from clew.agents.copilot_cli.locate import EVENTS_FILE, SNAPSHOTS, WORKSPACE_FILE, is_in_own_folder, session_id
from clew.analysis.facts import Facts
from clew.analysis.titles import short_title
from clew.host import Host
from clew.io.codec import NOT_JSON, loads
from clew.io.compress import plain_name
from clew.io.paths import safe_relative

_SESSIONS = "session-state"
_CLAIM_LINES = 8
"""So many lines at most decide whether a file is a session."""
_EVENT = re.compile(rb'\{\s*"type"\s*:\s*"(?:session|user|assistant|tool|system|subagent|hook)\.[a-z_]+"\s*,\s*"')
_WORKSPACE_NAME = re.compile(
    r"""^name:[ \t]+(?:'(?P<single>(?:[^'\n]|'')*)'|(?P<double>"(?:[^"\\\n]|\\.)*")|(?P<plain>[^\s'"#].*?))"""
    r"[ \t]*(?:[ \t]\#.*)?$",
    re.MULTILINE,
)
_MAX_WORKSPACE_BYTES = 1 << 20
"""A longer workspace file is not read: the title then comes from the events."""
_UNSUPPORTED_YAML_STARTS = ("|", ">", "&", "*", "!")
_YAML_NULLS = ("null", "Null", "NULL", "~")


class CopilotCli(Agent):
    """The agent `copilot-cli`."""

    id = "copilot-cli"
    title = "GitHub Copilot CLI"
    homepage = "https://github.com/github/copilot-cli"
    package = __name__
    newest_tested_version = "1.0.102"
    # In 2025 a session was one file. Below the folder of a session are its artefacts, which are the project's own.
    session_files = ("*.jsonl", f"[!.]*/{EVENTS_FILE}")
    # Attachments of a prompt that name something the log does not hold.
    opaque_blocks = frozenset(
        "file directory blob extension_context github_reference github_commit github_release github_actions_job "
        "github_repository github_file_diff github_tree_comparison github_url github_file github_snippet".split()
    )

    def roots(self, host: Host) -> Iterator[Path]:
        yield host.configured_folder("COPILOT_HOME", ".copilot") / _SESSIONS

    def claims(self, path: Path, head: bytes) -> Claim:
        if not plain_name(path.name).endswith(".jsonl"):
            return Claim.NO
        if any(map(_is_event, first_lines(head, _CLAIM_LINES))):
            return Claim.YES
        is_place = _SESSIONS in path.parts and (is_in_own_folder(path) or path.parent.name == _SESSIONS)
        return Claim.MAYBE if is_place and not head.strip() else Claim.NO

    def locate(self, path: Path) -> SourceFile:
        has_workspace = is_in_own_folder(path) and is_plain_file(path.parent / WORKSPACE_FILE)
        return source_at(self.id, path, (WORKSPACE_FILE,) if has_workspace else ())

    def session_id(self, source: SourceFile) -> str:
        return session_id(source.path)

    def copies(self, source: SourceFile) -> Iterator[Path]:
        if is_in_own_folder(source.path):
            for name in (SNAPSHOTS, "checkpoints", "session.db", "plan.md", "files", "research"):
                yield source.path.parent / name

    def session_title(self, source: SourceFile, facts: Facts) -> str | None:
        return short_title(_workspace_title(source) or facts.titles.get("session.title_changed") or facts.first_prompt)

    def target(self, header: Header) -> str:
        return f".copilot/{_SESSIONS}/{safe_relative(str(header.session['id']))}/{EVENTS_FILE}"


def _is_event(line: bytes) -> bool:
    """True for a line of a session; it may be cut off."""
    try:
        record = loads(line)
    except NOT_JSON:
        return _EVENT.match(line) is not None and b'"data"' in line
    if not isinstance(record, dict) or not isinstance(record.get("data"), dict):
        return False
    kind = record.get("type")
    return isinstance(kind, str) and "." in kind and isinstance(record.get("id"), str) and "timestamp" in record


def _workspace_title(source: SourceFile) -> str | None:
    """The name of the session in its YAML file, which has one level."""
    if WORKSPACE_FILE not in source.sides:
        return None
    text = read_inside(source.path.parent, WORKSPACE_FILE, _MAX_WORKSPACE_BYTES)
    found = _WORKSPACE_NAME.search(text.decode(errors="replace")) if text is not None else None
    if found is None:
        return None
    if found["single"] is not None:
        return str(found["single"]).replace("''", "'")
    if found["double"] is not None:
        # Nearly all texts in double quotes are JSON string literals.
        try:
            return str(loads(found["double"]))
        except NOT_JSON:
            return None
    name = str(found["plain"])
    return None if name in _YAML_NULLS or name.startswith(_UNSUPPORTED_YAML_STARTS) else name
