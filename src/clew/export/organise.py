"""Native session files filed in plain folders: by date or by project."""

from __future__ import annotations

from pathlib import Path

from clew.agents.base import SourceFile
from clew.derive.session import project_of
from clew.io.atomic import replacing
from clew.io.compress import open_source
from clew.io.paths import safe_relative
from clew.model.json import JSON

_UNDATED = "undated"
_PIECE = 1 << 20


def organise(source: SourceFile, session: dict[str, JSON], folder: Path, layout: str) -> Path:
    """Copy a session's main file below `folder/sessions`; returns the copy."""
    day = (session["started_at"] or _UNDATED)[:10]
    name = safe_relative(session["id"].replace("/", "-"))
    if layout == "date":
        target = folder / "sessions" / day / f"session-{name}.jsonl"
    else:
        target = folder / "sessions" / project_name(session["workspace"]) / f"{day}-{name}.jsonl"
    with open_source(source.path) as original, replacing(target) as copy:
        for piece in iter(lambda: original.read(_PIECE), b""):
            copy.write(piece)
    return target


def project_name(workspace: str) -> str:
    """The last component of a path, safe as the name of a folder."""
    last = project_of(workspace)
    return safe_relative(last) if last else "unknown"
