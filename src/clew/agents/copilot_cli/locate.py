"""Where GitHub Copilot CLI keeps its sessions, and whether a file is one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from clew.agents.backups import is_link, is_plain_file
from clew.agents.base import Claim, SourceFile, source_at
from clew.host import Host
from clew.io.codec import NOT_JSON, loads
from clew.io.compress import plain_name
from clew.io.paths import walk

AGENT = "copilot-cli"
SESSIONS = "session-state"
EVENTS_FILE = "events.jsonl"
WORKSPACE_FILE = "workspace.yaml"
"""Beside the events: folder, branch and title of the session."""
SNAPSHOTS = "rewind-file-snapshots"
ATTACHMENT_TYPES = frozenset(
    "file directory blob extension_context github_reference github_commit github_release github_actions_job "
    "github_repository github_file_diff github_tree_comparison github_url github_file github_snippet".split()
)
"""Types of attachments of a prompt that name something the log does not hold."""

_CLAIM_LINES = 8
"""So many lines at most decide whether a file is a session."""
_EVENT = re.compile(rb'\{\s*"type"\s*:\s*"(?:session|user|assistant|tool|system|subagent|hook)\.[a-z_]+"\s*,\s*"')


def roots(host: Host) -> Iterator[Path]:
    """The folder of sessions below the client's home."""
    configured = host.env.get("COPILOT_HOME")
    yield (Path(configured).expanduser() if configured else host.home / ".copilot") / SESSIONS


def discover(root: Path) -> Iterator[SourceFile]:
    """Every session below the root: a folder with events, or in 2025 one file; follows no links."""
    for folder, names, files in walk(root):
        at_top = Path(folder) == root
        # Below the folder of a session are its artefacts, which are the project's own.
        names[:] = sorted(name for name in names if not name.startswith(".")) if at_top else []
        for name in sorted(files):
            path = Path(folder) / name
            is_session = plain_name(name).endswith(".jsonl") if at_top else plain_name(name) == EVENTS_FILE
            if is_session and not is_link(path):
                yield source_file(path)


def source_file(path: Path) -> SourceFile:
    """The session in a file, with the file that describes its workspace."""
    has_workspace = is_in_own_folder(path) and is_plain_file(path.parent / WORKSPACE_FILE)
    return source_at(AGENT, path, (WORKSPACE_FILE,) if has_workspace else ())


def is_in_own_folder(path: Path) -> bool:
    """True for a session that has a folder of its own."""
    return plain_name(path.name) == EVENTS_FILE


def session_id(path: Path) -> str:
    """The id of a session: the name of its folder, or of its file."""
    return path.parent.name if is_in_own_folder(path) else plain_name(path.name).removesuffix(".jsonl")


def copies(path: Path) -> Iterator[Path]:
    """What the client keeps for a session beside its events: backups of files, summaries, todos, plan, artefacts."""
    if is_in_own_folder(path):
        for name in (SNAPSHOTS, "checkpoints", "session.db", "plan.md", "files", "research"):
            yield path.parent / name


def claims(path: Path, head: bytes) -> Claim:
    """How sure it is that the file is a session."""
    if not plain_name(path.name).endswith(".jsonl"):
        return Claim.NO
    lines = head.removeprefix(b"\xef\xbb\xbf").split(b"\n")[:_CLAIM_LINES]
    if any(map(_is_event, lines)):
        return Claim.YES
    is_place = SESSIONS in path.parts and (is_in_own_folder(path) or path.parent.name == SESSIONS)
    return Claim.MAYBE if is_place and not head.strip() else Claim.NO


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
