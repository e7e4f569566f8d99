"""What is being done to many files at once, told beforehand, so that whoever comes behind a crash can take it back."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import msgspec

from clew.errors import SourceUnreadable
from clew.io.blobs import digest_of
from clew.io.within import Change, Within
from clew.store.snapshots import NO_FILE, FileState
from clew.store.system import System, replace_file

_FOLDERS = 200
"""So many folders are held open at once."""


class Pending(msgspec.Struct, array_like=True):
    """What was about to be done: for each file what was there, and what was to be."""

    mark: str
    root: str
    files: dict[bytes, tuple[FileState, FileState]]
    made: list[bytes] = []
    """Folders that were not there before, each behind those above it."""


def announce(system: System, place: Path, pending: Pending) -> None:
    """Say what is about to be done, durably."""
    replace_file(system, place, msgspec.msgpack.encode(pending))


def announced(places: Iterable[Path]) -> Iterator[tuple[Path, Pending]]:
    """What is going on, or was cut off."""
    for path in places:
        try:
            yield path, msgspec.msgpack.decode(path.read_bytes(), type=Pending)
        except FileNotFoundError:
            continue
        except (OSError, msgspec.MsgspecError) as error:
            raise SourceUnreadable(f"{path}: {error}") from error


def put_as_it_was(found: Pending, content: Callable[[str, FileState], bytes | None]) -> Iterator[str]:
    """Put back what was there before, wherever it is as it was to be; gives the paths. Others' work is left alone."""
    for group in grouped([os.fsdecode(name) for name in found.files]):
        with Within(Path(found.root)) as within:
            within.clear(group)
            changes = [
                Change(path, content(path, before) if before.digest else None, before.mode)
                for path, before in _half_done(within, found, group)
            ]
            within.apply(changes)
            yield from (change.path for change in changes)
    for folder in reversed(found.made):
        remove_empty(Path(found.root), os.fsdecode(folder).split("/"))


def _half_done(within: Within, found: Pending, paths: Iterable[str]) -> Iterator[tuple[str, FileState]]:
    for path in paths:
        before, wanted = found.files[os.fsencode(path)]
        there = within.read(path)
        now = FileState(digest_of(there), within.mode(path)) if there is not None else NO_FILE
        if wanted.same_as(now) and not before.same_as(now):
            yield path, before


def grouped(paths: Iterable[str]) -> Iterator[list[str]]:
    """Paths that can be worked on at once: each folder on their ways is held open meanwhile."""
    group: list[str] = []
    folders: set[str] = set()
    for path in paths:
        parts = path.split("/")
        above = {"/".join(parts[:end]) for end in range(1, len(parts))}
        if group and len(folders | above) > _FOLDERS:
            yield group
            group, folders = [], set()
        group.append(path)
        folders |= above
    if group:
        yield group


def remove_empty(root: Path, parts: list[str]) -> bool:
    """Remove a folder below the root if it is empty; links are not followed."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
    held: list[int] = []
    try:
        held.append(os.open(root, flags))
        held.extend(os.open(part, flags, dir_fd=held[-1]) for part in parts[:-1])
        os.rmdir(parts[-1], dir_fd=held[-1])
    except OSError:
        return False
    finally:
        for descriptor in held:
            os.close(descriptor)
    return True
