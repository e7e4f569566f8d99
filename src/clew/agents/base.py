"""What an agent must offer, and the source file it is asked about."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from enum import IntEnum
from functools import partial
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, BinaryIO, ClassVar, NamedTuple, Protocol, TypeAlias

import msgspec

from clew.agents.database import (
    Layout,
    Snapshot,
    StoredRows,
    databases_in,
    open_rows,
    restored_files,
    session_in_header,
)
from clew.agents.native_records import HEAD_BYTES, units_of_events
from clew.agents.target_profile import Header as Header
from clew.agents.target_profile import TargetProfile
from clew.analysis.facts import Facts, FactsCollector, collect_facts
from clew.analysis.tree import Tree
from clew.errors import SourceUnreadable, UsageError
from clew.host import Host, Origin
from clew.io.compress import SUFFIXES, damage, open_source
from clew.io.database_paths import database_of, session_of, session_path
from clew.io.paths import escape_invalid_utf8
from clew.io.records import MAX_RECORD_BYTES, RawRecord, read_lines
from clew.model import Message, Problem, Record, SourceRef
from clew.model.codes import problem
from clew.model.events import Event
from clew.model.json import JSON
from clew.model.unit import Unit as Unit

if TYPE_CHECKING:
    from clew.agents.file_evidence import Event as FileEvidence

SINGLE_PASS_BYTES = 16 << 20
"""Events of a source up to this size are held until its facts are known, instead of reading it twice."""
_PIECE_BYTES = 1 << 20


class Claim(IntEnum):
    """How sure an agent is that a file is its own."""

    NO = 0
    MAYBE = 1
    YES = 2


class SourceFile(msgspec.Struct, frozen=True):
    """One session on disk: its main file, and the files that belong to it."""

    agent: str
    path: Path
    parts: tuple[str, ...] = ()
    """Further JSONL files of the session, relative to the main file's folder."""
    sides: tuple[str, ...] = ()
    """Small files that travel with the session as they are, relative likewise."""
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


def source_at(agent: str, path: Path, sides: tuple[str, ...] = ()) -> SourceFile:
    """The session in one file, with its size and time; it need not exist."""
    try:
        stat = os.stat(path)  # noqa: PTH116 - there are many
    except OSError:
        return SourceFile(agent, path, (), sides)
    return SourceFile(agent, path, (), sides, stat.st_size, stat.st_mtime)


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
        rows = snapshot.find(session_of(source.path))
        if rows is not None:
            mtime_ns = int(rows.mtime * 1000) * 1_000_000
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
"""About the size of a row: databases tell how many there are, and counting their bytes would be reading them."""


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


def sources_in_database(agent: str, database: Path, layout: Layout) -> list[SourceFile]:
    """The sessions in a database. Raises SourceUnreadable."""
    with Snapshot(database, layout) as snapshot:
        return [_source_of_rows(agent, database, rows) for rows in snapshot.sessions()]


def discover_in_databases(agent: str, folder: Path, layout: Layout) -> Iterator[SourceFile]:
    """The sessions in the databases of a folder, and those that were restored beside them as files.

    A database that cannot be read is left out here; `clew.sources.local` reports it.
    """
    seen: set[Path] = set()
    for database in databases_in(folder, layout):
        with suppress(SourceUnreadable):
            for source in sources_in_database(agent, database, layout):
                seen.add(source.path)
                yield source
    yield from (source_at(agent, path) for path in restored_files(folder, layout) if path not in seen)


def locate_rows(agent: str, path: Path, layout: Layout) -> SourceFile:
    """The session with the path of its rows: in a database, or in a file."""
    database = database_of(path)
    if database is not None:
        with suppress(SourceUnreadable), Snapshot(database, layout) as snapshot:
            rows = snapshot.find(session_of(path))
            if rows is not None:
                return _source_of_rows(agent, database, rows)
    return source_at(agent, path)


def _source_of_rows(agent: str, database: Path, rows: StoredRows) -> SourceFile:
    path, size = session_path(database, rows.session), estimated_bytes(rows.row_count)
    return SourceFile(agent, path, size=size, mtime=rows.mtime, change_token=rows.change_token)


def session_id_of_rows(source: SourceFile) -> str:
    """The id of a session that is rows of a database: by its path, or by the header of the file."""
    if not source.change_token and source.path.is_file():
        with suppress(SourceUnreadable), open_source(source.path) as stream:
            session = session_in_header(stream.readline(HEAD_BYTES))
            if session is not None:
                return session
    return session_of(source.path)


def masked_text(source: SourceFile, text: str) -> str:
    """A text that was not read from the opened files, such as an id made of the path; masked where the session is."""
    return text if source.mask is None else str(source.mask.value(text))


def open_main(source: SourceFile) -> BinaryIO:
    """The main file of a session, opened for reading."""
    return _open_main(source) if source.mask is None else source.mask.open(partial(_open_main, source))


def _open_main(source: SourceFile) -> BinaryIO:
    snapshot, session = _snapshot(source), session_of(source.path)
    if snapshot is not None and snapshot.find(session) is not None:
        return open_rows(snapshot, source.agent, session, closes_snapshot=source.snapshot is None)
    return open_source(source.path, source.size if source.frozen else None, is_read_whole=True)


def open_file(source: SourceFile, name: str) -> BinaryIO:
    """A file of the session: the main one without a name; logs are unpacked, side files come as they are."""
    if not name:
        return open_main(source)
    path = source.path.parent / name
    opened: Callable[[], BinaryIO] = (lambda: open_source(path)) if name in source.parts else lambda: path.open("rb")
    return opened() if source.mask is None else source.mask.open(opened)


def fragment_events(
    source: SourceFile, record: RawRecord, line: int, *, after: int, file: int = 0, number: int | None = None
) -> Iterator[Problem | Record]:
    """What a decoder yields for a piece of a file that is no record: its problems, and a fragment in its place.

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


def long_records(agent: Agent, source: SourceFile) -> dict[tuple[int, int], int]:
    """The sizes of records that are too long to be read, by the number of the file and the line."""
    source = msgspec.structs.replace(source, mask=None)
    sizes: dict[tuple[int, int], int] = {}
    for number, name in enumerate(("", *source.parts)):
        path = source.path.parent / name if name else source.path
        # A row is not longer than its database.
        file = path if path.exists() else database_of(path)
        if file is not None and (file.suffix in SUFFIXES or file.stat().st_size > MAX_RECORD_BYTES):
            with open_file(source, name) as stream:
                is_document = agent.document_keys(stream.read(HEAD_BYTES), path.name) is not None
            with open_file(source, name) as stream:
                found = _long_document(stream) if is_document else _long_lines(stream)
                sizes |= {(number, line): size for line, size in found.items()}
    return sizes


def _long_document(stream: BinaryIO) -> dict[int, int]:
    size = sum(len(piece) for piece in iter(partial(stream.read, _PIECE_BYTES), b""))
    return {1: size} if size > MAX_RECORD_BYTES else {}


def _long_lines(stream: BinaryIO) -> dict[int, int]:
    sizes: Counter[int] = Counter()
    for text, line, _, is_whole in read_lines(stream):
        if not is_whole:
            sizes[line] += len(text)
    return dict(sizes)


class Agent(ABC):
    """One coding agent: where its sessions lie, how they are decoded, and how a session is written for it.

    A new agent implements the abstract methods; everything else has a default that works on its events.
    """

    id: ClassVar[str]
    title: ClassVar[str]
    homepage: ClassVar[str]
    newest_tested_version: ClassVar[str] = ""
    """The newest version of the agent's program that the tests with real clients ran; empty if they ran none."""
    layout: ClassVar[Layout | None] = None
    """Where the sessions are of an agent that keeps them in SQLite databases; see `clew.agents.database`."""
    opaque_blocks: ClassVar[frozenset[str]] = frozenset()
    """Types of content blocks that are known, and that nobody but the provider can read."""
    file_changes_outside_calls: ClassVar[bool] = False
    """True for an agent that records changes of files apart from calls of tools."""

    # Finding sessions

    @abstractmethod
    def roots(self, host: Host) -> Iterator[Path]:
        """The folders this agent keeps sessions in on this host, existing or not."""

    @abstractmethod
    def discover(self, root: Path) -> Iterator[SourceFile]:
        """Every session below a root; reads no content."""

    @abstractmethod
    def claims(self, path: Path, head: bytes) -> Claim:
        """Whether a file is this agent's, from its path and its first bytes."""

    @abstractmethod
    def locate(self, path: Path) -> SourceFile:
        """The session a given file belongs to."""

    @abstractmethod
    def session_id(self, source: SourceFile) -> str:
        """The id of the session; looks inside the file only where its name does not tell."""

    def companions(self, host: Host) -> Iterator[Path]:
        """Files outside its roots that the agent also reads, existing or not; never one that holds keys."""
        return iter(())

    def copies(self, source: SourceFile) -> Iterator[Path]:
        """Files that the agent keeps for a session beside its records, such as backups of files it changed.

        A folder holds nothing else. They may not exist.
        """
        return iter(())

    def beside(self, path: PurePath, content: bytes, known: Sequence[str]) -> Iterator[str]:
        """Those of the known files of a home that are needed to read the session with this main file and content."""
        return iter(())

    def ignores(self, below: PurePath) -> bool:
        """True for a folder or file, by its path below a root, that has nothing to do with sessions."""
        return False

    # Reading

    @abstractmethod
    def events(self, source: SourceFile) -> Iterator[Event]:
        """The events of a session, in file order."""

    def document_keys(self, head: bytes, name: str) -> tuple[str, ...] | None:
        """None for a file of JSON lines; for one JSON document the keys of the array that holds its records."""
        return None

    def facts(self, source: SourceFile) -> Facts:
        """Header, links and counts of a session."""
        return collect_facts(self.events(source))

    def units(self, source: SourceFile) -> Iterator[Unit]:
        """The messages and records of a session as JSON, each with the native record behind it."""
        names = (source.path.name, *source.parts, *source.sides)
        return units_of_events(
            self.events(source),
            lambda number: open_file(source, names[number] if number else ""),
            names,
            self.document_keys,
        )

    @abstractmethod
    def session(self, source: SourceFile, facts: Facts) -> dict[str, JSON]:
        """The `session` object of the unified document."""

    def check(self, source: SourceFile, facts: Facts) -> Iterator[Problem]:
        """Problems that only this agent's own schema knows of; for rows of a database, those that its decoder found."""
        if self.layout is None:
            return iter(())
        return (event for event in self.events(source) if isinstance(event, Problem))

    def unknown_keys(self, native: Mapping[str, JSON]) -> Iterator[str]:
        """Keys of a native record that this version of clew does not know: the first sign of a new format."""
        return iter(())

    def file_changes(self, source: SourceFile, units: Iterator[Unit]) -> Iterator[FileEvidence]:
        """What the records of a session prove about files, in the order of the session."""
        raise UsageError(f"clew does not support file history for {self.title}")

    @property
    def has_file_changes(self) -> bool:
        """True for an agent whose records tell what it did to files."""
        return type(self).file_changes is not Agent.file_changes

    # Writing

    @abstractmethod
    def target(self, header: Header) -> str:
        """Where the session's main file lies below a home folder."""

    def encode(self, header: Header, units: Iterable[Unit]) -> Iterator[tuple[str, bytes]]:
        """The session as files that the agent reads: bytes in order, each with a file name ("" is the main file).

        Units of this agent's own sessions have `native`: then that record is written, with the ids of the new session.
        Other records are composed from the unit's value.
        """
        raise UsageError(f"clew cannot write sessions for {self.title}")

    def target_profile(self) -> TargetProfile | None:
        """What it takes to write another agent's session for this one; None where that is not possible."""
        return None


def main_file(agent: Agent, header: Header, home: Path) -> Path:
    """Where the main file of a session goes below a home."""
    target, receiver = agent.target(header), agent.target_profile()
    return receiver.main_file_path(target, home) if receiver is not None else home / target


def session_object(agent: Agent, source: SourceFile, facts: Facts) -> dict[str, JSON]:
    """The `session` of the unified document. An agent knows paths only; whose machine they are of is said here."""
    session = agent.session(source, facts)
    if source.origin is not None:
        session["source"] = source.origin._asdict()
    # File names need not be UTF-8, and JSON must be.
    session["id"] = escape_invalid_utf8(session["id"])
    session["source"]["path"] = escape_invalid_utf8(session["source"]["path"])
    return session if source.mask is None else source.mask.value(session)


def fits_in_memory(source: SourceFile) -> bool:
    """True for a source whose events may be held until its facts are known."""
    paths = [source.path.parent / name for name in source.parts]
    size = source.size + sum(path.stat().st_size for path in paths if path.exists())
    return size <= SINGLE_PASS_BYTES and not any(path.suffix in SUFFIXES for path in (source.path, *paths))


class EventsWithFacts:
    """The events of a session; its facts are complete once they were iterated."""

    def __init__(self, agent: Agent, source: SourceFile) -> None:
        self._events = agent.events(source)
        self._collector = FactsCollector()
        self.facts = self._collector.facts

    def __iter__(self) -> Iterator[Event]:
        for event in self._events:
            self._collector.add(event)
            yield event


class Shown(NamedTuple):
    """A session for rendering."""

    session: dict[str, JSON]
    tree: Tree
    messages: Iterable[dict[str, JSON]]


def show(agent: Agent, source: SourceFile) -> Shown:
    """A session for rendering, read in one pass where it is small."""
    if fits_in_memory(source):
        events: Iterable[Event] = list(agent.events(source))
        facts = collect_facts(events)
    else:
        facts, events = agent.facts(source), agent.events(source)
    return Shown(session_object(agent, source, facts), facts.tree, messages_of(events))


def messages_of(events: Iterable[Event]) -> Iterator[dict[str, JSON]]:
    """The messages among events, as JSON."""
    return (msgspec.to_builtins(event) for event in events if type(event) is Message)
