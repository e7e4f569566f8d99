"""Copies that an agent keeps beside its sessions. A record only ever names a file inside the folder for them.

Session files may come from anywhere, for instance with a cloned repository, and git keeps links. What lies beside a
session is therefore never read through a link: it could lead to a private key.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from clew.agents.file_evidence import FileContent
from clew.model.json import JSON

_FLAGS = os.O_RDONLY
for _flag in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY", "O_CLOEXEC"):
    _FLAGS |= getattr(os, _flag, 0)
MAX_BYTES = 64 << 20
"""A larger copy is not read."""


def read_inside(folder: Path, name: str, limit: int = MAX_BYTES) -> bytes | None:
    """A regular file directly inside a folder; None where it is gone, a link, too large, or no plain name."""
    if not name or name in (".", "..") or "/" in name or "\\" in name or "\0" in name:
        return None
    try:
        descriptor = os.open(folder / name, _FLAGS)
    except (OSError, ValueError):
        return None
    with open(descriptor, "rb") as handle:
        found = os.fstat(handle.fileno())
        if not stat.S_ISREG(found.st_mode) or found.st_size > limit:
            return None
        return handle.read(limit)


def read_copy(folder: Path | None, name: JSON) -> FileContent | None:
    """The content of a copy directly inside a folder that is no link; None where there is none."""
    if folder is None or not isinstance(name, str) or is_link(folder):
        return None
    body = read_inside(folder, name)
    return FileContent(body, True) if body is not None else None


def is_plain_file(path: Path) -> bool:
    """True for a regular file that is no link."""
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except (OSError, ValueError):
        return False


def is_link(path: Path) -> bool:
    """True for a link; False also where that cannot be told, as without permission."""
    return os.path.islink(path)  # noqa: PTH114 - Path.is_symlink() raises without permission


def is_behind_link(path: Path, near: Path) -> bool:
    """True where a link is between a path and the folder that it has in common with the file `near`.

    Links above that folder are the user's: both lie behind them.
    """
    shared = len(os.path.commonpath([path.parent, near.parent]).rstrip(os.sep))
    return any(place.is_symlink() for place in (path, *path.parents) if len(str(place)) > shared)
