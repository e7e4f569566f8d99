"""What is wrong with the copies of files that a session keeps, and with an undo that was cut off."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from clew.errors import SourceUnreadable
from clew.io.blobs import name_of
from clew.io.filesystem import System
from clew.model.codes import problem
from clew.store.finding import Finding, found
from clew.store.gaps import are_gone, refuse_unsure, unreadable_snapshots
from clew.store.layout import MESSAGES, SNAPSHOTS
from clew.store.lock import locked
from clew.store.pending import ASIDE, announced, journal_folder
from clew.store.session import Session
from clew.store.snapshots import Snapshots
from clew.store.tree import Tree
from clew.store.undo import pending_undos, settle
from clew.store.writer import World


def examine_copies(system: System, folder: Path) -> Iterator[Finding]:
    """Copies that are damaged, unused or half-written, and an undo that was cut off; nothing is changed."""
    world = World(system=system)
    snapshots = Snapshots(folder, world, str)
    unfinished = pending_undos(folder)
    for path in unfinished:
        yield _unfinished(snapshots, path, system)
    yield from _lost(snapshots)
    blobs = snapshots.blobs
    unused = blobs.all() - snapshots.named() if not unfinished and _is_sure(snapshots) else set()
    for digest in sorted(blobs.all()):
        place = blobs.folder / name_of(digest)
        if digest in unused:
            yield found("backup-unused", place, "", lambda: _clear(folder, world))
            continue
        try:
            blobs.get(digest)
        except SourceUnreadable as error:
            yield found("backup-damaged", place, str(error))
    for digest in snapshots.unused_scans():
        yield found("backup-unused", snapshots.scans.folder / name_of(digest), "", lambda: _clear(folder, world))
    for path in sorted([*blobs.folder.glob(".*.tmp"), *snapshots.scans.folder.glob(".*.tmp")]):
        yield found("leftover-file", path, "", lambda at=path: _remove(system, folder, at))  # type: ignore[misc]


def _unfinished(snapshots: Snapshots, path: Path, system: System) -> Finding:
    try:
        list(announced([path]))
    except SourceUnreadable as error:
        return found(
            "undo-unfinished",
            path,
            f"cannot be read: {str(error).removeprefix(f'{path}: ')}",
            lambda: _put_aside(system, path, snapshots.folder),
        )
    return found("undo-unfinished", path, "", lambda: _take_back(snapshots, system))


def _put_aside(system: System, path: Path, session: Path) -> None:
    with locked(system, session / MESSAGES):
        system.replace(path, path.with_name(ASIDE.replace("*", path.name.removesuffix(".pending"))))


def _lost(snapshots: Snapshots) -> Iterator[Finding]:
    """Lines that cannot be read. They stay: nothing else tells that something stood there."""
    log = snapshots.folder / SNAPSHOTS
    for number in unreadable_snapshots(snapshots):
        yield Finding(problem("bad-snapshot", "The line cannot be read as a snapshot.", file=str(log), line=number))
    if are_gone(snapshots):
        yield found("snapshots-missing", log)
    for path in sorted(journal_folder(snapshots.folder).glob(ASIDE)):
        yield found("quarantined", path, "What an undo that was cut off was about cannot be read.")


def _is_sure(snapshots: Snapshots) -> bool:
    try:
        refuse_unsure(snapshots)
    except SourceUnreadable:
        return False
    return True


def _take_back(snapshots: Snapshots, system: System) -> None:
    with locked(system, snapshots.folder / MESSAGES):
        tree = Tree()
        tree.read(snapshots.folder / MESSAGES)
        settle(snapshots, tree, system)
        for _, waiting in announced(pending_undos(snapshots.folder)):
            raise SourceUnreadable(f"{waiting.root} is not there")


def _clear(folder: Path, world: World) -> None:
    Session(folder, world).clear()


def _remove(system: System, folder: Path, path: Path) -> None:
    """Whoever writes copies holds the lock of the snapshots, so behind it a temporary file is nobody's."""
    with locked(system, folder / SNAPSHOTS):
        system.unlink(path)
