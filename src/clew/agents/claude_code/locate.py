"""Where Claude Code keeps its sessions, how its folder names are made, and whether a file is a transcript."""

from __future__ import annotations

import os
import re
from collections.abc import Container, Iterator, Mapping
from functools import lru_cache
from pathlib import Path

from clew.agents.backups import is_link, is_plain_file
from clew.agents.base import Claim, SourceFile, source_at
from clew.host import Host
from clew.io.compress import plain_name
from clew.io.paths import encode_claude, safe_relative, walk
from clew.model.json import JSON

AGENT = "claude-code"
_AGENT_FILE = "agent-"
_SKIPPED = re.compile(r"\.(?:orphaned|superseded)")
_NAMES_OF_OTHER_LOGS = ("conversation.jsonl", "history.jsonl", "journal.jsonl")
"""Of sage-emacs, of the prompt line, of workflows."""
_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_PROJECT = re.compile(r"-|[A-Za-z]--")
"""How the encoded name of a folder begins: every path does with a slash, or with a drive."""
_FILED = re.compile(r"^(?:session|\d{4}-\d\d-\d\d|undated)-(?=agent-|[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-)")

_RECORD = re.compile(rb'"(?:sessionId|parentUuid|uuid|leafUuid|isSidechain|messageId|customTitle|aiTitle)"\s*:')
_SAGE = re.compile(rb'"context"\s*:\s*\{|"toolResults"|"toolCalls"')
_TYPE = re.compile(
    rb'"type"\s*:\s*"(?:user|assistant|summary|system|file-history-snapshot|queue-operation|attachment)"'
)
_GEMINI = re.compile(
    rb'(?:\xef\xbb\xbf)?\s*\{\s*"sessionId"\s*:\s*"[^"]*"\s*,\s*"(?:projectHash|startTime)"|(?s:.)*^\{"\$(?:set|rewindTo)":',
    re.MULTILINE,
)
_QWEN = re.compile(rb'"message"\s*:\s*\{\s*"role"\s*:\s*"\w+"\s*,\s*"parts"\s*:|"systemPayload"\s*:')


def roots(host: Host) -> Iterator[Path]:
    """The configured folder, the usual one, and the one very old installations used."""
    entries = map(str.strip, host.env.get("CLAUDE_CONFIG_DIR", "").split(","))
    if configured := [entry for entry in entries if entry]:
        yield from (Path(folder).expanduser() / "projects" for folder in configured)
        return
    yield host.home / ".claude" / "projects"
    yield host.home / ".config" / "claude" / "projects"


def discover(root: Path) -> Iterator[SourceFile]:
    """Every transcript below the root, sub-agents and workflow agents included; follows no links."""
    for below, names, files in walk(root):
        names.sort()
        found = [name for name in sorted(files) if _is_transcript_name(name)]
        if found and _holds_transcripts(folder := Path(below)):
            beside = frozenset(files)
            for path in (folder / name for name in found):
                if not is_link(path):
                    yield source_file(path, beside)


def is_transcript(name: str, folder: Path) -> bool:
    """True unless the name or the folder says that a file is something else."""
    return _is_transcript_name(name) and _holds_transcripts(folder)


def _is_transcript_name(name: str) -> bool:
    plain = plain_name(name)
    return plain.endswith(".jsonl") and plain not in _NAMES_OF_OTHER_LOGS and not _SKIPPED.search(name)


def _holds_transcripts(folder: Path) -> bool:
    # sage-emacs can be told to keep its own conversations and their archives inside this tree.
    if folder.name == "history" and (folder.parent / "metadata.json").exists():
        return False
    return folder.name != "tool-results"


def source_file(path: Path, beside: Container[str] | None = None) -> SourceFile:
    """The session in a transcript, with the side file that describes a sub-agent; `beside` are the names around it."""
    name = stem(path)
    meta = f"{name}.meta.json"
    sides: tuple[str, ...] = ()
    if name.startswith(_AGENT_FILE) and (beside is None or meta in beside) and is_plain_file(path.parent / meta):
        sides = (meta,)
    return source_at(AGENT, path, sides)


def stem(path: Path) -> str:
    """The file name without .jsonl, compression suffixes, and what filing by date or project puts before an id."""
    return _stem(path.name)


@lru_cache(256)
def _stem(name: str) -> str:
    return _FILED.sub("", plain_name(name).removesuffix(".jsonl"))


def is_agent_file(path: Path) -> bool:
    """True for the transcript of a sub-agent."""
    return stem(path).startswith(_AGENT_FILE)


def named_session(path: Path) -> str | None:
    """The session id a file name gives: it is the identity of the file, where it looks like one."""
    name = stem(path)
    return name if is_agent_file(path) or _UUID.fullmatch(name) else None


def home_of(path: Path) -> Path | None:
    """The client's own folder, which holds `projects`; a folder further up may have that name too."""
    return next((folder.parent for folder in path.parents if folder.name == "projects"), None)


def project_folder(path: Path) -> str:
    """Name of the project folder a transcript is filed under."""
    home = home_of(path)
    below = path.relative_to(home / "projects").parts if home is not None else ()
    return below[0] if len(below) > 1 else path.parent.name


def folder_for(session: Mapping[str, JSON]) -> str:
    """The project folder a session belongs in: the one it lies in, unless that is some folder of the person's own."""
    named = safe_relative(session.get("workspace_encoded") or "-")
    encoded = encode_claude(session["workspace"])
    place = str((session.get("source") or {}).get("path", "")).replace("\\", "/")
    is_own = _PROJECT.match(named) or f"claude/projects/{named}/" in place
    return named if not encoded or (is_own and named != "-") else encoded


def subagent_files(path: Path) -> Iterator[Path]:
    """Transcripts of sub-agents that belong to a session by their place; the flat layout needs a look inside."""
    folder = f"{folder_of(path)}/{stem(path)}/subagents"
    # Most sessions have none, and asking is cheaper than walking.
    for below, _, files in walk(folder) if os.path.isdir(folder) else ():  # noqa: PTH112
        for name in sorted(files):
            if name.startswith("agent-") and is_transcript(name, Path(below)):
                yield Path(below) / name


def copies(path: Path) -> Iterator[Path]:
    """The folders that hold a session's copies of files, its tasks and its long outputs."""
    name = stem(path)
    home = home_of(path)
    if home is not None:
        yield from (home / "file-history" / name, home / "tasks" / name, home / "todos" / f"{name}-agent-{name}.json")
    yield path.parent / name / "tool-results"


def folder_of(path: Path) -> str:
    """The folder that a file lies in; of many files, paths would take too long."""
    return os.path.dirname(path) or "."  # noqa: PTH120


def flat_agents(folder: Path) -> Iterator[Path]:
    """Transcripts of sub-agents that lie in a project's folder itself."""
    for name in sorted(os.listdir(folder)):  # noqa: PTH208 - most are no such files, and need no path
        if _stem(name).startswith(_AGENT_FILE) and is_transcript(name, folder):
            yield folder / name


def claims(path: Path, head: bytes) -> Claim:
    """How sure it is that the file is a transcript."""
    name = plain_name(path.name)
    if not name.endswith(".jsonl") or name.startswith("rollout-") or name == "history.jsonl":
        return Claim.NO
    # Sage Agent uses the same keys, but nests where it was and what it called.
    if name == "messages.jsonl" and _SAGE.search(head):
        return Claim.NO
    # Gemini CLI's users say "user" too, but its logs begin with whose session it is, and change it in place.
    if _GEMINI.match(head):
        return Claim.NO
    # Qwen Code has the same envelope, but around parts instead of content.
    if _QWEN.search(head):
        return Claim.NO
    # What the records say comes before where they lie: sage-emacs keeps conversations in this tree too.
    if _TYPE.search(head):
        return Claim.YES
    if b'"type"' in head or (_RECORD.search(head) and b'"message"' in head):
        return Claim.MAYBE
    return Claim.MAYBE if not head.strip() and is_transcript(name, path.parent) else Claim.NO
