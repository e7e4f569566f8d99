"""The files of a session: names, state, opening."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import BinaryIO, NamedTuple, Protocol, TypeAlias

import msgspec

from clew.agents.database import Layout, Snapshot, open_rows
from clew.errors import SourceUnreadable
from clew.host import Origin
from clew.io.compress import SUFFIXES, damage, open_source
from clew.io.database_paths import database_of, session_of
from clew.io.filesystem import SYSTEM, open_regular
from clew.io.paths import escape_controls
from clew.io.records import RawRecord
from clew.model import Problem, Record, SourceRef
from clew.model.codes import problem
from clew.model.json import JSON

SINGLE_PASS_BYTES = 16 << 20
"""Events of a source up to this size are held until its facts are known, instead of reading it twice."""
_PIECE_BYTES = 1 << 20


class SourceFile(msgspec.Struct, frozen=True):
    """One session on disk: its main file, and the files that belong to it."""

    agent: str
    path: Path
    parts: tuple[str, ...] = ()
    """Further JSONL files of the session, relative to the main file's folder."""
    sides: tuple[str, ...] = ()
    """Small files copied unchanged, relative to the main file's folder."""
    size: int = 0
    mtime: float = 0.0
    frozen: bool = False
    """Read no further than `size`, so that several passes over a growing file see the same."""
    origin: Origin | None = None
    """Where it was written, unless in a home of this machine; agents leave it alone."""
    mask: Mask | None = None
    """Masks secrets in the files of the session, before they are decoded."""
    change_token: bytes = b""
    """For a session that is rows of a database: changes whenever the rows do."""
    snapshot: Snapshot | None = None
    """For such a session: the state of the database that several passes see."""


class Mask(Protocol):
    """Gives the masked bytes of a session's files, and the masked header."""

    def open(self, opened: Callable[[], BinaryIO]) -> BinaryIO:
        """A file of the session, masked."""
        ...

    def value(self, value: JSON) -> JSON:
        """A value that comes from elsewhere, such as the path of the session, masked."""
        ...

    def learn(self) -> None:
        """Read the session for secrets, if that was not done yet."""
        ...

    def learn_again(self) -> None:
        """Read the session for secrets once more before it is opened next, since it may have grown."""
        ...

    def cover(self, source: SourceFile) -> SourceFile:
        """Another session, such as a sub-agent's, masked by the same rules."""
        ...

    def stamp(self) -> dict[str, JSON]:
        """Says in a document that it was masked, and by which rules."""
        ...


def source_at(agent: str, path: Path, sides: Sequence[str] = (), parts: Sequence[str] = ()) -> SourceFile:
    """The session with this main file, with its size and time; it need not exist."""
    try:
        stat = os.stat(path)  # noqa: PTH116 - called for every file found; os.stat is faster than Path.stat
    except OSError:
        return SourceFile(agent, path, tuple(parts), tuple(sides))
    return SourceFile(agent, path, tuple(parts), tuple(sides), stat.st_size, stat.st_mtime)


def with_current_size(source: SourceFile) -> SourceFile:
    """The source as long as it is now; of a session in a database, its rows as they are now."""
    if (snapshot := _snapshot(source)) is not None:
        return msgspec.structs.replace(source, snapshot=snapshot)
    try:
        return msgspec.structs.replace(source, size=source.path.stat().st_size, frozen=True)
    except OSError:
        return source


class SourceState(NamedTuple):
    """What changes when the main file of a session does; the names are those of `os.stat_result`."""

    st_size: int
    st_mtime_ns: int
    st_ctime_ns: int
    st_ino: int
    change_token: bytes = b""


def source_state(source: SourceFile) -> SourceState:
    """The state of the main file of a session, or of its rows in a database. Raises OSError where there is none."""
    if (snapshot := _snapshot(source)) is not None:
        try:
            rows = snapshot.find(session_of(source.path))
        finally:
            if source.snapshot is None:
                snapshot.close()
        if rows is not None:
            mtime_ns = int(rows.mtime * 1000) * 1_000_000
            # A database has no ctime: seven bytes of the token take its place, so that the value fits 64 bits.
            changes = int.from_bytes(rows.change_token[:7])
            return SourceState(estimated_bytes(rows.row_count), mtime_ns, changes, 0, rows.change_token)
    found = source.path.stat()
    return SourceState(found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino)


FileStates: TypeAlias = tuple[tuple[int, ...], ...]
"""Times and size of each file of a session."""


def file_states(source: SourceFile) -> FileStates:
    """The states of the main file of a session and of its further logs: they change when the session is written to."""
    states: list[tuple[int, ...]] = []
    for name in ("", *source.parts):
        try:
            found = source_state(source) if not name else (source.path.parent / name).stat()
            states.append((found.st_mtime_ns, found.st_size, found.st_ctime_ns))
        except (OSError, SourceUnreadable):
            states.append((0, -1, 0))
    return tuple(states)


ROW_BYTES = 2048
"""Estimated bytes per row: SQLite counts rows cheaply, but not their bytes."""


def estimated_bytes(row_count: int) -> int:
    """About the size of a session in a database."""
    return row_count * ROW_BYTES


def _snapshot(source: SourceFile) -> Snapshot | None:
    """The state of the database that holds the session: the one that was kept, or the present one."""
    if source.snapshot is not None:
        return source.snapshot
    database = database_of(source.path)
    layout = _layout(source.agent) if database is not None else None
    return Snapshot(database, layout) if database is not None and layout is not None else None


def _layout(agent: str) -> Layout | None:
    from clew.agents import registry  # it imports this module

    return registry.get(agent).layout


def masked_text(source: SourceFile, text: str) -> str:
    """A text that was not read from the opened files, such as an id made of the path; masked where the session is."""
    return text if source.mask is None else str(source.mask.value(text))


def open_main(source: SourceFile) -> BinaryIO:
    """The main file of a session, opened for reading."""
    return _open_main(source) if source.mask is None else source.mask.open(partial(_open_main, source))


def _open_main(source: SourceFile) -> BinaryIO:
    snapshot, session, is_own = _snapshot(source), session_of(source.path), source.snapshot is None
    if snapshot is not None:
        try:
            has_rows = snapshot.find(session) is not None
        except SourceUnreadable:
            if is_own:
                snapshot.close()
            raise
        if has_rows:
            return open_rows(snapshot, source.agent, session, closes_snapshot=is_own)
        if is_own:
            snapshot.close()
    return open_source(source.path, source.size if source.frozen else None, is_read_whole=True)


def open_file(source: SourceFile, name: str) -> BinaryIO:
    """A file of the session: the main one without a name; logs are unpacked, side files come as they are."""
    if not name:
        return open_main(source)
    path = source.path.parent / name
    opened = partial(open_source if name in source.parts else _open_side, path)
    return opened() if source.mask is None else source.mask.open(opened)


def _open_side(path: Path) -> BinaryIO:
    try:
        return open(open_regular(SYSTEM, path, os.O_RDONLY), "rb")
    except OSError as error:
        raise SourceUnreadable(f"{escape_controls(str(path))}: {error.strerror or error}") from error


def fragment_events(
    source: SourceFile, record: RawRecord, line: int, *, after: int, file: int = 0, number: int | None = None
) -> Iterator[Problem | Record]:
    """Events for a part of a file that is not a record: its problems and one `fragment` record.

    `number` is that of a record of a JSON document; other records are numbered by their lines.
    """
    path = source.path.parent / source.parts[file - 1] if file else source.path
    for code in record.findings:
        yield problem(code, file=str(path), line=line)
    yield Record(after=after, kind="fragment", source=SourceRef(file, line - 1 if number is None else number))


def archive_damage(source: SourceFile) -> str | None:
    """What is wrong with a compressed file, found by unpacking it to its end."""
    if source.path.suffix not in SUFFIXES:
        return None
    with open_source(source.path) as stream:
        while stream.read(_PIECE_BYTES):
            pass
        return damage(stream)


def fits_in_memory(source: SourceFile) -> bool:
    """True for a source whose events may be held until its facts are known."""
    paths = [source.path.parent / name for name in source.parts]
    size = source.size + sum(path.stat().st_size for path in paths if path.exists())
    return size <= SINGLE_PASS_BYTES and not any(path.suffix in SUFFIXES for path in (source.path, *paths))
