"""Reads a source into rows: one path for every agent, over its events. Writes nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple, TypeAlias

from msgspec import UNSET

from clew.agents.base import Agent, EventsWithFacts, SourceFile
from clew.analysis.usage import scoped
from clew.catalog.ids import session_key
from clew.catalog.listing import header_of
from clew.catalog.rows import RowBuilder, Rows, microseconds
from clew.catalog.searchable_text import block_texts
from clew.io.paths import path_to_text
from clew.model import Message, Problem
from clew.redact.json_walk import credential_file_in

FLUSH_CHARS = 4 << 20
"""Characters of text after which rows are handed over."""
MAX_PROBLEMS = 20
"""Problems of a source that are kept."""


class Ingested(NamedTuple):
    """What is known at the end of a source."""

    session: tuple[Any, ...]
    """A row of the table `session`, but for its key."""
    lines: int
    problems: list[dict[str, Any]]


Step: TypeAlias = Rows | Ingested


def ingest(agent: Agent, source: SourceFile, number: int) -> Iterator[Step]:
    """Yield the rows of a source in portions, then what holds for the whole. `number` is the key of the source."""
    session = agent.session_id(source)
    builder = RowBuilder(agent.id, session, number)
    message_of_call = MessageOfCall()
    problems: list[dict[str, Any]] = []
    credential_calls: list[str] = []
    events = EventsWithFacts(agent, source)
    for event in events:
        if type(event) is Message:
            message_of_call.add(event)
            blocks = block_texts(event)
            credential_calls += [block.call_id for block in blocks if credential_file_in(block.arguments)]
            builder.add(event, blocks)
            if builder.rows.chars > FLUSH_CHARS:
                yield builder.take_rows()
        elif type(event) is Problem and len(problems) < MAX_PROBLEMS:
            problems.append({"code": event.code, "line": event.line or 0})
    facts = events.facts
    for key, model, counts, message in facts.ledger.each():
        number_of_message = message or message_of_call.get(key)
        builder.add_usage(scoped(key, session), model, counts, number_of_message, facts.git_branch or "")
    header: dict[str, Any] = header_of(agent, source, facts)
    if credential_calls:
        # Search masks the output of these calls wherever the session repeats it.
        header["credential_calls"] = credential_calls
    builder.finish(searchable_title(header), microseconds(header["ended_at"]))
    yield builder.take_rows()
    yield Ingested(session_row(agent.id, header, builder), facts.records, problems)


class MessageOfCall:
    """Finds the message of an API call whose usage does not name it: the first with the id of the call."""

    def __init__(self) -> None:
        self._messages: dict[str, int] = {}

    def add(self, message: Message) -> None:
        """Note the ids of the next message."""
        if message.role != "assistant":
            return
        call = message.metadata.message_id if message.metadata is not UNSET else None
        for name in (message.uuid, call):
            if name:
                self._messages.setdefault(name, message.index)

    def get(self, key: str) -> int:
        """The number of the message, or 0; the key may begin with the id of the session."""
        return self._messages.get(key) or self._messages.get(key.rpartition(" ")[2], 0)


def searchable_title(header: dict[str, Any]) -> str:
    """The text by which a session is found as a whole: its title and its short name."""
    return "\n".join(filter(None, (header["title"], header.get("slug"))))


def session_row(agent: str, header: dict[str, Any], builder: RowBuilder) -> tuple[Any, ...]:
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
        builder.errors,
        builder.active_us,
        path_to_text(json.dumps(header, ensure_ascii=False)),
    )
