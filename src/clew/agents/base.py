"""What an agent must offer, and the source file it is asked about."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import IntEnum
from functools import lru_cache
from pathlib import Path, PurePath
from typing import BinaryIO, NamedTuple, Protocol, cast, runtime_checkable

import msgspec

from clew.agents.receiving import Header as Header
from clew.agents.receiving import Receiver
from clew.agents.told import Call
from clew.agents.told import Message as Told
from clew.derive.calls import Calls
from clew.derive.facts import Facts
from clew.graph.tree import Tree
from clew.host import Host, Origin
from clew.io.compress import SUFFIXES, open_source
from clew.io.records import TOO_LONG
from clew.model import Problem
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


def freeze(source: SourceFile) -> SourceFile:
    """The source as long as it is now."""
    try:
        return msgspec.structs.replace(source, size=source.path.stat().st_size, frozen=True)
    except OSError:
        return source


def open_main(source: SourceFile) -> BinaryIO:
    """The main file of a session, opened for reading."""
    return open_source(source.path, source.size if source.frozen else None, is_read_whole=True)


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
    return session


def uuids_shown(agent: Agent) -> Callable[[list[str]], list[str]]:
    """Gives uuids as the agent's messages have them: one that is read through a redactor may mask some."""
    shown: Callable[[list[str]], list[str]] = getattr(agent, "uuids", list)
    return shown


def skim(agent: Agent, source: SourceFile, *, tree: bool, counts: bool) -> Facts:
    """The facts of the first pass, and no more of them than asked for where the agent can leave some out."""
    if not offers(type(agent), Skims):
        return agent.scan(source)
    facts: Facts = cast(Skims, agent).skim(source, tree, counts)
    return facts


@lru_cache
def offers(agent: type, protocol: type) -> bool:
    """Whether an agent has what a protocol names: asked once, because finding out takes long."""
    return issubclass(agent, protocol)


@runtime_checkable
class Shows(Protocol):
    """An agent that gives messages more quickly to who only looks at them."""

    def shown(self, source: SourceFile, facts: Facts) -> Iterator[dict[str, JSON]]:
        """The messages, without extensions and with as much metadata as faces show."""
        ...


def shown_messages(agent: Agent, source: SourceFile, facts: Facts) -> Iterator[dict[str, JSON]]:
    """The messages of a session for who only looks at them."""
    if offers(type(agent), Shows):
        return cast(Shows, agent).shown(source, facts)
    return (unit.value for unit in agent.read(source, facts) if unit.is_message)


class Shown(NamedTuple):
    """A session for who only looks at it."""

    session: dict[str, JSON]
    tree: Tree | None
    """None where each record follows the one before it: nothing forks."""
    messages: Iterable[dict[str, JSON]]


@runtime_checkable
class ShowsAtOnce(Protocol):
    """An agent that shows messages, and does with one pass where they may wait for the header."""

    def shown_at_once(self, source: SourceFile) -> Shown:
        """The header, the tree, and the messages that `shown` gives."""
        ...


def show(agent: Agent, source: SourceFile) -> Shown:
    """A session for who only looks at it, in one pass where it is small and its agent can do with one."""
    is_small = source.size <= AT_ONCE and source.path.suffix not in SUFFIXES
    if is_small and not source.parts and offers(type(agent), ShowsAtOnce):
        shown = cast(ShowsAtOnce, agent).shown_at_once(source)
        return shown._replace(session=_placed(shown.session, source))
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


class Teller(Protocol):
    """A source on its way into the catalog, in one pass."""

    problems: list[dict[str, JSON]]
    lines: int

    def messages(self) -> Iterator[list[Told]]:
        """The messages in source order, many at a time."""
        ...

    def calls(self) -> list[Call]:
        """What requests used, each once."""
        ...

    def header(self) -> dict[str, JSON]:
        """What holds for the session as a whole, as `catalog.listing` has it."""
        ...

    def state(self) -> tuple[int, dict[str, JSON] | None]:
        """How far the source was read for good, and what going on from there needs; -1 and None: it cannot be."""
        ...


@runtime_checkable
class Tells(Protocol):
    """An agent with a leaner way into the catalog; a source that is not regular raises `told.Odd` on it."""

    def tell(self, source: SourceFile) -> Teller:
        """The source, told in the few words that the catalog keeps."""
        ...


@runtime_checkable
class ReadsMessages(Protocol):
    """An agent whose writer wants values without a place in the model as the document spells them."""

    def read_message(self, text: bytes) -> dict[str, JSON]:
        """A message of a document; values that need no look inside are msgspec.Raw."""
        ...
