"""OpenCode's rows to events.

A part of a reply is a message of its own, as its row is a record of its own; the parts of one reply share
`metadata.message_id`. The parts of a prompt are one message. A call and its result are one row and two messages.
Messages that were undone are deleted from their tables; their last states are in the log of events, and are shown as a
branch that was left.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from clew.agents.base import SourceFile
from clew.agents.content import (
    attachment_block,
    output_with_attachments,
    split_data_url,
    text_block,
    text_blocks,
    text_or_unset,
)
from clew.agents.database_rows import LINES, RESULT_SUFFIX, Line, RowDecoder, decode_json, decode_row
from clew.agents.decoding import known_facts, time_of_milliseconds, token_usage
from clew.agents.opencode.records import (
    File,
    MessageData,
    MessageEvent,
    MessageOfVersion2,
    MessageRow,
    Part,
    Revert,
    SessionRow,
    Times,
    Tokens,
    ToolState,
)
from clew.analysis.todos import as_todos
from clew.io.records import RawRecord
from clew.io.typed_records import decode_each, decode_value
from clew.model.blocks import Block, Text, Thinking, ToolResult, ToolUse, Unknown
from clew.model.events import Event, SessionInfo, SubagentStarted, UsageReport
from clew.model.json import JSON
from clew.model.message import Metadata, ModelUse, SourceRef
from clew.model.usage import TokenUsage

UNTITLED = ("New session - ", "Child session - ")
"""How the titles begin that the client gives before there is one."""
SHELL_TOOL = "bash"
FAILED_TOOL = "invalid"
"""The name under which the client keeps a call that it could not run."""
_RECORD_KINDS = {
    "step-start": "progress",
    "step-finish": "cost",
    "patch": "state",
    "snapshot": "state",
    "retry": "progress",
    "compaction": "state",
    "agent": "link",
}
"""Parts that are no messages."""
_STATE_TYPES = ("agent-switched", "model-switched", "location-switched", "idle")


def read_events(source: SourceFile) -> Iterator[Event]:
    """Decode a session, in file order."""
    decoder = _OpenCodeDecoder(source)
    yield from decoder.read_lines(LINES.decode_file, decoder.decode)
    yield from decoder.end()


class _SourcePart(NamedTuple):
    """A part, and the line it is on."""

    ref: SourceRef
    id: str
    part: Part


class _Message(msgspec.Struct):
    """A message of version 1."""

    id: str
    data: MessageData
    ref: SourceRef
    parts: list[_SourcePart] = []
    """Parts of a prompt that were read; those of a reply become events at once."""
    is_begun: bool = False
    """The row of the message itself has become an event."""
    has_usage: bool = False


class _Removed(msgspec.Struct):
    """A message that was undone, as the log of events has it."""

    ref: SourceRef
    data: MessageData
    first_seq: int
    removed_seq: int | None = None
    parts: dict[str, _SourcePart] = {}


class _OpenCodeDecoder(RowDecoder):
    def __init__(self, source: SourceFile) -> None:
        super().__init__(source)
        self._is_version_2 = False
        self._open: _Message | None = None
        self._messages: dict[str, _Message] = {}
        self._ends: dict[str, str | None] = {}
        """By message: the uuid of its last event, which the next message follows."""
        self._reverted_to: str | None = None
        self._leaf: str | None = None
        self._removed: dict[str, _Removed] = {}
        self._event_lines: list[tuple[SourceRef, str | None]] = []

    def decode(self, line: Line) -> Iterator[Event]:
        """The events of a line; those of a message are complete once no more parts of it follow."""
        if line.table != "part":
            yield from self._finish_message()
        yield from super().decode(line)

    def fragment(self, record: RawRecord, line: int) -> Iterator[Event]:
        """The events of a piece of the file that is no record."""
        yield from self._finish_message()
        yield from super().fragment(record, line)

    def row_events(self, table: JSON, row: JSON) -> Iterator[Event]:
        """The events of a row."""
        message = decode_row(row, MessageRow)
        match table:
            case "message":
                self._message_row(message)
            case "part":
                yield from self._part_row(message)
            case "session" | "session_v2":
                yield from self._session_row(decode_row(row, SessionRow), table)
            case "session_message":
                yield from self._row_of_version_2(message)
            case "event":
                self._event_row(message)
            case "session_input":
                yield self.make_record("queue", table, text=text_or_unset(message.prompt))
            case "project" | "todo":
                yield self.make_record("state", table)
            case _:
                yield from self.unknown_row(table)

    def end(self) -> Iterator[Event]:
        """What is known once all lines were read."""
        yield from self._finish_message()
        leaf = self.chain.last if self._leaf is None else self._leaf
        yield from self._removed_messages()
        yield SessionInfo(session_id=self.session or None, leaf_uuid=leaf)

    def _session_row(self, row: SessionRow, table: str) -> Iterator[Event]:
        self.session, self._is_version_2 = row.id or "", table == "session_v2"
        revert = decode_json(row.revert, Revert)
        self._reverted_to = revert.messageID if revert is not None else None
        title = row.title if row.title and not row.title.startswith(UNTITLED) else None
        extension = known_facts(
            project_id=row.project_id,
            share_url=row.share_url,
            archived=row.time_archived is not None or None,
            forked_from=row.fork_session_id,
        )
        yield SessionInfo(
            session_id=row.id,
            cwd=row.directory,
            agent_version=row.version,
            slug=row.slug,
            agent_id=row.id if row.parent_id else None,
            parent_session_id=row.parent_id,
            is_subagent=row.parent_id is not None,
            started_at=time_of_milliseconds(row.time_created),
            title=title,
            has_derived_parents=True,
            extra={"extension": extension},
        )
        yield self.make_record("title" if title else "state", table, text=title or UNSET)

    # Version 1: a row for each message, followed by rows for its parts

    def _message_row(self, row: MessageRow) -> None:
        name = row.id or f"line {self.ref.record}"
        if name == self._reverted_to:
            self._leaf = self.chain.last or ""
        data = decode_json(row.data, MessageData)
        self._open = self._messages[name] = _Message(name, data or MessageData(), self.ref)

    def _part_row(self, row: MessageRow) -> Iterator[Event]:
        part, name = decode_json(row.data, Part), row.message_id or ""
        if part is None:
            yield from self._finish_message()
            yield from self.malformed_row("data", "part")
            return
        if self._open is None or self._open.id != name:
            yield from self._finish_message()
            self._open = self._messages.setdefault(name, _Message(name, MessageData(), self.ref, is_begun=True))
        found = _SourcePart(self.ref, row.id or f"line {self.ref.record}", part)
        if self._open.data.role == "user":
            self._open.parts.append(found)
        else:
            yield from self._begin(self._open)
            yield from self._reply_part(self._open, found)

    def _begin(self, message: _Message) -> Iterator[Event]:
        if not message.is_begun:
            message.is_begun = True
            self.ref, ref = message.ref, self.ref
            yield self.make_record("state", "message", message_uuid=message.id)
            self.ref = ref

    def _finish_message(self) -> Iterator[Event]:
        """Close the message whose parts were read."""
        message, self._open, ref = self._open, None, self.ref
        if message is None:
            return
        if message.data.role == "assistant" and not message.is_begun:
            message.is_begun, self.ref = True, message.ref
            error = message.data.error
            content: list[Block] = [Text(text=error.text)] if error is not None else []
            yield from self._reply(message, message.id, content, _created(message.data))
        else:
            yield from self._begin(message)
            yield from self._prompt_parts(message)
        self._ends[message.id], self.ref = self.chain.last, ref

    def _prompt_parts(self, message: _Message) -> Iterator[Event]:
        """A prompt: what was typed and attached is one message, and what the client added are others."""
        parts, message.parts = message.parts, []
        blocks = [(found, _prompt_block(found.part)) for found in parts]
        typed = [block for found, block in blocks if block is not None and found.part.synthetic is not True]
        created, is_first = _created(message.data), True
        for found, block in blocks:
            self.ref, kind = found.ref, found.part.type
            if block is None:
                yield self.make_record(_RECORD_KINDS.get(kind or "", "other"), text_or_unset(kind))
            elif found.part.synthetic is True:
                yield self.make_next("user", found.id, [block], created, Metadata(is_meta=True))
            elif is_first:
                is_first = False
                yield self.make_next("user", found.id, typed, created)
            else:
                yield self.make_record("link", text_or_unset(kind), message_uuid=message.id)

    def _reply_part(self, message: _Message, found: _SourcePart) -> Iterator[Event]:
        part, self.ref = found.part, found.ref
        time = time_of_milliseconds(part.time.start if part.time is not None else None) or _created(message.data)
        match part.type:
            case "text" if part.text:
                yield from self._reply(message, found.id, [Text(text=part.text)], time)
            case "reasoning":
                thinking = Thinking(thinking=part.text or "", signature=_signature(part.metadata))
                yield from self._reply(message, found.id, [thinking], time)
            case "tool":
                yield from self._call_part(message, found, time)
            case "file":
                yield from self._reply(message, found.id, [_file_block(part)], time)
            case kind:
                known = "progress" if kind == "text" else _RECORD_KINDS.get(kind or "", "other")
                yield self.make_record(known, text_or_unset(kind))

    def _call_part(self, message: _Message, found: _SourcePart, time: str | None) -> Iterator[Event]:
        part, state = found.part, found.part.state or ToolState()
        call = ToolUse(tool_id=part.callID or found.id, tool_name=part.tool, input=state.input)
        started = time_of_milliseconds(state.time.start if state.time is not None else None) or time
        yield from self._reply(message, found.id, [call], started)
        yield from self._results(found.id, [(call, state)], started)

    def _reply(self, message: _Message, uuid: str, content: list[Block], time: str | None) -> Iterator[Event]:
        """A part of a reply; the first one holds the token usage of the request."""
        data = message.data
        name = data.modelID or (data.model.modelID if data.model is not None else None)
        metadata = Metadata(message_id=message.id, model=ModelUse(name=name, stop_reason=text_or_unset(data.finish)))
        if data.path is not None and data.path.cwd:
            metadata.cwd = data.path.cwd
        if data.summary is True:
            metadata.is_compact_summary = True
        if not message.has_usage:
            message.has_usage = True
            yield from self._usage(data.tokens, data.time, name, message.id, metadata)
        yield self.make_next("assistant", uuid, content, time, metadata)

    def _usage(
        self, tokens: Tokens | None, time: Times | None, model: str | None, name: str, metadata: Metadata
    ) -> Iterator[Event]:
        """The usage of the next message. A fork copies messages under new ids, but not at other times."""
        usage = _token_usage(tokens)
        if usage is None:
            return
        metadata.token_usage = usage
        created, completed = (time.created, time.completed) if time is not None else (None, None)
        call = f"opencode {created} {completed} {model}" if created is not None else name
        at = time_of_milliseconds(created)
        yield UsageReport(call_id=call, usage=usage, model=model, timestamp=at, message_index=self.index + 1)

    def _results(self, uuid: str, calls: list[tuple[ToolUse, ToolState]], time: str | None) -> Iterator[Event]:
        """The results of calls, and the sub-agents that they started."""
        results: list[Block] = []
        metadata = Metadata()
        for call, state in calls:
            if state.status in ("completed", "error"):
                results.append(_result(call, state))
                ended = state.time.end or state.time.completed if state.time is not None else None
                time = time_of_milliseconds(ended) or time
            details = state.metadata
            if details is not None and (todos := as_todos(details.todos)) is not None:
                metadata.todos = todos
            # A fork copies the calls of the session that it was made of.
            if (
                details is not None
                and details.sessionId
                and details.parentSessionId in (None, self.session)
                and details.sessionId != self.session
            ):
                yield SubagentStarted(session_id=details.sessionId, agent_id=details.sessionId, tool_id=call.tool_id)
        if results:
            yield self.make_next("user", uuid + RESULT_SUFFIX, results, time, metadata)

    # Messages that were undone

    def _event_row(self, row: MessageRow) -> None:
        """Note a state of a message or part that was removed later; the last state counts."""
        ref = self.ref
        event, seq = decode_json(row.data, MessageEvent), row.seq or 0
        self._event_lines.append((ref, row.type))
        kind = (row.type or "").rpartition(".")[0]
        if event is None:
            return
        if kind == "message.removed" and event.messageID in self._removed:
            self._removed[event.messageID].removed_seq = seq
        elif kind == "message.updated" and isinstance(event.info, dict):
            data = decode_value(event.info, MessageData)
            known = self._removed.get(data.id or "")
            if known is not None:
                known.data, known.ref = data, ref
            elif data.id is not None and data.id not in self._messages:
                self._removed[data.id] = _Removed(ref, data, seq)
        elif kind == "message.part.updated" and isinstance(event.part, dict):
            part = decode_value(event.part, Part)
            known = self._removed.get(part.messageID or "")
            if known is not None and part.id is not None:
                known.parts[part.id] = _SourcePart(ref, part.id, part)

    def _removed_messages(self) -> Iterator[Event]:
        """The undone messages, each behind the message that it followed when it was written."""
        shown = {part.ref.record for message in self._removed.values() for part in message.parts.values()}
        shown |= {message.ref.record for message in self._removed.values()}
        for ref, kind in self._event_lines:
            if ref.record not in shown:
                self.ref = ref
                yield self.make_record("progress", text_or_unset(kind))
        for name, removed in sorted(self._removed.items()):
            self.chain.last = self._tail_before(name, removed)
            message = _Message(name, removed.data, removed.ref)
            parts = sorted(removed.parts.values(), key=lambda found: found.id)
            if message.data.role == "user":
                message.parts = parts
                self._open = message
            else:
                self._open = message
                for found in parts:
                    yield from self._begin(message)
                    yield from self._reply_part(message, found)
            yield from self._finish_message()

    def _tail_before(self, name: str, removed: _Removed) -> str | None:
        """The end of the last message before a removed one that was there when it was written. Ids ascend."""
        others = (
            other
            for other in self._ends
            if other < name
            and (
                other not in self._removed
                or (self._removed[other].removed_seq or removed.first_seq) >= removed.first_seq
            )
        )
        last = max(others, default=None)
        return self._ends[last] if last is not None else None

    # Version 2: a row for each message

    def _row_of_version_2(self, row: MessageRow) -> Iterator[Event]:
        kind, uuid = row.type, row.id or f"line {self.ref.record}"
        data = decode_json(row.data, MessageOfVersion2)
        if self._messages and not self._is_version_2:
            # The runtime of version 2 in a client of version 1: the messages are in both tables.
            yield self.make_record("copy", text_or_unset(kind))
            return
        if data is None:
            yield from self.malformed_row("data", kind)
            return
        if uuid == self._reverted_to:
            self._leaf = self.chain.last or ""
        time = time_of_milliseconds(data.time.created if data.time is not None else row.time_created)
        match kind:
            case "user" | "synthetic" | "system":
                content = [*text_blocks(data.text), *(_attached(file) for file in decode_each(data.files, File))]
                metadata = Metadata() if kind == "user" else Metadata(is_meta=True)
                yield self.make_next("system" if kind == "system" else "user", uuid, content, time, metadata)
            case "assistant":
                yield from self._reply_of_version_2(uuid, data, time)
            case "compaction":
                summary: list[Block] = [Text(text=data.summary or "")]
                yield self.make_next("user", uuid, summary, time, Metadata(is_compact_summary=True))
            case "shell":
                call = ToolUse(tool_id=data.callID or uuid, tool_name=SHELL_TOOL, input={"command": data.command})
                yield self.make_next("assistant", uuid, [call], time)
                state = ToolState(status="completed", output=data.output or "")
                yield from self._results(uuid, [(call, state)], time)
            case _:
                yield self.make_record("state" if kind in _STATE_TYPES else "other", text_or_unset(kind))

    def _reply_of_version_2(self, uuid: str, data: MessageOfVersion2, time: str | None) -> Iterator[Event]:
        content: list[Block] = []
        calls: list[tuple[ToolUse, ToolState]] = []
        for item in data.content if isinstance(data.content, list) else ():
            part = decode_value(item, Part) if isinstance(item, dict) else Part()
            if part.type == "text":
                content.append(Text(text=part.text or ""))
            elif part.type == "reasoning":
                content.append(Thinking(thinking=part.text or "", signature=_signature(part.metadata)))
            elif part.type == "tool":
                state = part.state or ToolState()
                state.time = part.time or state.time
                call = ToolUse(tool_id=part.id or part.callID, tool_name=part.name or part.tool, input=state.input)
                calls.append((call, state))
                content.append(call)
            else:
                content.append(Unknown(value=item))
        if not content and data.error is not None:
            content.append(Text(text=data.error.text))
        model = data.model.id or data.model.modelID if data.model is not None else None
        metadata = Metadata(message_id=uuid, model=ModelUse(name=model, stop_reason=text_or_unset(data.finish)))
        yield from self._usage(data.tokens, data.time, model, uuid, metadata)
        yield self.make_next("assistant", uuid, content, time, metadata)
        yield from self._results(uuid, calls, time)


def _created(data: MessageData) -> str | None:
    return time_of_milliseconds(data.time.created) if data.time is not None else None


def _token_usage(tokens: Tokens | None) -> TokenUsage | None:
    """The counts of a request. All zero: no model was asked, as for a command that a person ran."""
    if tokens is None:
        return None
    cache = tokens.cache
    read, written = (cache.read, cache.write) if cache is not None else (None, None)
    if not any((tokens.input, tokens.output, tokens.reasoning, read, written)):
        return None
    output = None if tokens.output is None else tokens.output + (tokens.reasoning or 0)
    return token_usage(
        input=tokens.input, output=output, reasoning=tokens.reasoning, cache_read=read, cache_write=written
    )


def _prompt_block(part: Part) -> Block | None:
    """The content of a part of a prompt; None for a part that says nothing."""
    match part.type:
        case "text":
            return Text(text=part.text) if part.text else None
        case "subtask":
            return Text(text=part.prompt) if part.prompt else None
        case "file":
            return _file_block(part)
        case _:
            return None


def _file_block(part: Part) -> Block:
    _, encoding, content = split_data_url(part.url or "")
    return attachment_block(content, part.mime, encoding, part.filename)


def _attached(file: File) -> Block:
    if file.data is not None:
        return attachment_block(file.data, file.mime, "base64", file.name)
    return attachment_block(file.uri or "", file.mime, "url", file.name)


def _signature(metadata: JSON) -> str | UnsetType:
    """The signature of a thought, which each provider keeps below its own name."""
    for values in metadata.values() if isinstance(metadata, dict) else ():
        if isinstance(values, dict) and isinstance(values.get("signature"), str):
            return str(values["signature"])
    return UNSET


def _result(call: ToolUse, state: ToolState) -> ToolResult:
    """The result of a call. A command that failed is `completed` too."""
    is_error = state.status == "error" or call.tool_name == FAILED_TOOL
    exit_status = state.metadata.exit if state.metadata is not None else None
    output: JSON = state.output if state.output is not None else state.error
    if isinstance(output, dict) and isinstance(output.get("message"), str):
        output = output["message"]
    items = state.content if isinstance(state.content, list) else []
    files = [_file_block(file) for file in decode_each(state.attachments, Part)]
    files += [
        _attached(decode_value(item, File)) for item in items if isinstance(item, dict) and item.get("type") == "file"
    ]
    if isinstance(state.content, list):
        texts = [block.text for block in map(text_block, items) if isinstance(block, Text)]
        output = "\n".join(texts) if texts or output is None else output
    return ToolResult(
        tool_id=call.tool_id,
        tool_name=text_or_unset(call.tool_name),
        output=output_with_attachments(output, files),
        is_error=is_error or bool(exit_status),
    )
