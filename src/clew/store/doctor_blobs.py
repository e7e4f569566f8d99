"""Checks of the blobs of a session, and of undos that were interrupted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from clew.errors import SourceUnreadable
from clew.io.blobs import name_of
from clew.io.file_lock import locked
from clew.io.filesystem import System
from clew.model.codes import problem
from clew.store.change_journal import UNREADABLE, read_journals, undo_folder, undo_journals
from clew.store.conversation_tree import Tree
from clew.store.finding import Finding, found
from clew.store.layout import MESSAGES, SNAPSHOTS
from clew.store.session import Session
from clew.store.snapshots import Snapshots
from clew.store.undo import roll_back_interrupted_undos
from clew.store.unreadable_records import is_log_missing, refuse_unreadable, unreadable_snapshots
from clew.store.writer import WriterConfig


def examine_blobs(system: System, folder: Path) -> Iterator[Finding]:
    """Find blobs that are damaged, unused or incomplete, and interrupted undos; change nothing."""
    config = WriterConfig(system=system)
    snapshots = Snapshots(folder, config, str)
    unfinished = undo_journals(folder)
    for path in unfinished:
        yield _unfinished(snapshots, path, system)
    yield from _unreadable(snapshots)
    blobs = snapshots.blobs
    unused = blobs.all() - snapshots.named() if not unfinished and _are_records_readable(snapshots) else set()
    for digest in sorted(blobs.all()):
        place = blobs.folder / name_of(digest)
        if digest in unused:
            yield found("backup-unused", place, "", lambda: _clear(folder, config))
            continue
        try:
            blobs.get(digest)
        except SourceUnreadable as error:
            yield found("backup-damaged", place, str(error))
    for digest in snapshots.unused_scans():
        yield found("backup-unused", snapshots.scans.folder / name_of(digest), "", lambda: _clear(folder, config))
    for path in sorted([*blobs.folder.glob(".*.tmp"), *snapshots.scans.folder.glob(".*.tmp")]):
        yield found("leftover-file", path, "", lambda at=path: _remove(system, folder, at))  # type: ignore[misc]


def _unfinished(snapshots: Snapshots, path: Path, system: System) -> Finding:
    try:
        list(read_journals([path]))
    except SourceUnreadable as error:
        return found(
            "undo-unfinished",
            path,
            f"cannot be read: {str(error).removeprefix(f'{path}: ')}",
            lambda: _set_aside(system, path, snapshots.folder),
        )
    return found("undo-unfinished", path, "", lambda: _roll_back(snapshots, system))


def _set_aside(system: System, path: Path, session: Path) -> None:
    with locked(system, session / MESSAGES):
        system.replace(path, path.with_name(UNREADABLE.replace("*", path.name.removesuffix(".pending"))))


def _unreadable(snapshots: Snapshots) -> Iterator[Finding]:
    """Find lines that cannot be read. They stay: nothing else shows that there was a record."""
    log = snapshots.folder / SNAPSHOTS
    for number in unreadable_snapshots(snapshots):
        yield Finding(problem("bad-snapshot", "The line cannot be read as a snapshot.", file=str(log), line=number))
    if is_log_missing(snapshots):
        yield found("snapshots-missing", log)
    for path in sorted(undo_folder(snapshots.folder).glob(UNREADABLE)):
        yield found("quarantined", path, "What an undo that was cut off was about cannot be read.")


def _are_records_readable(snapshots: Snapshots) -> bool:
    try:
        refuse_unreadable(snapshots)
    except SourceUnreadable:
        return False
    return True


def _roll_back(snapshots: Snapshots, system: System) -> None:
    with locked(system, snapshots.folder / MESSAGES):
        tree = Tree()
        tree.read(snapshots.folder / MESSAGES)
        roll_back_interrupted_undos(snapshots, tree, system)
        for _, journal in read_journals(undo_journals(snapshots.folder)):
            raise SourceUnreadable(f"{journal.root} is not there")


def _clear(folder: Path, config: WriterConfig) -> None:
    Session(folder, config).clear()


def _remove(system: System, folder: Path, path: Path) -> None:
    """Delete a temporary file. Blobs are written under the lock of the snapshots, so nobody is writing it now."""
    with locked(system, folder / SNAPSHOTS):
        system.unlink(path)
