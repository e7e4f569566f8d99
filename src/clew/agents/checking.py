"""All problems of one session on disk, found in the two passes that read it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from clew.agents.base import Agent, Unit
from clew.agents.source import SourceFile, archive_damage
from clew.analysis.facts import Facts
from clew.analysis.validation import Conversation, Place
from clew.errors import SourceUnreadable
from clew.io.records import MAX_RECORD_BYTES, TOO_LONG
from clew.model import Problem
from clew.model.blocks import block_type
from clew.model.codes import CODES, problem

_SAME = {
    "time-missing": "no-timestamp",
    "bad-timestamp": "no-timestamp",
    "bad-thinking-level": "unknown-thinking-level",
}
"""Codes of an agent's own schema for what the general check would report too."""


def check_source(agent: Agent, source: SourceFile) -> Iterator[Problem]:
    """Every problem of a session."""
    try:
        facts = agent.facts(source)
        reported: set[tuple[str, str | None, int | None]] = set()
        for found in agent.check(source, facts):
            reported |= {(code, found.file, found.line) for code in (found.code, _SAME.get(found.code, found.code))}
            yield found
        for found in _general_problems(agent, source, facts):
            if found.line is None or (found.code, found.file, found.line) not in reported:
                yield found
    except (OSError, SourceUnreadable) as error:
        yield problem("unreadable", str(error), file=str(source.path))


def _general_problems(agent: Agent, source: SourceFile, facts: Facts) -> Iterator[Problem]:
    """The problems that any agent's session can have."""
    place_at = place_of(source)
    conversation, unknown = Conversation(facts), _Unknown(agent)
    for unit in agent.units(source):
        place = place_at(unit)
        yield from bytes_problems(unit, place)
        yield from conversation.see(unit, place)
        unknown.add(unit, place)
    yield from conversation.end(str(source.path))
    yield from unknown.problems()
    damage = archive_damage(source)
    if damage is not None:
        yield problem("damaged-archive", damage, file=str(source.path))


def bytes_problems(unit: Unit, place: Place) -> Iterator[Problem]:
    """What the reader of the bytes noted on a record."""
    for code in unit.findings:
        if code in CODES:
            size = f"the record has {unit.stop - unit.start:,} bytes, and the limit is {MAX_RECORD_BYTES:,}"
            index = unit.value["index"] if unit.is_message else None
            yield place.problem(code, size if code == TOO_LONG else "", index=index)


def place_of(source: SourceFile) -> Callable[[Unit], Place]:
    """A function that says where a unit of the source stands."""
    folder = source.path.parent
    files = [str(source.path), *(str(folder / name) for name in source.parts)]
    return lambda unit: Place(files[unit.part], unit.line, unit.start, unit.stop)


class _Unknown:
    """Types, keys and blocks that clew does not know: each is reported once, where it first stands, with its number."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._counts: Counter[tuple[str, str]] = Counter()
        self._places: dict[tuple[str, str], Place] = {}

    def add(self, unit: Unit, place: Place) -> None:
        """Count what is unknown in the next unit."""
        value = unit.value
        # What a record gives beyond its first unit has no bytes, and its keys were counted.
        native = unit.native if unit.start < unit.stop else {}
        found = [("unknown-key", key) for key in self._agent.unknown_keys(native)]
        if unit.is_message:
            types = [block_type(block["value"]) for block in value["content"] if block["type"] == "unknown"]
            found += [("unknown-block", name) for name in types if name not in self._agent.opaque_blocks]
        elif value["kind"] == "other":
            found.append(("unknown-type", str(value.get("type") or "")))
        for one in found:
            self._counts[one] += 1
            self._places.setdefault(one, place)

    def problems(self) -> Iterator[Problem]:
        """One problem for each name."""
        for (code, name), count in self._counts.items():
            what = f"{_UNKNOWN[code]} {name!r}" if name or code != "unknown-type" else "a record without a type"
            times = f", {count} times" if count > 1 else ""
            yield self._places[code, name].problem(code, f"{what}{times}")


_UNKNOWN = {
    "unknown-block": "unknown content block",
    "unknown-key": "unknown key",
    "unknown-type": "unknown record type",
}
