"""Claude Code's records to events."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import BinaryIO

from msgspec import UNSET, UnsetType, to_builtins

from clew.agents.base import SourceFile
from clew.agents.claude_code.copied_history import CopiedRecord, mark_copies
from clew.agents.claude_code.queued_prompts import place_delivered_prompts
from clew.agents.claude_code.records import (
    RECORD_FIELDS,
    RECORD_KINDS,
    TRANSCRIPT,
    ApiUsage,
    FileBackup,
    StructuredResult,
    TranscriptRecord,
)
from clew.agents.content import text_or_unset
from clew.agents.decoding import EventDecoder
from clew.analysis.todos import as_todos
from clew.io.codec import NOT_JSON, dumps, loads
from clew.io.records import RawRecord
from clew.model.blocks import Block, DocumentBlock, Image, Text, Thinking, ToolResult, ToolUse, Unknown
from clew.model.events import Event, SessionInfo, SubagentStarted
from clew.model.json import JSON
from clew.model.message import Message, Metadata, ModelUse, Role, ThinkingSettings
from clew.model.record import Record
from clew.model.snapshot import Snapshot, TrackedFile
from clew.model.time import canonical_time
from clew.model.todo import Todo
from clew.model.usage import TokenUsage


def read_events(source: SourceFile) -> Iterator[Event]:
    """Decode a transcript, in file order."""
    decoder = _TranscriptDecoder(source)

    def decode_file(stream: BinaryIO) -> Iterator[tuple[int, TranscriptRecord | CopiedRecord | RawRecord]]:
        return mark_copies(source, place_delivered_prompts(TRANSCRIPT.decode_file(stream)))

    return decoder.read_lines(decode_file, decoder.decode)  # type: ignore[misc]


class _TranscriptDecoder(EventDecoder):
    def __init__(self, source: SourceFile) -> None:
        super().__init__(source)
        self._info: tuple[str | None, ...] = (None, None, None)
        """The session, slug and agent id that the last record claimed."""

    def decode(self, record: TranscriptRecord | CopiedRecord) -> Iterator[Event]:
        """The events of a line."""
        if isinstance(record, CopiedRecord):
            # It has no uuid, as it is no part of the conversation.
            yield self.make_record("copy", record.record.type, time=record.record.timestamp)
            return
        info = self._info
        claims = record.sessionId, record.slug, record.agentId
        if claims != info and any(claims):
            self._info = claims
            yield SessionInfo(session_id=record.sessionId, slug=record.slug, agent_id=record.agentId)
        match record.type:
            case "assistant" | "user":
                yield from self._message(record, record.type)
            case "system":
                yield self._add(record, "system", _blocks(record.content), _metadata(record))
            case "attachment":
                yield self._attachment(record)
            case "queue-operation" if record.uuid:
                # A prompt that was delivered in mid-turn; the client gives such records no uuid.
                yield self._add(record, "user", _blocks(record.content), _metadata(record))
            case _:
                yield self._record(record)
                if record.data is not None and record.data.agentId and record.parentToolUseID:
                    yield SubagentStarted(agent_id=record.data.agentId, tool_id=record.parentToolUseID)

    def _message(self, record: TranscriptRecord, role: Role) -> Iterator[Event]:
        api = record.message
        blocks = _blocks(api.content) if api is not None else []
        metadata = _metadata(record)
        if api is not None:
            metadata.message_id = api.id
            stop_reason = api.stop_reason if api.stop_reason is not UNSET else api.stopReason
            if api.model is not UNSET or stop_reason is not UNSET or api.stop_sequence is not UNSET:
                metadata.model = ModelUse(name=api.model, stop_reason=stop_reason, stop_sequence=api.stop_sequence)
            if api.usage is not None:
                metadata.token_usage = _usage(api.usage)
        if record.usage is not None and metadata.token_usage is UNSET:
            metadata.token_usage = _usage(record.usage)
        if role == "user":
            _add_user_metadata(record, blocks, metadata)
        yield self._add(record, role, blocks, metadata)
        if role == "user":
            call, result = _first_answered_call(blocks), record.toolUseResult
            if call is not None and type(result) is StructuredResult and result.agentId:
                yield SubagentStarted(agent_id=result.agentId, tool_id=call)
            elif call is None and _begins_inline_agent(record):
                yield SubagentStarted(root_uuid=record.uuid or None)

    def _attachment(self, record: TranscriptRecord) -> Message:
        attachment, metadata = record.attachment, _metadata(record)
        if attachment is not None and attachment.type == "task_reminder":
            # Nothing has checked yet that its bytes are text.
            with suppress(*NOT_JSON):
                metadata.todos = _todos(loads(bytes(attachment.content)))
        if attachment is None or attachment.type != "queued_command" or attachment.prompt is UNSET:
            return self._add(record, "system", [], metadata)
        if attachment.origin is not None:
            metadata.origin = attachment.origin.kind
        return self._add(record, "user", _blocks(attachment.prompt), metadata)

    def _add(self, record: TranscriptRecord, role: Role, blocks: list[Block], metadata: Metadata) -> Message:
        uuid, parent = record.uuid, record.parentUuid
        return self.make_message(role, blocks, metadata, uuid=uuid, parent=parent, time=record.timestamp)

    def _record(self, record: TranscriptRecord) -> Record:
        kind = record.type
        found = self.make_record(
            RECORD_KINDS.get(kind or "", "other"),
            kind,
            uuid=record.uuid,
            parent=record.parentUuid,
            time=record.timestamp,
        )
        for name, key in RECORD_FIELDS.get(kind or "", {}).items():
            setattr(found, name, getattr(record, key))
        if kind == "queue-operation":
            found.text = record.content if isinstance(record.content, str) else UNSET
        elif kind == "file-history-delta":
            found.snapshot = _snapshot_delta(record)
        elif kind == "file-history-snapshot":
            found.snapshot = _snapshot(record)
        return found


def _add_user_metadata(record: TranscriptRecord, blocks: list[Block], metadata: Metadata) -> None:
    metadata.is_compact_summary = record.isCompactSummary
    if record.origin is not None:
        metadata.origin = record.origin.kind
    if record.thinkingMetadata is not None and record.thinkingMetadata != ThinkingSettings():
        metadata.thinking = record.thinkingMetadata
    if record.todos is not UNSET:
        metadata.todos = [
            Todo(
                content=todo.content,
                status=todo.status,
                active_form=todo.activeForm,
                priority=todo.priority,
                id=todo.id,
            )
            for todo in record.todos
        ]
    if type(record.toolUseResult) is StructuredResult and record.toolUseResult.newTodos is not UNSET:
        # The structured result speaks of one call and does not say which.
        results = [block for block in blocks if type(block) is ToolResult]
        if len(results) == 1 and results[0].is_error is not True:
            metadata.todos = _todos(record.toolUseResult.newTodos)


def _first_answered_call(blocks: list[Block]) -> str | None:
    for block in blocks:
        if type(block) is ToolResult and block.tool_id:
            return block.tool_id
    return None


def _begins_inline_agent(record: TranscriptRecord) -> bool:
    """True for the first prompt of a sub-agent whose messages stand in this file.

    Before sub-agents had files of their own, each was a chain with a root inside the file of its parent.
    """
    if record.isSidechain is not True or record.isMeta is True or record.isCompactSummary is True:
        return False
    return bool(record.uuid) and not record.parentUuid and not record.agentId


def _metadata(record: TranscriptRecord) -> Metadata:
    return Metadata(
        cwd=record.cwd,
        git_branch=record.gitBranch,
        agent_version=record.version,
        user_type=record.userType,
        is_meta=record.isMeta,
        request_id=record.requestId,
        is_sidechain=record.isSidechain,
        logical_parent_uuid=record.logicalParentUuid,
    )


def _usage(usage: ApiUsage) -> TokenUsage | UnsetType:
    created, details = usage.cache_creation, usage.output_tokens_details
    found = TokenUsage(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_creation_tokens=usage.cache_creation_input_tokens,
        cache_read_tokens=usage.cache_read_input_tokens,
        cache_creation_5m_tokens=created.ephemeral_5m_input_tokens if created is not None else UNSET,
        cache_creation_1h_tokens=created.ephemeral_1h_input_tokens if created is not None else UNSET,
        reasoning_tokens=details.thinking_tokens if details is not None else UNSET,
        service_tier=usage.service_tier,
    )
    return found if found != _NO_USAGE else UNSET


_NO_USAGE = TokenUsage()


def _blocks(content: JSON) -> list[Block]:
    if type(content) is str:
        return [Text(text=content)]
    return [_block(item) for item in content] if type(content) is list else []


def _block(item: JSON) -> Block:
    """A content block; one of a kind or a shape that is not known is kept as it is."""
    kind = item.get("type") if type(item) is dict else None
    if kind == "text" and type(item.get("text")) is str:
        return Text(text=item["text"])
    if kind == "thinking" and type(item.get("thinking")) is str:
        return Thinking(thinking=item["thinking"], signature=text_or_unset(item.get("signature")))
    if kind == "tool_use" and type(item.get("id")) is str and type(item.get("name")) is str and "input" in item:
        return ToolUse(tool_id=item["id"], tool_name=item["name"], input=item["input"])
    if kind == "tool_result" and type(item.get("tool_use_id")) is str:
        is_error = item.get("is_error")
        return ToolResult(
            tool_id=item["tool_use_id"],
            tool_name=None,
            output=_output(item.get("content")),
            is_error=is_error if type(is_error) is bool else UNSET,
        )
    if kind == "image":
        encoding, media_type, content = _embedded(item)
        return Image(media_type=media_type, encoding=encoding, image=content)
    if kind == "document":
        encoding, media_type, content = _embedded(item)
        title = item.get("title", UNSET)
        title = title if title is None or type(title) is str else UNSET
        return DocumentBlock(media_type=media_type, encoding=encoding, document=content, title=title)
    return Unknown(value=item)


def _embedded(item: dict[str, JSON]) -> tuple[str | UnsetType, str | UnsetType, str | UnsetType]:
    """How an image or a document is encoded, its media type, and its content or address."""
    source = item.get("source")
    if type(source) is not dict:
        return UNSET, UNSET, UNSET
    content = source.get("url" if source.get("type") == "url" else "data")
    return text_or_unset(source.get("type")), text_or_unset(source.get("media_type")), text_or_unset(content)


def _output(content: JSON) -> JSON:
    """What a tool gave back: a text, or blocks as JSON. Any other value is spelled as text."""
    if type(content) is list:
        return to_builtins([_block(item) for item in content])
    if content is None:
        return UNSET
    return content if type(content) is str else dumps(content).decode()


def _todos(value: JSON) -> list[Todo] | UnsetType:
    todos = as_todos(value)
    return UNSET if todos is None else todos


def _snapshot(record: TranscriptRecord) -> Snapshot | UnsetType:
    native = record.snapshot
    if native is None:
        return UNSET if record.isSnapshotUpdate is UNSET else Snapshot(is_update=record.isSnapshotUpdate)
    files: dict[str, TrackedFile] | UnsetType = UNSET
    if native.trackedFileBackups is not UNSET:
        files = {path: _tracked_file(backup) for path, backup in native.trackedFileBackups.items()}
    return Snapshot(
        message_uuid=native.messageId,
        timestamp=canonical_time(native.timestamp),
        is_update=record.isSnapshotUpdate,
        files=files,
    )


def _snapshot_delta(record: TranscriptRecord) -> Snapshot | UnsetType:
    """An update that names a single file instead of a set."""
    if not isinstance(record.trackingPath, str) or record.backup is None:
        return UNSET
    return Snapshot(
        message_uuid=record.snapshotMessageId or record.messageId,
        timestamp=canonical_time(record.timestamp),
        is_update=True,
        files={record.trackingPath: _tracked_file(record.backup)},
    )


def _tracked_file(backup: FileBackup) -> TrackedFile:
    return TrackedFile(backup=backup.backupFileName, version=backup.version, time=backup.backupTime)
