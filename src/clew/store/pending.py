"""What is being done to many files at once, told beforehand, so that whoever comes behind a crash can take it back."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from clew.errors import PathRefused, SourceUnreadable
from clew.host import data_dir
from clew.io.blobs import digest_of
from clew.io.filesystem import System, replace_file
from clew.io.safe_write import Change, Within
from clew.store.groups import grouped
from clew.store.placing import obstacle, place, remove_empty, state_among
from clew.store.snapshots import FileState

ASIDE = "*.pending.unreadable"
"""Such files that cannot be read, put aside so that the session can be used again."""
UNDO_JOURNALS = "undo"
"""In clew's data folder: one folder per session with the journals of its unfinished undos."""


def journal_folder(session: Path) -> Path:
    """The folder for the undo journals of the session in a folder.

    It lies in clew's data folder, not in the session's: a session may come from a repository or from another machine,
    and a journal says which files to write and delete.
    """
    return data_dir() / UNDO_JOURNALS / digest_of(os.fsencode(session.resolve()))[:32]


class Pending(msgspec.Struct, array_like=True):
    """What was about to be done: for each file what was there, and what was to be."""

    mark: str
    root: str
    files: dict[bytes, tuple[FileState, FileState]]
    made: list[bytes] = []
    """Folders that were not there before, each behind those above it."""
    identity: tuple[int, int] = (0, 0)
    """Device and inode of the root. A path is not enough: another folder, or a link, can be in its place by now."""


def identity_of(root: Path) -> tuple[int, int]:
    """Device and inode of a workspace."""
    found = root.stat()
    return found.st_dev, found.st_ino


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
            raise SourceUnreadable(f"{path}: {error}; `clew doctor --fix` puts it aside") from error


def put_as_it_was(found: Pending, content: Callable[[str, FileState], bytes | None]) -> Iterator[str]:
    """Put back what was there before, wherever it is as it was to be; gives the paths. Others' work is left alone.

    Raises PathRefused where the root is another folder than the one that the files were in.
    """
    root, paths = Path(found.root), [os.fsdecode(name) for name in found.files]
    if identity_of(root) != found.identity:
        raise PathRefused(f"{root} is another folder now")
    changes: list[Change] = []
    for group in grouped(paths):
        with Within(root, apart=True, own=True) as within:
            within.clear(group)
            for path, before, now in _half_done(within, found, group):
                body = content(path, before) if before.digest else None
                changes.append(Change(path, body, before.mode, link=before.link, over=now.link))
    changes = list(_free(root, changes))
    place(root, changes)
    yield from (change.path for change in changes)
    for folder in reversed(found.made):
        remove_empty(root, os.fsdecode(folder).split("/"))


def _half_done(within: Within, found: Pending, paths: Iterable[str]) -> Iterator[tuple[str, FileState, FileState]]:
    """The files that are as they were to be, each with what was there before, and what is."""
    own = {os.fsdecode(name) for name in found.files}
    for path in paths:
        before, wanted = found.files[os.fsencode(path)]
        try:
            now, _ = state_among(within, path, own)
        except PathRefused:
            continue  # somebody put something else there, or on the way to it
        if wanted.same_as(now) and not before.same_as(now):
            yield path, before, now


def _free(root: Path, changes: Sequence[Change]) -> Iterator[Change]:
    """Those that nothing stands in the way of that somebody put there meanwhile."""
    written = {change.path for change in changes if not change.is_removal}
    removed = {change.path for change in changes if change.is_removal}
    return (one for one in changes if one.is_removal or obstacle(root, one.path, written, removed) is None)
