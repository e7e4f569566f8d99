"""A step of a migration, and how a file is replaced without losing what it was."""

from __future__ import annotations

import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

import msgspec

from clew.errors import Busy
from clew.io.atomic import replacing, write_atomic
from clew.io.compress import open_regular

Kind = Literal["rename", "leave", "copy", "append", "set-aside", "ids", "tokens", "form", "metadata"]

COMPRESSED = (".gz", ".zst")


class Step(msgspec.Struct, frozen=True):
    """One thing to do to one file or folder; a plan is a list of them, in order."""

    kind: Kind
    path: Path
    target: Path | None = None
    """Where it goes, or what it is added to."""
    reason: str = ""
    """For people: why, and how much."""
    changes: int = 0
    """Records that would change, where that can be counted."""


def content_of(path: Path) -> bytes:
    """All bytes of a file; raises SourceUnreadable for anything else, as a pipe would never end."""
    stream, _ = open_regular(path)
    with stream:
        return stream.readall()


def backup_of(path: Path, stamp: str) -> Path:
    """The name under which the original stays beside its replacement."""
    return path.with_name(f"{path.name}.bak-{stamp}")


def rewrite(path: Path, pieces: Iterable[bytes], stamp: str) -> None:
    """Replace the file by `pieces`, which may be made from it; the original stays as a backup."""
    before = path.stat()
    keep_original(path, stamp)
    with replacing(path, stat.S_IMODE(before.st_mode)) as handle:
        for piece in pieces:
            handle.write(piece)
        now = path.stat()
        if (now.st_size, now.st_mtime_ns) != (before.st_size, before.st_mtime_ns):
            raise Busy(f"{path}: another program wrote to it; nothing was changed")


def keep_original(path: Path, stamp: str) -> None:
    """Make the backup; several steps of one migration keep the first."""
    backup = backup_of(path, stamp)
    if not backup.exists():
        write_atomic(backup, content_of(path), stat.S_IMODE(path.stat().st_mode))
