"""A step of a migration, and how a file is replaced without losing what it was."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from itertools import count
from pathlib import Path
from typing import Literal

import msgspec

from clew.errors import Busy, WouldLose
from clew.io.atomic import create, replacing, sync_folder
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


class Originals:
    """Where one migration keeps what it replaces or moves away: always under names that it creates itself.

    The names hold the time to the second, so a repository can hold a file or a link for each of them.
    """

    def __init__(self, stamp: str) -> None:
        self._stamp = stamp
        self._kept: set[Path] = set()
        self._folders: dict[Path, Path] = {}

    def keep(self, path: Path) -> None:
        """Copy a file to `NAME.bak-STAMP` beside it; of a file that several steps rewrite, only the first state."""
        if path in self._kept:
            return
        content, mode = content_of(path), stat.S_IMODE(path.stat().st_mode)
        for backup in self._names(path, "bak"):
            try:
                create(backup, content, mode)
            except FileExistsError:
                continue
            break
        self._kept.add(path)

    def move(self, paths: Iterable[Path], project: Path) -> None:
        """Move what lies in a project's folder to a folder beside the store that nothing reads."""
        place = self._folder_beside(project.parent) / project.name
        place.mkdir(mode=0o700, exist_ok=True)
        for path in paths:
            refuse_taken(place / path.name)
            path.rename(place / path.name)
        sync_folder(place)

    def _folder_beside(self, root: Path) -> Path:
        """The folder `ROOT.migrated-STAMP`, made by this migration."""
        if root not in self._folders:
            for place in self._names(root, "migrated"):
                try:
                    place.mkdir(mode=0o700)
                except FileExistsError:
                    continue
                self._folders[root] = place
                break
        return self._folders[root]

    def _names(self, path: Path, word: str) -> Iterator[Path]:
        first = f"{path.name}.{word}-{self._stamp}"
        yield path.with_name(first)
        yield from (path.with_name(f"{first}-{number}") for number in count(2))


def refuse_taken(target: Path) -> None:
    """Refuse to move or copy onto something, which may be a link."""
    if os.path.lexists(target):
        raise WouldLose(f"{target}: appeared after the plan was made; make a new one")


def rewrite(path: Path, pieces: Iterable[bytes], originals: Originals) -> None:
    """Replace the file by `pieces`, which may be made from it; the original stays as a backup."""
    before = path.stat()
    originals.keep(path)
    with replacing(path, stat.S_IMODE(before.st_mode)) as handle:
        for piece in pieces:
            handle.write(piece)
        now = path.stat()
        if (now.st_size, now.st_mtime_ns) != (before.st_size, before.st_mtime_ns):
            raise Busy(f"{path}: another program wrote to it; nothing was changed")
