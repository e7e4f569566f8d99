"""sage-emacs' records to events.

A record that holds tool calls with their results gives two messages: the calls, and the results. Records without an id
get one, and those without a parent follow the one before them; an archive may be written backwards, so where the times
say so, they follow the message that came before them in time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import pairwise
from typing import NamedTuple

from msgspec import UNSET, UnsetType

from clew.agents.base import SourceFile
from clew.agents.derived_ids import MessageChain
from clew.agents.sage_emacs import locate
from clew.agents.sage_emacs.records import (
    ROLES,
    TOOL,
    ConversationFile,
    ConversationRecord,
    Item,
    SavedHeader,
    ToolCall,
)
from clew.io.codec import dumps
from clew.io.records import RawRecord
from clew.io.typed_records import decode_each
from clew.model.blocks import Block, Text, ToolResult, ToolUse, Unknown
from clew.model.codes import problem
from clew.model.events import Event, SessionInfo
from clew.model.json import JSON
from clew.model.message import Message, Metadata, ModelUse, SourceRef
from clew.model.record import Record
from clew.model.time import canonical_time, parse_time
from clew.model.usage import TokenUsage

ENDED_AT = "ended_at"
"""In `Facts.extra`: when a saved session was last saved, by its header."""
RESULTS_SUFFIX = ":r"
"""Behind the uuid of a message: the uuid of the message with the results of its calls."""
_FIRST_TIME = datetime.min.replace(tzinfo=UTC)
_NO_METADATA = Metadata()


def read_events(source: SourceFile) -> Iterator[Event]:
    """Decode a session, in file order."""
    file, scope = ConversationFile(source), locate.scope(source.path)
    parents: dict[str, str] | None = None
    if _is_out_of_order(item.record for item in file):
        spoken = sorted(_spoken(EventDecoder(scope, None), file), key=lambda message: message.time)
        parents = {later.first: earlier.last for earlier, later in pairwise(spoken)}
        yield SessionInfo(leaf_uuid=spoken[-1].last)
    decoder = EventDecoder(scope, parents)
    for item in file:
        if isinstance(item.record, RawRecord):
            yield from decoder.fragment(item, str(source.path))
        else:
            yield from decoder.events(item)
    if file.damage:
        yield problem("damaged-archive", file.damage, file=str(source.path))


# The order of messages


class _Spoken(NamedTuple):
    """When a record was written, and the uuids of its first and last message."""

    time: datetime
    first: str
    last: str


def _is_out_of_order(records: Iterable[ConversationRecord | SavedHeader | RawRecord]) -> bool:
    before = _FIRST_TIME
    for record in records:
        if isinstance(record, ConversationRecord) and _is_message(record):
            time = _time_of(record, before)
            if time < before:
                return True
            before = time
    return False


def _time_of(record: ConversationRecord, before: datetime) -> datetime:
    """When a record was written; one without a time counts as written with the record before it."""
    time = parse_time(record.timestamp) or before
    # A record that names its parent stays behind the one before it: clocks may go wrong.
    return time if record.parentUuid is UNSET else max(before, time)


def _spoken(decoder: EventDecoder, items: Iterable[Item]) -> Iterator[_Spoken]:
    before = _FIRST_TIME
    for item in items:
        if isinstance(item.record, ConversationRecord) and _is_message(item.record):
            uuids = [str(event.uuid) for event in decoder.events(item) if isinstance(event, Message)]
            before = _time_of(item.record, before)
            yield _Spoken(before, uuids[0], uuids[-1])


def _is_message(record: ConversationRecord) -> bool:
    return type(record.role) is str and (record.role in ROLES or record.role == TOOL)


class EventDecoder:
    """What must be known of earlier records to decode the next one."""

    def __init__(self, scope: str, parents: Mapping[str, str] | None) -> None:
        self.index = 0
        self._chain = MessageChain(scope, parents)
        self._claimed: str | None = None
        self._model: str | None = None
        """The model that a saved session names: replies that name none are put down to it."""

    def events(self, item: Item) -> Iterator[Event]:
        """The events of a record."""
        record, source = item.record, item.source
        if isinstance(record, SavedHeader):
            yield from self._header(record, source)
        elif isinstance(record, ConversationRecord):
            claimed = record.session_id or record.sessionId
            if claimed and claimed != self._claimed:
                self._claimed = claimed
                yield SessionInfo(session_id=claimed)
            if _is_message(record):
                yield from self._messages(record, source)
            else:
                text = record.content if type(record.content) is str else UNSET
                time = canonical_time(record.timestamp)
                yield Record(after=self.index, kind="other", text=text, timestamp=time, source=source)

    def fragment(self, item: Item, file: str) -> Iterator[Event]:
        """A piece of a line or of a document that is no record."""
        assert isinstance(item.record, RawRecord)
        for code in item.record.findings:
            yield problem(code, file=file, line=item.line)
        yield Record(after=self.index, kind="fragment", source=item.source)

    def _header(self, header: SavedHeader, source: SourceRef) -> Iterator[Event]:
        self._model = _stated(header.model)
        times = [canonical_time(time) for time in (header.created_at, header.updated_at)]
        created, updated = (None if time is UNSET else time for time in times)
        yield SessionInfo(
            title=_stated(header.name),
            cwd=_stated(header.workspace),
            started_at=created,
            extra=None if updated is None else {ENDED_AT: updated},
        )
        yield Record(after=self.index, kind="state", text=header.name, timestamp=times[1], source=source)

    def _messages(self, record: ConversationRecord, source: SourceRef) -> Iterator[Message]:
        is_result = record.role == TOOL
        metadata = _metadata(record)
        if self._model is not None and record.role == "assistant" and metadata.model is UNSET:
            metadata.model = ModelUse(name=self._model)
        self.index += 1
        message = Message(
            index=self.index,
            role="user" if is_result else record.role,
            uuid=record.uuid,
            parent_uuid=record.parentUuid,
            timestamp=canonical_time(record.timestamp),
            content=[_tool_message(record)] if is_result else _content_blocks(record.content),
            metadata=UNSET if metadata == _NO_METADATA else metadata,
            source=source,
        )
        # The id of a message is derived from its text alone, without its calls.
        uuid = self._chain.identify(message)
        self._chain.attach(message)
        results: list[Block] = []
        for number, call in enumerate(() if is_result else decode_each(record.tool_calls, ToolCall)):
            tool_id = call.id if call.id is not None else f"{uuid}:t{number}"
            message.content.append(ToolUse(tool_id=tool_id, tool_name=call.name, input=call.args))
            if (result := _result_of(call, tool_id)) is not None:
                results.append(result)
        yield message
        self._chain.last = uuid
        if results:
            self._chain.last = f"{uuid}{RESULTS_SUFFIX}"
            self.index += 1
            yield Message(
                index=self.index,
                role="user",
                uuid=self._chain.last,
                parent_uuid=uuid,
                timestamp=message.timestamp,
                content=results,
                source=source,
            )


def _content_blocks(content: JSON) -> list[Block]:
    if type(content) is str:
        return [Text(text=content)] if content else []
    return [_content_block(item) for item in content] if type(content) is list else []


def _content_block(item: JSON) -> Block:
    if type(item) is dict and item.get("type") == "text" and type(item.get("text")) is str:
        return Text(text=item["text"])
    return Unknown(value=item)


def _tool_message(record: ConversationRecord) -> Block:
    return ToolResult(
        tool_id=record.tool_call_id,
        tool_name=record.name,
        output=_output(record.content),
        is_error=_is_error(record.success),
    )


def _result_of(call: ToolCall, tool_id: str) -> Block | None:
    """The result of a call; None where it has not ended."""
    output, is_error = _output(call.result), _is_error(call.success)
    if output is UNSET and is_error is UNSET and call.duration_ms is None:
        return None
    return ToolResult(tool_id=tool_id, tool_name=call.name, output=output, is_error=is_error)


def _output(value: JSON) -> JSON:
    """What a tool gave back as text."""
    return UNSET if value is None else value if type(value) is str else dumps(value).decode()


def _is_error(success: bool | None | UnsetType) -> bool | UnsetType:
    """A call whose success is null has failed."""
    return UNSET if success is UNSET else not success


def _metadata(record: ConversationRecord) -> Metadata:
    metadata = Metadata(cwd=record.cwd, git_branch=record.gitBranch, agent_version=record.version)
    if record.model is not UNSET:
        metadata.model = ModelUse(name=record.model)
    if record.role == TOOL:
        return metadata
    if record.tokens is not None:
        metadata.estimated_tokens = record.tokens.estimated
    if (usage := record.usage) is not None:
        counts = TokenUsage(
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cache_read_tokens=usage.cache_read_tokens,
        )
        metadata.token_usage = UNSET if counts == TokenUsage() else counts
    return metadata


def _stated(text: str | None | UnsetType) -> str | None:
    """A text of a header; None where it is absent or blank."""
    return text if isinstance(text, str) and text.strip() else None
