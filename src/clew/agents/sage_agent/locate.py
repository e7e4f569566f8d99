"""The folder of a session of Sage Agent, with the log, snapshots and metadata."""

from __future__ import annotations

import os
import re
from pathlib import Path

from clew.agents.backups import is_plain_file
from clew.agents.base import SourceFile, file_stem, source_at
from clew.agents.sage_format import METADATA as METADATA
from clew.io.compress import plain_name

AGENT = "sage-agent"
MESSAGES = "messages.jsonl"
SNAPSHOTS = "snapshots.jsonl"
BACKUPS = "backups"

_ABSOLUTE = re.compile(r"/|[A-Za-z]:[\\/]")


def source_file(path: Path) -> SourceFile:
    """The session a log belongs to; a snapshot file leads to the log beside it."""
    log = path.parent / MESSAGES
    if path.name == SNAPSHOTS and is_plain_file(log):
        path = log
    is_log = plain_name(path.name) == MESSAGES
    parts = (SNAPSHOTS,) if is_log and is_plain_file(path.parent / SNAPSHOTS) else ()
    sides = (METADATA,) if is_log and is_plain_file(path.parent / METADATA) else ()
    return source_at(AGENT, path, sides, parts)


def session_id(source: SourceFile) -> str:
    """The name of the session's folder, or of a log that lies elsewhere."""
    name = plain_name(source.path.name)
    return source.path.parent.name if name in (MESSAGES, SNAPSHOTS) else file_stem(source.path)


def backup_folders(source: SourceFile) -> tuple[Path, Path]:
    """The folders that may have copies of the files a session changed: its own, and the one of all sessions."""
    folder = source.path.parent
    return folder / BACKUPS, folder.parent.parent / BACKUPS / session_id(source)


def find_backup(folder: Path, backup: str, cwd: str | None) -> Path | None:
    """The file a `backupPath` means: as given, below the working folder, below the session, in its backups."""
    name = re.split(r"[\\/]", backup)[-1]
    if _ABSOLUTE.match(backup):
        places = [Path(backup)]
    else:
        places = [Path(cwd) / backup] if cwd else []
        places.append(folder / backup)
    places.append(folder / BACKUPS / name)
    # Not Path.is_file, which raises where a name is too long.
    return next((place for place in places if name and os.path.isfile(place)), None)  # noqa: PTH113
