"""Qwen Code's records to events."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import UNSET, to_builtins

from clew.agents.base import SourceFile, masked_text
from clew.agents.content import text_blocks
from clew.agents.decoding import EventDecoder, token_usage
from clew.agents.gemini_content import block_of_part, is_attachment
from clew.agents.qwen_code import locate
from clew.agents.qwen_code.records import (
    ARTIFACT_SUBTYPES,
    CHAT,
    RECORD_KINDS,
    ChatRecord,
    SystemPayload,
    UiEvent,
    UsageMetadata,
    read_meta,
)
from clew.analysis.todos import as_todos
from clew.model.blocks import Block, Text, ToolResult, ToolUse
from clew.model.events import Event, SessionInfo, UsageReport
from clew.model.json import JSON
from clew.model.message import Message, Metadata, ModelUse, Role
from clew.model.record import Record
from clew.model.todo import Todo
from clew.model.usage import TokenUsage

PERSON = "real_user"
"""The provenance of what a person typed."""
_TYPED_SUBTYPES = (None, "mid_turn_user_message", "realtime_message")
"""Of messages of a user in files from before the provenance: those that a person typed or said."""
TODO_TOOL, TODO_DISPLAY = "todo_write", "todo_list"
_ROLES: dict[str | None, Role] = {"user": "user", "assistant": "assistant", "tool_result": "user"}
_IS_ERROR = {"success": False, "error": True, "cancelled": True}
_API_RESPONSE = "qwen-code.api_response"
_NO_PAYLOAD = SystemPayload()


def read_events(source: SourceFile) -> Iterator[Event]:
    """Decode a transcript, in file order."""
    model = read_meta(source.path).model if locate.is_agent_file(source.path) else None
    decoder = _QwenDecoder(source, masked_text(source, model) if model else None)
    yield from decoder.read_lines(CHAT.decode_file, decoder.decode)
    yield from decoder.last_info()


class _QwenDecoder(EventDecoder):
    def __init__(self, source: SourceFile, model: str | None) -> None:
        super().__init__(source)
        self._model = model
        """The model of a sub-agent, whose records do not name it."""
        self._transcribed_agents: dict[str, bool] = {}
        """By id of a sub-agent: whether it has a transcript."""
        self._info: tuple[str | None, ...] = ()
        """The session, the agent and the original session that the last record claimed."""
        self._todo_calls: dict[str | None, JSON] = {}
        """The lists that calls without a result gave."""
        self._messages_above: dict[str, str] = {}
        """By uuid of a record that is no message: the message that it follows, "" where there is none."""
        self._last_message = self._leaf = ""
        self._last_reply = 0

    def decode(self, record: ChatRecord) -> Iterator[Event]:
        """The events of a line."""
        origin = record.forkedFrom.sessionId if record.forkedFrom is not None else None
        claims = record.sessionId, record.agentId, origin
        if claims != self._info and any(claims):
            self._info = claims
            extra: dict[str, JSON] | None = {"forked_from": origin} if origin is not None else None
            yield SessionInfo(session_id=record.sessionId, agent_id=record.agentId, extra=extra)
        payload = record.systemPayload or _NO_PAYLOAD
        role = _ROLES.get(record.type)
        if role is not None:
            yield self._message(record, role)
        elif record.type == "system" and (summary := _summary(record, payload)) is not None:
            yield self._add(record, "user", summary, Metadata(is_compact_summary=True))
        else:
            yield self._record(record, payload)
            if payload.parentSessionId is not None and record.subtype == "parent_session":
                yield SessionInfo(session_id=record.sessionId, extra={"started_by": payload.parentSessionId})
            yield from self._usage_of_client(record, payload.uiEvent)

    def last_info(self) -> Iterator[SessionInfo]:
        """Where the conversation stands, if that is not at its last message: messages were taken back."""
        if self._leaf != self._last_message:
            yield SessionInfo(session_id=self._info[0] if self._info else None, leaf_uuid=self._leaf)

    # Messages

    def _message(self, record: ChatRecord, role: Role) -> Message:
        blocks = self._blocks(record)
        metadata = _metadata(record)
        if record.type == "user":
            if record.provenance == PERSON:
                metadata.origin = "human"
            elif record.provenance is not None or record.subtype not in _TYPED_SUBTYPES:
                metadata.is_meta = True
        elif record.type == "assistant":
            self._last_reply = self.index + 1
            if model := record.model or self._model:
                metadata.model = ModelUse(name=model)
            usage = _usage(record.usageMetadata)
            metadata.token_usage = UNSET if usage is None else usage
        elif (todos := self._todos(record, blocks)) is not None:
            metadata.todos = todos
        return self._add(record, role, blocks, metadata)

    def _add(self, record: ChatRecord, role: Role, blocks: list[Block], metadata: Metadata) -> Message:
        if isinstance(record.uuid, str):
            self._last_message = self._leaf = record.uuid
        uuid, parent = record.uuid, record.parentUuid
        return self.make_message(role, blocks, metadata, uuid=uuid, parent=parent, time=record.timestamp)

    def _blocks(self, record: ChatRecord) -> list[Block]:
        parts = record.message.parts if record.message is not None else UNSET
        if type(parts) is str:
            return [Text(text=parts)]
        parts = parts if type(parts) is list else []
        blocks = _result_blocks(parts) if record.type == "tool_result" else [block_of_part(part) for part in parts]
        status = record.toolCallResult.status if record.toolCallResult is not None else None
        for block in blocks:
            if type(block) is ToolUse:
                if block.tool_name == TODO_TOOL and type(block.input) is dict:
                    self._todo_calls[block.tool_id] = block.input.get("todos")
            elif type(block) is ToolResult:
                block.tool_name = self.tool_names.get(block.tool_id) or block.tool_name
                block.is_error = _IS_ERROR.get(status or "", block.is_error)
        return blocks

    def _todos(self, record: ChatRecord, blocks: list[Block]) -> list[Todo] | None:
        """The task list that a call left behind: as the client displays it, else as the call gave it."""
        display = record.toolCallResult.resultDisplay if record.toolCallResult is not None else None
        if type(display) is dict and display.get("type") == TODO_DISPLAY:
            return as_todos(display.get("todos"))
        for block in blocks:
            given = self._todo_calls.pop(block.tool_id, None) if type(block) is ToolResult else None
            if given is not None and block.is_error is not True:  # type: ignore[union-attr]
                return as_todos(given)
        return None

    # Other records

    def _record(self, record: ChatRecord, payload: SystemPayload) -> Record:
        self._note_place(record)
        kind = RECORD_KINDS.get(record.subtype or "", "other") if record.type == "system" else "other"
        found = self.make_record(
            kind,
            record.subtype or record.type,
            uuid=record.uuid,
            parent=record.parentUuid,
            time=record.timestamp,
        )
        if kind == "title":
            found.text = payload.customTitle
        elif kind == "prompt":
            found.text = payload.rawCommand
            found.kind = kind if payload.phase != "result" else "progress"
        elif kind == "rewind":
            found.message_uuid = self._leaf or None
        return found

    def _note_place(self, record: ChatRecord) -> None:
        """Note where the conversation stands after a record that is no message: the client goes on below it."""
        if not isinstance(record.uuid, str) or record.type != "system" or record.subtype in ARTIFACT_SUBTYPES:
            return
        parent = record.parentUuid or ""
        self._leaf = self._messages_above[record.uuid] = self._messages_above.get(parent, parent)

    def _usage_of_client(self, record: ChatRecord, event: UiEvent | None) -> Iterator[UsageReport]:
        """The usage of a request that no transcript holds, such as one that the client makes to remember things.

        Telemetry repeats the usage of all replies, also of those in the transcripts of sub-agents.
        """
        if event is None or event.name != _API_RESPONSE or event.subagent_id is None:
            return
        usage = _usage(event)
        if usage is not None and record.uuid and not self._has_transcript(event.subagent_id, event.prompt_id):
            yield UsageReport(call_id=record.uuid, usage=usage, model=event.model, message_index=self._last_reply)

    def _has_transcript(self, agent: str, prompt: str) -> bool:
        """Records that were copied from another session speak of its sub-agents; ids of prompts begin with it."""
        if agent not in self._transcribed_agents:
            sessions = {session for session in (*self._info, prompt.partition("#")[0]) if session}
            found = any(locate.has_transcript(self.source.path, agent, session) for session in sessions)
            self._transcribed_agents[agent] = found
        return self._transcribed_agents[agent]


def _metadata(record: ChatRecord) -> Metadata:
    return Metadata(
        cwd=record.cwd, git_branch=record.gitBranch, agent_version=record.version, is_sidechain=record.isSidechain
    )


def _usage(counts: UsageMetadata | None) -> TokenUsage | None:
    """The counts of a request in the document's form.

    Whether the thoughts are part of the candidates depends on the provider: the total tells.
    """
    if counts is None:
        return None
    given, cached = counts.promptTokenCount, counts.cachedContentTokenCount
    said, thoughts = counts.candidatesTokenCount, counts.thoughtsTokenCount
    if not any((given, cached, said, thoughts)):
        return None
    are_thoughts_apart = counts.totalTokenCount == (given or 0) + (said or 0) + (thoughts or 0)
    if said is not None and thoughts and (are_thoughts_apart or thoughts > said):
        said += thoughts
    return token_usage(input=given, output=said, cache_read=cached, reasoning=thoughts, is_cache_in_input=True)


def _result_blocks(parts: list[JSON]) -> list[Block]:
    """The results among parts; pictures and other files that come with a result are part of its output."""
    blocks: list[Block] = []
    for part in parts:
        block = block_of_part(part)
        last = blocks[-1] if blocks else None
        if type(last) is ToolResult and is_attachment(part):
            _attach(last, block)
            continue
        blocks.append(block)
        response = part.get("functionResponse") if type(part) is dict else None
        nested = response.get("parts") if type(response) is dict else None
        for inner in nested if type(block) is ToolResult and type(nested) is list else ():
            _attach(block, block_of_part(inner))  # type: ignore[arg-type]
    return blocks


def _attach(result: ToolResult, block: Block) -> None:
    if type(result.output) is not list:
        result.output = to_builtins(text_blocks(result.output))
    result.output.append(to_builtins(block))


def _summary(record: ChatRecord, payload: SystemPayload) -> list[Block] | None:
    """The summary that replaces the messages before a compression, with which the new history begins."""
    history = payload.compressedHistory
    first = history[0] if record.subtype == "chat_compression" and type(history) is list and history else None
    parts = first.get("parts") if type(first) is dict else None
    return [block_of_part(part) for part in parts] if type(parts) is list and parts else None
