"""Goose's rows to events.

Each row of `messages` is a message. Calls that were made at once are rows of their own, each followed by its result;
they share `metadata.message_id`. Requests are counted by the ledger. Where a request is not in it, the usage in the
message counts, and what neither of them has is the rest of the session's accumulated counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec
from msgspec import UNSET

from clew.agents.base import SourceFile
from clew.agents.content import joined_output, text_block, text_or_none, text_or_unset
from clew.agents.database_rows import LINES, RESULT_SUFFIX, RowDecoder, decode_json, decode_row, parse_json
from clew.agents.decoding import known_facts, time_of_seconds, token_usage
from clew.agents.goose.encode import NO_TITLE, name_suffix
from clew.agents.goose.records import (
    CallValue,
    Converted,
    ExtensionData,
    Item,
    LedgerRow,
    MessageMetadata,
    MessageRow,
    ModelConfig,
    Outcome,
    ResultValue,
    SessionRow,
)
from clew.io.typed_records import decode_value
from clew.model.blocks import Block, Image, Text, Thinking, ToolResult, ToolUse, Unknown
from clew.model.events import Event, SessionInfo, UsageReport
from clew.model.json import JSON, object_at
from clew.model.message import Metadata, ModelUse
from clew.model.time import canonical_time
from clew.model.todo import Todo
from clew.model.usage import TokenUsage

UNTITLED = frozenset(("", "CLI Session", "New Chat", "ACP Session", "New session", "Delegated task"))
"""Default names that Goose gives before a title exists."""
_TODO_TOOL = "todo_write"
_TODO = re.compile(r"^\s*[-*] \[([ xX])\] (.+)$", re.MULTILINE)
_NOTICES = {
    "systemNotification": "progress",
    "toolConfirmationRequest": "progress",
    "actionRequired": "progress",
    "summarizationRequested": "progress",
    "contextLengthExceeded": "progress",
    "conversationCompacted": "state",
}
"""Item types outside the conversation, with the record kind of a row that holds only such items."""


def read_events(source: SourceFile) -> Iterator[Event]:
    """Decode a session, in file order."""
    decoder = _GooseDecoder(source)
    yield from decoder.read_lines(LINES.decode_file, decoder.decode)
    yield from decoder.end()


class _Counts(msgspec.Struct, frozen=True):
    """Token counts as Goose writes them: `input` includes what was read from a cache or written to it."""

    input: int | None
    output: int | None
    cache_read: int | None
    cache_write: int | None

    @property
    def is_known(self) -> bool:
        return any((self.input, self.output, self.cache_read, self.cache_write))

    def usage(self) -> TokenUsage:
        """The counts as clew has them: input without what was cached."""
        return token_usage(
            input=self.input,
            output=self.output,
            cache_read=self.cache_read,
            cache_write=self.cache_write,
            is_cache_in_input=True,
        )

    def minus(self, other: _Counts) -> _Counts:
        """What is left of each count; never less than nothing."""
        return _Counts(
            *(
                None if left is None else max(left - (right or 0), 0)
                for left, right in zip(msgspec.structs.astuple(self), msgspec.structs.astuple(other), strict=True)
            )
        )

    def plus(self, other: _Counts) -> _Counts:
        return _Counts(
            *(
                (left or 0) + (right or 0)
                for left, right in zip(msgspec.structs.astuple(self), msgspec.structs.astuple(other), strict=True)
            )
        )


class _GooseDecoder(RowDecoder):
    def __init__(self, source: SourceFile) -> None:
        super().__init__(source)
        self._model: str | None = None
        self._reply = ""
        """The `message_id` of the last reply."""
        self._is_after_compacted = False
        self._ledger: list[LedgerRow] = []
        """Requests whose message has not been read yet."""
        self._accumulated = _Counts(None, None, None, None)
        self._counted = _Counts(0, 0, 0, 0)

    def row_events(self, table: JSON, row: JSON) -> Iterator[Event]:
        """The events of a row."""
        match table:
            case "messages":
                yield from self._message_row(decode_row(row, MessageRow))
            case "sessions":
                yield from self._session_row(decode_row(row, SessionRow))
            case "usage_ledger":
                self._ledger.append(decode_row(row, LedgerRow))
                yield self.make_record("cost", "usage_ledger")
            case _:
                yield from self.unknown_row(table)

    def end(self) -> Iterator[Event]:
        """Report ledger requests without a message, and the remainder of the session's totals."""
        for row in self._ledger:
            counts = _ledger_counts(row)
            if counts.is_known:
                call = f"goose {self.session} request {row.id}"
                yield self._count(call, counts, row.model or self._model, time_of_seconds(row.created_timestamp), 0)
        left = self._accumulated.minus(self._counted)
        if left.input or left.output:
            yield self._count(f"goose {self.session} earlier requests", left, self._model, None, 0)

    def _session_row(self, row: SessionRow) -> Iterator[Event]:
        self.session = self.session or row.id or ""
        config = decode_json(row.model_config_json, ModelConfig)
        self._model = config.model_name if config is not None else None
        self._accumulated = _Counts(
            row.accumulated_input_tokens,
            row.accumulated_output_tokens,
            row.accumulated_cache_read_tokens,
            row.accumulated_cache_write_tokens,
        )
        extensions = decode_json(row.extension_data, ExtensionData) or ExtensionData()
        converted = extensions.converted or Converted()
        name = row.name or row.description
        if name and converted.session:
            name = name.removesuffix(name_suffix(converted.session)).rstrip()
            name = "" if name == NO_TITLE else name
        title = name if name and (row.user_set_name or name not in UNTITLED) else None
        extension = known_facts(
            id=row.id if converted.session != row.id else None,
            session_type=row.session_type,
            provider=row.provider_name,
            project_id=row.project_id,
            archived=row.archived_at is not None or None,
        )
        parent = row.parent_session_id or converted.parent
        is_subagent = row.session_type == "sub_agent" or parent is not None
        yield SessionInfo(
            session_id=row.id,
            cwd=row.working_dir,
            agent_id=self.session if is_subagent else None,
            parent_session_id=parent,
            is_subagent=is_subagent,
            started_at=canonical_time(row.created_at) or None,
            title=title,
            has_derived_parents=True,
            extra={"extension": extension},
        )
        yield self.make_record("title" if title else "state", "sessions", text=title or UNSET)

    def _message_row(self, row: MessageRow) -> Iterator[Event]:
        values = parse_json(row.content_json)
        if not isinstance(values, list):
            yield from self.malformed_row("content_json", "messages")
            return
        items = [decode_value(value, Item) if isinstance(value, dict) else Item() for value in values]
        if items and all(item.type in _NOTICES for item in items):
            text = "\n".join(item.msg for item in items if item.msg)
            yield self.make_record(_NOTICES[str(items[0].type)], items[0].type, text=text or UNSET)
            return
        uuid = self.unused_uuid(row.message_id or f"row {row.id}")
        blocks = [_block(item, value) for item, value in zip(items, values, strict=True)]
        results: list[Block] = [block for block in blocks if isinstance(block, ToolResult)]
        content: list[Block] = [block for block in blocks if block is not None and not isinstance(block, ToolResult)]
        details = decode_json(row.metadata_json, MessageMetadata) or MessageMetadata()
        metadata, time = self._metadata(row, details, items), time_of_seconds(row.created_timestamp)
        if row.role == "assistant":
            yield from self._usage(row, details, metadata, time)
            yield self.make_next("assistant", uuid, content, time, metadata)
            if results:
                yield self.make_next("user", uuid + RESULT_SUFFIX, results, time)
        else:
            yield self.make_next("user", uuid, [*results, *content], time, metadata)
        yield from self._subagents(items)

    def _metadata(self, row: MessageRow, details: MessageMetadata, items: list[Item]) -> Metadata:
        metadata = Metadata()
        if row.role == "assistant":
            model = details.inference.requestedModel if details.inference is not None else None
            metadata.model = ModelUse(name=model or self._model)
            if not _continues_reply(details, items):
                self._reply = row.message_id or ""
            if self._reply:
                metadata.message_id = self._reply
            todos = _todos(items)
            if todos:
                metadata.todos = todos
        if not details.userVisible:
            if details.agentVisible and not details.turnContext and self._is_after_compacted:
                metadata.is_compact_summary = True
            else:
                metadata.is_meta = True
        self._is_after_compacted = not details.agentVisible
        return metadata

    def _usage(
        self, row: MessageRow, details: MessageMetadata, metadata: Metadata, time: str | None
    ) -> Iterator[Event]:
        """The usage of the next message. A copy of a session has the messages with their ids and times."""
        usage = details.usage
        if usage is None:
            return
        counts = _Counts(usage.inputTokens, usage.outputTokens, usage.cacheReadTokens, usage.cacheWriteTokens)
        if not counts.is_known:
            return
        metadata.token_usage = counts.usage()
        model = text_or_none(metadata.model.name) if metadata.model is not UNSET else None
        same = (found for found in self._ledger if _ledger_counts(found) == counts)
        request = next(same, None)
        if request is not None:
            self._ledger.remove(request)
            model = request.model or model
        call = f"goose {row.message_id} {row.created_timestamp}"
        yield self._count(call, counts, model, time, self.index + 1)

    def _count(self, call: str, counts: _Counts, model: str | None, time: str | None, message: int) -> UsageReport:
        self._counted = self._counted.plus(counts)
        return UsageReport(call_id=call, usage=counts.usage(), model=model, timestamp=time, message_index=message)

    def _subagents(self, items: list[Item]) -> Iterator[Event]:
        """The sub-agent that a call started; a later call may ask for its result."""
        for item in items:
            meta = _result_value(item.toolResult).meta if item.toolResult is not None else None
            child = meta.subagent_session_id if meta is not None else None
            if child and child != self.session:
                yield from self.start_subagent(child, child, item.id)


def _continues_reply(details: MessageMetadata, items: list[Item]) -> bool:
    """True for a row with a call that is not the first one of its reply."""
    calls = [item.meta for item in items if item.type == "toolRequest" and item.meta is not None]
    return details.usage is None and bool(calls) and bool(calls[0].provider_index)


def _ledger_counts(row: LedgerRow) -> _Counts:
    return _Counts(row.input_tokens, row.output_tokens, row.cache_read_tokens, row.cache_write_tokens)


def _block(item: Item, value: JSON) -> Block | None:
    """The block of an item; None for an item that says nothing."""
    match item.type:
        case "text":
            return Text(text=item.text or "")
        case "image" if isinstance(item.data, str):
            return Image(media_type=text_or_unset(item.mimeType), encoding="base64", image=item.data)
        case "thinking":
            return Thinking(thinking=item.thinking or "", signature=item.signature or UNSET)
        case "reasoning":
            return Thinking(thinking=item.text or "")
        case "redactedThinking" if isinstance(item.data, str):
            return Thinking(thinking="", signature=item.data)
        case "toolRequest" | "frontendToolRequest":
            call = _call(item.toolCall or Outcome())
            return ToolUse(tool_id=item.id, tool_name=call.name, input=call.arguments)
        case "toolResponse":
            return _result(item)
        case kind if kind in _NOTICES:
            return None
        case _:
            return Unknown(value=value)


def _result(item: Item) -> ToolResult:
    outcome = item.toolResult or Outcome()
    value = _result_value(outcome)
    failed = outcome.status == "error" or value.isError is True
    output = _output(outcome.error if outcome.error is not None else value.content)
    return ToolResult(tool_id=item.id, output=output, is_error=failed)


def _call(outcome: Outcome) -> CallValue:
    """What is called. A call that the client could not parse has an error in its place."""
    if isinstance(outcome.value, dict):
        return decode_value(outcome.value, CallValue)
    if outcome.error is not None:
        return CallValue(None, {"error": outcome.error})
    return CallValue(outcome.name, outcome.arguments)


def _result_value(outcome: Outcome) -> ResultValue:
    if isinstance(outcome.value, dict):
        return decode_value(outcome.value, ResultValue)
    return ResultValue(outcome.value if outcome.value is not None else outcome.content)


def _output(content: JSON) -> JSON:
    """What the model was shown of a result: its text, or blocks where there are pictures."""
    if not isinstance(content, list):
        return content
    shown = [item for item in content if _is_for_model(item)] or content
    return joined_output([_output_block(item) for item in shown])


def _output_block(item: JSON) -> Block:
    if not isinstance(item, dict):
        return Unknown(value=item)
    resource = item.get("resource")
    if item.get("type") == "image" and isinstance(item.get("data"), str):
        return Image(media_type=text_or_unset(item.get("mimeType")), encoding="base64", image=item["data"])
    if isinstance(resource, dict) and isinstance(resource.get("text"), str):
        return Text(text=resource["text"])
    return text_block(item)


def _is_for_model(item: JSON) -> bool:
    """Older tools answer twice: once for the model, and once for the person."""
    audience = object_at(item, "annotations").get("audience")
    return not isinstance(audience, list) or "assistant" in audience


def _todos(items: list[Item]) -> list[Todo]:
    """The todo list that a reply writes, a list of Markdown."""
    for item in items:
        call = _call(item.toolCall) if item.toolCall is not None else CallValue()
        text = call.arguments.get("content") if isinstance(call.arguments, dict) else None
        if (call.name or "").endswith(_TODO_TOOL) and isinstance(text, str):
            return [
                Todo(content=content.strip(), status="pending" if mark == " " else "completed")
                for mark, content in _TODO.findall(text)
            ]
    return []
