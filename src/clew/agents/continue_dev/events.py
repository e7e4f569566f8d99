"""Continue's records to events."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import UNSET, to_builtins

from clew.agents.base import SourceFile, file_stem
from clew.agents.content import content_blocks, parse_arguments, split_data_url, text_block
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
from clew.agents.decoding import EventDecoder, token_usage
from clew.agents.derived_ids import derived_id
from clew.analysis.todos import as_todos
from clew.io.typed_records import decode_each, decode_value
from clew.model.blocks import Block, DocumentBlock, Image, Text, Thinking, ToolResult, ToolUse
from clew.model.events import Event, SessionInfo
from clew.model.json import JSON
from clew.model.message import Metadata, ModelUse

RESULTS_SUFFIX = ":results"
"""Behind the uuid of a message: the uuid of the message with the results of its calls."""
_FAILED = ("errored", "canceled")
"""The states of calls that failed. A command that failed is `done`."""


def read_events(source: SourceFile) -> Iterator[Event]:
    """Decode a session, in file order."""
    decoder = _ContinueDecoder(source, file_stem(source.path))
    yield SessionInfo(started_at=created_at(source.path), has_derived_parents=True, has_message_times=False)
    yield from decoder.read_document(HISTORY, decoder.decode)


class _ContinueDecoder(EventDecoder):
    def __init__(self, source: SourceFile, scope: str) -> None:
        super().__init__(source, scope)
        self._history_id = ""
        """Names the history so far by its content: a fork copies it."""
        self._has_calls = False

    def decode(self, value: dict[str, JSON], _is_header: bool) -> Iterator[Event]:
        """The events of the document without its history, or of an element of the history."""
        if is_document(value):
            document = decode_value(value, SessionDocument)
            folder = document.workspaceDirectory or None
            yield SessionInfo(session_id=document.sessionId, cwd=folder, title=document.title)
            yield self.make_record("state", "session")
            return
        item = decode_value(value, HistoryItem)
        if item.message is None:
            yield self.make_record("other")
        else:
            yield from self._messages(item, item.message)

    def _messages(self, item: HistoryItem, message: ChatMessage) -> Iterator[Event]:
        """A message, and the results of its calls."""
        metadata = Metadata()
        if item.conversationSummary is not None:
            metadata.is_compact_summary = True
        match message.role:
            case "user":
                blocks = [*_context(item.contextItems), *content_blocks(message.content, _block)]
                yield self.make_chained("user", blocks, metadata)
            case "assistant":
                self._name_call(message, metadata)
                blocks = [*content_blocks(message.content, _block), *_calls(message)]
                yield self.make_chained("assistant", blocks, _with_usage(metadata, message.usage))
                results: list[Block] = list(_results(item.toolCallStates))
                if results:
                    uuid = f"{self.chain.last}{RESULTS_SUFFIX}"
                    yield self.make_chained("user", results, _todos(message), uuid=uuid)
            case "thinking":
                texts = [block.text for block in content_blocks(message.content) if isinstance(block, Text)]
                thought = Thinking(thinking="\n".join(texts), signature=message.signature)
                yield self.make_chained("assistant", [thought], metadata)
            case "tool":
                output = message.content if isinstance(message.content, str) else UNSET
                result = ToolResult(tool_id=message.toolCallId, tool_name=None, output=output)
                yield self.make_chained("user", [result], metadata)
            case "system":
                metadata.is_meta = True
                yield self.make_chained("system", content_blocks(message.content, _block), metadata)
            case _:
                yield self.make_record("other", message.role)

    def _name_call(self, message: ChatMessage, metadata: Metadata) -> None:
        """Name the API call of a reply, so that the copies in forks count once.

        The provider gives calls of tools ids of their own. Without one, another session may have the same content.
        """
        calls = [call.id for call in decode_each(message.toolCalls, ToolCall)]
        self._has_calls |= bool(calls)
        self._history_id = derived_id(self._history_id, to_builtins(content_blocks(message.content, _block)), calls)
        if message.usage is not None and self._has_calls:
            metadata.message_id = self._history_id


def _calls(message: ChatMessage) -> Iterator[ToolUse]:
    for call in decode_each(message.toolCalls, ToolCall):
        name = call.function.name if call.function is not None else None
        arguments = call.function.arguments if call.function is not None else None
        yield ToolUse(tool_id=call.id, tool_name=name, input=parse_arguments(arguments))


def _results(states: JSON) -> Iterator[ToolResult]:
    """The results that stand with their calls; a call without output has none yet, or was cancelled."""
    for state in decode_each(states, ToolCallState):
        items = decode_each(state.output, ContextItem)
        is_error = state.status in _FAILED
        if items or is_error:
            output = "\n".join(item.content or "" for item in items)
            yield ToolResult(tool_id=state.toolCallId, tool_name=None, output=output, is_error=is_error)


def _with_usage(metadata: Metadata, usage: Usage | None) -> Metadata:
    if usage is None:
        return metadata
    if usage.model is not None:
        metadata.model = ModelUse(name=usage.model)
    details, reasoning = usage.prompt_tokens_details, usage.completion_tokens_details
    metadata.token_usage = token_usage(
        input=usage.prompt_tokens,
        output=usage.completion_tokens,
        cache_read=details.cached_tokens if details is not None else UNSET,
        cache_write=details.cache_write_tokens if details is not None else UNSET,
        reasoning=reasoning.reasoning_tokens if reasoning is not None else UNSET,
        is_cache_in_input=True,
    )
    return metadata


def _todos(message: ChatMessage) -> Metadata:
    """The todo list that a reply sets."""
    metadata = Metadata()
    for call in _calls(message):
        if call.tool_name == "Checklist" and isinstance(call.input, dict):
            metadata.todos = as_todos(parse_checklist(str(call.input.get("checklist")))) or UNSET
    return metadata


def _context(items: JSON) -> Iterator[DocumentBlock]:
    """The texts that the person attached."""
    for item in decode_each(items, ContextItem):
        if item.content:
            title = UNSET if item.name is None else item.name
            yield DocumentBlock(media_type="text/plain", encoding="text", document=item.content, title=title)


def _block(part: JSON) -> Block:
    address = part.get("imageUrl") if isinstance(part, dict) and part.get("type") == "imageUrl" else None
    url = address.get("url") if isinstance(address, dict) else None
    if not isinstance(url, str):
        return text_block(part)
    media_type, encoding, content = split_data_url(url)
    return Image(media_type=media_type, encoding=encoding, image=content)
