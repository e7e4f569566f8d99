"""From a source to rows, without effects: nothing is written, nothing known but the source. Any runner may call it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias, cast

from clew.agents.base import Agent, CountsAtOnce, SourceFile, Tells
from clew.agents.told import Odd
from clew.catalog import unified
from clew.catalog.header import names, session_row
from clew.catalog.listing import Header, header_of
from clew.catalog.rows import RowMaker, Rows, microseconds
from clew.derive.usage import scoped

FLUSH = 4 << 20
"""So many characters of text are handed on together."""


class Restart(NamedTuple):
    """What was handed on of a source is void: it must be read another way."""


class Ingested(NamedTuple):
    """What stands at the end of a source."""

    session: tuple[Any, ...]
    """A row of the table `session`, but for its key."""
    read_to: int
    """How far the source was read for good; -1 where nothing can be added to what was read."""
    carry: str
    """What goes on from there, as JSON."""
    lines: int
    problems: list[dict[str, Any]]


Step: TypeAlias = Rows | Restart | Ingested


def ingest(agent: Agent, source: SourceFile, number: int) -> Iterator[Step]:
    """The rows of a source, many at a time, and at last what holds for the whole. `number` is the key of the source."""
    ways = []
    if _is(type(agent), Tells):
        ways.append(_told(agent, source, number))
    if source.size <= unified.AT_ONCE and _is(type(agent), CountsAtOnce):
        ways.append(_general(agent, source, number, at_once=True))
    for way in ways:
        try:
            yield from way
        except (Odd, unified.NotAtOnce):
            yield Restart()
        else:
            return
    yield from _general(agent, source, number, at_once=False)


@lru_cache
def _is(agent: type, protocol: type) -> bool:
    return issubclass(agent, protocol)


def _told(agent: Agent, source: SourceFile, number: int) -> Iterator[Step]:
    """The lean way of an agent that has one."""
    maker = RowMaker(agent.id, agent.session_id(source), number)
    teller = cast(Tells, agent).tell(source)
    for messages in teller.messages():
        maker.add(messages)
        if maker.rows.chars > FLUSH:
            yield maker.take_rows()
    header = teller.header()
    for call in teller.calls():
        maker.use(call, header["git_branch"] or "")
    read_to, state = teller.state()
    yield from _finish(agent.id, header, maker, read_to, state, teller.lines, teller.problems)


def _general(agent: Agent, source: SourceFile, number: int, *, at_once: bool) -> Iterator[Step]:
    """By way of the unified document."""
    session = agent.session_id(source)
    maker = RowMaker(agent.id, session, number)
    telling = unified.tell(agent, source, at_once=at_once)
    for messages in telling.messages:
        maker.add(messages)
        if maker.rows.chars > FLUSH:
            yield maker.take_rows()
    facts, calls = telling.facts()
    for call in calls:
        maker.use(call._replace(key=scoped(call.key, session)), facts.git_branch or "")
    header = header_of(agent, source, facts)
    yield from _finish(agent.id, header, maker, -1, None, facts.records, telling.problems())


def _finish(
    agent: str,
    header: Header,
    maker: RowMaker,
    read_to: int,
    state: dict[str, Any] | None,
    lines: int,
    problems: list[dict[str, Any]],
) -> Iterator[Step]:
    maker.set_title(names(header), microseconds(header["ended_at"]))
    yield maker.take_rows()
    carry = "" if state is None else json.dumps({**state, "title": names(header), "rows": maker.carry()})
    yield Ingested(session_row(agent, header, maker), read_to, carry, lines, problems)
