"""Removes old sessions from the folders of their agents, once the archive holds them.

For each session: its files are archived, the archived bytes are read back and compared with the files, and only then
are the files removed, the main file last. A file that changed in between, that is a link, or that a program has open
(where the system tells) keeps the whole session. Killed at any point, every byte is in its file or in the archive.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from clew.agents.sage_agent.locate import AGENT as OWN_STORE
from clew.archive.archive import Archive
from clew.archive.capture import FileToCapture, capture, files_of, newest_by_path, source_home, without_duplicates
from clew.archive.holds import NOTHING_KNOWN, Holds, KnownSessions
from clew.archive.records import Version
from clew.archive.writer import open_writer
from clew.errors import ClewError, PathRefused, SourceUnreadable, UsageError
from clew.host import Host
from clew.io.filesystem import SYSTEM, open_regular
from clew.io.paths import link_on_way
from clew.sources.local import in_homes

MIN_AGE = timedelta(days=1)
"""A session that was written to within this time may be running."""
PROCESSES = Path("/proc")
"""The folder in which Linux shows processes and their open files."""
_READ_BYTES = 1 << 20

Signature = tuple[int, int, int, int, int]


class OldSession(NamedTuple):
    """A session that may be removed."""

    agent: str
    id: str
    files: tuple[FileToCapture, ...]
    """Its own files, the main file last; not what it shares with other sessions."""
    bytes: int
    last_activity: datetime

    @property
    def path(self) -> Path:
        """The main file."""
        return self.files[-1].path


class Kept(NamedTuple):
    """A session that was not removed, or not completely."""

    session: OldSession
    reason: str
    removed_files: int = 0
    """So many of its files were removed before an error, and are only in the archive."""


class Cleaned(NamedTuple):
    """What was removed, and what was kept."""

    removed: list[OldSession]
    kept: list[Kept]


def find_old(
    hosts: Iterable[Host], last_messages: Mapping[Path, datetime | None], before: datetime, now: datetime
) -> list[OldSession]:
    """Find the sessions whose last message and last change of a file lie before a time, oldest first.

    `last_messages` has the sessions that may be removed, by main file. Sessions of other machines and of clew's own
    store, which has `clew erase`, are skipped.
    """
    if before > now - MIN_AGE:
        raise UsageError(
            "--older-than must be at least one day ago, such as 90d or 6mo (6m is 6 minutes):"
            " a newer session may be running"
        )
    files: dict[Path, list[FileToCapture]] = {}
    for file in without_duplicates(_files([host for host in hosts if host.base is None])):
        if file.role != "shared" and file.main in last_messages and file.agent != OWN_STORE:
            own = files.setdefault(file.main.resolve(), [])
            # Two homes may be the same folder, or share the folder of an agent: the first one counts.
            if not own or own[0].host is file.host:
                own.append(file)
    described = (_describe(own[0].main, own, last_messages[own[0].main]) for own in files.values())
    found = [session for session in described if session is not None and session.last_activity < before]
    return sorted(found, key=lambda session: (session.last_activity, session.path))


def _files(hosts: Iterable[Host]) -> Iterator[FileToCapture]:
    for host in hosts:
        for found in in_homes([host]):
            with suppress(SourceUnreadable):
                yield from files_of(host, found.agent, found.source)


def _describe(main: Path, files: list[FileToCapture], last_message: datetime | None) -> OldSession | None:
    try:
        states = [file.path.lstat() for file in files]
    except OSError:
        return None
    changed = datetime.fromtimestamp(max(state.st_mtime for state in states), UTC)
    ordered = sorted(files, key=lambda file: (file.path == main, file.path))
    if ordered[-1].path != main:
        return None
    last = changed if last_message is None else max(changed, last_message)
    return OldSession(files[0].agent, files[0].session(), tuple(ordered), sum(one.st_size for one in states), last)


def clean(
    folder: Path,
    sessions: Collection[OldSession],
    now: Callable[[], datetime],
    known: KnownSessions = NOTHING_KNOWN,
) -> Cleaned:
    """Archive the sessions in the archive in `folder`, verify their archived bytes, and remove their files.

    Sessions that are held are kept. `known` is what catalogs know of the sessions.
    """
    done, holds = Cleaned([], []), Holds(folder, known)
    with open_writer(folder) as writer:
        problems = capture(writer, [file for session in sessions for file in session.files], now).problems
    # Opened again, the archive is read from the disk. While it is open, no other process can prune it.
    with open_writer(folder) as archive:
        versions = newest_by_path(archive)
        for session in sessions:
            removed_files = 0
            if held := holds.find(session.agent, session.id, session.path, session.last_activity, now()):
                done.kept.append(Kept(session, f"it is held ({held})"))
                continue
            try:
                signatures = [_verify(archive, versions, file, problems) for file in session.files]
                _refuse_open_files(session)
                for file, signature in zip(session.files, signatures, strict=True):
                    _remove(file.path, signature)
                    removed_files += 1
            except (ClewError, OSError) as error:
                done.kept.append(Kept(session, _reason(error), removed_files))
            else:
                done.removed.append(session)
                _remove_empty_folders(session)
    return done


def _verify(
    archive: Archive, versions: Mapping[tuple[object, ...], Version], file: FileToCapture, problems: Collection[str]
) -> Signature:
    """Prove that the archive has the bytes of a file; returns what the file looks like. Raises where it has not.

    `problems` are those of the capture.
    """
    path = file.path
    link = link_on_way(_folder_of_agent(file), path)
    if link is not None:
        raise PathRefused(f"{link}: is a symbolic link, and is not followed")
    for problem in problems:
        if problem.startswith(f"{path}: "):
            raise SourceUnreadable(problem)
    version = versions.get(file.archive_key())
    if version is None:
        raise SourceUnreadable(f"{path}: is not in the archive")
    digest = hashlib.sha256()
    for piece in archive.pieces(version):
        digest.update(piece)
    signature, content = _read(path)
    if content != digest.digest():
        raise SourceUnreadable(f"{path}: differs from its archived copy")
    return signature


def _refuse_open_files(session: OldSession) -> None:
    in_use = open_files()
    for file in session.files:
        if file.path.resolve() in in_use:
            raise SourceUnreadable(f"{file.path}: a program has it open")


def _folder_of_agent(file: FileToCapture) -> Path:
    """The folder below which a link may come with a session: the home, or the link that the user put in its place."""
    if roots := _roots(file):
        return max(roots, key=lambda root: len(root.parts))
    return source_home(file.host).folder_above(file.path.absolute()) or file.host.home


def _roots(file: FileToCapture) -> list[Path]:
    """The folders of sessions of the agent that a file is in."""
    from clew.agents import registry

    return [root for root in registry.get(file.agent).roots(file.host) if file.path.is_relative_to(root)]


def _read(path: Path) -> tuple[Signature, bytes]:
    """The signature and the digest of a file. A link is refused."""
    descriptor = open_regular(SYSTEM, path, os.O_RDONLY)
    digest = hashlib.sha256()
    with open(descriptor, "rb", buffering=0) as stream:
        while piece := stream.read(_READ_BYTES):
            digest.update(piece)
        return _signature(os.fstat(descriptor)), digest.digest()


def _signature(status: os.stat_result) -> Signature:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _remove(path: Path, signature: Signature) -> None:
    """Remove a file that is still as it was when its bytes were compared."""
    if _signature(path.lstat()) != signature:
        raise SourceUnreadable(f"{path}: changed after it was archived")
    SYSTEM.unlink(path)


def _remove_empty_folders(session: OldSession) -> None:
    """Remove the folders below the agent's own folders that are empty now."""
    for file in session.files:
        agent_folder = _folder_of_agent(file)
        is_in_root = agent_folder in _roots(file)
        for folder in file.path.parents if is_in_root else [file.path.parent]:
            if folder == agent_folder:
                break
            try:
                folder.rmdir()
            except FileNotFoundError:
                continue  # removed after an earlier file of the session
            except OSError:
                break  # it holds something else


def _reason(error: Exception) -> str:
    if isinstance(error, OSError):
        return f"{error.filename or ''}: {error.strerror or error}".removeprefix(": ")
    return str(error)


def can_check_open_files() -> bool:
    """True if the system lists which files programs have open, as Linux does."""
    return (PROCESSES / "self" / "fd").is_dir()


def open_files() -> set[Path]:
    """The files that programs of this user have open; empty where the system does not tell."""
    found: set[Path] = set()
    for descriptor in PROCESSES.glob("[0-9]*/fd/*"):
        with suppress(OSError):
            found.add(descriptor.readlink())
    return found
