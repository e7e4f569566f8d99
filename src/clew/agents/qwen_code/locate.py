"""Where the transcripts of sessions and of their sub-agents lie below the folder of a project."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from clew.agents.backups import is_link, is_plain_file
from clew.agents.base import file_stem
from clew.io.compress import SUFFIXES, plain_name

PROJECTS, CHATS, ARCHIVE, SUBAGENTS = "projects", "chats", "archive", "subagents"
AGENT_FILE = "agent-"
_LEDGER = ".ledger.jsonl"
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]")


def is_transcript_name(name: str) -> bool:
    """True for the name of a session or of a sub-agent."""
    plain = plain_name(name)
    return plain.endswith(".jsonl") and not plain.endswith(_LEDGER) and not plain.startswith(".")


def meta_name(path: Path) -> str:
    """The name of the file that describes a sub-agent."""
    return f"{file_stem(path)}.meta.json"


def is_agent_file(path: Path) -> bool:
    """True for the transcript of a sub-agent."""
    return file_stem(path).startswith(AGENT_FILE)


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
    return sorted(file for file in folder.glob("*") if is_transcript_name(file.name) and is_plain_file(file))


def has_transcript(path: Path, agent: str, session: str) -> bool:
    """Whether a sub-agent that was started in a session of the same project has a transcript."""
    folder = project_path(path) / SUBAGENTS / safe_id(session)
    return any(is_plain_file(folder / f"{AGENT_FILE}{safe_id(agent)}.jsonl{suffix}") for suffix in ("", *SUFFIXES))


def copies(path: Path) -> Iterator[Path]:
    """The folder with the copies that the client makes of files before it changes them."""
    projects = project_path(path).parent
    if projects.name == PROJECTS and not is_agent_file(path):
        yield projects.parent / "file-history" / file_stem(path)


def safe_id(name: str) -> str:
    """An id as it is spelled in names of folders and files."""
    return _UNSAFE.sub("_", name)
