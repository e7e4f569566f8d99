"""sage-emacs' records to events.

A record with tool calls and their results gives two messages: the calls, and the results. Records without an id
get one, and those without a parent follow the one before them; an archive may be written backwards, so where the times
say so, they follow the message that came before them in time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from itertools import pairwise
from operator import itemgetter

from msgspec import UNSET, UnsetType

from clew.agents.base import SourceFile
from clew.agents.content import content_blocks, text_or_unset
from clew.agents.decoding import EventDecoder
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
from clew.agents.sage_format import decode_output, is_error
from clew.io.records import RawRecord
from clew.io.typed_records import decode_each
from clew.model.blocks import Block, ToolResult, ToolUse
from clew.model.codes import problem
from clew.model.events import Event, SessionInfo
from clew.model.message import Message, Metadata, ModelUse, Role
from clew.model.time import canonical_time, parse_time
from clew.model.usage import TokenUsage

ENDED_AT = "ended_at"
"""In `Facts.extra`: when a saved session was last saved, by its header."""


def read_events(source: SourceFile) -> Iterator[Event]:
    """Decode a session, in file order."""
    file, scope = ConversationFile(source), locate.scope(source.path)
    parents: dict[str, str] | None = None
    times = _message_times(file)
    if times != sorted(times):
        by_time = sorted(zip(times, _message_uuids(source, scope, file), strict=True), key=itemgetter(0))
        parents = {first: last for (_, (_, last)), (_, (first, _)) in pairwise(by_time)}
        yield SessionInfo(leaf_uuid=by_time[-1][1][1])
    decoder = _ConversationDecoder(source, scope, parents)
    for item in file:
        yield from decoder.decode(item)
    if file.damage:
        yield problem("damaged-archive", file.damage, file=str(source.path))


def _message_times(file: ConversationFile) -> list[datetime]:
    """When each record that is a message was written; one without a time, at the time of the record before it."""
    times = [datetime.min.replace(tzinfo=UTC)]
    for item in file:
        record = item.record
        if isinstance(record, ConversationRecord) and _is_message(record):
            time = parse_time(record.timestamp) or times[-1]
            # A record that names its parent stays after the record before it, also if the clock was set back.
            times.append(time if record.parentUuid is UNSET else max(times[-1], time))
    return times[1:]


def _message_uuids(source: SourceFile, scope: str, file: ConversationFile) -> Iterator[tuple[str, str]]:
    """The uuids of the first and the last message of each record that is a message."""
    decoder = _ConversationDecoder(source, scope, None)
    for item in file:
        uuids = [str(event.uuid) for event in decoder.decode(item) if isinstance(event, Message)]
        if uuids:
            yield uuids[0], uuids[-1]


def _is_message(record: ConversationRecord) -> bool:
    return type(record.role) is str and (record.role in ROLES or record.role == TOOL)


class _ConversationDecoder(EventDecoder):
    def __init__(self, source: SourceFile, scope: str, parents: Mapping[str, str] | None) -> None:
        super().__init__(source)
        self.chain = MessageChain(scope, parents)
        self._claimed: str | None = None
        self._model: str | None = None
        """The model in the header of a saved session, for replies that name none."""

    def decode(self, item: Item) -> Iterator[Event]:
        """The events of a record."""
        record, self.ref = item.record, item.source
        if isinstance(record, RawRecord):
            yield from self.fragment(record, item.line)
        elif isinstance(record, SavedHeader):
            yield from self._header(record)
        else:
            claimed = record.session_id or record.sessionId
            if claimed and claimed != self._claimed:
                self._claimed = claimed
                yield SessionInfo(session_id=claimed)
            if _is_message(record):
                yield from self._messages(record)
            else:
                yield self.make_record("other", text=text_or_unset(record.content), time=record.timestamp)

    def _header(self, header: SavedHeader) -> Iterator[Event]:
        self._model = _stated(header.model)
        updated = canonical_time(header.updated_at) or None
        yield SessionInfo(
            title=_stated(header.name),
            cwd=_stated(header.workspace),
            started_at=canonical_time(header.created_at) or None,
            extra=None if updated is None else {ENDED_AT: updated},
        )
        yield self.make_record("state", text=header.name, time=header.updated_at)

    def _messages(self, record: ConversationRecord) -> Iterator[Message]:
        is_result = record.role == TOOL
        metadata = _metadata(record)
        if self._model is not None and record.role == "assistant" and metadata.model is UNSET:
            metadata.model = ModelUse(name=self._model)
        content = content_blocks(record.content)
        if is_result:
            output, failed = decode_output(record.content), is_error(record.success)
            content = [ToolResult(tool_id=record.tool_call_id, tool_name=record.name, output=output, is_error=failed)]
        role: Role = "user" if is_result else record.role
        # The id of a message is derived from its text alone, without its calls.
        message = self.make_chained(
            role, content, metadata, uuid=record.uuid, parent=record.parentUuid, time=record.timestamp
        )
        uuid = str(message.uuid)
        results: list[Block] = []
        for number, call in enumerate(() if is_result else decode_each(record.tool_calls, ToolCall)):
            tool_id = call.id if call.id is not None else f"{uuid}:t{number}"
            content.append(ToolUse(tool_id=tool_id, tool_name=call.name, input=call.args))
            output, failed = decode_output(call.result), is_error(call.success)
            if output is not UNSET or failed is not UNSET or call.duration_ms is not None:
                # The call has ended.
                results.append(ToolResult(tool_id=tool_id, tool_name=call.name, output=output, is_error=failed))
        yield message
        if results:
            self.chain.last = f"{uuid}:r"
            yield self.make_message("user", results, uuid=self.chain.last, parent=uuid, time=message.timestamp)


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
