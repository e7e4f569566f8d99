"""From a source to rows, without effects: nothing is written, nothing known but the source. Any runner may call it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple, TypeAlias

from msgspec import UNSET

from clew.agents.base import Agent, EventsWithFacts, SourceFile
from clew.analysis.usage import scoped
from clew.catalog.ids import session_key
from clew.catalog.index_entries import ApiCall, entry_of
from clew.catalog.listing import header_of
from clew.catalog.rows import RowMaker, Rows, microseconds
from clew.io.paths import path_to_text
from clew.model import Message, Problem
from clew.redact.json_walk import credential_file_in

FLUSH_CHARS = 4 << 20
"""So many characters of text are handed on together."""
MAX_PROBLEMS = 20
"""So many problems of a source are kept."""


class Ingested(NamedTuple):
    """What stands at the end of a source."""

    session: tuple[Any, ...]
    """A row of the table `session`, but for its key."""
    lines: int
    problems: list[dict[str, Any]]


Step: TypeAlias = Rows | Ingested


def ingest(agent: Agent, source: SourceFile, number: int) -> Iterator[Step]:
    """The rows of a source, many at a time, and at last what holds for the whole. `number` is the key of the source."""
    session = agent.session_id(source)
    maker = RowMaker(agent.id, session, number)
    message_of_call = MessageOfCall()
    problems: list[dict[str, Any]] = []
    credential_calls: list[str] = []
    events = EventsWithFacts(agent, source)
    for event in events:
        if type(event) is Message:
            message_of_call.add(event)
            entry = entry_of(event)
            credential_calls += [block.call_id for block in entry.blocks if credential_file_in(block.arguments)]
            maker.add([entry])
            if maker.rows.chars > FLUSH_CHARS:
                yield maker.take_rows()
        elif type(event) is Problem and len(problems) < MAX_PROBLEMS:
            problems.append({"code": event.code, "line": event.line or 0})
    facts = events.facts
    for key, model, counts, message in facts.ledger.each():
        call = ApiCall(scoped(key, session), model, counts, message or message_of_call.get(key))
        maker.use(call, facts.git_branch or "")
    header: dict[str, Any] = header_of(agent, source, facts)
    if credential_calls:
        # Search masks the output of these calls wherever the session repeats it.
        header["credential_calls"] = credential_calls
    maker.finish(searchable_title(header), microseconds(header["ended_at"]))
    yield maker.take_rows()
    yield Ingested(session_row(agent.id, header, maker), facts.records, problems)


class MessageOfCall:
    """Which message an API call belongs to, where its usage does not say so: the first that bears its id."""

    def __init__(self) -> None:
        self._messages: dict[str, int] = {}

    def add(self, message: Message) -> None:
        """The next message."""
        if message.role != "assistant":
            return
        call = message.metadata.message_id if message.metadata is not UNSET else None
        for name in (message.uuid, call):
            if name:
                self._messages.setdefault(name, message.index)

    def get(self, key: str) -> int:
        """The index of the message, or 0; the id of the session may stand before the key."""
        return self._messages.get(key) or self._messages.get(key.rpartition(" ")[2], 0)


def searchable_title(header: dict[str, Any]) -> str:
    """The text by which a session is found as a whole: its title and its short name."""
    return "\n".join(filter(None, (header["title"], header.get("slug"))))


def session_row(agent: str, header: dict[str, Any], maker: RowMaker) -> tuple[Any, ...]:
    """The row of a session, but for its key."""
    parent = header["parent_session_id"]
    return (
        1,
        session_key(agent, header["id"]),
        agent,
        header["id"],
        session_key(agent, parent) if parent else "",
        int(header["is_agent_session"]),
        header["title"] or "",
        path_to_text(header["project"] or ""),
        header["git_branch"] or "",
        header["agent_version"] or "",
        microseconds(header["started_at"]),
        microseconds(header["ended_at"]),
        header["messages"],
        header["prompt_count"],
        maker.errors,
        maker.active_us,
        path_to_text(json.dumps(header, ensure_ascii=False)),
    )
