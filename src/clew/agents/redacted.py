"""An agent whose sessions are read through a redactor: everything made from them is masked, whatever makes it."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, cast

import msgspec

from clew.agents.base import (
    Agent,
    Claim,
    DecodesEvents,
    Header,
    Reading,
    Receives,
    SourceFile,
    Unit,
    offers,
    open_main,
    skim,
)
from clew.agents.receiving import ORIGIN, Receiver
from clew.derive.facts import Facts
from clew.host import Host
from clew.io.records import TOO_LONG
from clew.model import Problem
from clew.model.events import Event
from clew.model.json import JSON
from clew.redact.native import learn_file, masked_parts
from clew.redact.stamping import OWN
from clew.redact.tree import Redactor

_BUFFER_BYTES = 1 << 18

IsNew = Callable[[int], bool]
"""Whether the unit, or message, of this number has come since a session was learned."""


def learn(agent: Agent, source: SourceFile, redactor: Redactor, facts: Facts | None = None) -> IsNew:
    """Let a redactor see a whole session."""
    if not source.parts and offers(type(agent), DecodesEvents):
        return _learn_lines(source, redactor)
    facts = facts or skim(agent, source, tree=False, counts=False)
    reading = agent.read(source, facts)
    count = redactor.learn(unit.value if _is_looked_at(unit) else None for unit in reading)
    redactor.learn([reading.extensions(), agent.session(source, facts)])
    return lambda number: number >= count


def _is_looked_at(unit: Unit) -> bool:
    """False for what is masked unseen: a packed original, and a record that is too long."""
    return unit.value.get("type") != ORIGIN and TOO_LONG not in unit.findings


def _learn_lines(source: SourceFile, redactor: Redactor) -> IsNew:
    """The same where each unit comes from one line of the file: most lines need not even be read."""
    size = _size(source)
    learn_file(partial(open_main, source), redactor)
    return lambda _: not source.frozen and _size(source) > size


def _size(source: SourceFile) -> int:
    try:
        return source.path.stat().st_size
    except OSError:
        return 0


class Redacted:
    """Reads as the agent does, and masks what comes. A source is gone through once before, to learn its secrets."""

    def __init__(self, agent: Agent, redactor: Redactor) -> None:
        self._agent, self._redactor = agent, redactor
        self.id, self.title, self.homepage = agent.id, agent.title, agent.homepage
        self._learned: dict[Path, IsNew] = {}

    def _learn(self, source: SourceFile, facts: Facts | None = None) -> IsNew:
        if source.path not in self._learned:
            self._learned[source.path] = learn(self._agent, source, self._redactor, facts)
        return self._learned[source.path]

    def session(self, source: SourceFile, facts: Facts) -> dict[str, JSON]:
        """The agent's, masked."""
        self._learn(source)
        session: dict[str, JSON] = self._redactor.once(self._agent.session(source, facts))
        return session

    def read(self, source: SourceFile, facts: Facts) -> Reading:
        """The agent's, masked."""
        return _RedactedReading(self._agent.read(source, facts), self._redactor, self._learn(source, facts))

    def skim(self, source: SourceFile, tree: bool, counts: bool) -> Facts:
        """As the agent: facts hold no words but titles, which `session` masks, and uuids, which `uuids` does."""
        return skim(self._agent, source, tree=tree, counts=counts)

    def uuids(self, uuids: list[str]) -> list[str]:
        """The uuids that facts hold, masked as those of the messages are."""
        masked: list[dict[str, str]] = self._redactor.once([{"uuid": uuid} for uuid in uuids])
        return [one["uuid"] for one in masked]

    def scan(self, source: SourceFile) -> Facts:
        """As the agent."""
        return self._agent.scan(source)

    def roots(self, host: Host) -> Iterator[Path]:
        """As the agent."""
        return self._agent.roots(host)

    def discover(self, root: Path) -> Iterator[SourceFile]:
        """As the agent."""
        return self._agent.discover(root)

    def claims(self, path: Path, head: bytes) -> Claim:
        """As the agent."""
        return self._agent.claims(path, head)

    def locate(self, path: Path) -> SourceFile:
        """As the agent."""
        return self._agent.locate(path)

    def session_id(self, source: SourceFile) -> str:
        """As the agent."""
        return self._agent.session_id(source)

    def write(self, header: Header, units: Iterator[tuple[bool, dict[str, JSON]]]) -> Iterator[tuple[str, bytes]]:
        """As the agent."""
        return self._agent.write(header, units)

    def target(self, header: Header) -> str:
        """As the agent."""
        return self._agent.target(header)

    def check(self, source: SourceFile, facts: Facts) -> Iterator[Problem]:
        """As the agent."""
        return self._agent.check(source, facts)


class _RedactedReceiver(Redacted):
    """The same of an agent that goes on with others' sessions."""

    def receiver(self) -> Receiver:
        """As the agent."""
        assert isinstance(self._agent, Receives)
        return self._agent.receiver()


class _RedactedDecoder(_RedactedReceiver):
    """The same of an agent that decodes events: the bytes of its files are masked before they are decoded."""

    def events(self, source: SourceFile) -> Iterator[Event]:
        """As the agent, from masked files."""
        assert isinstance(self._agent, DecodesEvents)
        self._learn(source)
        return self._agent.events(msgspec.structs.replace(source, mask=_Mask(self._redactor)))


class _Mask:
    """Masks the files of a session that a redactor has learned."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor

    def open(self, opened: Callable[[], BinaryIO]) -> BinaryIO:
        """A file of the session, masked."""
        pieces = (masked for _, masked in masked_parts(opened, self._redactor))
        return cast(BinaryIO, io.BufferedReader(_Pieces(pieces), _BUFFER_BYTES))

    def value(self, value: JSON) -> JSON:
        """A value that comes from elsewhere, masked."""
        return self._redactor.once(value)


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


class _RedactedReading:
    """The second pass over a source, masked. What has come since it was learned is learned on the way."""

    def __init__(self, reading: Reading, redactor: Redactor, is_new: IsNew) -> None:
        self._reading, self._redactor, self._is_new = reading, redactor, is_new
        self.unknown_types, self.unknown_keys = reading.unknown_types, reading.unknown_keys
        self.carried_raw = 0

    def __iter__(self) -> Iterator[Unit]:
        redactor = self._redactor
        unread: tuple[int, int] | None = None
        for number, unit in enumerate(self._reading):
            value = unit.value
            if TOO_LONG in unit.findings and redactor.setting.profile != "none":
                place = unit.part, unit.line
                marker = "" if place == unread else f'"{redactor.unread()}"'
                yield unit._replace(value=_masked_piece(value, marker))
                unread = place
                continue
            if value.get("type") == ORIGIN:
                continue  # the original that a converted session carries is packed, and would bring everything back
            value = redactor.once(value) if self._is_new(number) else redactor.value(value)
            yield unit if value is unit.value else unit._replace(value=value)
        self.carried_raw = self._reading.carried_raw

    def extensions(self) -> dict[str, JSON]:
        """The agent's, masked, and the word that this was done."""
        own: dict[str, JSON] = self._redactor.once(self._reading.extensions())
        return {**own, OWN: {"redacted": self._redactor.stamp()}}


def _masked_piece(value: dict[str, JSON], marker: str) -> dict[str, JSON]:
    """A piece of a record that is too long, with a marker in the place of its bytes."""
    own = {
        agent: {**{key: kept for key, kept in held.items() if key != "raw_base64"}, "raw": marker}
        for agent, held in value["extensions"].items()
    }
    return {**value, "extensions": own}


def masked_source(source: SourceFile, redactor: Redactor) -> SourceFile:
    """The source, which may say whose machine it is from."""
    if source.origin is None:
        return source
    origin = source.origin._replace(**redactor.value(source.origin._asdict()))
    return msgspec.structs.replace(source, origin=origin)


def redacted(agent: Agent, redactor: Redactor) -> Agent:
    """The agent as seen through a redactor."""
    if isinstance(agent, Receives):
        kind = _RedactedDecoder if isinstance(agent, DecodesEvents) else _RedactedReceiver
        return kind(agent, redactor)
    return Redacted(agent, redactor)
