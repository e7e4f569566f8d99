"""Sage Agent's records to events."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import UNSET, UnsetType

from clew.agents.base import SourceFile, masked_text
from clew.agents.content import content_blocks
from clew.agents.decoding import EventDecoder
from clew.agents.sage_agent import locate, records
from clew.agents.sage_agent.records import (
    BRANCH,
    ERASED,
    LOG,
    MESSAGE_ROLES,
    OLD_ROLES,
    SNAPSHOT_TYPES,
    FileBackup,
    FileSnapshot,
    LogRecord,
    MessageRecord,
    OldToolResult,
    ToolCall,
    ToolResult,
)
from clew.agents.sage_format import decode_output, is_error, read_metadata
from clew.io.typed_records import decode_each, decode_value
from clew.model import blocks
from clew.model.blocks import Block
from clew.model.events import Event, SessionInfo
from clew.model.json import JSON
from clew.model.message import Message, Metadata, ModelUse, Role, ThinkingSettings
from clew.model.record import Record
from clew.model.snapshot import Snapshot, TrackedFile
from clew.model.time import canonical_time
from clew.model.todo import Todo
from clew.model.usage import TokenUsage

SUMMARY = "summary"
"""In `Facts.extra`: the last summary in the log."""


def read_events(source: SourceFile) -> Iterator[Event]:
    """Decode a session: its log, then the snapshots beside it."""
    decoder = _LogDecoder(source)
    for number in range(1 + len(source.parts)):
        yield from decoder.read_lines(LOG.decode_file, decoder.decode, number)
    yield decoder.last_info()


def _session_model(source: SourceFile) -> str | None:
    """The model that the metadata name, which counts for all replies: the log names none."""
    model = (read_metadata(source.path.parent) or {}).get("model")
    if not isinstance(model, str) or not model:
        return None
    return masked_text(source, model)


class _LogDecoder(EventDecoder):
    def __init__(self, source: SourceFile) -> None:
        super().__init__(source, locate.session_id(source))
        self._model = _session_model(source)
        self._claimed: str | None = None
        self._leaf: str | None = None
        self._summary: str | None = None

    def decode(self, record: LogRecord) -> Iterator[Event]:
        """The events of a line."""
        if record.sessionId is not None and record.sessionId != self._claimed:
            self._claimed = record.sessionId
            yield SessionInfo(session_id=record.sessionId)
        message = self._message(record)
        yield self._record(record) if message is None else message

    def last_info(self) -> SessionInfo:
        """Id, leaf and summary after the last record. The leaf may be on a sidechain, which is a branch as well."""
        extra: dict[str, JSON] | None = None if self._summary is None else {SUMMARY: self._summary}
        return SessionInfo(session_id=self._claimed, leaf_uuid=self._leaf, extra=extra)

    def _message(self, record: LogRecord) -> Message | None:
        if record.type is not UNSET:
            role = MESSAGE_ROLES.get(record.type) if type(record.type) is str else None
            return self._current_form(record, role) if role is not None else None
        payload = record.payload
        if type(record.seq) is int and payload is not None and payload.recordType == "message":
            role = MESSAGE_ROLES.get(payload.type) if type(payload.type) is str else None
            if role is not None:
                return self._current_form(payload, role)
        role = OLD_ROLES.get(record.role) if type(record.role) is str else None
        return self._old_form(record, role) if role is not None else None

    def _current_form(self, record: MessageRecord, role: Role) -> Message:
        inner = record.message
        content: list[Block] = []
        results = [*decode_each(inner.toolResults if inner is not None else None, ToolResult)]
        results += decode_each(record.toolResults, ToolResult)
        if inner is not None:
            content += [*content_blocks(inner.content), *_call_blocks(inner.toolCalls)]
        content += [_result_block(found.toolCallId, found.toolName, found) for found in results]
        return self._add(role, content, record.timestamp, _metadata(record), record.uuid, record.parentUuid)

    def _old_form(self, record: LogRecord, role: Role) -> Message:
        results = decode_each(record.tool_results, OldToolResult)
        content = [*content_blocks(record.content), *_call_blocks(record.tool_calls)]
        content += [_result_block(found.tool_call_id, found.tool_name, found) for found in results]
        return self._add(role, content, record.timestamp, Metadata())

    def _add(
        self,
        role: Role,
        content: list[Block],
        time: JSON,
        metadata: Metadata,
        uuid: str | None | UnsetType = UNSET,
        parent: str | None | UnsetType = UNSET,
    ) -> Message:
        """The next message, in its place.

        Messages of the older form have no ids. A message that follows one of them and names no parent continues it.
        """
        if self._model is not None and role == "assistant":
            metadata.model = ModelUse(name=self._model)
        message = self.make_message(role, [], metadata, uuid=uuid, parent=parent, time=time)
        # Ids are derived from the content as it was written: results get no names of calls.
        message.content = content
        chain = self.chain
        follows_old_form = chain.derived_last
        chain_id = chain.identify(message)
        if chain.derived_last or follows_old_form:
            chain.attach(message)
        chain.last = chain_id
        if message.role != "system":
            self._leaf = chain_id
        return message

    def _record(self, record: LogRecord) -> Record:
        kind = record.type if type(record.type) is str else None
        found = self.make_record("other")
        if kind is None:
            return found
        found.type = kind
        if kind in SNAPSHOT_TYPES:
            found.kind, found.timestamp = "snapshot", canonical_time(record.timestamp)
            found.message_uuid = record.messageId if record.messageId is not None else UNSET
            snapshot = Snapshot(
                message_uuid=record.messageId,
                timestamp=found.timestamp,
                is_update=record.isSnapshotUpdate,
                files=tracked_files(record.snapshot),
            )
            if snapshot != Snapshot():
                found.snapshot = snapshot
        elif kind == BRANCH:
            found.kind, found.timestamp = "state", canonical_time(record.timestamp)
            found.uuid, found.text, found.message_uuid = record.uuid, record.name, record.messageId
            self._leaf = record.messageId or self._leaf
        elif kind in (ERASED, "summary", "custom_title"):
            found.uuid, found.parent_uuid = record.uuid, record.parentUuid
            found.timestamp = canonical_time(record.timestamp)
            found.kind = {ERASED: "state", "summary": "summary", "custom_title": "title"}[kind]
            content = record.message.content if record.message is not None else None
            if kind != ERASED and type(content) is str:
                found.text = content
            if kind == "summary" and found.text:
                self._summary = found.text
        return found


def _call_blocks(calls: list[JSON] | None) -> list[Block]:
    found = decode_each(calls, ToolCall)
    return [blocks.ToolUse(tool_id=call.id, tool_name=call.name, input=call.arguments) for call in found]


def _result_block(call: str | None, tool: str | UnsetType, result: ToolResult | OldToolResult) -> Block:
    """A result with empty content may have the reason of a failure in `error`."""
    output = decode_output(result.content)
    if output == "" and result.error:
        output = result.error
    return blocks.ToolResult(tool_id=call, tool_name=tool, output=output, is_error=is_error(result.success))


def _metadata(record: MessageRecord) -> Metadata:
    metadata = Metadata(agent_version=record.version, is_branch=record.isSidechain)
    if (context := record.context) is not None:
        metadata.cwd, metadata.git_branch = context.cwd, context.gitBranch
        metadata.platform, metadata.user_type = context.platform, context.userType
    if (usage := record.usage) is not None:
        counts = TokenUsage(
            input_tokens=usage.inputTokens,
            output_tokens=usage.outputTokens,
            cache_creation_tokens=usage.cacheWriteTokens,
            cache_read_tokens=usage.cacheReadTokens,
        )
        metadata.token_usage = UNSET if counts == TokenUsage() else counts
    if (thinking := record.thinkingMetadata) is not None:
        settings = ThinkingSettings(level=thinking.level, disabled=thinking.disabled, triggers=thinking.triggers)
        metadata.thinking = UNSET if settings == ThinkingSettings() else settings
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
    return metadata


def tracked_files(native: FileSnapshot | None) -> dict[str, TrackedFile] | UnsetType:
    """The two maps of a snapshot as one; an entry that is no object is left out."""
    if native is None or (native.trackedFiles is UNSET and native.fileBackups is UNSET):
        return UNSET
    files: dict[str, TrackedFile] = {}
    for path, entry in native.trackedFiles.items() if native.trackedFiles is not UNSET else ():
        if type(entry) is dict:
            file = decode_value(entry, records.TrackedFile)
            files[path] = TrackedFile(
                state=file.state,
                original_content=file.originalContent,
                content_hash=file.contentHash,
                size=file.size,
            )
    for path, entry in native.fileBackups.items() if native.fileBackups is not UNSET else ():
        if type(entry) is dict:
            backup, found = decode_value(entry, FileBackup), files.setdefault(path, TrackedFile())
            found.backup, found.original_hash = backup.backupPath, backup.originalHash
    return files
