"""Apply many changes to a workspace, all or none, also where a file takes the place of a folder or the reverse.

Every folder on the path of a changed file is held open meanwhile, and contents are in memory. So changes are applied in
groups that are limited in folders and bytes.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TypeVar

from clew.errors import ClewError, PathRefused
from clew.io.blobs import digest_of
from clew.io.safe_write import Change, Within
from clew.store.file_state import NO_FILE, FileState

MAX_OPEN_FOLDERS = 200
"""Folders that are held open at once; macOS allows 256 open files by default."""
MAX_GROUP_BYTES = 16 << 20
"""Bytes of content that are in memory at once."""

T = TypeVar("T")


def folders_to(path: str) -> Iterator[str]:
    """Yield the folders above a path, the outermost first."""
    parts = path.split("/")
    return ("/".join(parts[:end]) for end in range(1, len(parts)))


def folders_of(paths: Iterable[str]) -> list[str]:
    """Return the folders above all paths, each after those above it."""
    return list(dict.fromkeys(folder for path in paths for folder in folders_to(path)))


def group_paths(paths: Iterable[str]) -> Iterator[list[str]]:
    """Yield paths in groups with at most MAX_OPEN_FOLDERS folders."""
    return group_by_size(paths, str, lambda _: 0)


def group_by_size(items: Iterable[T], path_of: Callable[[T], str], size_of: Callable[[T], int]) -> Iterator[list[T]]:
    """Yield items in groups with at most MAX_OPEN_FOLDERS folders and MAX_GROUP_BYTES bytes."""
    group: list[T] = []
    folders: set[str] = set()
    group_bytes = 0
    for item in items:
        path, size = path_of(item), size_of(item)
        folder = path.rpartition("/")[0]
        with_item = folders if not folder or folder in folders else folders.union(folders_to(path))
        if group and (len(with_item) > MAX_OPEN_FOLDERS or group_bytes + size > MAX_GROUP_BYTES):
            yield group
            group, with_item, group_bytes = [], set(folders_to(path)), 0
        group.append(item)
        folders, group_bytes = with_item, group_bytes + size
    if group:
        yield group


def state_at(within: Within, path: str) -> tuple[FileState, bytes | None]:
    """Return the state of a path, and the content if it is a file. Links are not followed."""
    link = within.link(path)
    if link is not None:
        return FileState(None, link=link), None
    body = within.read(path)
    if body is None:
        return NO_FILE, None
    return FileState(digest_of(body), within.mode(path), size=len(body)), body


def state_among(within: Within, path: str, changing: Container[str]) -> tuple[FileState, bytes | None]:
    """Return the state of a path where files and folders may have swapped places.

    A folder at the path counts as no file. If a path above it is changed too, and is a file now, nothing is below it.
    """
    try:
        if within.is_folder(path):
            return NO_FILE, None
        return state_at(within, path)
    except PathRefused:
        above = (folder for folder in folders_to(path) if folder in changing)
        if any(not state_at(within, folder)[0].is_nothing for folder in above):
            return NO_FILE, None
        raise


def blocking_path(root: Path, path: str, written: Container[str], removed: Container[str]) -> str | None:
    """Return what keeps a path from becoming a file: another written file above it, or what is there and stays."""
    written_above = next((above for above in folders_to(path) if above in written), None)
    if written_above is not None:
        return written_above
    for above in folders_to(path):
        if not is_folder(root / above):
            return above if is_there(root / above) and above not in removed else None
    if not is_folder(root / path):
        return None
    return next((below for below in files_below(root, path) if below not in removed), None)


def apply_all(root: Path, changes: Sequence[Change]) -> None:
    """Make all changes, or none. What blocks others is removed first, with the folders that this leaves empty."""
    written = {change.path for change in changes if not change.is_removal}
    folders = {above for path in written for above in folders_to(path)}
    first = [change for change in changes if change.is_removal and _blocks(change.path, written, folders)]
    removed_first = {change.path for change in first}
    transaction = _Transaction(root)
    try:
        transaction.apply(first)
        for path in written:
            transaction.remove_empty_folder(path)
        transaction.apply([change for change in changes if change.path not in removed_first], is_last=True)
    except BaseException:
        transaction.roll_back()
        raise


class _Transaction:
    """Groups of changes that were made, and how to reverse them."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._reversals: list[Callable[[], object]] = []

    def apply(self, changes: Sequence[Change], *, is_last: bool = False) -> None:
        """Apply changes group by group."""
        by_path = {change.path: change for change in changes}
        groups = list(group_paths(by_path))
        for number, group in enumerate(groups, 1):
            group_changes = [by_path[path] for path in group]
            with Within(self._root, apart=True, own=True) as within:
                # The last group need not be reversed: `Within` applies it whole or not at all.
                if is_last and number == len(groups):
                    reversals = []
                else:
                    reversals = [self._reversal(within, group_changes)]
                within.apply(group_changes)
            self._reversals += reversals

    def _reversal(self, within: Within, changes: Sequence[Change]) -> Callable[[], object]:
        before = [_reverse(within, change) for change in changes]
        created = [above for above in folders_of(change.path for change in changes) if not within.is_folder(above)]
        return partial(self._restore, before, created)

    def remove_empty_folder(self, path: str) -> None:
        """Remove a folder with nothing but empty folders in it, if there is one."""
        if not is_folder(self._root / path):
            return
        for inner, _, _ in os.walk(self._root / path, topdown=False, followlinks=False):
            mode = stat.S_IMODE(os.lstat(inner).st_mode)
            if remove_empty(self._root, os.path.relpath(inner, self._root).split("/")):
                self._reversals.append(partial(os.mkdir, inner, mode))

    def roll_back(self) -> None:
        """Reverse what was done, except where another program wrote meanwhile."""
        for reverse in reversed(self._reversals):
            with suppress(OSError, ClewError):
                reverse()

    def _restore(self, before: Sequence[Change], created: Sequence[str]) -> None:
        with Within(self._root, apart=True, own=True) as within:
            within.apply(before)
        for above in reversed(created):
            remove_empty(self._root, above.split("/"))


def _reverse(within: Within, change: Change) -> Change:
    now, body = state_at(within, change.path)
    return Change(change.path, body, now.mode, link=now.link, over=change.link)


def _blocks(path: str, written: set[str], folders: set[str]) -> bool:
    return path in folders or any(above in written for above in folders_to(path))


def is_folder(path: Path) -> bool:
    """Return whether there is a folder; a link to one is none."""
    return has_folder(path) and not path.is_symlink()


def has_folder(path: Path) -> bool:
    """Return whether there is a folder, or a link to one; False for names that no file can have."""
    return os.path.isdir(path)  # noqa: PTH112 - the one of Path raises where a name is too long


def is_there(path: Path) -> bool:
    """Return whether there is anything, also a link that leads nowhere."""
    return os.path.lexists(path)


def files_below(root: Path, path: str) -> Iterator[str]:
    """Yield everything in a folder that is not a folder itself; links are not followed."""
    for inner, folders, files in os.walk(root / path, followlinks=False):
        links = [name for name in folders if os.path.islink(os.path.join(inner, name))]  # noqa: PTH114, PTH118
        yield from (os.path.relpath(os.path.join(inner, name), root) for name in (*files, *links))  # noqa: PTH118


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
