"""The files of a session of GitHub Copilot CLI."""

from __future__ import annotations

from pathlib import Path

from clew.agents.base import file_stem
from clew.io.compress import plain_name

EVENTS_FILE = "events.jsonl"
WORKSPACE_FILE = "workspace.yaml"
"""Beside the events: folder, branch and title of the session."""
SNAPSHOTS = "rewind-file-snapshots"


def is_in_own_folder(path: Path) -> bool:
    """True for a session that has a folder of its own."""
    return plain_name(path.name) == EVENTS_FILE


def session_id(path: Path) -> str:
    """The id of a session: the name of its folder, or of its file."""
    return path.parent.name if is_in_own_folder(path) else file_stem(path)
