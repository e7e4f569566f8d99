"""Pi's records to events."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import UNSET, to_builtins

from clew.agents.base import SourceFile
from clew.agents.content import content_blocks, text_block, text_or_unset
from clew.agents.decoding import EventDecoder
from clew.agents.pi import session_id
from clew.agents.pi.records import HEADER, RECORD_KINDS, SESSION_LINES, AgentMessage, SessionRecord, Usage
from clew.model.blocks import Block, Image, Text, Thinking, ToolResult, ToolUse
from clew.model.events import Event, SessionInfo, UsageReport
from clew.model.json import JSON
from clew.model.message import Message, Metadata, ModelUse, Role, ThinkingSettings
from clew.model.record import Record
from clew.model.time import canonical_time
from clew.model.usage import TokenUsage


def read_events(source: SourceFile) -> Iterator[Event]:
    """Decode a session, in file order."""
    decoder = _PiDecoder(source, session_id(source.path))
    yield from decoder.read_lines(SESSION_LINES.decode_file, decoder.decode)
    yield from decoder.leaf()


class _PiDecoder(EventDecoder):
    def __init__(self, source: SourceFile, scope: str) -> None:
        super().__init__(source, scope)
        self._claimed_id: str | None = None
        """The id of the session that the header claims."""
        self._last_id: str | None = None
        self._record_parents: dict[str, str | None] = {}
        """The parents of entries that are no messages, by their ids: the last entry of a file may be one of them."""
        self._model: str | None = None
        """The model that the last entry names. Pi summarises with it, and does not say so."""

    def decode(self, record: SessionRecord) -> Iterator[Event]:
        """The events of a line."""
        message = record.message
        self._model = record.modelId or (message.model if message is not None else None) or self._model
        if record.type != HEADER and isinstance(record.id, str):
            self._last_id = record.id
        match record.type:
            case "message" if message is not None:
                yield from self._message(record, message)
            case "custom_message":
                yield self._add(record, "user", content_blocks(record.content, _block), Metadata(is_meta=True))
            case "compaction" | "branch_summary" if record.summary is not None:
                yield self._add(record, "user", [Text(text=record.summary)], Metadata(is_compact_summary=True))
                # An extension may have asked any model.
                yield from self._usage_report(record, record.usage, None if record.fromHook else self._model)
            case _:
                if record.type == HEADER:
                    self._claimed_id = record.id or None
                    yield _session_info(record, self._claimed_id)
                elif record.type == "session_info":
                    yield SessionInfo(session_id=self._claimed_id, title=(record.name or "").strip())
                yield self._record(record)
                if record.type == "usage":
                    yield from self._usage_report(record, record.usage, record.model)

    def leaf(self) -> Iterator[SessionInfo]:
        """The current leaf: the last entry, or its nearest message ancestor."""
        at = self._last_id
        if at is None:
            return
        walked = set()
        while at in self._record_parents and at not in walked:
            walked.add(at)
            at = self._record_parents[at]
        yield SessionInfo(session_id=self._claimed_id, leaf_uuid=at or "")

    def _message(self, record: SessionRecord, message: AgentMessage) -> Iterator[Event]:
        match message.role:
            case "assistant":
                yield self._reply(record, message)
            case "toolResult":
                result = ToolResult(
                    tool_id=message.toolCallId,
                    tool_name=message.toolName,
                    output=_output(message.content),
                    is_error=message.isError,
                )
                yield self._add(record, "user", [result])
                # A tool may ask models itself.
                yield from self._usage_report(record, message.usage, None)
            case "user":
                yield self._add(record, "user", content_blocks(message.content, _block))
            case "bashExecution":
                # A command that the person ran, and what it printed.
                texts = [text for text in (message.command, message.output) if text]
                yield self._add(record, "user", [Text(text=text) for text in texts])
            case "custom" | "hookMessage":
                yield self._add(record, "user", content_blocks(message.content, _block), Metadata(is_meta=True))
            case "branchSummary" | "compactionSummary":
                yield self._add(record, "user", content_blocks(message.summary), Metadata(is_compact_summary=True))
            case "system" if message.content:
                yield self._add(record, "system", content_blocks(message.content, _block), Metadata(is_meta=True))
            case "system":
                # The sections of the prompt and the declarations of tools.
                yield self._record(record, "state")
            case _:
                yield self._record(record)

    def _reply(self, record: SessionRecord, message: AgentMessage) -> Message:
        metadata = Metadata()
        if message.model is not UNSET or message.stopReason is not UNSET:
            metadata.model = ModelUse(name=message.model, stop_reason=message.stopReason)
        if message.thinkingLevel is not None:
            level = "none" if message.thinkingLevel == "off" else message.thinkingLevel
            metadata.thinking = ThinkingSettings(level=level)
        blocks = content_blocks(message.content, _block)
        if not blocks and message.errorMessage:
            blocks = [Text(text=message.errorMessage)]
        usage = _usage(message.usage)
        if usage is not None:
            metadata.token_usage, metadata.message_id = usage, _call_id(record, self.index + 1)
        return self._add(record, "assistant", blocks, metadata)

    def _add(self, record: SessionRecord, role: Role, blocks: list[Block], metadata: Metadata | None = None) -> Message:
        inner_time = record.message.timestamp if record.message is not None else UNSET
        time = canonical_time(record.timestamp) or inner_time
        # Version 1: entries follow each other.
        make = self.make_chained if record.id is UNSET else self.make_message
        return make(role, blocks, metadata, uuid=record.id, parent=record.parentId, time=time)

    def _record(self, record: SessionRecord, kind: str | None = None) -> Record:
        is_entry = record.type != HEADER
        if is_entry and isinstance(record.id, str):
            self._record_parents[record.id] = record.parentId or None
        return self.make_record(
            kind or RECORD_KINDS.get(record.type or "", "other"),
            record.type,
            uuid=record.id if is_entry else UNSET,
            parent=record.parentId if is_entry else UNSET,
            time=record.timestamp,
            text=record.name or record.label or UNSET,
            message_uuid=record.targetId,
        )

    def _usage_report(self, record: SessionRecord, usage: Usage | None, model: str | None) -> Iterator[UsageReport]:
        counts = _usage(usage)
        if counts is not None:
            call, time = _call_id(record, self.index), canonical_time(record.timestamp) or None
            yield UsageReport(call_id=call, usage=counts, model=model, timestamp=time)


def _session_info(header: SessionRecord, session_id: str | None) -> SessionInfo:
    parent = header.parentSession or header.branchedFrom
    return SessionInfo(
        session_id=session_id,
        cwd=header.cwd,
        started_at=canonical_time(header.timestamp) or None,
        # Every entry names the one before it, tool results too.
        has_derived_parents=True,
        extra={"extension": {"parent_session": parent}} if parent else None,
    )


def _call_id(record: SessionRecord, index: int) -> str:
    """The name of an API call. A fork copies entries with their ids and times; ids alone are unique within a file."""
    return f"{index if record.id is UNSET else record.id} {record.timestamp}"


def _usage(usage: Usage | None) -> TokenUsage | None:
    """The counts of a call; all zeros mean an aborted call or unknown counts."""
    if usage is None or not any((usage.input, usage.output, usage.cacheRead, usage.cacheWrite)):
        return None
    return TokenUsage(
        input_tokens=usage.input,
        output_tokens=usage.output,
        cache_creation_tokens=usage.cacheWrite,
        cache_read_tokens=usage.cacheRead,
        cache_creation_1h_tokens=usage.cacheWrite1h,
        reasoning_tokens=usage.reasoning,
    )


def _block(item: JSON) -> Block:
    kind = item.get("type") if type(item) is dict else None
    if kind == "thinking" and type(item.get("thinking")) is str:
        return Thinking(thinking=item["thinking"], signature=text_or_unset(item.get("thinkingSignature")))
    if kind == "toolCall" and type(item.get("id")) is str and type(item.get("name")) is str:
        return ToolUse(tool_id=item["id"], tool_name=item["name"], input=item.get("arguments"))
    if kind == "image" and type(item.get("data")) is str:
        return Image(media_type=text_or_unset(item.get("mimeType")), encoding="base64", image=item["data"])
    return text_block(item)


def _output(content: JSON) -> JSON:
    """What a tool gave back: its text where it is one text, else blocks as JSON."""
    blocks = content_blocks(content, _block)
    if len(blocks) == 1 and type(blocks[0]) is Text:
        return blocks[0].text
    return to_builtins(blocks)
