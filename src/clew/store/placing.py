"""Files and links of a workspace as they are, and put as they are to be, also where files and folders change places."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from clew.errors import ClewError, PathRefused
from clew.io.blobs import digest_of
from clew.io.safe_write import Change, Within
from clew.store.groups import folders_of, folders_to, grouped
from clew.store.snapshots import NO_FILE, FileState


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
        blocking = (above for above in folders_to(path) if above in others)
        if any(not state_at(within, above)[0].is_nothing for above in blocking):
            return NO_FILE, None
        raise


def obstacle(root: Path, path: str, written: Container[str], removed: Container[str]) -> str | None:
    """What keeps a path from becoming a file: another that is to be one above it, or what stands there and stays."""
    rival = next((above for above in folders_to(path) if above in written), None)
    if rival is not None:
        return rival
    for above in folders_to(path):
        if not is_folder(root / above):
            return above if is_there(root / above) and above not in removed else None
    if not is_folder(root / path):
        return None
    return next((below for below in files_below(root, path) if below not in removed), None)


def place(root: Path, changes: Sequence[Change]) -> None:
    """Make all changes, or none. What stands in the way of others goes first, with the folders that it leaves empty."""
    written = {change.path for change in changes if not change.is_removal}
    folders = {above for path in written for above in folders_to(path)}
    first = [change for change in changes if change.is_removal and _is_in_the_way(change.path, written, folders)]
    gone = {change.path for change in first}
    placing = _Placing(root)
    try:
        placing.apply(first)
        for path in written:
            placing.clear_folder(path)
        placing.apply([change for change in changes if change.path not in gone], is_last=True)
    except BaseException:
        placing.take_back()
        raise


class _Placing:
    """Changes that are made one group behind the other, and how to take them back."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._back: list[Callable[[], object]] = []

    def apply(self, changes: Sequence[Change], *, is_last: bool = False) -> None:
        by_path = {change.path: change for change in changes}
        groups = list(grouped(by_path))
        for number, group in enumerate(groups, 1):
            own = [by_path[path] for path in group]
            with Within(self._root, apart=True, own=True) as within:
                # The last one need not be taken back: it is made whole or not at all.
                back = [] if is_last and number == len(groups) else [self._back_from(within, own)]
                within.apply(own)
            self._back += back

    def _back_from(self, within: Within, changes: Sequence[Change]) -> Callable[[], object]:
        before = [_reverse(within, change) for change in changes]
        made = [above for above in folders_of(change.path for change in changes) if not within.is_folder(above)]
        return partial(self._put, before, made)

    def clear_folder(self, path: str) -> None:
        """Remove a folder with nothing but empty folders in it, if there is one."""
        if not is_folder(self._root / path):
            return
        for inner, _, _ in os.walk(self._root / path, topdown=False, followlinks=False):
            mode = stat.S_IMODE(os.lstat(inner).st_mode)
            if remove_empty(self._root, os.path.relpath(inner, self._root).split("/")):
                self._back.append(partial(os.mkdir, inner, mode))

    def take_back(self) -> None:
        """As far as nobody else came between; the rest is left as it is."""
        for back in reversed(self._back):
            with suppress(OSError, ClewError):
                back()

    def _put(self, before: Sequence[Change], made: Sequence[str]) -> None:
        with Within(self._root, apart=True, own=True) as within:
            within.apply(before)
        for above in reversed(made):
            remove_empty(self._root, above.split("/"))


def _reverse(within: Within, change: Change) -> Change:
    now, body = state_at(within, change.path)
    return Change(change.path, body, now.mode, link=now.link, over=change.link)


def _is_in_the_way(path: str, written: set[str], folders: set[str]) -> bool:
    return path in folders or any(above in written for above in folders_to(path))


def is_folder(path: Path) -> bool:
    """True for a folder itself; a link to one is none."""
    return has_folder(path) and not path.is_symlink()


def has_folder(path: Path) -> bool:
    """True for a folder, or a link to one; False for any name that no file can have."""
    return os.path.isdir(path)  # noqa: PTH112 - the one of Path raises where a name is too long


def is_there(path: Path) -> bool:
    """True for anything, also for a link that leads nowhere."""
    return os.path.lexists(path)


def files_below(root: Path, path: str) -> Iterator[str]:
    """Everything in a folder that is no folder itself; links are not followed."""
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
