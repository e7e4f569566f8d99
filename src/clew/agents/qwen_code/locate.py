"""Where Qwen Code keeps sessions and sub-agents, and whether a file is a transcript."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

from clew.agents.backups import is_link, is_plain_file
from clew.agents.base import Claim, SourceFile, source_at
from clew.host import Host
from clew.io.compress import SUFFIXES, plain_name
from clew.io.paths import safe_relative, walk
from clew.model.json import JSON

AGENT = "qwen-code"
PROJECTS, CHATS, ARCHIVE, SUBAGENTS = "projects", "chats", "archive", "subagents"
AGENT_FILE = "agent-"
_LEDGER = ".ledger.jsonl"
_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]")
_PROJECT = re.compile(r"-|[A-Za-z]--")
"""How the name of a project folder begins: every path does with a slash, or with a drive."""
_NOT_ALPHANUMERIC = re.compile(r"[^A-Za-z0-9]")
_RECORD = re.compile(rb'"sessionId"\s*:')
_MESSAGE = re.compile(rb'"message"\s*:\s*\{\s*"role"\s*:\s*"(?:user|model|system)"\s*,\s*"parts"\s*:')
_PAYLOAD = re.compile(rb'"(?:systemPayload|toolCallResult|usageMetadata)"\s*:')


def roots(host: Host) -> Iterator[Path]:
    """The folder of all projects; its place can be configured together with the settings, or alone."""
    homes = [host.env.get("QWEN_RUNTIME_DIR"), host.env.get("QWEN_HOME") or str(host.home / ".qwen")]
    for home in dict.fromkeys(filter(None, homes)):
        yield Path(home).expanduser() / PROJECTS


def discover(root: Path) -> Iterator[SourceFile]:
    """Every session, archived or not, and every sub-agent; follows no links."""
    for below, names, files in walk(root):
        names.sort()
        folder = Path(below)
        is_archive = folder.name == ARCHIVE and folder.parent.name == CHATS
        if folder.name == CHATS or is_archive or folder.parent.name == SUBAGENTS:
            paths = (folder / name for name in sorted(files) if _is_transcript_name(name))
            yield from (source_file(path) for path in paths if not is_link(path))


def _is_transcript_name(name: str) -> bool:
    plain = plain_name(name)
    return plain.endswith(".jsonl") and not plain.endswith(_LEDGER) and not plain.startswith(".")


def source_file(path: Path) -> SourceFile:
    """The session in a transcript, with the side file that describes a sub-agent."""
    meta = meta_name(path)
    return source_at(AGENT, path, (meta,) if is_agent_file(path) and is_plain_file(path.parent / meta) else ())


def stem(path: Path) -> str:
    """The file name without .jsonl and compression suffixes."""
    return plain_name(path.name).removesuffix(".jsonl")


def meta_name(path: Path) -> str:
    """The name of the file that describes a sub-agent."""
    return f"{stem(path)}.meta.json"


def is_agent_file(path: Path) -> bool:
    """True for the transcript of a sub-agent."""
    return stem(path).startswith(AGENT_FILE)


def named_session(path: Path) -> str | None:
    """The session id that a file name gives, if it looks like one."""
    name = stem(path)
    return name if is_agent_file(path) or _UUID.fullmatch(name) else None


def project_path(path: Path) -> Path:
    """The folder of the project that a transcript lies in."""
    above = path.parents
    if len(above) > 2 and (above[1].name == SUBAGENTS or (above[0].name == ARCHIVE and above[1].name == CHATS)):
        return above[2]
    return above[1] if above[0].name == CHATS else above[0]


def subagent_files(path: Path, session: str) -> list[Path]:
    """The transcripts of all sub-agents that were started in the session of a file, by it or by each other."""
    folder = path.parent if is_agent_file(path) else project_path(path) / SUBAGENTS / safe_id(session)
    if folder.parent.name != SUBAGENTS or is_link(folder):
        return []
    return sorted(file for file in folder.glob("*") if _is_transcript_name(file.name) and is_plain_file(file))


def has_transcript(path: Path, agent: str, session: str) -> bool:
    """Whether a sub-agent that was started in a session of the same project has a transcript."""
    folder = project_path(path) / SUBAGENTS / safe_id(session)
    return any(is_plain_file(folder / f"{AGENT_FILE}{safe_id(agent)}.jsonl{suffix}") for suffix in ("", *SUFFIXES))


def copies(path: Path) -> Iterator[Path]:
    """The folder with the copies that the client makes of files before it changes them."""
    projects = project_path(path).parent
    if projects.name == PROJECTS and not is_agent_file(path):
        yield projects.parent / "file-history" / stem(path)


def safe_id(name: str) -> str:
    """An id as it is spelled in names of folders and files."""
    return _UNSAFE.sub("_", name)


def target(session: Mapping[str, JSON]) -> str:
    """Where a session's file belongs below a home folder."""
    project, name = f".qwen/{PROJECTS}/{_project_name(session)}", safe_relative(f"{session['id']}.jsonl")
    folder = PurePosixPath(str((session.get("source") or {}).get("path", "")).replace("\\", "/")).parent
    parent = session.get("parent_session_id")
    if session.get("is_agent_session") and parent:
        # Sub-agents of sub-agents lie in the folder of the session that a person started.
        above = folder.name if parent.startswith(AGENT_FILE) and folder.parent.name == SUBAGENTS else parent
        return f"{project}/{SUBAGENTS}/{safe_id(above)}/{name}"
    was_archived = folder.name == ARCHIVE and folder.parent.name == CHATS
    return f"{project}/{CHATS}/{ARCHIVE}/{name}" if was_archived else f"{project}/{CHATS}/{name}"


def _project_name(session: Mapping[str, JSON]) -> str:
    """The project folder that a session belongs in: the one it lies in, unless that is some folder of a person's."""
    named = session.get("workspace_encoded") or ""
    is_own = _PROJECT.match(named) or not session["workspace"]
    return safe_relative((named if is_own else _NOT_ALPHANUMERIC.sub("-", session["workspace"])) or "-")


def claims(path: Path, head: bytes) -> Claim:
    """How sure it is that the file is a transcript."""
    if not _is_transcript_name(path.name):
        return Claim.NO
    if _RECORD.search(head) and (_MESSAGE.search(head) or _PAYLOAD.search(head)):
        return Claim.YES
    is_place = path.parent.name == CHATS or path.parent.parent.name == SUBAGENTS
    return Claim.MAYBE if is_place and ".qwen" in path.parts and not head.strip() else Claim.NO
