"""A capture: find the files of all sessions, and store what is new or changed.

A file with the size, times, mode and inode of its last version is not opened. One that grew is read to check that its
beginning is unchanged, and only the appended bytes are stored. Any other change makes a new version; the old one stays.
A file whose archived content is damaged is read and stored again.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import BinaryIO, NamedTuple, TypeAlias, cast

import msgspec

from clew.agents.backups import is_behind_link
from clew.agents.base import Agent
from clew.agents.source import SourceFile, open_main, source_state, with_current_size
from clew.archive.archive import Archive
from clew.archive.chunker import cut
from clew.archive.prune import merge_packs
from clew.archive.records import (
    FileKey,
    Role,
    SourceHome,
    Version,
    earlier_states,
    path_text,
    replaced_versions,
)
from clew.archive.writer import ArchiveWriter
from clew.errors import SourceUnreadable
from clew.host import Host
from clew.io.compress import seekable
from clew.io.paths import walk
from clew.model.time import to_microseconds

_READ_BYTES = 1 << 20
_ANY_SIZE = -1

Progress = Callable[[int, int], None]
"""Progress callback: (bytes_done, bytes_total)."""


class Outcome(msgspec.Struct, kw_only=True):
    """The result of a capture."""

    files: int = 0
    """All files that were looked at."""
    unchanged: int = 0
    grown: int = 0
    new: int = 0
    rewritten: int = 0
    read: int = 0
    """Bytes of files that were new or had changed."""
    stored: int = 0
    """Bytes that were added to the packs."""
    mended: int = 0
    """Versions of files that were damaged in the archive and are complete again."""
    problems: list[str] = msgspec.field(default_factory=list)


class FileToCapture(NamedTuple):
    """A file to archive."""

    host: Host
    agent: str
    session: Callable[[], str]
    """Returns the session's id; it may have to read the file for it."""
    role: Role
    main: Path
    """The main file of the session."""
    path: Path
    rows: SourceFile | None = None
    """The session, if it is rows of a database and its main file does not exist."""

    def archive_key(self) -> tuple[object, ...]:
        """The home and the path of the file, as `newest_by_path` names them."""
        return *_identity(source_home(self.host)), os.fsencode(_original_path(self.host, self.path))


class _ChangedFile(NamedTuple):
    file: FileToCapture
    home: SourceHome
    path: bytes
    known: Version | None
    size: int
    is_damaged: bool
    """The archive cannot give back the known version."""


def capture(
    writer: ArchiveWriter,
    files: Iterable[FileToCapture],
    now: Callable[[], datetime],
    progress: Progress | None = None,
) -> Outcome:
    """Bring the archive up to date with these files."""
    outcome = Outcome()
    before = writer.stored
    incomplete = writer.index.incomplete(writer.versions())
    damaged = {version.file for version in incomplete}
    changed = list(_changed_files(writer, files, outcome, damaged))
    # Files of one agent lie together, because they compress better so.
    changed.sort(key=lambda one: one.file.agent)
    total, uncommitted = sum(one.size for one in changed), 0
    for one in changed:
        uncommitted += _capture_file(writer, one, outcome, to_microseconds(now()))
        if writer.pack_is_full:
            writer.commit(to_microseconds(now()), uncommitted)
            uncommitted = 0
        if progress is not None:
            progress(outcome.read, total)
    writer.commit(to_microseconds(now()), uncommitted)
    outcome.stored = writer.stored - before
    if incomplete:
        left = writer.index.incomplete(writer.versions())
        outcome.mended = len(incomplete) - len(left)
        what = "the archived content is damaged; `clew archive verify` says where"
        outcome.problems += [f"{path}: {what}" for path in sorted(set(map(path_text, left)))]
    merge_packs(writer)
    return outcome


def _changed_files(
    writer: ArchiveWriter, files: Iterable[FileToCapture], outcome: Outcome, damaged: Collection[FileKey]
) -> Iterator[_ChangedFile]:
    """Yield the files that differ from their last version, or whose versions are damaged."""
    homes: dict[int, SourceHome] = {}
    known_homes = _homes_of_sessions(writer)
    for file in without_duplicates(files):
        if id(file.host) not in homes:
            homes[id(file.host)] = source_home(file.host)
        home = homes[id(file.host)]
        main, path = (os.fsencode(_original_path(file.host, one)) for one in (file.main, file.path))
        if file.role != "shared" and (home, main) not in writer.files:
            home = known_homes.get((*_identity(home), main), home)
        outcome.files += 1
        versions = writer.files.get((home, path))
        known = versions[-1] if versions else None
        try:
            status = file.path.stat() if file.rows is None else _rows_status(file.rows, None)
        except OSError as error:
            outcome.problems.append(f"{file.path}: {error.strerror or error}")
            continue
        except SourceUnreadable as error:
            outcome.problems.append(str(error))
            continue
        is_damaged = (home, path) in damaged
        if known is not None and _is_unchanged(known, status) and known.role == file.role and not is_damaged:
            outcome.unchanged += 1
        else:
            yield _ChangedFile(file, home, path, known, status.st_size, is_damaged)


class _RowsStatus(NamedTuple):
    """What `os.stat_result` says of a file, for the rows of a session."""

    st_size: int
    st_mtime_ns: int
    st_ctime_ns: int
    """Made of the change token: another one whenever the rows changed."""
    st_ino: int
    st_mode: int


Status: TypeAlias = os.stat_result | _RowsStatus


def _rows_status(source: SourceFile, size: int | None) -> _RowsStatus:
    """The status of rows; without a size, which only reading them tells, it matches any."""
    state = source_state(source)
    return _RowsStatus(_ANY_SIZE if size is None else size, state.st_mtime_ns, state.st_ctime_ns, 0, 0o600)


def _is_unchanged(known: Version, status: Status) -> bool:
    size = known.size if status.st_size == _ANY_SIZE else status.st_size
    return (known.size, known.mtime_ns, known.ctime_ns, known.inode, known.mode) == (
        size,
        status.st_mtime_ns,
        status.st_ctime_ns,
        status.st_ino,
        stat.S_IMODE(status.st_mode),
    )


def _homes_of_sessions(writer: ArchiveWriter) -> dict[tuple[str, str | None, str, str, bytes], SourceHome]:
    """Return the home that each session was archived under, by main file.

    A session that is found again with other environment variables is the same session, and is kept once.
    """
    return {(*_identity(one.home), one.path): one.home for one in writer.newest() if one.role == "main"}


def newest_by_path(archive: Archive) -> dict[tuple[object, ...], Version]:
    """The newest version of each file, whatever the environment variables were."""
    versions = sorted(archive.newest(), key=lambda version: version.taken_us)
    return {(*_identity(version.home), version.path): version for version in versions}


def _identity(home: SourceHome) -> tuple[str, str | None, str, str]:
    return home.kind, home.name, home.path, home.base


def source_home(host: Host) -> SourceHome:
    """Return a host's home, with the environment variables that agents read to find their sessions."""
    from clew.sources.fetch import variables

    env = {name: host.env[name] for name in variables() if host.env.get(name)}
    if host.base is not None:
        env = {name: _original_folders(value, host.base) for name, value in env.items()}
    base = str(host.base.absolute()) if host.base is not None else ""
    return SourceHome(host.kind, host.name, _original_path(host, host.home), tuple(sorted(env.items())), base)


def _original_path(host: Host, path: Path) -> str:
    """Return a path as the machine that wrote it names it: absolute, because `..` would lead elsewhere on restore."""
    absolute = os.path.abspath(path)  # noqa: PTH100 - links stay as they are
    return host.origin(Path(absolute)).path


def _original_folders(value: str, base: Path) -> str:
    """Return folders in a mirror as the other machine names them."""
    return ",".join("/" + os.path.relpath(folder, base) for folder in value.split(","))


def _capture_file(writer: ArchiveWriter, one: _ChangedFile, outcome: Outcome, taken_us: int) -> int:
    """Archive one file; returns how many bytes were new. A file that cannot be read is a problem and stops nothing."""
    path = one.file.path
    try:
        with _opened(one.file) as (stream, status):
            version = _read_version(writer, one, stream, status, taken_us)
    except SourceUnreadable as error:
        outcome.problems.append(str(error))
        return 0
    except OSError as error:
        if error.filename != str(path):
            raise
        outcome.problems.append(f"{path}: {error.strerror or error}")
        return 0
    if one.known is None:
        outcome.new += 1
    elif version.extends:
        outcome.grown += 1
    elif version.digest == one.known.digest:
        outcome.unchanged += 1
    else:
        outcome.rewritten += 1
    writer.keep(version)
    outcome.read += version.size
    return version.size - (one.known.size if version.extends and one.known is not None else 0)


@contextmanager
def _opened(file: FileToCapture) -> Iterator[tuple[BinaryIO, Status]]:
    """Open a file, or the rows of a session as a file, and say what it looks like."""
    if file.rows is None:
        with _open(file.path) as stream:
            status = os.fstat(stream.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise SourceUnreadable(f"{file.path}: not a regular file")
            yield stream, status
        return
    source = with_current_size(file.rows)
    with seekable(open_main(source)) as rows:
        size = rows.seek(0, os.SEEK_END)
        rows.seek(0)
        yield cast(BinaryIO, rows), _rows_status(source, size)


def _open(path: Path) -> BinaryIO:
    # O_NONBLOCK: opening a pipe that is named like a session would wait for a writer.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
    return open(os.open(path, flags), "rb", buffering=0)


class _HashingReader:
    """Reads a stream and hashes it. An error of the disk gets the name of the file."""

    def __init__(self, stream: BinaryIO, path: Path) -> None:
        self._stream, self._path = stream, path
        self.digest = hashlib.sha256()
        self.size = 0

    def read(self, size: int) -> bytes:
        """Return the next bytes."""
        try:
            piece = self._stream.read(size)
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(self._path)) from error
        self.digest.update(piece)
        self.size += len(piece)
        return piece


def _read_version(writer: ArchiveWriter, one: _ChangedFile, stream: BinaryIO, status: Status, taken_us: int) -> Version:
    """Store the content of a file, as long as it was when it was opened."""
    file, known, size = one.file, one.known, status.st_size
    reader = _HashingReader(stream, file.path)
    has_grown = known is not None and _has_grown(reader, known, size)
    chunks = known.chunks if known is not None and has_grown and not one.is_damaged else b""
    if not chunks and reader.size:
        stream.seek(0)
        reader = _HashingReader(stream, file.path)
    for pieces in cut(cast(BinaryIO, reader), size - reader.size):
        chunks += writer.add(pieces)
    digest = reader.digest.digest()
    is_same = known is not None and known.digest == digest
    version = Version(
        home=one.home,
        path=one.path,
        agent=file.agent,
        session=file.session(),
        role=file.role,
        main=os.fsencode(_original_path(file.host, file.main)),
        size=reader.size,
        mode=stat.S_IMODE(status.st_mode),
        mtime_ns=status.st_mtime_ns,
        ctime_ns=status.st_ctime_ns,
        inode=status.st_ino,
        digest=digest,
        chunks=chunks,
        capture=writer.pack_number,
        taken_us=taken_us,
        written_ns=known.written_ns if known is not None and is_same else status.st_mtime_ns,
        extends=known.digest if known is not None and has_grown else b"",
    )
    replaced = replaced_versions(writer.files.get(version.file, ()), version)
    return msgspec.structs.replace(version, earlier=earlier_states(replaced))


def _has_grown(reader: _HashingReader, known: Version, size: int) -> bool:
    """Read as many bytes as the known version has; True where they are its content and more follow."""
    if size <= known.size or not known.size:
        return False
    while reader.size < known.size and reader.read(min(_READ_BYTES, known.size - reader.size)):
        pass
    return reader.digest.digest() == known.digest


# Which files are archived: those of each session, and those that an agent keeps for all of its sessions


def files_of(host: Host, agent: Agent, source: SourceFile) -> Iterator[FileToCapture]:
    """Yield the files of a session: its main file, its parts and sides, and the copies of files that go with it."""
    folder = source.path.parent
    named: list[tuple[Role, Path]] = [("main", source.path)]
    named += [("part", folder / name) for name in source.parts]
    named += [("side", folder / name) for name in source.sides]
    places = [place for place in agent.copies(source) if not is_behind_link(place, source.path)]
    named += [("copy", path) for place in places for path in _regular_files(place)]
    for role, path in named:
        rows = source if role == "main" and source.change_token else None
        yield FileToCapture(host, agent.id, partial(agent.session_id, source), role, source.path, path, rows)


def companions_of(host: Host, agents: Iterable[Agent]) -> Iterator[FileToCapture]:
    """Yield the files that agents keep for all of their sessions."""
    for agent in agents:
        for place in agent.companions(host):
            for path in _regular_files(place):
                yield FileToCapture(host, agent.id, str, "shared", path, path)


def without_duplicates(files: Iterable[FileToCapture]) -> list[FileToCapture]:
    """Return every file once: as the main file of a session if it is one, as shared if several sessions name it."""
    found: dict[tuple[int, Path], FileToCapture] = {}
    for file in files:
        key = id(file.host), file.path
        known = found.setdefault(key, file)
        if known.role == "main" or (known.main == file.main and file.role != "main"):
            continue
        shared = file._replace(session=str, role="shared", main=file.path)
        found[key] = file if file.role == "main" else shared
    return list(found.values())


def _regular_files(place: Path) -> Iterator[Path]:
    """Yield a file, or all files below a folder; links are not followed."""
    try:
        found = place.lstat()
    except OSError:
        return
    if stat.S_ISREG(found.st_mode):
        yield place
    elif stat.S_ISDIR(found.st_mode):
        for below, names, files in walk(place):
            names.sort()
            for name in sorted(files):
                path = Path(below) / name
                if path.is_file() and not path.is_symlink():
                    yield path
