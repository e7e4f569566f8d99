"""What the path of a transcript says about it."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

from clew.io.compress import plain_name

AGENT_FILE = "agent-"
_SKIPPED = re.compile(r"\.(?:orphaned|superseded)")
_NAMES_OF_OTHER_LOGS = ("conversation.jsonl", "history.jsonl", "journal.jsonl")
"""Of sage-emacs, of the prompt line, of workflows."""
_FILED = re.compile(r"^(?:session|\d{4}-\d\d-\d\d|undated)-(?=agent-|[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-)")


def is_transcript(path: Path) -> bool:
    """True unless the name or the folder says that a file is something else."""
    name, folder = plain_name(path.name), path.parts[-2] if len(path.parts) > 1 else ""
    if not name.endswith(".jsonl") or name in _NAMES_OF_OTHER_LOGS or _SKIPPED.search(name):
        return False
    # sage-emacs can be told to keep its own conversations and their archives inside this tree.
    if folder == "history" and (path.parent.parent / "metadata.json").exists():
        return False
    return folder != "tool-results"


def stem(path: Path) -> str:
    """The file name without .jsonl, compression suffixes, and what filing by date or project puts before an id."""
    return _stem(path.name)


@lru_cache(256)
def _stem(name: str) -> str:
    return _FILED.sub("", plain_name(name).removesuffix(".jsonl"))


def is_agent_file(path: Path) -> bool:
    """True for the transcript of a sub-agent."""
    return stem(path).startswith(AGENT_FILE)


def agent_id(path: Path) -> str:
    """The id of the sub-agent with this transcript."""
    return stem(path).removeprefix(AGENT_FILE)


def home_of(path: Path) -> Path | None:
    """The client's own folder, which holds `projects`; a folder further up may have that name too."""
    return next((folder.parent for folder in path.parents if folder.name == "projects"), None)
