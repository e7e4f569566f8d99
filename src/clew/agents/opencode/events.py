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

from clew.agents.base import SourceFile, fragment_events, open_main
from clew.agents.database_rows import LINES, Line, decode_json, decode_row
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
from clew.io.compress import damage
from clew.io.records import RawRecord
from clew.io.typed_records import decode_each, decode_value
from clew.model.blocks import Block, DocumentBlock, Image, Text, Thinking, ToolResult, ToolUse, Unknown
from clew.model.codes import problem
from clew.model.events import Event, SessionInfo, SubagentStarted, UsageReport
from clew.model.json import JSON
from clew.model.message import Message, Metadata, ModelUse, Role, SourceRef
from clew.model.record import ORIGIN, Record
from clew.model.time import format_utc
from clew.model.todo import Todo
from clew.model.usage import TokenUsage

RESULT_SUFFIX = ":result"
"""Behind the uuid of a call: the uuid of the message with its result."""
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
    decoder = _Decoder()
    with open_main(source) as stream:
        for number, line in LINES.decode_file(stream):
            if isinstance(line, RawRecord):
                yield from decoder.finish_message()
                yield from fragment_events(source, line, number, after=decoder.index)
            else:
                yield from decoder.events(line, SourceRef(0, number - 1))
        found = damage(stream)
    yield from decoder.end()
    if found:
        yield problem("damaged-archive", found, file=str(source.path))


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


class _Decoder:
    def __init__(self) -> None:
        self.index = 0
        self._tail: str | None = None
        """The uuid that the next message follows."""
        self._session = ""
        self._is_version_2 = False
        self._open: _Message | None = None
        self._messages: dict[str, _Message] = {}
        self._ends: dict[str, str | None] = {}
        """By message: the uuid of its last event, which the next message follows."""
        self._reverted_to: str | None = None
        self._leaf: str | None = None
        self._removed: dict[str, _Removed] = {}
        self._event_lines: list[tuple[SourceRef, str | None]] = []

    def events(self, line: Line, ref: SourceRef) -> Iterator[Event]:
        """The events of the next line."""
        row = decode_row(line.row, MessageRow)
        if line.table == "part":
            yield from self._part_row(row, ref)
            return
        yield from self.finish_message()
        match line.table:
            case "message":
                self._message_row(row, ref)
            case "session" | "session_v2":
                yield from self._session_row(decode_row(line.row, SessionRow), ref, line.table)
            case "session_message":
                yield from self._row_of_version_2(row, ref)
            case "event":
                self._event_row(row, ref)
            case "session_input":
                yield self._record("queue", ref, type="session_input", text=_text(row.prompt))
            case "project" | "todo":
                yield self._record("state", ref, type=line.table)
            case None if line.clew_rows is not None:
                yield SessionInfo(session_id=_string(line.session), has_derived_parents=True)
                yield self._record("state", ref, type="header")
            case None if line.type == ORIGIN:
                yield self._record("state", ref, type=ORIGIN)
            case other:
                yield self._record("other", ref, type=_text(other))

    def end(self) -> Iterator[Event]:
        """What is known once all lines were read."""
        yield from self.finish_message()
        leaf = self._tail if self._leaf is None else self._leaf
        yield from self._removed_messages()
        yield SessionInfo(session_id=self._session or None, leaf_uuid=leaf)

    def _session_row(self, row: SessionRow, ref: SourceRef, table: str) -> Iterator[Event]:
        self._session, self._is_version_2 = row.id or "", table == "session_v2"
        revert = decode_json(row.revert, Revert)
        self._reverted_to = revert.messageID if revert is not None else None
        title = row.title if row.title and not row.title.startswith(UNTITLED) else None
        extra: dict[str, JSON] = {
            "project_id": row.project_id,
            "share_url": row.share_url,
            "archived": row.time_archived is not None or None,
            "forked_from": row.fork_session_id,
        }
        yield SessionInfo(
            session_id=row.id,
            cwd=row.directory,
            agent_version=row.version,
            slug=row.slug,
            agent_id=row.id if row.parent_id else None,
            parent_session_id=row.parent_id,
            is_subagent=row.parent_id is not None,
            started_at=_time(row.time_created),
            title=title,
            has_derived_parents=True,
            extra={"extension": {name: value for name, value in extra.items() if value is not None}},
        )
        yield self._record("title" if title else "state", ref, type=table, text=title or UNSET)

    # Version 1: a row for each message, followed by rows for its parts

    def _message_row(self, row: MessageRow, ref: SourceRef) -> None:
        name = row.id or f"line {ref.record}"
        if name == self._reverted_to:
            self._leaf = self._tail or ""
        data = decode_json(row.data, MessageData)
        self._open = self._messages[name] = _Message(name, data or MessageData(), ref)

    def _part_row(self, row: MessageRow, ref: SourceRef) -> Iterator[Event]:
        part, name = decode_json(row.data, Part), row.message_id or ""
        if part is None:
            yield from self.finish_message()
            yield problem("malformed-json", line=ref.record + 1, path="row.data")
            yield self._record("other", ref, type="part")
            return
        if self._open is None or self._open.id != name:
            yield from self.finish_message()
            self._open = self._messages.setdefault(name, _Message(name, MessageData(), ref, is_begun=True))
        found = _SourcePart(ref, row.id or f"line {ref.record}", part)
        if self._open.data.role == "user":
            self._open.parts.append(found)
            return
        yield from self._begin(self._open)
        yield from self._reply_part(self._open, found)

    def _begin(self, message: _Message) -> Iterator[Event]:
        if not message.is_begun:
            message.is_begun = True
            yield self._record("state", message.ref, type="message", message_uuid=message.id)

    def finish_message(self) -> Iterator[Event]:
        """Close the message whose parts were read."""
        message, self._open = self._open, None
        if message is None:
            return
        if message.data.role == "assistant" and not message.is_begun:
            message.is_begun = True
            error = message.data.error
            content: list[Block] = [Text(text=error.text)] if error is not None else []
            yield from self._reply(message, message.id, message.ref, content, _created(message.data))
        else:
            yield from self._begin(message)
            yield from self._prompt_parts(message)
        self._ends[message.id] = self._tail

    def _prompt_parts(self, message: _Message) -> Iterator[Event]:
        """A prompt: what was typed and attached is one message, and what the client added are others."""
        parts, message.parts = message.parts, []
        blocks = [(found, _prompt_block(found.part)) for found in parts]
        typed = [block for found, block in blocks if block is not None and found.part.synthetic is not True]
        created, is_first = _created(message.data), True
        for found, block in blocks:
            kind = found.part.type
            if block is None:
                yield self._record(_RECORD_KINDS.get(kind or "", "other"), found.ref, type=_text(kind))
            elif found.part.synthetic is True:
                yield self._message("user", found.id, found.ref, [block], created, Metadata(is_meta=True))
            elif is_first:
                is_first = False
                yield self._message("user", found.id, found.ref, typed, created, Metadata())
            else:
                yield self._record("link", found.ref, type=_text(kind), message_uuid=message.id)

    def _reply_part(self, message: _Message, found: _SourcePart) -> Iterator[Event]:
        part, ref = found.part, found.ref
        time = _time(part.time.start if part.time is not None else None) or _created(message.data)
        match part.type:
            case "text" if part.text:
                yield from self._reply(message, found.id, ref, [Text(text=part.text)], time)
            case "reasoning":
                thinking = Thinking(thinking=part.text or "", signature=_signature(part.metadata))
                yield from self._reply(message, found.id, ref, [thinking], time)
            case "tool":
                yield from self._call_part(message, found, time)
            case "file":
                yield from self._reply(message, found.id, ref, [_file_block(part)], time)
            case kind:
                known = "progress" if kind == "text" else _RECORD_KINDS.get(kind or "", "other")
                yield self._record(known, ref, type=_text(kind))

    def _call_part(self, message: _Message, found: _SourcePart, time: str | None) -> Iterator[Event]:
        part, state = found.part, found.part.state or ToolState()
        call = ToolUse(tool_id=part.callID or found.id, tool_name=part.tool, input=state.input)
        started = _time(state.time.start if state.time is not None else None) or time
        yield from self._reply(message, found.id, found.ref, [call], started)
        yield from self._results(found.id, found.ref, [(call, state)], started)

    def _reply(
        self, message: _Message, uuid: str, ref: SourceRef, content: list[Block], time: str | None
    ) -> Iterator[Event]:
        """A part of a reply; the first one holds the token usage of the request."""
        data = message.data
        name = data.modelID or (data.model.modelID if data.model is not None else None)
        metadata = Metadata(message_id=message.id, model=ModelUse(name=name, stop_reason=_text(data.finish)))
        if data.path is not None and data.path.cwd:
            metadata.cwd = data.path.cwd
        if data.summary is True:
            metadata.is_compact_summary = True
        if not message.has_usage:
            message.has_usage = True
            yield from self._usage(data.tokens, data.time, name, message.id, metadata)
        yield self._message("assistant", uuid, ref, content, time, metadata)

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
        yield UsageReport(
            call_id=call, usage=usage, model=model, timestamp=_time(created), message_index=self.index + 1
        )

    def _results(
        self, uuid: str, ref: SourceRef, calls: list[tuple[ToolUse, ToolState]], time: str | None
    ) -> Iterator[Event]:
        """The results of calls, and the sub-agents that they started."""
        results: list[Block] = []
        metadata = Metadata()
        for call, state in calls:
            if state.status in ("completed", "error"):
                results.append(_result(call, state))
                ended = state.time.end or state.time.completed if state.time is not None else None
                time = _time(ended) or time
            details = state.metadata
            if details is not None and details.todos is not None:
                metadata.todos = [
                    Todo(content=_text(item.content), status=_text(item.status), priority=_text(item.priority))
                    for item in details.todos
                ]
            # A fork copies the calls of the session that it was made of.
            if (
                details is not None
                and details.sessionId
                and details.parentSessionId in (None, self._session)
                and details.sessionId != self._session
            ):
                yield SubagentStarted(session_id=details.sessionId, agent_id=details.sessionId, tool_id=call.tool_id)
        if results:
            yield self._message("user", uuid + RESULT_SUFFIX, ref, results, time, metadata)

    # Messages that were undone

    def _event_row(self, row: MessageRow, ref: SourceRef) -> None:
        """Note a state of a message or part that was removed later; the last state counts."""
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
                yield self._record("progress", ref, type=_text(kind))
        for name, removed in sorted(self._removed.items()):
            self._tail = self._tail_before(name, removed)
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
            yield from self.finish_message()

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

    def _row_of_version_2(self, row: MessageRow, ref: SourceRef) -> Iterator[Event]:
        kind, uuid = row.type, row.id or f"line {ref.record}"
        data = decode_json(row.data, MessageOfVersion2)
        if self._messages and not self._is_version_2:
            # The runtime of version 2 in a client of version 1: the messages are in both tables.
            yield self._record("copy", ref, type=_text(kind))
            return
        if data is None:
            yield problem("malformed-json", line=ref.record + 1, path="row.data")
            yield self._record("other", ref, type=_text(kind))
            return
        if uuid == self._reverted_to:
            self._leaf = self._tail or ""
        time = _time(data.time.created if data.time is not None else row.time_created)
        match kind:
            case "user" | "synthetic" | "system":
                files = [_attached(file) for file in decode_each(data.files, File)]
                content: list[Block] = [*([Text(text=data.text)] if data.text else []), *files]
                metadata = Metadata() if kind == "user" else Metadata(is_meta=True)
                yield self._message("system" if kind == "system" else "user", uuid, ref, content, time, metadata)
            case "assistant":
                yield from self._reply_of_version_2(uuid, ref, data, time)
            case "compaction":
                summary: list[Block] = [Text(text=data.summary or "")]
                yield self._message("user", uuid, ref, summary, time, Metadata(is_compact_summary=True))
            case "shell":
                call = ToolUse(tool_id=data.callID or uuid, tool_name=SHELL_TOOL, input={"command": data.command})
                yield self._message("assistant", uuid, ref, [call], time, Metadata())
                state = ToolState(status="completed", output=data.output or "")
                yield from self._results(uuid, ref, [(call, state)], time)
            case _:
                yield self._record("state" if kind in _STATE_TYPES else "other", ref, type=_text(kind))

    def _reply_of_version_2(
        self, uuid: str, ref: SourceRef, data: MessageOfVersion2, time: str | None
    ) -> Iterator[Event]:
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
        metadata = Metadata(message_id=uuid, model=ModelUse(name=model, stop_reason=_text(data.finish)))
        yield from self._usage(data.tokens, data.time, model, uuid, metadata)
        yield self._message("assistant", uuid, ref, content, time, metadata)
        yield from self._results(uuid, ref, calls, time)

    def _message(
        self, role: Role, uuid: str, ref: SourceRef, content: list[Block], time: str | None, metadata: Metadata
    ) -> Message:
        self.index += 1
        parent, self._tail = self._tail, uuid
        return Message(
            index=self.index,
            uuid=uuid,
            parent_uuid=parent,
            role=role,
            timestamp=UNSET if time is None else time,
            content=content,
            metadata=metadata if metadata != Metadata() else UNSET,
            source=ref,
        )

    def _record(
        self,
        kind: str,
        ref: SourceRef,
        *,
        type: str | UnsetType = UNSET,
        text: str | UnsetType = UNSET,
        message_uuid: str | UnsetType = UNSET,
    ) -> Record:
        return Record(after=self.index, kind=kind, type=type, text=text, message_uuid=message_uuid, source=ref)


def _created(data: MessageData) -> str | None:
    return _time(data.time.created) if data.time is not None else None


def _time(milliseconds: int | None) -> str | None:
    if milliseconds is None or not 0 < milliseconds < 1 << 45:
        return None
    return format_utc(milliseconds * 1000)


def _token_usage(tokens: Tokens | None) -> TokenUsage | None:
    """The counts of a request. All zero: no model was asked, as for a command that a person ran."""
    if tokens is None:
        return None
    cache = tokens.cache
    read, written = (cache.read, cache.write) if cache is not None else (None, None)
    if not any((tokens.input, tokens.output, tokens.reasoning, read, written)):
        return None
    output = None if tokens.output is None else tokens.output + (tokens.reasoning or 0)
    return TokenUsage(
        input_tokens=_count(tokens.input),
        output_tokens=_count(output),
        reasoning_tokens=_count(tokens.reasoning),
        cache_read_tokens=_count(read),
        cache_creation_tokens=_count(written),
    )


def _count(value: int | None) -> int | UnsetType:
    return UNSET if value is None or value < 0 else value


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
    encoding, content = "url", part.url or ""
    if content.startswith("data:") and ";base64," in content:
        encoding, content = "base64", content.partition(";base64,")[2]
    return _attachment(part.mime, encoding, content, part.filename)


def _attached(file: File) -> Block:
    if file.data is not None:
        return _attachment(file.mime, "base64", file.data, file.name)
    return _attachment(file.mime, "url", file.uri or "", file.name)


def _attachment(mime: str | None, encoding: str, content: str, name: str | None) -> Block:
    if (mime or "").startswith("image/"):
        return Image(media_type=mime, encoding=encoding, image=content)
    title = UNSET if name is None else name
    return DocumentBlock(media_type=_text(mime), encoding=encoding, document=content, title=title)


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
    files = [*decode_each(state.attachments, Part)]
    if isinstance(state.content, list):
        texts = [item["text"] for item in state.content if _is_text(item)]
        output = "\n".join(texts) if texts or output is None else output
    blocks: list[JSON] = [msgspec.to_builtins(_file_block(file)) for file in files]
    items = state.content if isinstance(state.content, list) else []
    given = [decode_value(item, File) for item in items if isinstance(item, dict) and item.get("type") == "file"]
    blocks += [msgspec.to_builtins(_attached(file)) for file in given]
    if blocks:
        output = [*([{"type": "text", "text": output}] if output else []), *blocks]
    return ToolResult(
        tool_id=call.tool_id,
        tool_name=_text(call.tool_name),
        output=output,
        is_error=is_error or bool(exit_status),
    )


def _is_text(item: JSON) -> bool:
    return isinstance(item, dict) and item.get("type") == "text" and isinstance(item.get("text"), str)


def _text(value: JSON) -> str | UnsetType:
    return value if type(value) is str else UNSET


def _string(value: JSON) -> str | None:
    return value if type(value) is str else None
