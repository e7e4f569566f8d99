"""The one object a program holds: all sessions of some homes, found, filtered and opened lazily."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from clew.agents.base import Agent, SourceFile, Unit, session_object
from clew.agents.registry import is_known, load_all
from clew.analysis.facts import Facts
from clew.analysis.usage import Usage, UsageLedger
from clew.errors import SourceUnreadable, UnknownReference, UsageError
from clew.filters import Filters
from clew.host import Host
from clew.model import Document, Message, Problem, Record, Session
from clew.model.events import Event
from clew.model.json import JSON
from clew.references import Reference, named_path, resolve, the_one
from clew.sources.local import Found, at_path, in_homes
from clew.sources.wsl import host_at

if TYPE_CHECKING:
    from clew.redact.redactor import Redactor

_FEW = 100
"""Of so many sessions in a folder one may be meant."""


class StoredSession:
    """A session on disk. Nothing is read before it is asked for, and reading it reads no other."""

    _usage: tuple[object, Usage] | None = None
    """What was read for it, and what it came to."""

    def __init__(self, agent: Agent, source: SourceFile, host: Host | None = None) -> None:
        self.agent = agent
        self.source = source
        self._host = host or Host.local()

    def __repr__(self) -> str:
        return f"<StoredSession {self.agent.id}:{self.id}>"

    @cached_property
    def id(self) -> str:
        """The session's id; a file is looked into only where its name does not tell."""
        return self.agent.session_id(self.source)

    @property
    def path(self) -> Path:
        """The session's main file."""
        return self.source.path

    @cached_property
    def facts(self) -> Facts:
        """Header, links and counts, from one pass over the source."""
        return self.agent.facts(self.source)

    def forget(self) -> None:
        """Let go of what was read; it is read again when it is asked for."""
        for name in ("facts", "header", "session_object"):
            self.__dict__.pop(name, None)
        if self.source.mask is not None:
            self.source.mask.learn_again()

    @cached_property
    def header(self) -> Session:
        """What holds for the session as a whole."""
        return msgspec.convert(self.session_object, Session)

    @property
    def is_subagent(self) -> bool:
        """True for a session that another session started."""
        return bool(self.session_object["is_agent_session"])

    @cached_property
    def session_object(self) -> dict[str, JSON]:
        """The header as the unified document spells it."""
        return session_object(self.agent, self.source, self.facts)

    def redacted(self, redactor: Redactor) -> StoredSession:
        """The same session, with all that the redactor forbids masked."""
        from clew.agents.masking import masked_source

        return StoredSession(self.agent, masked_source(self.agent, self.source, redactor), self._host)

    @property
    def messages(self) -> Iterator[Message]:
        """The messages in source order, one at a time."""
        return (event for event in self.events() if type(event) is Message)

    @property
    def records(self) -> Iterator[Record]:
        """The records that are no messages, in source order."""
        return (event for event in self.events() if type(event) is Record)

    def events(self) -> Iterator[Event]:
        """Everything that happened in the session, in the order of its files."""
        return self.agent.events(self.source)

    def units(self) -> Iterator[Unit]:
        """Messages and records in source order, as JSON of the unified document."""
        return self.agent.units(self.source)

    @property
    def usage(self) -> Usage:
        """Tokens, each API call counted once; counted again only where the source is not as it was."""
        read = self.__dict__.get("facts") or _looks(self.path)
        if self._usage is None or read is None or self._usage[0] != read:
            self._usage = read, self._count_usage()
        return self._usage[1]

    def _count_usage(self) -> Usage:
        calls = None if "facts" in self.__dict__ else self.agent.usage_calls(self.source)
        if calls is None:
            return self.facts.ledger.total()
        ledger = UsageLedger()
        for call, (model, _, _, counts) in calls.by_key.items():
            ledger.note(call, model, counts)
        return ledger.total()

    def document(self) -> Document:
        """The whole session in memory."""
        from clew.export.document import write_document
        from clew.io.jsonstream import read_json
        from clew.model.load import load_document
        from clew.model.time import spell_time

        text = io.BytesIO()
        write_document(self.agent, self.source, text, timestamp=spell_time(self._host.now()))
        return load_document(read_json(text.getvalue()))

    def problems(self) -> Iterator[Problem]:
        """Everything that is wrong with the session's files."""
        from clew.agents.checking import check_source

        return check_source(self.agent, self.source)


def _is_started(session: StoredSession) -> bool:
    try:
        return session.is_subagent
    except SourceUnreadable:
        return False


def _looks(path: Path) -> tuple[int, ...] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns, found.st_ino


class Library:
    """The sessions of one or more homes; without one, of every source that is switched on."""

    def __init__(self, *hosts: Host, agents: Iterable[str] | None = None) -> None:
        self.hosts = hosts or every_host()
        self._agents = list(agents) if agents is not None else None

    def sources(self) -> Iterator[StoredSession]:
        """Every session, unopened."""
        return self._sources(self._agents)

    def sources_of(self, agents: Sequence[str]) -> Iterator[StoredSession]:
        """Every session of some agents, unopened; without one, of all."""
        loaded = [agent.id for agent in load_all()]
        wanted = [at for at, name in enumerate(loaded, 1) if name in agents or not agents]
        # What an agent finds is not another's behind it; those behind the last need not look.
        for session in self._sources(loaded[: max(wanted, default=0)]):
            if session.agent.id in agents or not agents:
                yield session

    def _sources(self, agents: Iterable[str] | None) -> Iterator[StoredSession]:
        for found in in_homes(self.hosts, agents):
            yield self._stored(found)

    def sessions(self, filters: Filters | None = None) -> Iterator[StoredSession]:
        """The sessions that pass the filters; one that cannot be read is passed over."""
        filters = filters or Filters()
        wanted = self._agents
        if wanted is None and filters.agent:
            # An agent that nobody asks for need not be loaded.
            wanted = [name for name in sorted(set(filters.agent)) if is_known(name)]
        for session in self._sources(wanted):
            try:
                if filters.admits(session):
                    yield session
            except SourceUnreadable:
                continue

    def find(self, reference: str, *, branches: bool = False) -> list[StoredSession]:
        """The sessions a reference means; a folder may hold many. Raises where there is none or it is ambiguous.

        Whoever can tell the branch of `id@branch` from the rest says so; it is refused otherwise.
        """
        path = named_path(reference)
        if path is not None:
            return [self._stored(found) for found in at_path(path, self.hosts)]
        parsed = Reference.parse(reference)
        if parsed.branch is not None and not branches:
            raise UsageError(f"{reference!r} names a branch, and this is about whole sessions; `clew show` takes one")
        try:
            return [resolve(parsed, list(self.sources()))]
        except UnknownReference:
            # A session comes before a folder of the same name.
            if not Path(reference).is_dir():
                raise
        return [self._stored(found) for found in at_path(Path(reference), self.hosts)]

    def _stored(self, found: Found) -> StoredSession:
        return StoredSession(found.agent, found.source, self.hosts[0])

    def get(self, reference: str, *, branches: bool = False) -> StoredSession:
        """The one session a reference means. The sub-agents of a session that lie in its folder too belong to it."""
        found = self.find(reference, branches=branches)
        if 1 < len(found) <= _FEW:
            found = [session for session in found if not _is_started(session)] or found
        return the_one(reference, found)

    def subagents(self, session: StoredSession) -> Callable[[str], SourceFile | None]:
        """Finds the sub-agents of a session by their id: in the homes, or where the session itself lies."""
        known: dict[str, SourceFile] = {}

        def find(identity: str) -> SourceFile | None:
            if not known:
                for found in chain(at_path(session.path.parent), in_homes(self.hosts, [session.agent.id])):
                    if found.agent.id == session.agent.id:
                        with suppress(SourceUnreadable):
                            known[found.agent.session_id(found.source)] = found.source
            return known.get(identity)

        return find

    def usage(self, filters: Filters | None = None) -> dict[str, Usage]:
        """Tokens by model over all sessions; a call that several files repeat counts once."""
        ledger = UsageLedger()
        for session in self.sessions(filters):
            with suppress(SourceUnreadable):
                ledger.absorb(session.facts.ledger, f"{session.agent.id} {session.id}")
            session.forget()
        return dict(ledger.by_model())


def every_host() -> tuple[Host, ...]:
    """The user's own home, and every other source that is switched on and can be read now."""
    from clew.sources.registry import chosen, hosts, sources

    return hosts(chosen(sources(), ()))


def sessions(home: Path | str | None = None, **filters: JSON) -> Iterator[StoredSession]:
    """All sessions of a home folder (default: of every source), filtered by `agent=`, `project=`, `since=`, ..."""
    library = Library() if home is None else Library(host_at(Path(home)))
    return library.sessions(Filters.of(**filters))
