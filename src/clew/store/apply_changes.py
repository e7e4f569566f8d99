"""Apply many changes to a workspace, all or none, also where a file takes the place of a folder or the reverse."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from clew.errors import ClewError, PathRefused
from clew.io.blobs import digest_of
from clew.io.safe_write import Change, Within
from clew.store.file_state import NO_FILE, FileState


def folders_to(path: str) -> Iterator[str]:
    """Yield the folders above a path, the outermost first."""
    parts = path.split("/")
    return ("/".join(parts[:end]) for end in range(1, len(parts)))


def folders_of(paths: Iterable[str]) -> list[str]:
    """Return the folders above all paths, each after those above it."""
    return list(dict.fromkeys(folder for path in paths for folder in folders_to(path)))


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
    reversals: list[Callable[[], object]] = []
    try:
        if first:
            with Within(root, apart=True, own=True) as within:
                before = [_reverse(within, change) for change in first]
                within.apply(first)
            reversals.append(partial(_restore, root, before))
        for path in written:
            _remove_empty_folders(root, path, reversals)
        with Within(root, apart=True, own=True) as within:
            within.apply([change for change in changes if change.path not in removed_first])
    except BaseException:
        # Where another program wrote meanwhile, what it wrote stays.
        for reverse in reversed(reversals):
            with suppress(OSError, ClewError):
                reverse()
        raise


def _remove_empty_folders(root: Path, path: str, reversals: list[Callable[[], object]]) -> None:
    """Remove a folder with nothing but empty folders in it, if there is one; adds how to create each of them again."""
    if not is_folder(root / path):
        return
    for inner, _, _ in os.walk(root / path, topdown=False, followlinks=False):
        mode = stat.S_IMODE(os.lstat(inner).st_mode)
        if remove_empty(root, os.path.relpath(inner, root).split("/")):
            reversals.append(partial(os.mkdir, inner, mode))


def _restore(root: Path, before: Sequence[Change]) -> None:
    with Within(root, apart=True, own=True) as within:
        within.apply(before)


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
