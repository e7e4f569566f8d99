"""Sage Agent's records to events."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import UNSET, UnsetType

from clew.agents.base import SourceFile, masked_text, open_file
from clew.agents.derived_ids import MessageChain
from clew.agents.sage_agent import locate
from clew.agents.sage_agent.records import (
    BRANCH,
    ERASED,
    LOG,
    MESSAGE_ROLES,
    OLD_ROLES,
    SNAPSHOT_TYPES,
    LogRecord,
    MessageRecord,
    OldToolResult,
    ToolCall,
    ToolResult,
)
from clew.io.codec import dumps
from clew.io.compress import damage
from clew.io.records import RawRecord
from clew.io.typed_records import decode_each
from clew.model import blocks
from clew.model.blocks import Block, Text, Unknown
from clew.model.codes import problem
from clew.model.events import Event, SessionInfo
from clew.model.json import JSON
from clew.model.message import Message, Metadata, ModelUse, Role, SourceRef, ThinkingSettings
from clew.model.record import Record
from clew.model.snapshot import Snapshot, TrackedFile
from clew.model.time import canonical_time
from clew.model.todo import Todo
from clew.model.usage import TokenUsage

SUMMARY = "summary"
"""In `Facts.extra`: the last summary that the log holds."""
_NO_METADATA = Metadata()


def read_events(source: SourceFile) -> Iterator[Event]:
    """Decode a session: its log, then the snapshots beside it."""
    decoder = EventDecoder(locate.session_id(source), _session_model(source))
    for number, name in enumerate(("", *source.parts)):
        file = str(source.path.parent / name) if name else str(source.path)
        with open_file(source, name) as stream:
            for line, record in LOG.decode_file(stream):
                if isinstance(record, RawRecord):
                    yield from decoder.fragment(record, SourceRef(number, line - 1), file)
                else:
                    yield from decoder.events(record, SourceRef(number, line - 1))
            if found := damage(stream):
                yield problem("damaged-archive", found, file=file)
    yield decoder.last_info()


def _session_model(source: SourceFile) -> str | None:
    """The model that the metadata name: the log names none, so all replies are put down to it."""
    model = (locate.metadata(source.path) or {}).get("model")
    if not isinstance(model, str) or not model:
        return None
    return masked_text(source, model)


class EventDecoder:
    """What must be known of earlier records to decode the next one."""

    def __init__(self, session: str, model: str | None) -> None:
        self.index = 0
        self._model = model
        self._chain = MessageChain(session)
        self._source = SourceRef(0, 0)
        self._claimed: str | None = None
        self._leaf: str | None = None
        self._summary: str | None = None

    def events(self, record: LogRecord, source: SourceRef) -> Iterator[Event]:
        """The events of a record."""
        self._source = source
        if record.sessionId is not None and record.sessionId != self._claimed:
            self._claimed = record.sessionId
            yield SessionInfo(session_id=record.sessionId)
        message = self._message(record)
        yield self._record(record) if message is None else self._linked(message)

    def fragment(self, record: RawRecord, source: SourceRef, file: str) -> Iterator[Event]:
        """A piece of a line that is no record."""
        for code in record.findings:
            yield problem(code, file=file, line=source.record + 1)
        yield Record(after=self.index, kind="fragment", source=source)

    def last_info(self) -> SessionInfo:
        """What the whole log says. A sidechain is a branch of this conversation, so its last message counts as well."""
        extra: dict[str, JSON] | None = None if self._summary is None else {SUMMARY: self._summary}
        return SessionInfo(session_id=self._claimed, leaf_uuid=self._leaf, extra=extra)

    # Messages

    def _message(self, record: LogRecord) -> Message | None:
        if record.type is not UNSET:
            role = MESSAGE_ROLES.get(record.type) if type(record.type) is str else None
            return self._current(record, role) if role is not None else None
        payload = record.payload
        if type(record.seq) is int and payload is not None and payload.recordType == "message":
            role = MESSAGE_ROLES.get(payload.type) if type(payload.type) is str else None
            if role is not None:
                return self._current(payload, role)
        role = OLD_ROLES.get(record.role) if type(record.role) is str else None
        return self._old_form(record, role) if role is not None else None

    def _current(self, record: MessageRecord, role: Role) -> Message:
        inner = record.message
        results = [*decode_each(inner.toolResults if inner is not None else None, ToolResult)]
        results += decode_each(record.toolResults, ToolResult)
        content: list[Block] = []
        if inner is not None:
            content += [*_content_blocks(inner.content), *_call_blocks(inner.toolCalls)]
        content += [_result_block(found.toolCallId, found.toolName, found) for found in results]
        return self._made(role, record.timestamp, content, _metadata(record), record.uuid, record.parentUuid)

    def _old_form(self, record: LogRecord, role: Role) -> Message:
        results = decode_each(record.tool_results, OldToolResult)
        content = [*_content_blocks(record.content), *_call_blocks(record.tool_calls)]
        content += [_result_block(found.tool_call_id, found.tool_name, found) for found in results]
        return self._made(role, record.timestamp, content, Metadata())

    def _made(
        self,
        role: Role,
        timestamp: JSON,
        content: list[Block],
        metadata: Metadata,
        uuid: str | UnsetType = UNSET,
        parent: str | None | UnsetType = UNSET,
    ) -> Message:
        self.index += 1
        if self._model is not None and role == "assistant":
            metadata.model = ModelUse(name=self._model)
        return Message(
            index=self.index,
            role=role,
            uuid=uuid,
            parent_uuid=parent,
            timestamp=canonical_time(timestamp),
            content=content,
            metadata=UNSET if metadata == _NO_METADATA else metadata,
            source=self._source,
        )

    def _linked(self, message: Message) -> Message:
        """Messages of the older form have no ids; what follows them without naming a parent continues them."""
        chain = self._chain
        follows_old_form = chain.derived_last
        uuid = chain.identify(message)
        if chain.derived_last or follows_old_form:
            chain.attach(message)
        chain.last = uuid
        if message.role != "system":
            self._leaf = uuid
        return message

    # Other records

    def _record(self, record: LogRecord) -> Record:
        kind = record.type if type(record.type) is str else None
        found = Record(after=self.index, kind="other", source=self._source)
        if kind is None:
            return found
        found.type = kind
        if kind in SNAPSHOT_TYPES:
            self._add_snapshot(found, record)
        elif kind == BRANCH:
            found.kind, found.timestamp = "state", canonical_time(record.timestamp)
            found.uuid = record.uuid
            found.text, found.message_uuid = record.name, record.messageId
            self._leaf = record.messageId or self._leaf
        elif kind in (ERASED, "summary", "custom_title"):
            found.uuid, found.parent_uuid = record.uuid, record.parentUuid
            found.timestamp = canonical_time(record.timestamp)
            if kind == ERASED:
                found.kind = "state"
            else:
                self._add_text(found, record)
        return found

    def _add_text(self, found: Record, record: LogRecord) -> None:
        found.kind = "summary" if record.type == "summary" else "title"
        content = record.message.content if record.message is not None else None
        found.text = content if type(content) is str else UNSET
        if found.kind == "summary" and found.text:
            self._summary = found.text

    def _add_snapshot(self, found: Record, record: LogRecord) -> None:
        found.kind = "snapshot"
        snapshot = Snapshot(
            message_uuid=record.messageId,
            timestamp=canonical_time(record.timestamp),
            is_update=record.isSnapshotUpdate,
            files=_tracked_files(record),
        )
        if snapshot != Snapshot():
            found.snapshot = snapshot
        found.timestamp = snapshot.timestamp
        found.message_uuid = snapshot.message_uuid if snapshot.message_uuid is not None else UNSET


def _content_blocks(content: JSON) -> list[Block]:
    if type(content) is str:
        return [Text(text=content)] if content else []
    return [_content_block(item) for item in content] if type(content) is list else []


def _content_block(item: JSON) -> Block:
    if type(item) is dict and item.get("type") == "text" and type(item.get("text")) is str:
        return Text(text=item["text"])
    return Unknown(value=item)


def _call_blocks(calls: list[JSON] | None) -> list[Block]:
    found = decode_each(calls, ToolCall)
    return [blocks.ToolUse(tool_id=call.id, tool_name=call.name, input=call.arguments) for call in found]


def _result_block(call: str | None, tool: str | UnsetType, result: ToolResult | OldToolResult) -> Block:
    """A tool that failed says so in a key of its own, and its content is empty."""
    content = result.content
    output: JSON = UNSET if content is None else content if type(content) is str else dumps(content).decode()
    if output == "" and result.error:
        output = result.error
    is_error = result.success if result.success is UNSET else not result.success
    return blocks.ToolResult(tool_id=call, tool_name=tool, output=output, is_error=is_error)


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


def _tracked_files(record: LogRecord) -> dict[str, TrackedFile] | UnsetType:
    """The two maps of a snapshot as one."""
    native = record.snapshot
    if native is None or (native.trackedFiles is UNSET and native.fileBackups is UNSET):
        return UNSET
    files: dict[str, TrackedFile] = {}
    for path, file in native.trackedFiles.items() if native.trackedFiles is not UNSET else ():
        files[path] = TrackedFile(
            state=file.state,
            original_content=file.originalContent,
            content_hash=file.contentHash,
            size=file.size,
        )
    for path, backup in native.fileBackups.items() if native.fileBackups is not UNSET else ():
        found = files.setdefault(path, TrackedFile())
        found.backup, found.original_hash = backup.backupPath, backup.originalHash
    return files
