"""Reads a source into rows: one path for every agent and level, over its events. Writes nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple, TypeAlias

from msgspec import UNSET, UnsetType

from clew.agents.base import Agent, EventsWithFacts, SourceFile, session_object
from clew.analysis.facts import Facts
from clew.analysis.session import derived, title_of
from clew.analysis.usage import scoped
from clew.catalog.ids import session_key
from clew.catalog.rows import RowBuilder, Rows, stored_time
from clew.catalog.sync_level import SyncLevel
from clew.errors import ClewError
from clew.io.paths import path_to_text
from clew.model import Message, Problem, Record, SourceRef
from clew.model.blocks import Unknown, block_type
from clew.model.time import canonical_time

FLUSH_CHARS = 4 << 20
"""Characters of text after which rows are handed over."""
MAX_PROBLEMS = 20
"""Problems of a source that are kept."""
MAX_UNKNOWN_TYPES = 20
"""Unknown types of records and blocks of a source that are kept."""
SOURCE_ERRORS = (
    *(ClewError, OSError, RecursionError, ValueError, TypeError, LookupError, ArithmeticError, AttributeError),
    AssertionError,
)
"""What reading a source may raise. One bad source never stops the others."""


class Ingested(NamedTuple):
    """What is known at the end of a source."""

    session: tuple[Any, ...]
    """A row of the table `session`, but for its key and `message_uuids`."""
    message_uuids: bytes
    """The ids of messages, separated by newlines, of a session without a title: a summary in another file may name one
    of them."""
    lines: int
    problems: list[dict[str, Any]]


Step: TypeAlias = Rows | Ingested


def ingest(agent: Agent, source: SourceFile, number: int, level: SyncLevel = SyncLevel.MESSAGES) -> Iterator[Step]:
    """Yield the rows of a source in portions, then what holds for the whole. `number` is the key of the source.

    With `SESSIONS`, these are the rows of its token usage alone.
    """
    session = agent.session_id(source)
    undated_us = 0 if agent.has_message_times else stored_time(canonical_time(source.mtime))
    builder = RowBuilder(agent.id, session, number, level, undated_us)
    message_of_call = MessageOfCall()
    problems: list[dict[str, Any]] = []
    unknown = UnknownParts(agent.opaque_blocks)
    events = EventsWithFacts(agent, source)
    for event in events:
        if type(event) is Message:
            message_of_call.add(event)
            builder.add(event)
            unknown.add_message(event)
            if builder.rows.chars > FLUSH_CHARS:
                yield builder.take_rows()
        elif type(event) is Problem and len(problems) < MAX_PROBLEMS:
            problems.append({"code": event.code, "line": event.line or 0})
        elif type(event) is Record and event.kind == "other":
            unknown.add_record(event)
    facts = events.facts
    for key, model, counts, message in facts.ledger.each():
        number_of_message = message or message_of_call.get(key)
        builder.add_usage(scoped(key, session), model, counts, number_of_message, facts.git_branch or "")
    header = session_header(agent, source, facts)
    builder.finish(searchable_title(header), stored_time(header["ended_at"]))
    yield builder.take_rows()
    message_uuids = b"" if facts.titles else facts.links.uuids
    yield Ingested(
        session_row(agent.id, header, facts, builder), message_uuids, facts.records, problems + unknown.problems()
    )


class UnknownParts:
    """Types of records and blocks that clew does not know: an agent's new format must not go unnoticed."""

    def __init__(self, opaque_blocks: frozenset[str]) -> None:
        self._opaque_blocks = opaque_blocks
        self._first_lines: dict[tuple[str, str], int] = {}
        """For each code and name, the line where it first stands."""

    def add_record(self, record: Record) -> None:
        """Count a record of an unknown type."""
        self._add("unknown-type", str(record.type or ""), record.source)

    def add_message(self, message: Message) -> None:
        """Count the blocks of a message that are of an unknown type."""
        for block in message.content:
            if type(block) is Unknown and (name := block_type(block.value)) not in self._opaque_blocks:
                self._add("unknown-block", name, message.source)

    def _add(self, code: str, name: str, source: SourceRef | UnsetType) -> None:
        if len(self._first_lines) < MAX_UNKNOWN_TYPES:
            line = source.record + 1 if isinstance(source, SourceRef) else 0
            self._first_lines.setdefault((code, name), line)

    def problems(self) -> list[dict[str, Any]]:
        """One problem for each name; as `message` that name alone."""
        return [
            {"code": code, "line": line, "message": name.encode("utf-8", "replace").decode()}
            for (code, name), line in self._first_lines.items()
        ]


class MessageOfCall:
    """Finds the message of an API call whose usage does not name it: the first with the id of the call."""

    def __init__(self) -> None:
        self._messages: dict[str, int] = {}

    def add(self, message: Message) -> None:
        """Record the ids of the next message."""
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


def session_header(agent: Agent, source: SourceFile, facts: Facts) -> dict[str, Any]:
    """What holds for a session as a whole, kept as JSON in its row."""
    session = session_object(agent, source, facts)
    more = derived(session, facts)
    return {
        "id": session["id"],
        "title": title_of(session, facts),
        "workspace": session["workspace"],
        "workspace_encoded": session["workspace_encoded"],
        "project": more.project,
        "git_branch": facts.git_branch,
        "slug": session.get("slug"),
        "models": list(facts.models),
        "started_at": session["started_at"],
        "ended_at": session["ended_at"],
        "span": [facts.first_time, facts.last_time],
        "duration_seconds": more.duration,
        "messages": facts.messages,
        "turn_count": more.turn_count,
        "prompt_count": more.prompt_count,
        "tool_calls": facts.tool_calls,
        "tools": list(facts.tools),
        "has_errors": facts.has_errors,
        "has_thinking": facts.has_thinking,
        "starts_subagents": bool(session.get("subagents")),
        # Without the sub-agents that are known by their own files alone.
        "has_subagent_records": bool(facts.subagents),
        "is_agent_session": session["is_agent_session"],
        "parent_session_id": session["parent_session_id"],
        "agent_id": session["agent_id"],
        "agent_version": facts.version,
        "source": session["source"],
        "is_titled": bool(facts.titles),
        "summaries": facts.summaries,
    }


def session_row(agent: str, header: dict[str, Any], facts: Facts, builder: RowBuilder) -> tuple[Any, ...]:
    """The row of a session, but for its key and `message_uuids`."""
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
        stored_time(header["started_at"]),
        stored_time(header["ended_at"]),
        header["messages"],
        header["prompt_count"],
        facts.errors,
        builder.active_us,
        path_to_text(json.dumps(header, ensure_ascii=False)),
    )
