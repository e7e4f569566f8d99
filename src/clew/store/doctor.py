"""Checks a store and repairs it: modes, incomplete last lines, metadata, temporary files, locks."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

from clew.agents.sage_agent.metadata import disagreements
from clew.agents.sage_emacs import SageEmacs
from clew.agents.sage_emacs.locate import CONVERSATION, HISTORY
from clew.agents.sage_emacs.locate import source_file as conversation_file
from clew.agents.sage_emacs.metadata import describe, measure
from clew.agents.sage_format import read_object
from clew.errors import Busy, PathRefused, SourceUnreadable, UsageError
from clew.io.file_lock import ignore_missing_locks, lock_holder, locked
from clew.io.filesystem import FILE_MODE, FOLDER_MODE, SYSTEM, System, replace_file
from clew.io.paths import walk
from clew.model.codes import problem
from clew.store import session_metadata
from clew.store.doctor_blobs import examine_blobs
from clew.store.finding import Finding
from clew.store.finding import found as _found
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
from clew.store.unreadable_records import unreadable_messages

_OTHER_USERS = 0o077
_LOCK_WAIT_SECONDS = 1.0
"""Seconds that a lock is waited for."""
_TEMPORARY = re.compile(r"\..+\.tmp")


def examine(place: Path, system: System = SYSTEM) -> Iterator[Finding]:
    """Yield everything that is wrong with a store; nothing is changed."""
    root = root_of(place)
    if not root.is_dir():
        return
    try:
        system = ignore_missing_locks(system) if read_settings(root, {}).alone else system
    except UsageError as error:
        yield _found("bad-settings", root / CONFIG, str(error).removeprefix(f"{root / CONFIG}: "))
    for folder in (root, root / SESSIONS, root / PROJECTS):
        yield from _modes(system, [folder])
    yield from _modes(system, [root / CONFIG])
    yield from _leftovers(system, root)
    yield from _version(root)
    for folder in (root / SESSIONS, root / PROJECTS):
        if folder.is_symlink():
            yield _found("unreadable", folder, "is a symbolic link, and a store does not follow links inside it")
    for folder in folders(root / SESSIONS):
        yield from _or_unreadable(folder, _examine_folder(system, folder, MESSAGES, (SNAPSHOTS,), _session_metadata))
    for folder in folders(root / PROJECTS):
        yield from _or_unreadable(folder, _examine_folder(system, folder, CONVERSATION, (), _project_metadata))


def _or_unreadable(folder: Path, findings: Iterator[Finding]) -> Iterator[Finding]:
    """Report a session that cannot be read, and continue with the others."""
    try:
        yield from findings
    except (OSError, SourceUnreadable, PathRefused) as error:
        yield _found("unreadable", folder, str(error))


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
        yield _found("lock-held", folder / log, f"{lock_holder(folder / log) or 'another process'} holds the lock")
        return
    for name in (log, *more):
        yield from _tail(system, folder / name)
    yield from described(system, folder)
    yield from _leftovers(system, folder, folder / log)
    if log == MESSAGES:
        yield from examine_blobs(system, folder)
    if (folder / QUARANTINE).exists():
        yield _found("quarantined", folder / QUARANTINE)


def _modes(system: System, paths: list[Path]) -> Iterator[Finding]:
    for path in paths if os.name == "posix" else ():
        try:
            mode = path.lstat().st_mode
        except OSError:
            continue
        if stat.S_IMODE(mode) & _OTHER_USERS and not stat.S_ISLNK(mode):
            right = FOLDER_MODE if stat.S_ISDIR(mode) else FILE_MODE
            detail = f"mode {stat.S_IMODE(mode):04o} lets others look into it"
            yield _found("open-to-others", path, detail, lambda at=path, to=right: system.chmod(at, to))  # type: ignore[misc]


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
        "the last record lacks its line end"
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

    yield _found("torn-tail", path, detail, mend)


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
        yield _found("metadata-missing" if known is not None else "metadata-damaged", place, "", mend)
        return
    if lost:
        return  # what they count tells how much is lost
    if session_metadata.format_of(folder) > FORMAT:
        yield _found("newer-store", place)
        return
    for code, detail in islice(disagreements(known, folder.name, session_metadata.count_records(log)), 1):
        # All of it is mended at once.
        yield _found(code, place, detail, mend)._replace(is_wrong=code != "metadata-behind")


def _project_metadata(system: System, folder: Path) -> Iterator[Finding]:
    place, source = folder / METADATA, conversation_file(folder / CONVERSATION)

    def mend() -> None:
        with locked(system, source.path):
            agent, known = SageEmacs(), read_object(place) or {}
            session = agent.session(source, agent.facts(source))
            replace_file(system, place, describe(session, *measure(source), known))

    known = read_object(place)
    if known is None or not place.exists():
        yield _found("metadata-missing" if known is not None else "metadata-damaged", place, "", mend)
        return
    for name, truth in zip(("message_count", "total_size"), measure(source), strict=True):
        if known.get(name) != truth:
            yield _found("metadata-mismatch", place, f"{name} is {known.get(name)!r}, the log says {truth}", mend)
            return


def _leftovers(system: System, folder: Path, log: Path | None = None) -> Iterator[Finding]:
    """Find temporary files. A process that replaces a file holds the lock, so under the lock they are left over."""
    for path in sorted(folder.iterdir()):
        if _TEMPORARY.fullmatch(path.name) and path.is_file():
            yield _found("leftover-file", path, "", lambda at=path: _remove(system, at, log))  # type: ignore[misc]


def _remove(system: System, path: Path, log: Path | None) -> None:
    if log is None:
        system.unlink(path)
        return
    with locked(system, log):
        system.unlink(path)


def _version(root: Path) -> Iterator[Finding]:
    own = (read_object(root / CONFIG) or {}).get(OWN)
    number = own.get("store") if isinstance(own, dict) else None
    if isinstance(number, int) and number > FORMAT:
        yield _found("newer-store", root / CONFIG)
