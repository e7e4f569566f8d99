"""Header, links and counts of a session, from one pass over its events; holds ids but never content."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from typing import TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from clew.analysis.injected_text import split_context
from clew.analysis.links import MESSAGE, RESULT, SAID, SIDECHAIN, SIGNIFICANT, Links
from clew.analysis.prompts import is_prompt_message, typed_text
from clew.analysis.tree import Tree
from clew.analysis.usage import TOKEN_FIELDS, UsageLedger, call_of_message
from clew.model.blocks import Text, Thinking, ToolResult, ToolUse
from clew.model.events import Event, SessionInfo, SubagentStarted, UsageReport
from clew.model.json import JSON
from clew.model.message import Message, Metadata
from clew.model.record import Record
from clew.model.session import Subagent
from clew.model.time import is_later, parse_time
from clew.model.usage import TokenUsage

T = TypeVar("T", str, int)
SYNTHETIC_MODEL = "<synthetic>"
"""The model of messages that the client wrote itself, such as errors of the API."""
_NO_METADATA = Metadata()


class Facts:
    """Collected while a source is read once; the header of the unified document is made from it."""

    def __init__(self) -> None:
        self.links = Links()
        self.ledger = UsageLedger()
        self.messages = 0
        self.records = 0
        self.prompts = 0
        self.user_messages = 0
        self.tool_calls = 0
        self.errors = 0
        """Results of tools that are errors."""
        self.has_thinking = False
        self.first_time: str | None = None
        self.last_time: str | None = None
        self.cwd: str | None = None
        self.git_branch: str | None = None
        self.version: str | None = None
        self.slug: str | None = None
        self.first_prompt: str | None = None
        self.task: str | None = None
        """The first text of a user on a sidechain, which is what a sub-agent was asked to do, or of an answer."""
        self.leaf_uuid: str | None = None
        self.leaf_seen: int | None = None
        """How many nodes there were when the leaf was named, if it is only where the conversation stood then."""
        self.titles: dict[str, str] = {}
        """Title by the kind of record that gave it; the last of a kind counts."""
        self.summaries: dict[str, str] = {}
        """Summary by the uuid of the leaf it names, which may be in another file."""
        self.sessions: Counter[str] = Counter()
        """How many messages claim which session id."""
        self.tools: Counter[str] = Counter()
        self.subagents: list[Subagent] = []
        self.models: Counter[str] = Counter()
        self.extra: dict[str, JSON] = {}
        """What only one agent needs between its two passes."""
        self._tree: Tree | None = None

    @property
    def tree(self) -> Tree:
        """The conversation's tree; computed once, after the pass."""
        if self._tree is None:
            self._tree = Tree(self.links, self.leaf_uuid, self.leaf_seen)
        return self._tree

    def saw_time(self, time: str | None) -> None:
        """Widen the span of the session; what only looks like a time does not."""
        if time is None:
            return
        if self.first_time is None or self.last_time is None:
            if parse_time(time) is not None:
                self.first_time = self.last_time = time
        elif is_later(time, self.last_time):
            self.last_time = time
        elif is_later(self.first_time, time) and parse_time(time) is not None:
            self.first_time = time

    @property
    def has_errors(self) -> bool:
        return self.errors > 0

    @property
    def started(self) -> datetime | None:
        return parse_time(self.first_time)

    @property
    def ended(self) -> datetime | None:
        return parse_time(self.last_time)


def collect_facts(events: Iterable[Event]) -> Facts:
    """The facts of a session."""
    collector = FactsCollector()
    for event in events:
        collector.add(event)
    return collector.facts


def as_event(is_message: bool, value: dict[str, JSON]) -> Message | Record:
    """A message or record that is given as JSON."""
    return msgspec.convert(value, Message) if is_message else msgspec.convert(value, Record)


class FactsCollector:
    """Adds events to Facts, one at a time."""

    def __init__(self) -> None:
        self.facts = Facts()
        self._counted: tuple[str, TokenUsage] | None = None
        self._session: str | None = None
        self._reported = 0
        """The message that the last usage report belongs to."""

    def add(self, event: Event) -> None:
        """Add the next event of the session."""
        if isinstance(event, Message):
            self.facts.records += 1
            self._message(event)
        elif isinstance(event, Record):
            self.facts.records += 1
            self._record(event)
        elif isinstance(event, SessionInfo):
            self._info(event)
        elif isinstance(event, SubagentStarted):
            self._subagent(event)
        elif isinstance(event, UsageReport):
            self._reported = event.message_index
            self._use(event.call_id, event.model, event.usage, event.message_index)

    def _message(self, message: Message) -> None:
        facts, metadata = self.facts, message.metadata
        facts.messages += 1
        if metadata is UNSET:
            metadata = _NO_METADATA
        if self._session is not None:
            facts.sessions[self._session] += 1
        has_results = self._count_blocks(message)
        self._context(message, metadata)
        if facts.task is None and (message.role == "assistant" or metadata.is_sidechain is True):
            texts = (block.text for block in message.content if type(block) is Text and typed_text(block.text))
            facts.task = next((text for text in texts if text.strip()), None)
        flags = MESSAGE
        if metadata.is_sidechain is True:
            flags |= SIDECHAIN
        if has_results and not facts.links.is_derived:
            # Where parents are derived, each result is in the chain, and those taken back are no part of the path.
            flags |= RESULT
        if message.role != "system":
            flags |= SAID
        if message.role == "user":
            facts.user_messages += 1
            if not has_results and metadata.is_meta is not True and metadata.is_compact_summary is not True:
                flags |= SIGNIFICANT
                self._prompt(message)
        elif message.role == "assistant":
            self._reply(message, metadata)
            if metadata.message_id is UNSET or facts.links.is_first_line_of_reply(metadata.message_id):
                flags |= SIGNIFICANT
        stamp = parse_time(message.timestamp) if flags & SIGNIFICANT else None
        facts.links.add(
            _known(message.uuid),
            _known(message.parent_uuid),
            flags,
            facts.messages,
            stamp.timestamp() if stamp else 0.0,
            _known(metadata.logical_parent_uuid),
        )

    def _count_blocks(self, message: Message) -> bool:
        """Count calls; True where the message holds results of tools."""
        facts, has_results = self.facts, False
        for block in message.content:
            if isinstance(block, ToolUse):
                facts.tool_calls += 1
                if block.tool_name:
                    facts.tools[block.tool_name] += 1
            elif isinstance(block, ToolResult):
                has_results = True
                facts.errors += block.is_error is True
            elif isinstance(block, Thinking):
                facts.has_thinking = True
        return has_results

    def _context(self, message: Message, metadata: Metadata) -> None:
        facts = self.facts
        if message.timestamp:
            facts.saw_time(message.timestamp)
        if metadata.cwd and metadata.is_sidechain is not True and facts.cwd is None:
            facts.cwd = metadata.cwd
        if metadata.cwd and "cwd" not in facts.extra:
            # Of a sub-agent, which may work elsewhere: it stands in where the main thread names no folder.
            facts.extra["cwd"] = metadata.cwd
        if metadata.git_branch and not facts.git_branch:
            facts.git_branch = metadata.git_branch
        if metadata.agent_version:
            facts.version = metadata.agent_version

    def _prompt(self, message: Message) -> None:
        facts = self.facts
        if is_prompt_message(message):
            facts.prompts += 1
            if facts.first_prompt is None:
                texts = (typed_text(block.text) for block in message.content if type(block) is Text)
                facts.first_prompt = split_context("\n".join(filter(None, texts))).words or None

    def _reply(self, message: Message, metadata: Metadata) -> None:
        facts, model = self.facts, _known(metadata.model.name) if metadata.model is not UNSET else None
        if model == SYNTHETIC_MODEL:
            return
        if model:
            facts.models[model] += 1
        if metadata.token_usage is not UNSET and self._reported != facts.messages:
            call = _known(metadata.message_id) or call_of_message(_known(message.uuid), facts.records)
            self._use(call, model, metadata.token_usage, facts.messages)

    def _use(self, call: str, model: str | None, usage: TokenUsage, message: int) -> None:
        if self._counted == (call, usage):
            return  # the lines of one reply repeat its usage
        self._counted = call, usage
        counts = [_known(getattr(usage, name)) for name in TOKEN_FIELDS]
        self.facts.ledger.note(call, model, counts, message)

    def _record(self, record: Record) -> None:
        facts = self.facts
        if record.timestamp:
            facts.extra["last_record_time"] = record.timestamp
        if record.uuid is not UNSET and record.uuid is not None:
            facts.links.add(record.uuid, _known(record.parent_uuid), 0)
        text = record.text or None
        match record.kind:
            case "title":
                if text:
                    facts.titles[str(record.type)] = text
            case "summary":
                if text and record.message_uuid:
                    facts.summaries[record.message_uuid] = text
            case "prompt":
                if record.message_uuid:
                    facts.leaf_uuid, facts.leaf_seen = record.message_uuid, len(facts.links)

    def _info(self, info: SessionInfo) -> None:
        facts = self.facts
        facts.cwd = facts.cwd or info.cwd
        facts.git_branch = facts.git_branch or info.git_branch
        facts.version = info.agent_version or facts.version
        facts.slug = facts.slug or info.slug
        facts.leaf_uuid = facts.leaf_uuid if info.leaf_uuid is None else info.leaf_uuid
        facts.links.is_derived |= info.has_derived_parents
        for name, value in (
            ("claimed", info.session_id),
            ("agent_id", info.agent_id),
            ("parent_session_id", info.parent_session_id),
            ("is_subagent", info.is_subagent or None),
            ("started_at", info.started_at),
            ("has_message_times", None if info.has_message_times else False),
        ):
            if value is not None:
                facts.extra.setdefault(name, value)
        if info.title is not None:
            facts.titles["title"] = info.title
        facts.extra.update(info.extra or {})
        self._session = info.session_id

    def _subagent(self, started: SubagentStarted) -> None:
        facts = self.facts
        if started.session_id is not None:
            found = Subagent(session_id=started.session_id, agent_id=started.agent_id, tool_id=started.tool_id)
            known = [link.session_id for link in facts.subagents]
            if started.session_id in known:
                facts.subagents[known.index(started.session_id)] = found
            else:
                facts.subagents.append(found)
        elif started.root_uuid is not None:
            facts.subagents.append(
                Subagent(agent_id=started.agent_id, tool_id=started.tool_id, root_uuid=started.root_uuid)
            )
        elif started.agent_id is not None and started.tool_id is not None:
            facts.extra.setdefault("calls", {})[started.agent_id] = started.tool_id


def _known(value: T | None | UnsetType) -> T | None:
    return None if value is UNSET else value
