"""All problems of one session on disk, found in the two passes that read it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain

from clew.agents.base import Agent, Reading, SourceFile, Unit, joined_pieces
from clew.derive.collect import Collector
from clew.derive.facts import Facts
from clew.derive.views import in_order
from clew.errors import SourceUnreadable, UsageError
from clew.io.records import MAX_RECORD_BYTES, TOO_LONG
from clew.model import Problem
from clew.model.codes import CODES, problem
from clew.model.json import JSON
from clew.validate.conversation import Conversation, Place
from clew.validate.seed import check_seed_004

SEED_004 = "seed-004"
"""The profile that says what the validator of the session schema says, and nothing more."""

_BLOCK = "content."
_SAME = {"time-missing": "no-timestamp", "bad-thinking-level": "unknown-thinking-level"}
"""Codes of an agent's own schema for what the general check would report too."""


def check_source(
    agent: Agent, source: SourceFile, *, fail_fast: bool = False, profile: str | None = None
) -> Iterator[Problem]:
    """Every problem of a session; with `fail_fast` up to the first error."""
    if profile not in (None, SEED_004):
        raise UsageError(f"unknown profile {profile!r}; known: {SEED_004}")
    for found in _readable(agent, source, profile):
        yield found
        if fail_fast and found.severity == "error":
            return


def validate(
    messages: Iterable[dict[str, JSON]], records: Iterable[dict[str, JSON]] = (), file: str | None = None
) -> list[Problem]:
    """Every problem of messages that are already read, as JSON of the unified document."""
    units = list(in_order(messages, records))
    collector = Collector()
    for is_message, value in units:
        collector.add(is_message, value)
    conversation = Conversation(collector.facts)
    seen = (conversation.see(is_message, value, Place(file)) for is_message, value in units)
    return [*chain.from_iterable(seen), *conversation.end(file)]


def _readable(agent: Agent, source: SourceFile, profile: str | None) -> Iterator[Problem]:
    try:
        facts = agent.scan(source)
        if profile == SEED_004:
            yield from check_seed_004(agent.read(source, facts), place_of(source))
        else:
            yield from _all(agent, source, facts)
    except (OSError, SourceUnreadable) as error:
        yield problem("unreadable", str(error), file=str(source.path))


def _all(agent: Agent, source: SourceFile, facts: Facts) -> Iterator[Problem]:
    told: set[tuple[str, str | None, int | None]] = set()
    for found in agent.check(source, facts):
        told.add((_SAME.get(found.code, found.code), found.file, found.line))
        yield found
    for found in _general(agent, source, facts):
        if found.line is None or (found.code, found.file, found.line) not in told:
            yield found


def _general(agent: Agent, source: SourceFile, facts: Facts) -> Iterator[Problem]:
    place_at = place_of(source)
    reading = agent.read(source, facts)
    conversation, strange = Conversation(facts), _Strange(reading)
    for unit in joined_pieces(reading):
        place = place_at(unit)
        yield from bytes_problems(unit, place)
        yield from conversation.see(unit.is_message, unit.value, place)
        strange.look(place)
    yield from conversation.end(str(source.path))
    yield from strange.problems()
    damage = getattr(reading, "damage", None)
    if damage is not None:
        yield problem("damaged-archive", damage, file=str(source.path))


def bytes_problems(unit: Unit, place: Place) -> Iterator[Problem]:
    """What the reader of the bytes noted on a record."""
    for code in unit.findings:
        if code in CODES:
            yield place.problem(
                code, _length(unit) if code == TOO_LONG else "", index=unit.value["index"] if unit.is_message else None
            )


def _length(unit: Unit) -> str:
    return f"the record has {unit.stop - unit.start:,} bytes, and the limit is {MAX_RECORD_BYTES:,}"


def place_of(source: SourceFile) -> Callable[[Unit], Place]:
    """A function that says where a unit of the source stands."""
    folder = source.path.parent
    files = [str(source.path), *(str(folder / name) for name in source.parts)]
    return lambda unit: Place(files[unit.part], unit.line, unit.start, unit.stop)


class _Strange:
    """Types, keys and blocks nobody knows: each is reported once, where it first stands, with its number."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._places: dict[tuple[str, str], Place] = {}

    def look(self, place: Place) -> None:
        """Note the place of what this record was the first to bring."""
        reading = self._reading
        if len(reading.unknown_types) + len(reading.unknown_keys) > len(self._places):
            for code, counts in self._counts():
                for name in counts:
                    self._places.setdefault((code, name), place)

    def _counts(self) -> tuple[tuple[str, dict[str, int]], ...]:
        return ("unknown-type", self._reading.unknown_types), ("unknown-key", self._reading.unknown_keys)

    def problems(self) -> Iterator[Problem]:
        """One problem for each name."""
        for code, counts in self._counts():
            for name, count in counts.items():
                place = self._places.get((code, name), Place())
                is_block = code == "unknown-type" and name.startswith(_BLOCK)
                shown = name.removeprefix(_BLOCK) if is_block else name
                times = f", {count} times" if count > 1 else ""
                yield place.problem("unknown-block" if is_block else code, f"{_what(code, is_block, shown)}{times}")


def _what(code: str, is_block: bool, name: str) -> str:
    if is_block:
        return f"unknown content block {name!r}"
    if code == "unknown-key":
        return f"unknown key {name!r}"
    return f"unknown record type {name!r}" if name else "a record without a type"
