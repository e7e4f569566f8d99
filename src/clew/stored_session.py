"""A session on disk, read lazily."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from clew.agents.base import Agent, Unit, session_object
from clew.agents.source import SourceFile, file_states
from clew.analysis.facts import Facts
from clew.analysis.tree import Tree
from clew.analysis.usage import Usage
from clew.errors import UnknownReference
from clew.host import Host
from clew.model import Document, Message, Problem, Record, Session
from clew.model.events import Event
from clew.model.json import JSON

if TYPE_CHECKING:
    from clew.redact.redactor import Redactor


def own_message_id(ids: Iterable[str | None], session: str, index: int) -> str | None:
    """The id of the message at an index, if no earlier message has it. `ids` are those of all messages in order."""
    seen = set[str | None]()
    for number, message_id in enumerate(ids, 1):
        if number == index:
            return None if message_id in seen else message_id
        seen.add(message_id)
    raise UnknownReference(f"session {session} has no message {index}")


class StoredSession:
    """A session on disk. Everything is read on first use, and no other session is read."""

    _usage: tuple[object, Usage] | None = None
    """The signature of the source that was counted, and its usage."""
    _plain: StoredSession | None = None
    """The session that this one is the masked form of."""

    def __init__(self, agent: Agent, source: SourceFile, host: Host | None = None) -> None:
        self.agent: Agent = agent
        """The agent that wrote the session; `agent.id` is its name."""
        self.source: SourceFile = source
        """The files of the session."""
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

    @property
    def tree(self) -> Tree:
        """How the messages follow each other: the same whether the session is masked or not."""
        return (self._plain or self).facts.tree

    def forget(self) -> None:
        """Free the parsed content; it is read again on next use."""
        for name in ("facts", "header", "session_object"):
            self.__dict__.pop(name, None)
        if self._plain is not None:
            self._plain.forget()
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

        masked = StoredSession(
            self.agent, masked_source(self.agent, self.source, redactor, lambda: self.facts), self._host
        )
        masked._plain = self
        return masked

    def teach(self, redactor: Redactor) -> None:
        """Let a redactor learn the secrets of the whole session."""
        from clew.agents.masking import learn_session

        learn_session(self.agent, self.source, redactor, self.facts)

    @property
    def messages(self) -> Iterator[Message]:
        """The messages in source order, one at a time."""
        return (event for event in self.events() if type(event) is Message)

    def message_id(self, index: int) -> str | None:
        """The id that the agent gave a message; None if it has none, or the one of an earlier message.

        Raises UnknownReference if there is no such message.
        """
        return own_message_id((message.uuid or None for message in self.messages), self.id, index)

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
        counted = self.__dict__.get("facts") or file_states(self.source)
        if self._usage is None or self._usage[0] != counted:
            facts = self.__dict__.get("facts") or self.agent.facts(self.source)
            self._usage = counted, facts.ledger.total()
        return self._usage[1]

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
