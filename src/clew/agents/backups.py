"""Copies that an agent keeps beside its sessions. A record only ever names a file inside the folder for them."""

from __future__ import annotations

import os
import stat
from pathlib import Path

LIMIT = 64 << 20
"""A larger copy is not read."""


def read_inside(folder: Path, name: str) -> bytes | None:
    """A regular file directly inside a folder; None where it is gone, a link, or no plain name."""
    if not name or name in (".", "..") or "/" in name or "\\" in name or "\0" in name:
        return None
    try:
        descriptor = os.open(folder / name, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    except (OSError, ValueError):
        return None
    with open(descriptor, "rb") as handle:
        found = os.fstat(handle.fileno())
        if not stat.S_ISREG(found.st_mode) or found.st_size > LIMIT:
            return None
        return handle.read(LIMIT)
