"""An agent whose sessions are read through a redactor: everything made from them is masked, whatever makes it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import cast

import msgspec

from clew.agents.base import (
    Agent,
    Claim,
    Header,
    Reading,
    Receives,
    Shown,
    Shows,
    ShowsAtOnce,
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
from clew.model.json import JSON
from clew.redact.native import learn_file
from clew.redact.stamping import OWN
from clew.redact.tree import Redactor

IsNew = Callable[[int], bool]
"""Whether the unit, or message, of this number has come since a session was learned."""


def learn(agent: Agent, source: SourceFile, redactor: Redactor, facts: Facts | None = None) -> IsNew:
    """Let a redactor see a whole session."""
    if not source.parts and offers(type(agent), Shows):
        return _learn_lines(source, redactor)
    facts = facts or skim(agent, source, tree=False, counts=False)
    reading = agent.read(source, facts)
    count = redactor.learn(unit.value if _is_looked_at(unit) else None for unit in reading)
    redactor.learn([reading.extensions(), agent.session(source, facts)])
    return lambda number: number >= count


def _is_looked_at(unit: Unit) -> bool:
    """False for what is masked unseen: a packed original, and a record that is too long."""
    return not _is_of_original(unit.value) and TOO_LONG not in unit.findings


def _is_of_original(value: dict[str, JSON]) -> bool:
    """True for a record of the original that a converted session carries, which some formats keep in `extensions`."""
    if value.get("type") == ORIGIN:
        return True
    extensions = value.get("extensions")
    if not isinstance(extensions, dict):
        return False
    rests = (own.get("rest") for own in extensions.values() if isinstance(own, dict))
    return any(isinstance(rest, dict) and rest.get("type") == ORIGIN for rest in rests)


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

    def shown(self, source: SourceFile, facts: Facts) -> Iterator[dict[str, JSON]]:
        """The agent's, masked."""
        if source.parts or not offers(type(self._agent), Shows):
            yield from (unit.value for unit in self.read(source, facts) if unit.is_message)
            return
        yield from self._masked(source, cast(Shows, self._agent).shown(source, facts), facts)

    def shown_at_once(self, source: SourceFile) -> Shown:
        """The agent's, masked."""
        if not offers(type(self._agent), ShowsAtOnce):
            facts = self.skim(source, tree=True, counts=False)
            return Shown(self.session(source, facts), facts.tree, self.shown(source, facts))
        session, tree, messages = cast(ShowsAtOnce, self._agent).shown_at_once(source)
        self._learn(source)
        return Shown(self._redactor.once(session), tree, self._masked(source, messages))

    def _masked(
        self, source: SourceFile, messages: Iterable[dict[str, JSON]], facts: Facts | None = None
    ) -> Iterator[dict[str, JSON]]:
        is_new, redactor = self._learn(source, facts), self._redactor
        for number, message in enumerate(messages):
            yield redactor.once(message) if is_new(number) else redactor.value(message)

    def skim(self, source: SourceFile, tree: bool, counts: bool) -> Facts:
        """As the agent: facts hold no words but titles, which `session` masks, and uuids, which `uuids` does."""
        if tree:
            self._learn(source)  # so that `uuids` knows which of them are secrets
        return skim(self._agent, source, tree=tree, counts=counts)

    def uuids(self, uuids: list[str]) -> list[str]:
        """The uuids that facts hold, masked as those of the messages are."""
        masked: list[dict[str, str]] = self._redactor.once([{"uuid": uuid} for uuid in uuids])
        return [one["uuid"] for one in masked]

    def scan(self, source: SourceFile) -> Facts:
        """As the agent; from here on `uuids` knows the secrets of the session."""
        self._learn(source)
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
            if _is_of_original(value):
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
    wrapper: Agent = (_RedactedReceiver if isinstance(agent, Receives) else Redacted)(agent, redactor)
    return wrapper
