"""Checks a store and repairs it: modes, incomplete last lines, metadata, temporary files, locks, blobs, undos."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from clew.agents.sage_agent.metadata import disagreements
from clew.agents.sage_emacs import SageEmacs
from clew.agents.sage_emacs.locate import CONVERSATION, HISTORY
from clew.agents.sage_emacs.locate import source_file as conversation_file
from clew.agents.sage_emacs.metadata import describe, measure
from clew.agents.sage_format import read_object
from clew.errors import Busy, PathRefused, SourceUnreadable, UsageError
from clew.io.blobs import name_of
from clew.io.file_lock import ignore_missing_locks, lock_holder, locked
from clew.io.filesystem import FILE_MODE, FOLDER_MODE, SYSTEM, System, replace_file
from clew.io.paths import folder_error, walk
from clew.model import Problem
from clew.model.codes import problem
from clew.store import session_metadata
from clew.store.change_journal import UNREADABLE, read_journals, undo_folder, undo_journals
from clew.store.conversation_tree import Tree
from clew.store.layout import (
    BACKUPS,
    CONFIG,
    FORMAT,
    MESSAGES,
    METADATA,
    OWN,
    PROJECTS,
    RESCUE,
    SCANS,
    SESSIONS,
    SNAPSHOTS,
    folders,
    read_settings,
    refuse_links,
    root_of,
)
from clew.store.log import QUARANTINE, Log, incomplete_last_line, record_in
from clew.store.session import Session
from clew.store.snapshots import Snapshots
from clew.store.undo import roll_back_interrupted_undos
from clew.store.unreadable_records import (
    is_log_missing,
    refuse_unreadable,
    unreadable_messages,
    unreadable_snapshots,
)
from clew.store.writer import WriterConfig

_OTHER_USERS = 0o077
_LOCK_WAIT_SECONDS = 1.0
_TEMPORARY = re.compile(r"\..+\.tmp")


class Finding(NamedTuple):
    """A problem, and a function that repairs it where that is possible."""

    problem: Problem
    mend: Callable[[], object] | None = None
    is_wrong: bool = True
    """False for a note: nothing is wrong, but it can be improved."""


def found(code: str, path: Path, detail: str = "", mend: Callable[[], object] | None = None) -> Finding:
    """Return a finding about a file."""
    return Finding(problem(code, detail, file=str(path)), mend)


def examine(place: Path, system: System = SYSTEM) -> Iterator[Finding]:
    """Yield everything that is wrong with a store; nothing is changed."""
    root = root_of(place)
    if reason := folder_error(str(root)):
        yield found("unreadable", root, reason)
        return
    if not root.is_dir():
        return
    try:
        system = ignore_missing_locks(system) if read_settings(root, {}).alone else system
    except UsageError as error:
        yield found("bad-settings", root / CONFIG, str(error).removeprefix(f"{root / CONFIG}: "))
    for folder in (root, root / SESSIONS, root / PROJECTS):
        yield from _modes(system, [folder])
    yield from _modes(system, [root / CONFIG])
    yield from _leftovers(system, root)
    yield from _version(root)
    for folder in (root / SESSIONS, root / PROJECTS):
        if folder.is_symlink():
            yield found("unreadable", folder, "is a symbolic link, and a store does not follow links inside it")
    for folder in folders(root / SESSIONS):
        yield from _or_unreadable(folder, _examine_folder(system, folder, MESSAGES, (SNAPSHOTS,), _session_metadata))
    for folder in folders(root / PROJECTS):
        yield from _or_unreadable(folder, _examine_folder(system, folder, CONVERSATION, (), _project_metadata))


def _or_unreadable(folder: Path, findings: Iterator[Finding]) -> Iterator[Finding]:
    """Report a session that cannot be read, and continue with the others."""
    try:
        yield from findings
    except (OSError, SourceUnreadable, PathRefused) as error:
        yield found("unreadable", folder, str(error))


def _examine_folder(
    system: System,
    folder: Path,
    log: str,
    more: tuple[str, ...],
    described: Callable[[System, Path], Iterator[Finding]],
) -> Iterator[Finding]:
    if not (folder / log).is_file():
        return
    refuse_links(folder, BACKUPS, RESCUE, SCANS, HISTORY)
    inside = (Path(below, name) for below, folders, files in walk(folder) for name in (*folders, *files))
    yield from _modes(system, [folder, *(path for path in sorted(inside) if not path.is_symlink())])
    try:
        with locked(system, folder / log, _LOCK_WAIT_SECONDS):
            pass
    except Busy:
        yield found("lock-held", folder / log, f"{lock_holder(folder / log) or 'another process'} holds the lock")
        return
    for name in (log, *more):
        yield from _tail(system, folder / name)
    yield from described(system, folder)
    yield from _leftovers(system, folder, folder / log)
    if log == MESSAGES:
        yield from _examine_blobs(system, folder)
    if (folder / QUARANTINE).exists():
        yield found("quarantined", folder / QUARANTINE)


def _modes(system: System, paths: list[Path]) -> Iterator[Finding]:
    for path in paths if os.name == "posix" else ():
        try:
            mode = path.lstat().st_mode
        except OSError:
            continue
        if stat.S_IMODE(mode) & _OTHER_USERS and not stat.S_ISLNK(mode):
            right = FOLDER_MODE if stat.S_ISDIR(mode) else FILE_MODE
            detail = f"mode {stat.S_IMODE(mode):04o} gives other users access"
            yield found("open-to-others", path, detail, lambda at=path, to=right: system.chmod(at, to))  # type: ignore[misc]


def _tail(system: System, path: Path) -> Iterator[Finding]:
    """Find an incomplete last line; it is repaired as the next append would."""
    if not path.is_file():
        return
    descriptor = system.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
    try:
        torn = incomplete_last_line(system, descriptor, system.seek(descriptor, 0, os.SEEK_END))
    finally:
        system.close(descriptor)
    if not torn:
        return
    detail = (
        "the last record has no newline"
        if record_in(torn) is not None
        else f"the last {len(torn)} bytes are not a record"
    )

    def mend() -> None:
        log = Log(path, system=system)
        try:
            with log.locked():
                pass  # which repairs the end
        finally:
            log.drop()

    yield found("torn-tail", path, detail, mend)


def _session_metadata(system: System, folder: Path) -> Iterator[Finding]:
    place, log = folder / METADATA, folder / MESSAGES
    lost = unreadable_messages(log)
    for number in lost:
        yield Finding(problem("malformed-json", file=str(log), line=number))

    def mend() -> None:
        with locked(system, log):
            session_metadata.write(system, folder, session_metadata.rebuild(folder))

    known = read_object(place)
    if known is None or not place.exists():
        yield found("metadata-missing" if known is not None else "metadata-damaged", place, "", mend)
        return
    if lost:
        return  # the counts in the metadata show how much is lost
    if session_metadata.format_of(folder) > FORMAT:
        yield found("newer-store", place)
        return
    for code, detail in islice(disagreements(known, folder.name, session_metadata.count_records(log)), 1):
        # All of it is mended at once.
        yield found(code, place, detail, mend)._replace(is_wrong=code != "metadata-behind")


def _project_metadata(system: System, folder: Path) -> Iterator[Finding]:
    place, source = folder / METADATA, conversation_file(folder / CONVERSATION)

    def mend() -> None:
        with locked(system, source.path):
            agent, known = SageEmacs(), read_object(place) or {}
            session = agent.session(source, agent.facts(source))
            replace_file(system, place, describe(session, *measure(source), known))

    known = read_object(place)
    if known is None or not place.exists():
        yield found("metadata-missing" if known is not None else "metadata-damaged", place, "", mend)
        return
    for name, truth in zip(("message_count", "total_size"), measure(source), strict=True):
        if known.get(name) != truth:
            yield found("metadata-mismatch", place, f"{name} is {known.get(name)!r}, the log says {truth}", mend)
            return


def _leftovers(system: System, folder: Path, log: Path | None = None) -> Iterator[Finding]:
    """Find temporary files. A process that writes one holds the lock of the log, so under the lock they are left over.

    A folder that does not belong to a log has no lock.
    """
    for path in sorted(folder.glob(".*")):
        if _TEMPORARY.fullmatch(path.name) and path.is_file():
            yield found("leftover-file", path, "", lambda at=path: _remove(system, at, log))  # type: ignore[misc]


def _remove(system: System, path: Path, log: Path | None) -> None:
    with locked(system, log) if log is not None else nullcontext():
        system.unlink(path)


def _version(root: Path) -> Iterator[Finding]:
    own = (read_object(root / CONFIG) or {}).get(OWN)
    number = own.get("store") if isinstance(own, dict) else None
    if isinstance(number, int) and number > FORMAT:
        yield found("newer-store", root / CONFIG)


# Blobs and undos


def _examine_blobs(system: System, folder: Path) -> Iterator[Finding]:
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
    for inner in (blobs.folder, snapshots.scans.folder):
        yield from _leftovers(system, inner, folder / SNAPSHOTS)


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
        yield found("quarantined", path, "The journal of an interrupted undo cannot be read.")


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
