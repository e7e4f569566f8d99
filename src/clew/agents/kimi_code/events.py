"""Kimi Code's records to events."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from typing import NamedTuple

from msgspec import UNSET, UnsetType, to_builtins

from clew.agents.backups import is_behind_link, read_inside
from clew.agents.base import SourceFile
from clew.agents.content import parse_arguments, split_data_url, text_block, text_or_none, text_or_unset
from clew.agents.decoding import EventDecoder, metadata_of, token_usage
from clew.agents.derived_ids import derived_id
from clew.agents.kimi_code import locate
from clew.agents.kimi_code.records import (
    REPEATED_MESSAGE,
    STATE_ARRAY,
    WIRE,
    ContextMessage,
    LoopEvent,
    Origin,
    State,
    Usage,
    WireRecord,
    record_kind,
)
from clew.analysis.todos import as_todo
from clew.io.codec import dumps
from clew.io.typed_records import decode_value
from clew.model.blocks import Block, DocumentBlock, Image, Text, Thinking, ToolResult, ToolUse
from clew.model.events import Event, SessionInfo, UsageReport
from clew.model.json import JSON
from clew.model.message import Message, Metadata, ModelUse, Role
from clew.model.record import Record
from clew.model.time import canonical_time
from clew.model.todo import Todo
from clew.model.usage import TokenUsage

TODO_STATES = {"done": "completed"}
"""How the client calls the states of a todo, where it is not as in the document."""
_SUBAGENT_TOOLS = ("Agent", "AgentSwarm")
_SUBAGENT_ID = re.compile(r"^agent_id: (\S+)$", re.MULTILINE)
_BLOB_URL = re.compile(r"blobref:([^;]*);([0-9a-f]{64})")
"""A file in the folder for pictures: its type and its name."""
_MEDIA = {"image_url": "imageUrl", "audio_url": "audioUrl", "video_url": "videoUrl"}
_UUID_CHARS = 36
_ROLES: dict[str | None, Role] = {"user": "user", "assistant": "assistant", "system": "system", "tool": "user"}


def read_events(source: SourceFile) -> Iterator[Event]:
    """Decode a session, in file order."""
    decoder = _KimiDecoder(source)
    if source.path.name != locate.STATE:
        yield _agent_info(source)
        yield from decoder.read_lines(WIRE.decode_file, decoder.decode)
    else:
        yield from decoder.read_document(STATE_ARRAY, decoder.decode_state)
        if source.parts:
            yield from decoder.read_lines(WIRE.decode_file, decoder.decode, 1 + source.parts.index(locate.MAIN_WIRE))
    yield from decoder.finish()


def _session_info(state: State, session_id: str | None) -> SessionInfo:
    extra: dict[str, JSON] = {}
    if state.title and not state.isCustomTitle:
        extra["generated_title"] = state.title
    if state.forkedFrom:
        extra["extension"] = {"forked_from": state.forkedFrom}
    return SessionInfo(
        session_id=session_id,
        cwd=state.cwd or state.workDir,
        started_at=canonical_time(state.createdAt) or None,
        title=state.title if state.isCustomTitle else None,
        has_derived_parents=True,
        extra=extra,
    )


def _agent_info(source: SourceFile) -> SessionInfo:
    """What is known of a journal that is a session by itself: nearly always that of a sub-agent."""
    agent = locate.agent_id(source.path)
    if agent == locate.MAIN:
        return SessionInfo(has_derived_parents=True)
    state, session = locate.read_state(source.path), locate.session_folder(source.path).name
    known = (state.agents or {}).get(agent)
    parent = known.parentAgentId if known is not None else None
    return SessionInfo(
        session_id=locate.id_of_agent(agent, session),
        cwd=state.cwd or state.workDir,
        agent_id=agent,
        parent_session_id=locate.id_of_agent(parent or locate.MAIN, session),
        is_subagent=True,
        has_derived_parents=True,
    )


class _ContextEntry(NamedTuple):
    """A message of the model's context, as far as undoing needs it."""

    uuid: str
    message_id: str | None
    origin: Origin | None
    is_prompt: bool


class _Step:
    """A request to the model, with the messages that it led to."""

    def __init__(self, uuid: str | None) -> None:
        self.uuid = uuid
        self.last_index = 0
        """The last message of the model in it."""
        self.usage: TokenUsage | None = None
        self.is_counted = False


class _KimiDecoder(EventDecoder):
    def __init__(self, source: SourceFile) -> None:
        # Forks copy records with their times: the same record has the same id in each of them.
        super().__init__(source, locate.AGENT)
        self._parts = _Parts(source)
        self._session_id, self._folder = locate.session_id(source.path), locate.session_folder(source.path).name
        self._context: list[_ContextEntry] = []
        self._has_context_records = self._was_rewound = False
        self._step = _Step(None)
        self._is_compacting = False
        """The last request to the model was made to compact the context."""
        self._model: str | None = None
        self._todos: list[Todo] | UnsetType = UNSET
        """The todo list, until a message carries it."""

    def decode_state(self, value: dict[str, JSON], _is_header: bool) -> Iterator[Event]:
        """The events of `state.json`."""
        state = decode_value(value, State)
        yield _session_info(state, state.id)
        yield self.make_record("state", locate.STATE_TYPE)

    def decode(self, record: WireRecord) -> Iterator[Event]:
        """The events of a line of a journal."""
        kind, message, event = record.type, record.message, record.event
        self._has_context_records |= kind is not None and kind.startswith("context.append_")
        if kind == "context.append_message" and message is not None:
            yield self._add_context_message(record, message)
        elif kind == REPEATED_MESSAGE and message is not None and not self._has_context_records:
            yield self._add_repeated_message(record, message)
        elif kind == "context.append_loop_event" and event is not None:
            yield from self._add_loop_event(record, event)
        elif kind == "context.apply_compaction":
            yield self._add_compaction(record)
        else:
            yield self._add_record(record)
            yield from self._apply(record)

    def finish(self) -> Iterator[Event]:
        """What no message carries at the end."""
        yield from self._report_usage()
        if self._was_rewound:
            yield SessionInfo(session_id=self._session_id, leaf_uuid=self.chain.last or "")

    # Records that are no messages

    def _add_record(self, record: WireRecord) -> Record:
        time = record.time if record.time is not None else record.created_at
        found = self.make_record(record_kind(record.type), record.type, time=time)
        if found.kind == "prompt":
            texts = [block.text for block in self._parts.blocks(record.input) if isinstance(block, Text)]
            found.text = "\n".join(texts)
        elif found.kind == "rewind":
            self._rewind(record)
            found.message_uuid = self.chain.last
        return found

    def _apply(self, record: WireRecord) -> Iterator[Event]:
        """What a record that is no message says about the session."""
        match record.type:
            case "profile.bind" | "config.update":
                self._model = record.modelAlias or self._model
                cwd = record.cwd or (record.environmentDisclosure.cwd if record.environmentDisclosure else None)
                if cwd:
                    yield SessionInfo(session_id=self._session_id, cwd=cwd)
            case "llm.request":
                self._model = record.model or record.modelAlias or self._model
                self._is_compacting = record.kind == "compaction"
            case "usage.record" if record.usage is not None:
                yield from self._add_usage(record, _token_usage(record.usage))
            case "subagent.spawned":
                yield from self._subagent_started(record.subagentId, record.parentToolCallId)
            case "tools.update_store" if record.key == "todo" and type(record.value) is list:
                self._todos = [_todo(item) for item in record.value]

    def _rewind(self, record: WireRecord) -> None:
        """Leave messages; what comes next follows the message before them. Nothing follows a cleared context."""
        self._was_rewound = True
        if record.type == "context.clear":
            self._context.clear()
        else:
            del self._context[self._find_undo_start(record.count or 0) :]
        self.chain.last = self._context[-1].uuid if self._context else None

    def _find_undo_start(self, count: int) -> int:
        """Where the last `count` prompts begin; the end where there are not as many since the last compaction."""
        if count <= 0:
            return len(self._context)
        for at in range(len(self._context) - 1, -1, -1):
            entry = self._context[at]
            if entry.origin is not None and entry.origin.kind == "compaction_summary":
                break
            if not entry.is_prompt:
                continue
            count -= 1
            if count == 0:
                while at > 0 and _is_injected_for(self._context[at - 1], entry):
                    at -= 1
                return at
        return len(self._context)

    def _subagent_started(self, agent: str | None, call: str | None) -> Iterator[Event]:
        if agent is not None:
            yield from self.start_subagent(locate.id_of_agent(agent, self._folder), agent, call)

    # Usage

    def _add_usage(self, record: WireRecord, usage: TokenUsage) -> Iterator[Event]:
        """The usage of the step that is under way or has just ended; or of a request that belongs to none."""
        if record.usageScope == "session" or self._is_compacting or self._step.uuid is None:
            call, time = _call_without_step(record), canonical_time(record.time) or None
            yield UsageReport(call_id=call, usage=usage, model=self._model or record.model, timestamp=time)
        elif not self._step.is_counted:
            self._step.usage = usage
            if self._step.last_index:
                yield from self._report_usage()

    def _report_usage(self) -> Iterator[Event]:
        """Report the usage of the step, unless its first message carries it."""
        step = self._step
        if step.uuid is not None and step.usage is not None and not step.is_counted:
            step.is_counted = True
            yield UsageReport(call_id=step.uuid, usage=step.usage, model=self._model, message_index=step.last_index)

    # Messages

    def _add_loop_event(self, record: WireRecord, event: LoopEvent) -> Iterator[Event]:
        match event.type:
            case "content.part":
                yield self._add_reply(record, event, [self._parts.block(event.part)])
            case "tool.call":
                call = ToolUse(tool_id=event.toolCallId, tool_name=event.name, input=event.args)
                yield self._add_reply(record, event, [call])
            case "tool.result":
                yield from self._add_result(record, event)
            case "step.begin":
                yield from self._report_usage()
                self._step = _Step(event.uuid)
                yield self.make_record("progress", event.type, time=record.time)
            case _:
                yield self.make_record(
                    "progress" if event.type == "step.end" else "other", event.type, time=record.time
                )
                if event.type == "step.end" and event.uuid == self._step.uuid:
                    if event.usage is not None and self._step.usage is None:
                        self._step.usage = _token_usage(event.usage)
                    yield from self._report_usage()

    def _add_reply(self, record: WireRecord, event: LoopEvent, blocks: list[Block]) -> Message:
        """A part of what the model said in a step."""
        metadata = Metadata(message_id=event.stepUuid or UNSET)
        if self._model is not None:
            metadata.model = ModelUse(name=self._model)
        step = self._step
        if step.uuid is not None and event.stepUuid == step.uuid:
            if step.usage is not None and not step.is_counted:
                metadata.token_usage, step.is_counted = step.usage, True
            step.last_index = self.index + 1
        return self._add_message(record, "assistant", blocks, metadata, event.uuid)

    def _add_result(self, record: WireRecord, event: LoopEvent) -> Iterator[Event]:
        result, call = event.result, event.toolCallId
        block = ToolResult(tool_id=call, tool_name=None)
        if result is not None:
            block.output, block.is_error = self._parts.output(result.output), result.isError
        owner = event.parentUuid or call
        own_id = derived_id(owner, record.time, "result") if owner is not None else None
        yield self._add_message(record, "user", [block], Metadata(), own_id)
        if block.tool_name in _SUBAGENT_TOOLS and type(block.output) is str:
            for agent in _SUBAGENT_ID.findall(block.output):
                yield from self._subagent_started(agent, call)

    def _add_context_message(self, record: WireRecord, message: ContextMessage) -> Message:
        role = _ROLES.get(message.role, "system")
        if message.role == "tool":
            output = self._parts.output(message.content)
            result = ToolResult(tool_id=message.toolCallId, tool_name=None, output=output, is_error=message.isError)
            blocks: list[Block] = [result]
        else:
            blocks = [*self._parts.blocks(message.content), *_calls(message.toolCalls)]
        metadata = Metadata()
        origin = message.origin.kind if message.origin is not None else None
        if origin == "compaction_summary":
            metadata.is_compact_summary = True
        elif role == "user" and not _is_said(message.origin):
            metadata.is_meta = True
        if role == "assistant" and self._model is not None:
            metadata.model = ModelUse(name=self._model)
        return self._add_message(record, role, blocks, metadata, message.id, message.origin)

    def _add_repeated_message(self, record: WireRecord, message: ContextMessage) -> Message:
        """A message of a journal that has no other record of it."""
        inner, meta = message.message or ContextMessage(), message.meta
        if meta is not None and inner.origin is None:
            inner.origin = meta.origin
        found = self._add_context_message(record, inner)
        if meta is not None and found.role == "assistant":
            metadata = metadata_of(found)
            metadata.message_id = meta.messageId or UNSET
            metadata.token_usage = UNSET if meta.usage is None else _token_usage(meta.usage)
        return found

    def _add_compaction(self, record: WireRecord) -> Message:
        """The summary that stands for all messages before it."""
        summary = record.contextSummary or record.summary
        if type(summary) is dict:
            blocks = self._parts.blocks(summary.get("content"))
        else:
            blocks = [Text(text=summary)] if type(summary) is str else []
        self._context.clear()
        origin = Origin(kind="compaction_summary")
        return self._add_message(record, "user", blocks, Metadata(is_compact_summary=True), None, origin)

    def _add_message(
        self,
        record: WireRecord,
        role: Role,
        blocks: list[Block],
        metadata: Metadata,
        uuid: str | None,
        origin: Origin | None = None,
    ) -> Message:
        if self._todos is not UNSET:
            metadata.todos, self._todos = self._todos, UNSET
        own_id = _global_id(uuid, record) or UNSET
        message = self.make_chained(role, blocks, metadata, uuid=own_id, time=record.time)
        is_prompt = role == "user" and record.type == "context.append_message" and _is_undo_anchor(origin)
        self._context.append(_ContextEntry(str(message.uuid), uuid, origin, is_prompt))
        return message


def _global_id(own_id: str | None, record: WireRecord) -> str | None:
    """An id that no other session has, except for the same record in a fork."""
    return own_id if own_id is None or len(own_id) == _UUID_CHARS else derived_id(own_id, record.time)


def _call_without_step(record: WireRecord) -> str:
    """A name for a request that belongs to no step; forks copy the record, and with it the name."""
    usage = record.usage or Usage()
    return f"request {record.time} {' '.join(str(getattr(usage, name)) for name in usage.__struct_fields__)}"


def _is_undo_anchor(origin: Origin | None) -> bool:
    """True for a prompt that an undo counts."""
    if origin is None or origin.kind == "user":
        return True
    return origin.kind in ("skill_activation", "plugin_command") and origin.trigger == "user-slash"


def _is_said(origin: Origin | None) -> bool:
    """True for the words of a person, or of the agent that started this one."""
    if _is_undo_anchor(origin) or origin is None:
        return True
    if origin.kind == "shell_command":
        return origin.phase == "input"
    return origin.kind == "system_trigger" and origin.name == "subagent"


def _is_injected_for(entry: _ContextEntry, prompt: _ContextEntry) -> bool:
    """True for a message that the client put before a prompt because of it."""
    origin = entry.origin
    is_owned = origin is not None and origin.kind == "injection" and origin.ownerPromptId is not None
    return is_owned and origin is not None and origin.ownerPromptId == prompt.message_id


def _token_usage(usage: Usage) -> TokenUsage:
    return token_usage(
        input=usage.inputOther,
        output=usage.output,
        cache_read=usage.inputCacheRead,
        cache_write=usage.inputCacheCreation,
    )


def _todo(item: JSON) -> Todo:
    todo = as_todo({**item, "content": item.get("title")} if type(item) is dict else item)
    if type(todo.status) is str:
        todo.status = TODO_STATES.get(todo.status, todo.status)
    return todo


def _calls(calls: JSON) -> Iterator[ToolUse]:
    """The calls of a message; until version 1.1 of the format name and arguments stood in an object of their own."""
    for call in calls if type(calls) is list else ():
        if type(call) is not dict:
            continue
        inner = call.get("function")
        function = inner if type(inner) is dict else call
        arguments = parse_arguments(function.get("arguments"))
        yield ToolUse(
            tool_id=text_or_none(call.get("id")),
            tool_name=text_or_none(function.get("name")),
            input={"arguments": arguments} if type(arguments) is str else arguments,
        )


class _Parts:
    """Decodes the parts of messages. Pictures of some size are files of their own, which a part only names."""

    def __init__(self, source: SourceFile) -> None:
        folder = locate.agent_folder(source.path) / locate.BLOBS
        # What a masked session says is masked, and a file is not.
        self._folder = folder if source.mask is None and not is_behind_link(folder, source.path) else None

    def blocks(self, content: JSON) -> list[Block]:
        """The blocks of a message: of a text, or of parts."""
        if type(content) is str:
            return [Text(text=content)]
        return [self.block(part) for part in content] if type(content) is list else []

    def block(self, part: JSON) -> Block:
        """A part of a message; one of a kind or a shape that is not known is kept as it is."""
        kind = part.get("type") if type(part) is dict else None
        if kind == "think" and type(part.get("think")) is str:
            return Thinking(thinking=part["think"], signature=text_or_unset(part.get("encrypted")))
        media = part.get(_MEDIA[kind]) if type(kind) is str and kind in _MEDIA else None
        if type(media) is not dict or type(media.get("url")) is not str:
            return text_block(part)
        media_type, encoding, content = self._media(media["url"])
        if kind == "image_url":
            return Image(media_type=media_type, encoding=encoding, image=content)
        return DocumentBlock(media_type=media_type, encoding=encoding, document=content)

    def output(self, output: JSON) -> JSON:
        """What a tool gave back: a text, or blocks as JSON. Any other value is spelled as text."""
        if type(output) is list:
            return [to_builtins(self.block(part)) for part in output]
        if output is None:
            return UNSET
        return output if type(output) is str else dumps(output).decode()

    def _media(self, url: str) -> tuple[str | UnsetType, str, str]:
        """The type of a picture, a sound or a film, how it is encoded, and its content or address."""
        blob = _BLOB_URL.fullmatch(url)
        if blob is None:
            return split_data_url(url)
        body = read_inside(self._folder, blob[2]) if self._folder is not None else None
        if body is None:
            return blob[1], "url", url
        return blob[1], "base64", base64.b64encode(body).decode()
