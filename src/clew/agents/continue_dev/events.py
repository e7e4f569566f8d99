"""Continue's records to events."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import UNSET, to_builtins

from clew.agents.base import SourceFile, file_stem, fragment_events, open_main
from clew.agents.continue_dev import created_at
from clew.agents.continue_dev.checklist import parse_checklist
from clew.agents.continue_dev.records import (
    HISTORY,
    ChatMessage,
    ContextItem,
    HistoryItem,
    SessionDocument,
    ToolCall,
    ToolCallState,
    Usage,
    is_document,
)
from clew.agents.derived_ids import MessageChain, derived_id
from clew.agents.tools import RecentCalls
from clew.analysis.todos import as_todos
from clew.io.codec import NOT_JSON, loads
from clew.io.compress import damage
from clew.io.json_document import read_document_stream
from clew.io.typed_records import decode_each, decode_value
from clew.model.blocks import Block, DocumentBlock, Image, Text, Thinking, ToolResult, ToolUse, Unknown
from clew.model.codes import problem
from clew.model.events import Event, SessionInfo
from clew.model.json import JSON
from clew.model.message import Message, Metadata, ModelUse, Role, SourceRef
from clew.model.record import Record
from clew.model.usage import TokenUsage

RESULTS_SUFFIX = ":results"
"""Behind the uuid of a message: the uuid of the message with the results of its calls."""
_FAILED = ("errored", "canceled")
"""The states of calls that failed. A command that failed is `done`."""


def read_events(source: SourceFile) -> Iterator[Event]:
    """Decode a session, in file order."""
    decoder = _EventDecoder(file_stem(source.path))
    yield SessionInfo(started_at=created_at(source.path), has_derived_parents=True, has_message_times=False)
    with open_main(source) as stream:
        for number, record in enumerate(read_document_stream(stream, HISTORY)):
            if record.value is None:
                yield from fragment_events(source, record, record.line, after=decoder.index, number=number)
            elif is_document(record.value):
                yield from decoder.document(decode_value(record.value, SessionDocument), number)
            else:
                yield from decoder.item(decode_value(record.value, HistoryItem), number)
        if found := damage(stream):
            yield problem("damaged-archive", found, file=str(source.path))


class _EventDecoder:
    """What must be known of earlier records to decode the next one."""

    def __init__(self, session_id: str) -> None:
        self.index = 0
        self._source = SourceRef(0, 0)
        self._chain = MessageChain(session_id)
        self._tool_names = RecentCalls()
        self._history_id = ""
        """Names the history so far by its content: a fork copies it."""
        self._has_calls = False

    def document(self, document: SessionDocument, number: int) -> Iterator[Event]:
        """The events of the document without its history."""
        yield SessionInfo(session_id=document.sessionId, cwd=document.workspaceDirectory or None, title=document.title)
        yield Record(after=self.index, kind="state", type="session", source=SourceRef(0, number))

    def item(self, item: HistoryItem, number: int) -> Iterator[Event]:
        """The events of an element of the history: its message, and the results of its calls."""
        self._source = SourceRef(0, number)
        message = item.message
        if message is None:
            yield Record(after=self.index, kind="other", source=self._source)
            return
        metadata = Metadata()
        if item.conversationSummary is not None:
            metadata.is_compact_summary = True
        match message.role:
            case "user":
                yield self._add("user", [*_context(item.contextItems), *_blocks(message.content)], metadata)
            case "assistant":
                self._name_call(message, metadata)
                yield self._add("assistant", self._reply_blocks(message), _with_usage(metadata, message.usage))
                results: list[Block] = list(self._results(item.toolCallStates))
                if results:
                    yield self._add("user", results, _todos(message), f"{self._chain.last}{RESULTS_SUFFIX}")
            case "thinking":
                texts = [block.text for block in _blocks(message.content) if isinstance(block, Text)]
                thought = Thinking(thinking="\n".join(texts), signature=message.signature)
                yield self._add("assistant", [thought], metadata)
            case "tool":
                result = ToolResult(
                    tool_id=message.toolCallId,
                    tool_name=self._tool_names.get(message.toolCallId),
                    output=message.content if isinstance(message.content, str) else UNSET,
                )
                yield self._add("user", [result], metadata)
            case "system":
                metadata.is_meta = True
                yield self._add("system", _blocks(message.content), metadata)
            case _:
                yield Record(after=self.index, kind="other", type=message.role, source=self._source)

    def _name_call(self, message: ChatMessage, metadata: Metadata) -> None:
        """Name the API call of a reply, so that the copies in forks count once.

        The provider gives calls of tools ids of their own. Without one, another session may have the same content.
        """
        calls = [call.id for call in decode_each(message.toolCalls, ToolCall)]
        self._has_calls |= bool(calls)
        self._history_id = derived_id(self._history_id, to_builtins(_blocks(message.content)), calls)
        if message.usage is not None and self._has_calls:
            metadata.message_id = self._history_id

    def _reply_blocks(self, message: ChatMessage) -> list[Block]:
        calls: list[Block] = []
        for call in decode_each(message.toolCalls, ToolCall):
            name = call.function.name if call.function is not None else None
            arguments = call.function.arguments if call.function is not None else None
            self._tool_names[call.id] = name
            calls.append(ToolUse(tool_id=call.id, tool_name=name, input=_arguments(arguments)))
        return [*_blocks(message.content), *calls]

    def _results(self, states: JSON) -> Iterator[ToolResult]:
        """The results that stand with their calls; a call without output has none yet, or was cancelled."""
        for state in decode_each(states, ToolCallState):
            items = decode_each(state.output, ContextItem)
            if not items and state.status not in _FAILED:
                continue
            yield ToolResult(
                tool_id=state.toolCallId,
                tool_name=self._tool_names.get(state.toolCallId),
                output="\n".join(item.content or "" for item in items),
                is_error=state.status in _FAILED,
            )

    def _add(self, role: Role, blocks: list[Block], metadata: Metadata, uuid: str | None = None) -> Message:
        self.index += 1
        message = Message(
            index=self.index,
            uuid=UNSET if uuid is None else uuid,
            role=role,
            content=blocks,
            metadata=UNSET if metadata == _NO_METADATA else metadata,
            source=self._source,
        )
        own_id = self._chain.identify(message)
        self._chain.attach(message)
        self._chain.last = own_id
        return message


_NO_METADATA = Metadata()


def _with_usage(metadata: Metadata, usage: Usage | None) -> Metadata:
    if usage is None:
        return metadata
    if usage.model is not None:
        metadata.model = ModelUse(name=usage.model)
    prompt, details = usage.prompt_tokens, usage.prompt_tokens_details
    read = details.cached_tokens if details is not None else UNSET
    written = details.cache_write_tokens if details is not None else UNSET
    reasoning = usage.completion_tokens_details
    metadata.token_usage = TokenUsage(
        input_tokens=UNSET if prompt is UNSET else max(0, prompt - (read or 0) - (written or 0)),
        output_tokens=usage.completion_tokens,
        cache_read_tokens=read,
        cache_creation_tokens=written,
        reasoning_tokens=reasoning.reasoning_tokens if reasoning is not None else UNSET,
    )
    return metadata


def _todos(message: ChatMessage) -> Metadata:
    """The todo list that a reply sets."""
    metadata = Metadata()
    for call in decode_each(message.toolCalls, ToolCall):
        arguments = _arguments(call.function.arguments) if call.function is not None else None
        if call.function is not None and call.function.name == "Checklist" and isinstance(arguments, dict):
            metadata.todos = as_todos(parse_checklist(str(arguments.get("checklist")))) or UNSET
    return metadata


def _context(items: JSON) -> Iterator[DocumentBlock]:
    """The texts that the person attached."""
    for item in decode_each(items, ContextItem):
        if item.content:
            title = UNSET if item.name is None else item.name
            yield DocumentBlock(media_type="text/plain", encoding="text", document=item.content, title=title)


def _blocks(content: JSON) -> list[Block]:
    if isinstance(content, str):
        return [Text(text=content)] if content else []
    return [_block(part) for part in content] if isinstance(content, list) else []


def _block(part: JSON) -> Block:
    """A part of a message; one of a kind or a shape that is not known is kept as it is."""
    kind = part.get("type") if isinstance(part, dict) else None
    if kind == "text" and isinstance(part.get("text"), str):
        return Text(text=part["text"])
    address = part.get("imageUrl") if kind == "imageUrl" else None
    url = address.get("url") if isinstance(address, dict) else None
    if not isinstance(url, str):
        return Unknown(value=part)
    head, comma, data = url.partition(",")
    if comma and head.startswith("data:") and head.endswith(";base64"):
        return Image(media_type=head[5:-7], encoding="base64", image=data)
    return Image(encoding="url", image=url)


def _arguments(arguments: JSON) -> JSON:
    """The arguments of a call, which are JSON as text; as they are where they are not."""
    if not isinstance(arguments, str):
        return arguments
    try:
        return loads(arguments.encode()) if arguments else {}
    except (*NOT_JSON, UnicodeEncodeError):
        return arguments
