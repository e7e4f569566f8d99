"""Other orders and groupings of the messages of a session. A view changes no message and loses none."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime

import msgspec

from clew.analysis.facts import FactsCollector, as_event
from clew.analysis.links import MESSAGE, NONE, Links
from clew.model.json import JSON
from clew.model.time import parse_time
from clew.model.unit import Unit

_EARLIEST = datetime.min.replace(tzinfo=UTC)


def chronological(messages: Iterable[dict[str, JSON]]) -> list[dict[str, JSON]]:
    """By time; ties keep their order, and a message without a time stays behind the one it follows."""
    timed: list[tuple[datetime, dict[str, JSON]]] = []
    last = _EARLIEST
    for message in messages:
        last = parse_time(message.get("timestamp")) or last
        timed.append((last, message))
    timed.sort(key=lambda pair: pair[0])
    return [message for _, message in timed]


def by_session(units: Iterable[Unit], session_id: str) -> dict[str, list[dict[str, JSON]]]:
    """Messages by the session they claim, for files that hold more than one.

    `session_id` is the claim of all messages that name none.
    """
    groups: dict[str, list[dict[str, JSON]]] = {}
    for unit in units:
        if unit.is_message:
            groups.setdefault(unit.claimed_session or session_id, []).append(unit.value)
    return groups


class TreeNode(msgspec.Struct):
    """A message in the full tree; parent and children are indexes of messages."""

    index: int
    uuid: str | None
    parent: int | None
    children: list[int]


def tree(messages: Sequence[dict[str, JSON]], records: Iterable[dict[str, JSON]] = ()) -> list[TreeNode]:
    """The full tree, flat so that no depth is too deep: siblings by time, then by place."""
    links = link(messages, records)
    ranks = {message["index"]: rank for rank, message in enumerate(chronological(messages))}
    nodes: dict[int, TreeNode] = {}
    for node in range(len(links)):
        if links.messages[node]:
            above = _message_above(links, node)
            parent = links.messages[above] if above != NONE else None
            nodes[links.messages[node]] = TreeNode(links.messages[node], links.uuid(node), parent, [])
    for entry in nodes.values():
        if entry.parent is not None:
            nodes[entry.parent].children.append(entry.index)
    for entry in nodes.values():
        entry.children.sort(key=ranks.__getitem__)
    return list(nodes.values())


def link(messages: Iterable[dict[str, JSON]], records: Iterable[dict[str, JSON]] = ()) -> Links:
    """The resolved links of messages and the records between them, which may stand in a chain too."""
    collector = FactsCollector()
    links = collector.facts.links
    for is_message, value in in_order(messages, records):
        collector.add(as_event(is_message, value))
        if is_message:
            # A selection of messages keeps its own indexes.
            links.messages[len(links) - 1] = value["index"]
    links.resolve()
    return links


def in_order(
    messages: Iterable[dict[str, JSON]], records: Iterable[dict[str, JSON]]
) -> Iterator[tuple[bool, dict[str, JSON]]]:
    """Messages and other records in the order of the source."""
    waiting = iter(records)
    record = next(waiting, None)
    for message in messages:
        while record is not None and record["after"] < message["index"]:
            yield False, record
            record = next(waiting, None)
        yield True, message
    while record is not None:
        yield False, record
        record = next(waiting, None)


def _message_above(links: Links, node: int) -> int:
    above = links.parents[node]
    while above != NONE and not links.flags[above] & MESSAGE:
        above = links.parents[above]
    return above
