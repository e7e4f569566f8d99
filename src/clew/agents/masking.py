"""Masks the files of a session before they are decoded, so that everything made from them is masked."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, BinaryIO, cast

import msgspec

from clew.agents.base import Agent
from clew.agents.source import SourceFile, open_file
from clew.analysis.facts import Facts
from clew.model.json import JSON
from clew.redact.native_files import learn_file, masked_parts
from clew.redact.redactor import Redactor

_BUFFER_BYTES = 1 << 18


def masked_source(
    agent: Agent, source: SourceFile, redactor: Redactor, facts: Callable[[], Facts] | None = None
) -> SourceFile:
    """The source with everything masked that the redactor forbids. Its files are read once before, to learn secrets.

    `facts` are those of the source, if they are known.
    """
    mask = SourceMask(agent, source, redactor, facts or partial(agent.facts, source))
    if source.origin is None:
        return msgspec.structs.replace(source, mask=mask)
    origin = source.origin._replace(**redactor.value(source.origin._asdict()))
    return msgspec.structs.replace(source, mask=mask, origin=origin)


def learn_session(agent: Agent, source: SourceFile, redactor: Redactor, facts: Facts) -> None:
    """Let a redactor see a whole session: its files, and the header with what other files say of it."""
    for name in ("", *source.parts, *source.sides):
        learn_file(partial(open_file, source, name), redactor)
    redactor.learn([agent.session(source, facts)])


def learn_subagents(agent: Agent, source: SourceFile, find: Callable[[str], SourceFile | None]) -> None:
    """Let the mask of a session learn from its sub-agents too: a secret found in one is masked in all."""
    if source.mask is None:
        return
    waiting, known = [source], set[str]()
    for one in waiting:
        assert one.mask is not None
        one.mask.learn()
        plain = msgspec.structs.replace(one, mask=None)
        for link in agent.session(plain, agent.facts(plain)).get("subagents") or ():
            identity = link.get("session_id")
            child = find(identity) if identity and identity not in known else None
            if child is not None:
                known.add(identity)
                waiting.append(source.mask.cover(msgspec.structs.replace(child, mask=None)))


class SourceMask:
    """Opens the files of one session masked."""

    def __init__(self, agent: Agent, source: SourceFile, redactor: Redactor, facts: Callable[[], Facts]) -> None:
        self._agent, self._source, self._redactor, self._facts = agent, source, redactor, facts
        self._is_learned = False

    def open(self, opened: Callable[[], BinaryIO]) -> BinaryIO:
        """A file of the session, masked."""
        self.learn()
        pieces = (masked for _, masked in masked_parts(opened, self._redactor))
        return cast(BinaryIO, io.BufferedReader(_Pieces(pieces), _BUFFER_BYTES))

    def value(self, value: JSON) -> JSON:
        """A value that comes from elsewhere, such as the path of the session, masked."""
        self.learn()
        return self._redactor.learn_and_mask(value)

    def cover(self, source: SourceFile) -> SourceFile:
        """Another session of the agent, masked by the same rules and with what was learned here."""
        return masked_source(self._agent, source, self._redactor)

    def stamp(self) -> dict[str, JSON]:
        """Says in a document that it was masked, and by which rules."""
        return self._redactor.stamp()

    def learn(self) -> None:
        """Read the session for secrets, if that was not done yet."""
        if not self._is_learned:
            self._is_learned = True
            learn_session(self._agent, self._source, self._redactor, self._facts())

    def learn_again(self) -> None:
        """Read the session for secrets once more before it is opened next, since it may have grown."""
        self._is_learned = False


class _Pieces(io.RawIOBase):
    """A stream of bytes that come in pieces."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces, self._rest = pieces, memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._rest:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._rest = memoryview(piece)
        size = min(len(buffer), len(self._rest))
        buffer[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size
