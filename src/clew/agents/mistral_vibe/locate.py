"""Where Mistral Vibe keeps its sessions, and which files make one up."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from clew.agents.backups import is_link, is_plain_file
from clew.agents.base import Claim, Header, SourceFile
from clew.host import Host
from clew.io.paths import safe_relative

AGENT = "mistral-vibe"
META, CURRENT = "meta.json", "CURRENT"
JOURNAL = "journal/"
_PARTS = (f"{JOURNAL}*.jsonl", "chunks/*.json")
_SIDES = (CURRENT, "scheduled-loops.json", "generations/*/*.json")
_CHUNK = re.compile(r"(?:.*/)?[0-9a-f]{64}\.json")
_JOURNAL = re.compile(r"\d{16}\.jsonl")


def roots(host: Host) -> Iterator[Path]:
    """The folder of the sessions."""
    configured = host.env.get("VIBE_HOME")
    home = Path(configured).expanduser() if configured else host.home / ".vibe"
    yield home / "logs" / "session" / "unified"


def discover(root: Path) -> Iterator[SourceFile]:
    """Every session below the root; follows no links."""
    if not root.is_dir():
        return
    for folder in sorted(root.iterdir()):
        if not is_link(folder) and is_plain_file(folder / META):
            yield source_file(folder / META)


def source_file(path: Path) -> SourceFile:
    """The session that a file belongs to."""
    folder = next((above for above in path.parents[:3] if is_plain_file(above / META)), path.parent)
    parts, sides = _files(folder, _PARTS), _files(folder, _SIDES)
    stats = [file.stat() for name in (META, *parts, *sides) if is_plain_file(file := folder / name)]
    size, mtime = sum(stat.st_size for stat in stats), max((stat.st_mtime for stat in stats), default=0.0)
    return SourceFile(AGENT, folder / META, tuple(parts), tuple(sides), size, mtime)


def _files(folder: Path, patterns: tuple[str, ...]) -> list[str]:
    found = (path for pattern in patterns for path in sorted(folder.glob(pattern)) if is_plain_file(path))
    return [path.relative_to(folder).as_posix() for path in found]


def is_chunk(name: str) -> bool:
    """True for a file that is an array of records."""
    return _CHUNK.fullmatch(name) is not None


def claims(path: Path, head: bytes) -> Claim:
    """How sure it is that the file belongs to a session."""
    if path.name == META:
        return Claim.YES if b'"session_id"' in head and b'"working_directory"' in head else Claim.NO
    is_journal = _JOURNAL.fullmatch(path.name) is not None
    return Claim.YES if is_journal and b'"recovery_journal_record_version"' in head else Claim.NO


def session_id(path: Path) -> str:
    """The name of the session's folder."""
    return path.parent.name


def target(header: Header) -> str:
    """Where the main file of a session belongs below a home folder."""
    return f".vibe/logs/session/unified/{safe_relative(str(header.session['id']))}/{META}"
