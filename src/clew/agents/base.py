"""What an agent must offer, and the source file it is asked about."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import IntEnum
from functools import lru_cache, partial
from pathlib import Path, PurePath
from typing import BinaryIO, NamedTuple, Protocol, cast, runtime_checkable

import msgspec

from clew.agents.receiving import Header as Header
from clew.agents.receiving import Receiver
from clew.derive.calls import Calls
from clew.derive.collect_facts import FactsCollector, collect_facts
from clew.derive.facts import Facts
from clew.graph.tree import Tree
from clew.host import Host, Origin
from clew.io.compress import SUFFIXES, open_source
from clew.io.records import TOO_LONG
from clew.model import Message, Problem, Record
from clew.model.events import Event
from clew.model.json import JSON

AT_ONCE = 16 << 20
"""Messages of a source up to this size are held until its facts are known, instead of reading it twice."""


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


class Mask(Protocol):
    """Gives the masked bytes of a session's files, and the masked header."""

    def open(self, opened: Callable[[], BinaryIO]) -> BinaryIO:
        """A file of the session, masked."""
        ...

    def value(self, value: JSON) -> JSON:
        """A value that comes from elsewhere, such as the path of the session, masked."""
        ...


def freeze(source: SourceFile) -> SourceFile:
    """The source as long as it is now."""
    try:
        return msgspec.structs.replace(source, size=source.path.stat().st_size, frozen=True)
    except OSError:
        return source


def open_main(source: SourceFile) -> BinaryIO:
    """The main file of a session, opened for reading."""
    opened = partial(open_source, source.path, source.size if source.frozen else None, is_read_whole=True)
    return opened() if source.mask is None else source.mask.open(opened)


class Unit(NamedTuple):
    """One step through a source in its order: a message or another record of the unified document, as JSON."""

    is_message: bool
    value: dict[str, JSON]
    line: int
    start: int
    stop: int
    findings: tuple[str, ...]
    part: int = 0


def joined_pieces(units: Iterable[Unit]) -> Iterator[Unit]:
    """The units, with one fragment without content in the place of the pieces of each line that is too long."""
    unread: Unit | None = None
    for unit in units:
        is_piece = TOO_LONG in unit.findings
        if unread is not None and is_piece and (unit.part, unit.line) == (unread.part, unread.line):
            unread = unread._replace(stop=unit.stop)
            continue
        if unread is not None:
            yield unread
        unread = unit._replace(value={"after": unit.value["after"], "kind": "fragment"}) if is_piece else None
        if unread is None:
            yield unit
    if unread is not None:
        yield unread


@runtime_checkable
class Agent(Protocol):
    """A reader and writer for the sessions of one agent."""

    id: str
    title: str
    homepage: str

    def roots(self, host: Host) -> Iterator[Path]:
        """The folders this agent keeps sessions in on this host, existing or not."""
        ...

    def discover(self, root: Path) -> Iterator[SourceFile]:
        """Every session below a root; reads no content."""
        ...

    def claims(self, path: Path, head: bytes) -> Claim:
        """Whether a file is this agent's, from its path and its first bytes."""
        ...

    def locate(self, path: Path) -> SourceFile:
        """The session a given file belongs to."""
        ...

    def session_id(self, source: SourceFile) -> str:
        """The id of the session; looks inside the file only where its name does not tell."""
        ...

    def scan(self, source: SourceFile) -> Facts:
        """The first pass: ids, times, counts."""
        ...

    def session(self, source: SourceFile, facts: Facts) -> dict[str, JSON]:
        """The `session` object of the unified document."""
        ...

    def read(self, source: SourceFile, facts: Facts) -> Reading:
        """The second pass: messages and records in source order."""
        ...

    def write(self, header: Header, units: Iterator[tuple[bool, dict[str, JSON]]]) -> Iterator[tuple[str, bytes]]:
        """Native bytes in order, each with the name of the file it belongs to ("" = the main one)."""
        ...

    def target(self, header: Header) -> str:
        """Where the session's main file lives below a home folder."""
        ...

    def check(self, source: SourceFile, facts: Facts) -> Iterator[Problem]:
        """Problems only this agent's own schema knows of."""
        ...


@runtime_checkable
class Receives(Protocol):
    """An agent that goes on with sessions another agent began."""

    def receiver(self) -> Receiver:
        """What it takes to write such a session."""
        ...


def main_file(agent: Agent, header: Header, home: Path) -> Path:
    """Where the main file of a session goes below a home."""
    target = agent.target(header)
    return agent.receiver().main(target, home) if isinstance(agent, Receives) else home / target


@runtime_checkable
class Consults(Protocol):
    """An agent that also looks into files outside its roots; copies of its sessions need them too."""

    def companions(self, host: Host) -> Iterator[Path]:
        """Those files, existing or not; never one that holds keys."""
        ...


@runtime_checkable
class KeepsCopies(Protocol):
    """An agent that keeps more for a session than its records: copies of files it changed, long outputs."""

    def copies(self, source: SourceFile) -> Iterator[Path]:
        """Those files, and folders of nothing else; existing or not."""
        ...


@runtime_checkable
class LooksBeside(Protocol):
    """An agent that looks at files of other sessions to read one: who carries a session elsewhere must bring them."""

    def beside(self, path: PurePath, content: bytes, known: Sequence[str]) -> Iterator[str]:
        """Those of the known files of a home that are looked at, given a session's main file and its content."""
        ...


@runtime_checkable
class Skims(Protocol):
    """An agent that is quicker when it need not tell everything."""

    def skim(self, source: SourceFile, tree: bool, counts: bool) -> Facts:
        """The facts of the first pass; without `tree` no links, without `counts` no tokens, models and tools."""
        ...


@runtime_checkable
class Tallies(Protocol):
    """An agent that counts tokens in a pass of its own, which reads nothing but what counts."""

    def tally(self, source: SourceFile) -> Calls:
        """The calls of a session; the same that its facts come to, and when each was."""
        ...


def session_object(agent: Agent, source: SourceFile, facts: Facts) -> dict[str, JSON]:
    """The `session` of the unified document. An agent knows paths only; whose machine they are of is said here."""
    return _placed(agent.session(source, facts), source)


def _placed(session: dict[str, JSON], source: SourceFile) -> dict[str, JSON]:
    if source.origin is not None:
        session["source"] = source.origin._asdict()
    return session if source.mask is None else source.mask.value(session)


def uuids_shown(agent: Agent) -> Callable[[list[str]], list[str]]:
    """Gives uuids as the agent's messages have them: one that is read through a redactor may mask some."""
    shown: Callable[[list[str]], list[str]] = getattr(agent, "uuids", list)
    return shown


def skim(agent: Agent, source: SourceFile, *, tree: bool, counts: bool) -> Facts:
    """The facts of the first pass, and no more of them than asked for where the agent can leave some out."""
    if offers(type(agent), DecodesEvents):
        return collect_facts(cast(DecodesEvents, agent).events(source))
    if not offers(type(agent), Skims):
        return agent.scan(source)
    facts: Facts = cast(Skims, agent).skim(source, tree, counts)
    return facts


@lru_cache
def offers(agent: type, protocol: type) -> bool:
    """Whether an agent has what a protocol names: asked once, because finding out takes long."""
    return issubclass(agent, protocol)


@runtime_checkable
class DecodesEvents(Protocol):
    """An agent that decodes its sessions into events, from which everything else follows."""

    def events(self, source: SourceFile) -> Iterator[Event]:
        """The events of a session, in file order."""
        ...


def events_of(agent: Agent, source: SourceFile, facts: Facts | None = None) -> Iterator[Event]:
    """The events of a session of any agent."""
    if offers(type(agent), DecodesEvents):
        yield from cast(DecodesEvents, agent).events(source)
        return
    for unit in agent.read(source, facts or skim(agent, source, tree=False, counts=False)):
        value = _without_extensions(unit.value)
        yield msgspec.convert(value, Message) if unit.is_message else msgspec.convert(value, Record)


def _without_extensions(value: JSON) -> JSON:
    if isinstance(value, dict):
        return {key: _without_extensions(item) for key, item in value.items() if key != "extensions"}
    return [_without_extensions(item) for item in value] if isinstance(value, list) else value


def collected(agent: Agent, source: SourceFile) -> tuple[list[Event], Facts]:
    """The events of a small session, and its facts."""
    if offers(type(agent), DecodesEvents):
        events = list(cast(DecodesEvents, agent).events(source))
        return events, collect_facts(events)
    facts = skim(agent, source, tree=True, counts=False)
    return list(events_of(agent, source, facts)), facts


class EventsWithFacts:
    """The events of a session; its facts are complete once they were iterated."""

    def __init__(self, agent: Agent, source: SourceFile) -> None:
        self._agent, self._source = agent, source
        self.facts = Facts()

    def __iter__(self) -> Iterator[Event]:
        if not offers(type(self._agent), DecodesEvents):
            self.facts = skim(self._agent, self._source, tree=True, counts=True)
            yield from events_of(self._agent, self._source, self.facts)
            return
        collector = FactsCollector()
        self.facts = collector.facts
        for event in cast(DecodesEvents, self._agent).events(self._source):
            collector.add(event)
            yield event


def open_file(source: SourceFile, name: str) -> BinaryIO:
    """A file of the session: the main one without a name; logs are unpacked, side files come as they are."""
    if not name:
        return open_main(source)
    path = source.path.parent / name
    opened: Callable[[], BinaryIO] = (lambda: open_source(path)) if name in source.parts else lambda: path.open("rb")
    return opened() if source.mask is None else source.mask.open(opened)


def shown_messages(agent: Agent, source: SourceFile, facts: Facts) -> Iterator[dict[str, JSON]]:
    """The messages of a session as JSON, for rendering."""
    if offers(type(agent), DecodesEvents):
        events = cast(DecodesEvents, agent).events(source)
        return (msgspec.to_builtins(event) for event in events if type(event) is Message)
    return (unit.value for unit in agent.read(source, facts) if unit.is_message)


class Shown(NamedTuple):
    """A session for who only looks at it."""

    session: dict[str, JSON]
    tree: Tree | None
    """None where each record follows the one before it: nothing forks."""
    messages: Iterable[dict[str, JSON]]


def show(agent: Agent, source: SourceFile) -> Shown:
    """A session for rendering, read in one pass where it is small."""
    is_small = source.size <= AT_ONCE and source.path.suffix not in SUFFIXES
    if is_small and offers(type(agent), DecodesEvents):
        events = list(cast(DecodesEvents, agent).events(source))
        facts = collect_facts(events)
        messages = (msgspec.to_builtins(event) for event in events if type(event) is Message)
        return Shown(session_object(agent, source, facts), facts.tree, messages)
    facts = skim(agent, source, tree=True, counts=False)
    return Shown(session_object(agent, source, facts), facts.tree, shown_messages(agent, source, facts))


class Reading(Protocol):
    """The second pass over one source. The counters are complete once it was iterated."""

    unknown_types: dict[str, int]
    unknown_keys: dict[str, int]
    carried_raw: int

    def __iter__(self) -> Iterator[Unit]: ...

    def extensions(self) -> dict[str, JSON]:
        """The document's extensions: what the writer needs beside messages and records."""
        ...


@runtime_checkable
class Encodes(Protocol):
    """A reading that gives JSON text more quickly than by way of its units."""

    index: int
    """How many messages there were so far."""

    def encode(self, messages: bytearray, records: bytearray, between: bytes) -> Iterator[None]:
        """Append the JSON of each unit and `between`; stops now and then until what is there was taken away.

        Something may be there at the end too.
        """
        ...


class ReadingAtOnce(Reading, Encodes, Protocol):
    """A reading that collects the facts of the first pass on its way."""

    def facts(self) -> tuple[Facts, bool]:
        """The facts, once all was read; False where they say that it must be read again with them."""
        ...


@runtime_checkable
class ReadsAtOnce(Protocol):
    """An agent that can do with one pass where its document may wait for the header."""

    def read_at_once(self, source: SourceFile) -> ReadingAtOnce:
        """Messages and records in source order, and the facts."""
        ...


@runtime_checkable
class CountsAtOnce(Protocol):
    """An agent whose one pass can count tokens, models and tools as well."""

    def read_and_count(self, source: SourceFile) -> ReadingAtOnce:
        """The same with all facts."""
        ...


@runtime_checkable
class ReadsMessages(Protocol):
    """An agent whose writer wants values without a place in the model as the document spells them."""

    def read_message(self, text: bytes) -> dict[str, JSON]:
        """A message of a document; values that need no look inside are msgspec.Raw."""
        ...
