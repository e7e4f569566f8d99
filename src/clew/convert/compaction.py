"""Where a session was compacted last, and what its agent sends to its model since then."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum, auto
from typing import NamedTuple

from clew.agents.target_profile import Compaction, TargetProfile
from clew.convert.history import BranchSelection
from clew.model.json import JSON
from clew.model.unit import Unit


class Part(Enum):
    """Which part of a compacted session a unit belongs to."""

    EARLIER = auto()
    """The summary stands for it: it is not sent to the model any more."""
    SUMMARY = auto()
    SENT = auto()


class CompactedSession(NamedTuple):
    """The last compaction on a path."""

    position: int
    """Number of its unit among the units in the order of the path."""
    messages: list[Unit]
    """What stands for the earlier messages, if the unit itself is no message."""
    kept: frozenset[int]
    """Indexes of earlier messages that are still sent, behind the summary."""
    earlier_count: int
    """How many messages the summary stands for."""

    def split(self, units: Iterable[Unit]) -> Iterator[tuple[Part, Unit]]:
        """The units, each with its part; earlier messages that are still sent come behind the summary."""
        held: list[Unit] = []
        part = Part.EARLIER
        for number, unit in enumerate(units):
            if number < self.position:
                if unit.is_message and unit.value["index"] in self.kept:
                    held.append(unit)
                else:
                    yield part, unit
            elif number == self.position:
                yield from ((Part.SUMMARY, message) for message in self.messages or [unit])
                yield from ((Part.SENT, message) for message in held)
                part = Part.SUMMARY
            else:
                # Some agents write a summary in several messages.
                part = Part.SUMMARY if part is Part.SUMMARY and _is_summary(unit) else Part.SENT
                yield part, unit


def find_compaction(
    units: Iterable[Unit], path: BranchSelection, own: TargetProfile
) -> CompactedSession | Compaction | None:
    """The last compaction on a path with messages before it; as the agent describes it where nobody can read it."""
    found: CompactedSession | Compaction | None = None
    before: list[Unit] = []
    """The messages on the path so far, without their content."""
    last: Unit | None = None
    for number, unit in enumerate(units):
        after = unit.value["index"] if unit.is_message else unit.value["after"]
        if not path.contains(after):
            continue
        compaction = own.compaction(unit, last)
        is_continued = unit.is_message and last is not None and _is_summary(last) and _is_summary(unit)
        if compaction is not None and before and not is_continued:
            found = compaction if compaction.is_unreadable else _compacted(number, after, compaction, before)
        if unit.is_message:
            last = unit
            before.append(unit._replace(value={**unit.value, "content": ()}, native={}))
    return found


def _compacted(number: int, after: int, compaction: Compaction, before: list[Unit]) -> CompactedSession:
    uuids = [unit.value.get("uuid") for unit in before]
    kept: list[Unit] = []
    if compaction.first_kept in uuids and compaction.first_kept is not None:
        first = uuids.index(compaction.first_kept)
        end = uuids.index(compaction.last_kept) + 1 if compaction.last_kept in uuids else len(before)
        kept = before[first:end]
    messages = [Unit(True, _summary_message(after, message), 0, 0, 0, ()) for message in compaction.messages]
    earlier = sum(unit.value["role"] != "system" for unit in before) - len(kept)
    return CompactedSession(number, messages, frozenset(unit.value["index"] for unit in kept), earlier)


def _summary_message(after: int, message: dict[str, JSON]) -> dict[str, JSON]:
    return {"index": after, "metadata": {"is_compact_summary": True}, **message}


def _is_summary(unit: Unit) -> bool:
    return unit.is_message and bool((unit.value.get("metadata") or {}).get("is_compact_summary"))
