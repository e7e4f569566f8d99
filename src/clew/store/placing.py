"""Files and links of a workspace as they are, and put as they are to be, also where files and folders change places."""

from __future__ import annotations

import os
from collections.abc import Container, Iterable, Iterator, Sequence
from pathlib import Path

from clew.errors import PathRefused
from clew.io.blobs import digest_of
from clew.io.within import Change, Within
from clew.store.snapshots import NO_FILE, FileState

_FOLDERS = 200
"""So many folders are held open at once."""


def state_at(within: Within, path: str) -> tuple[FileState, bytes | None]:
    """What is at a path, and what it holds if it is a file. Links are not followed."""
    link = within.link(path)
    if link is not None:
        return FileState(None, link=link), None
    there = within.read(path)
    if there is None:
        return NO_FILE, None
    return FileState(digest_of(there), within.mode(path), size=len(there)), there


def state_among(within: Within, path: str, others: Container[str]) -> tuple[FileState, bytes | None]:
    """The same where files and folders may have changed places: where one of the others is a folder's place, nothing
    is below it; and where there is a folder, there is no file."""
    try:
        if within.is_folder(path):
            return NO_FILE, None
        return state_at(within, path)
    except PathRefused:
        blocking = (above for above in _above(path) if above in others)
        if any(not state_at(within, above)[0].is_nothing for above in blocking):
            return NO_FILE, None
        raise


def place(root: Path, changes: Sequence[Change]) -> None:
    """Make all changes. What stands in the way of others is removed first, with the folders that it leaves empty."""
    written = {change.path for change in changes if not change.is_removal}
    folders = {above for path in written for above in _above(path)}
    first = [change for change in changes if change.is_removal and _is_in_the_way(change.path, written, folders)]
    _apply(root, first)
    for path in written:
        _clear_folder(root, path)
    gone = {change.path for change in first}
    _apply(root, [change for change in changes if change.path not in gone])


def _apply(root: Path, changes: Sequence[Change]) -> None:
    by_path = {change.path: change for change in changes}
    for group in grouped(by_path):
        with Within(root, apart=True) as within:
            within.apply([by_path[path] for path in group])


def _is_in_the_way(path: str, written: set[str], folders: set[str]) -> bool:
    return path in folders or any(above in written for above in _above(path))


def _clear_folder(root: Path, path: str) -> None:
    """Remove a folder with nothing but empty folders in it, if there is one."""
    if not is_folder(root / path):
        return
    for inner, _, _ in os.walk(root / path, topdown=False, followlinks=False):
        remove_empty(root, os.path.relpath(inner, root).split("/"))


def is_folder(path: Path) -> bool:
    """True for a folder itself; a link to one is none."""
    return path.is_dir() and not path.is_symlink()


def files_below(root: Path, path: str) -> Iterator[str]:
    """Everything in a folder that is no folder itself; links are not followed."""
    for inner, folders, files in os.walk(root / path, followlinks=False):
        links = [name for name in folders if os.path.islink(os.path.join(inner, name))]  # noqa: PTH114, PTH118
        yield from (os.path.relpath(os.path.join(inner, name), root) for name in (*files, *links))  # noqa: PTH118


def _above(path: str) -> Iterator[str]:
    """The folders on the way to a path, the outermost first."""
    parts = path.split("/")
    return ("/".join(parts[:end]) for end in range(1, len(parts)))


def grouped(paths: Iterable[str]) -> Iterator[list[str]]:
    """Paths that can be worked on at once: each folder on their ways is held open meanwhile."""
    group: list[str] = []
    folders: set[str] = set()
    for path in paths:
        above = set(_above(path))
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
