"""Base class of agents: where their sessions are, how they are decoded and written."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from functools import cache, partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar, NamedTuple

import msgspec

from clew.agents.database import Layout
from clew.agents.extension_points import ConfigFile, Hook, McpConfig
from clew.agents.folders import files_below
from clew.agents.model_context import ModelContext
from clew.agents.native_records import HEAD_BYTES, units_of_events
from clew.agents.source import SourceFile as SourceFile
from clew.agents.source import fits_in_memory
from clew.agents.source import fragment_events as fragment_events
from clew.agents.source import masked_text as masked_text
from clew.agents.source import open_file as open_file
from clew.agents.source import open_main as open_main
from clew.agents.source import source_at as source_at
from clew.agents.target_profile import Header as Header
from clew.agents.target_profile import TargetProfile
from clew.analysis.facts import Facts, FactsCollector, collect_facts
from clew.analysis.titles import short_title
from clew.analysis.tree import Tree
from clew.errors import UsageError
from clew.host import Host
from clew.io.compress import SUFFIXES, plain_name
from clew.io.database_paths import database_of
from clew.io.paths import escape_invalid_utf8
from clew.io.records import MAX_RECORD_BYTES, read_lines
from clew.model import Message, Problem
from clew.model.events import Event
from clew.model.json import JSON
from clew.model.unit import Unit as Unit

if TYPE_CHECKING:
    from clew.agents.file_evidence import Event as FileEvidence

    FindFileChanges = Callable[[SourceFile, Iterator[Unit]], Iterator[FileEvidence]]
    Encode = Callable[[Header, Iterable[Unit]], Iterator[tuple[str, bytes]]]

_PIECE_BYTES = 1 << 20


class Claim(IntEnum):
    """How sure an agent is that a file is its own."""

    NO = 0
    MAYBE = 1
    YES = 2


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
    """One coding agent: where its sessions are, how they are decoded and written.

    A new agent implements the abstract methods; everything else has a default. Listing sessions must not import
    decoders, so the defaults for reading and writing import the modules of `package` when they are called.
    """

    id: ClassVar[str]
    title: ClassVar[str]
    homepage: ClassVar[str]
    package: ClassVar[str] = ""
    """The package with `events.read_events`, `records.find_unknown_keys`, `records.read_model_context`,
    `file_changes.file_changes`, `check.check`, `encode.encode` and `target_profile.TARGET_PROFILE`, each optional;
    empty for an agent that overrides the methods instead."""
    has_message_times: ClassVar[bool] = True
    """False where no message has a time: statistics then use the time of the file."""
    newest_tested_version: ClassVar[str] = ""
    """The newest version of the agent's program that the tests with real clients ran; empty if they ran none."""
    session_files: ClassVar[tuple[str, ...]] = ("**/*.jsonl",)
    """The main files of sessions below a root; see `clew.agents.folders.files_below` for the patterns."""
    export_format: ClassVar[str] = ""
    """The format of `clew export` that the agent's own files have; empty for most."""
    is_shown_by_hugging_face: ClassVar[bool] = False
    """True where the Hugging Face Hub shows the agent's own files of JSON lines as conversations."""
    layout: ClassVar[Layout | None] = None
    """Where the sessions are of an agent that keeps them in SQLite databases; see `clew.agents.database`."""
    opaque_blocks: ClassVar[frozenset[str]] = frozenset()
    """Types of content blocks that are known, and that nobody but the provider can read."""
    file_changes_outside_calls: ClassVar[bool] = False
    """True for an agent that records changes of files apart from calls of tools."""

    hook: ClassVar[Hook | None] = None
    """How the agent runs a command at the end of a session; None if it does not, or nobody knows how."""

    # Finding sessions

    @abstractmethod
    def roots(self, host: Host) -> Iterator[Path]:
        """The folders this agent keeps sessions in on this host, existing or not."""

    def discover(self, root: Path) -> Iterator[SourceFile]:
        """Every session below a root; reads no content and follows no links."""
        return map(self.locate, files_below(root, self.session_files))

    @abstractmethod
    def claims(self, path: Path, head: bytes) -> Claim:
        """Whether a file is this agent's, from its path and its first bytes."""

    def locate(self, path: Path) -> SourceFile:
        """The session a given file belongs to."""
        return source_at(self.id, path)

    def session_id(self, source: SourceFile) -> str:
        """The session id; reads the file only if its name does not contain the id."""
        return file_stem(source.path)

    def companions(self, host: Host) -> Iterator[Path]:
        """Files outside its roots that the agent also reads, existing or not; never one that holds keys."""
        return iter(())

    def copies(self, source: SourceFile) -> Iterator[Path]:
        """Paths (existing or not) outside the transcript that belong to the session, such as backups.

        A folder listed here belongs to it entirely.
        """
        return iter(())

    def beside(self, path: PurePath, content: bytes, known: Sequence[str]) -> Iterator[str]:
        """Those of the known files of a home that are needed to read the session with this main file and content."""
        return iter(())

    def shares(self, root: Path) -> bool:
        """True for a root that is a folder of another program, in which the agent may keep sessions too."""
        return False

    def ignores(self, below: PurePath) -> bool:
        """True for a folder or file, by its path below a root, that has nothing to do with sessions."""
        return False

    # Reading

    def events(self, source: SourceFile) -> Iterator[Event]:
        """The events of a session, in file order."""
        read_events: Callable[[SourceFile], Iterator[Event]] | None = self._find("events", "read_events")
        if read_events is None:
            raise NotImplementedError(f"{type(self).__name__} must have `events`, or a package with it")
        return read_events(source)

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

    def session(self, source: SourceFile, facts: Facts) -> dict[str, JSON]:
        """The `session` object of the unified document."""
        extra = facts.extra
        started_at = facts.first_time or extra.get("started_at")
        session: dict[str, JSON] = {
            "id": self.session_id(source),
            "workspace": facts.cwd or extra.get("cwd") or "",
            "workspace_encoded": self.workspace_folder(source),
            "started_at": started_at,
            "ended_at": _end_time(facts, started_at),
            "source": {"type": "local", "host": None, "path": str(source.path)},
            "is_agent_session": extra.get("is_subagent", False),
            "parent_session_id": extra.get("parent_session_id"),
            "agent_id": extra.get("agent_id"),
        }
        if title := self.session_title(source, facts):
            session["title"] = title
        if facts.slug:
            session["slug"] = facts.slug
        if facts.subagents:
            session["subagents"] = msgspec.to_builtins(facts.subagents)
        if extension := extra.get("extension"):
            session["extensions"] = {self.id: extension}
        return session

    def workspace_folder(self, source: SourceFile) -> str:
        """The name of the folder that a session is filed under."""
        return source.path.parent.name

    def folders_of_hashes(self, hashes: Collection[str], folders: Iterable[str]) -> dict[str, str]:
        """For hashes in place of workspaces the folders they stand for, if these are given or above given ones."""
        return {}

    def session_title(self, source: SourceFile, facts: Facts) -> str | None:
        """The title of a session: what the agent or a person called it, else its first prompt."""
        return short_title(facts.titles.get("title") or facts.first_prompt)

    def check(self, source: SourceFile, facts: Facts) -> Iterator[Problem]:
        """Problems that only this agent's own schema knows of."""
        check: Callable[[SourceFile], Iterator[Problem]] | None = self._find("check", "check")
        return check(source) if check is not None else iter(())

    def unknown_keys(self, native: Mapping[str, JSON]) -> Iterator[str]:
        """Keys of a native record that this version of clew does not know: the first sign of a new format."""
        find: Callable[[Mapping[str, JSON]], Iterator[str]] | None = self._find("records", "find_unknown_keys")
        return find(native) if find is not None else iter(())

    def model_context(self, native: Mapping[str, JSON]) -> ModelContext | None:
        """The system prompt and the tools that a native record gives to the model; None for any other record."""
        read: Callable[[Mapping[str, JSON]], ModelContext | None] | None = self._find("records", "read_model_context")
        return read(native) if read is not None else None

    def file_changes(self, source: SourceFile, units: Iterator[Unit]) -> Iterator[FileEvidence]:
        """What the records of a session prove about files, in the order of the session."""
        find: FindFileChanges | None = self._find("file_changes", "file_changes")
        if find is None:
            raise UsageError(f"clew does not support file history for {self.title}")
        return find(source, units)

    @property
    def has_file_changes(self) -> bool:
        """True for an agent whose records tell what it did to files."""
        return _has_module(self.package, "file_changes") or type(self).file_changes is not Agent.file_changes

    # Writing

    @abstractmethod
    def target(self, header: Header) -> str:
        """Where the session's main file lies below a home folder."""

    def encode(self, header: Header, units: Iterable[Unit]) -> Iterator[tuple[str, bytes]]:
        """The session as files that the agent reads: bytes in order, each with a file name ("" is the main file).

        Units of this agent's own sessions have `native`: then that record is written, with the ids of the new session.
        Other records are composed from the unit's value.
        """
        encode: Encode | None = self._find("encode", "encode")
        if encode is None:
            raise UsageError(f"clew cannot write sessions for {self.title}")
        return encode(header, units)

    def mcp_config(self, host: Host, project: Path | None = None) -> McpConfig | None:
        """The file with the agent's MCP servers, those of the user or of a project; None if it is not known."""
        return None

    def config_file(self, host: Host, name: str) -> ConfigFile | None:
        """A file in the folder that the agent reads settings and skills from; None if it is not known."""
        return None

    def target_profile(self) -> TargetProfile | None:
        """What it takes to write another agent's session for this one; None where that is not possible."""
        profile: TargetProfile | None = self._find("target_profile", "TARGET_PROFILE")
        return profile

    def _find(self, module: str, name: str) -> Any:
        """What has this name in a module of the agent's package; None where there is none."""
        return _import(self.package, module, name)


def _end_time(facts: Facts, started_at: str | None) -> str | None:
    """The time of the last message, else of the last record; None for a session without any time."""
    if last_time := facts.last_time or facts.extra.get("ended_at"):
        return str(last_time)
    return started_at and (facts.extra.get("last_record_time") or started_at)


@cache
def _import(package: str, module: str, name: str) -> Any:
    if not _has_module(package, module):
        return None
    return getattr(import_module(f"{package}.{module}"), name, None)


@cache
def _has_module(package: str, module: str) -> bool:
    return bool(package) and find_spec(f"{package}.{module}") is not None


def file_stem(path: PurePath) -> str:
    """A file name without .jsonl or .json and without compression suffixes."""
    return plain_name(path.name).removesuffix(".jsonl").removesuffix(".json")


def first_lines(head: bytes, most: int) -> list[bytes]:
    """The first lines of a file, without a byte order mark; the last one may be cut off."""
    return head.removeprefix(b"\xef\xbb\xbf").split(b"\n")[:most]


def main_file(agent: Agent, header: Header, home: Path) -> Path:
    """Where the main file of a session goes below a home."""
    target, receiver = agent.target(header), agent.target_profile()
    return receiver.main_file_path(target, home) if receiver is not None else home / target


def session_object(agent: Agent, source: SourceFile, facts: Facts) -> dict[str, JSON]:
    """The `session` object; adds the origin of a session from another machine."""
    session = agent.session(source, facts)
    if source.origin is not None:
        session["source"] = source.origin._asdict()
    # File names need not be UTF-8, and JSON must be.
    session["id"] = escape_invalid_utf8(session["id"])
    session["source"]["path"] = escape_invalid_utf8(session["source"]["path"])
    return session if source.mask is None else source.mask.value(session)


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
