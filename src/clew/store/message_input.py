"""Messages as any program writes them, one JSON object a line, taken into the store's own shape.

`role` and `content` are enough. Both snake_case and camelCase are understood, and what has no place of its own is
kept in the record's metadata.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from clew.agents.sage_agent.written_records import (
    Context,
    MessageBody,
    MessageRecord,
    Thinking,
    TodoItem,
    ToolCall,
    ToolResult,
    Usage,
)
from clew.errors import UsageError
from clew.io.codec import NOT_JSON, loads
from clew.model.json import JSON
from clew.store.message_context import ContextReader
from clew.store.writer import Draft

T = TypeVar("T")

_ROLES = ("user", "assistant", "system", "tool")
_SPELLINGS = {
    "parent": ("parent", "parent_uuid", "parentUuid"),
    "calls": ("tool_calls", "toolCalls"),
    "results": ("tool_results", "toolResults"),
    "call": ("tool_call_id", "toolCallId"),
    "tool": ("name", "tool_name", "toolName"),
    "thinking": ("thinking", "thinking_metadata", "thinkingMetadata"),
    "sidechain": ("is_sidechain", "isSidechain"),
}
_CALL = {"args": "arguments", "input": "arguments", "tool_id": "id", "tool_name": "name"}
_RESULT = {"name": "toolName", "tool_id": "toolCallId", "id": "toolCallId", "output": "content", "result": "content"}
_USAGE = {"cache_creation_tokens": "cacheWriteTokens", "cache_creation_input_tokens": "cacheWriteTokens"} | {
    "cache_read_input_tokens": "cacheReadTokens"
}


class Message:
    """A JSON object whose keys are taken out one by one; what is left over is kept."""

    def __init__(self, value: dict[str, JSON]) -> None:
        self.left = dict(value)

    def take(self, name: str, kind: type[T]) -> T | None:
        """The value of a key under any of its spellings; null counts as absent."""
        for spelling in _SPELLINGS.get(name, (name,)):
            value = self.left.pop(spelling, None)
            if value is None:
                continue
            if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
                raise UsageError(f"{spelling} is no {_WORDS.get(kind, kind.__name__)}")
            return value
        return None

    def has(self, name: str) -> bool:
        """True when the key is there, null or not."""
        return any(spelling in self.left for spelling in _SPELLINGS.get(name, (name,)))


_WORDS: dict[type, str] = {str: "text", dict: "object", list: "list", bool: "true or false"}


def parse_message(line: bytes, context_reader: ContextReader) -> Draft:
    """The message of a line; raises UsageError with what is wrong."""
    try:
        value = loads(line)
    except NOT_JSON as error:
        raise UsageError(f"is no JSON: {_half_pair(line) or error}") from None
    if not isinstance(value, dict):
        raise UsageError("is no JSON object")
    return take(value, context_reader)


def _half_pair(line: bytes) -> str | None:
    """What is wrong, if it is that: such a text can be spelled in JSON, and is no Unicode."""
    try:
        half = re.search("[\ud800-\udfff]", json.dumps(json.loads(line), ensure_ascii=False))
    except (ValueError, RecursionError):
        return None
    return f"a text holds half of a surrogate pair, \\u{ord(half[0]):04x}" if half is not None else None


def take(value: dict[str, JSON], context_reader: ContextReader) -> Draft:
    """The message that an object means."""
    message = Message(value)
    role = message.take("role", str)
    if role not in _ROLES:
        raise UsageError(f"the role is {role!r}, not one of {', '.join(_ROLES)}" if role else "has no role")
    parent: str | None | UnsetType = UNSET
    if message.has("parent"):
        parent = message.take("parent", str)
    results = _results(message, role)
    record = MessageRecord(
        type="tool_result" if results else role,  # type: ignore[arg-type]
        uuid=message.take("uuid", str) or "",
        message=_said(message, role) if not results else UNSET,
        tool_results=results or UNSET,
        usage=_each(message, "usage", dict, lambda item: _convert(item, Usage, _USAGE)),
        thinking_metadata=_each(message, "thinking", dict, lambda item: _convert(item, Thinking, {})),
        todos=_each(message, "todos", list, lambda items: [_convert(item, TodoItem, {}) for item in items]),
    )
    sidechain = message.take("sidechain", bool)
    _surround(record, message, context_reader)
    return Draft(record, parent, sidechain, _rest(message))


def _said(message: Message, role: str) -> MessageBody:
    if not message.has("content"):
        raise UsageError("has no content")
    content = message.left.pop("content")
    if content is None:
        content = ""
    is_blocks = isinstance(content, list) and all(isinstance(block, dict) for block in content)
    if not isinstance(content, str) and not is_blocks:
        raise UsageError("content is neither text nor a list of blocks")
    calls = message.take("calls", list)
    return MessageBody(
        role=role, content=content, tool_calls=[_convert(call, ToolCall, _CALL) for call in calls] if calls else UNSET
    )


def _results(message: Message, role: str) -> list[ToolResult]:
    results = [_convert(item, ToolResult, _RESULT) for item in message.take("results", list) or ()]
    if role != "tool":
        if results and message.left.get("content"):
            raise UsageError("has both content and tool results; a message holds one of them")
        if results:
            message.left.pop("content", None)
        return results
    call = message.take("call", str)
    if call is not None:
        content = message.left.pop("content", None)
        results.append(
            ToolResult(
                tool_call_id=call,
                tool_name=message.take("tool", str) or "unknown",
                content=content if isinstance(content, str) else msgspec.json.encode(content).decode(),
                success=message.take("success", bool) is not False,
                error=message.take("error", str),
            )
        )
    if not results:
        raise UsageError("has the role tool, but neither tool_call_id nor tool_results")
    return results


def _each(message: Message, name: str, kind: type[T], make: Callable[[T], Any]) -> Any:
    value = message.take(name, kind)
    return UNSET if value is None else make(value)


def _surround(record: MessageRecord, message: Message, context_reader: ContextReader) -> None:
    """Where and when it was said, as far as the message tells; the rest is that of this process."""
    given = message.take("context", dict)
    if given is not None:
        here = context_reader.read()
        record.context = _convert({"cwd": here.cwd, "platform": here.platform, **given}, Context, {})
    if (timestamp := message.take("timestamp", str)) is not None:
        record.timestamp = timestamp
    if (version := message.take("version", str)) is not None:
        record.version = version


def _rest(message: Message) -> dict[str, JSON] | None:
    """Everything without a place of its own; what was metadata before stays so."""
    given = message.take("metadata", dict) or {}
    return {**{name: item for name, item in message.left.items() if item is not None}, **given} or None


def _convert(value: JSON, kind: type[T], other: dict[str, str]) -> T:
    """A part in camelCase, whatever it was in; a key that has no place is an error, not lost."""
    if not isinstance(value, dict):
        raise UsageError(f"a {_name(kind)} is no object")
    spelled = {other.get(name, _camel(name)): item for name, item in value.items() if item is not None}
    known = {field.encode_name for field in msgspec.structs.fields(kind)}  # type: ignore[arg-type]
    odd = [name for name in spelled if name not in known]
    if odd:
        raise UsageError(f"a {_name(kind)} has no {odd[0]!r}; it has {', '.join(sorted(known))}")
    try:
        return msgspec.convert(spelled, kind)
    except msgspec.ValidationError as error:
        raise UsageError(f"a {_name(kind)} is not as it should be: {error}") from None


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(part.capitalize() for part in others)


def _name(kind: type) -> str:
    return {
        "ToolCall": "tool call",
        "ToolResult": "tool result",
        "TodoItem": "todo",
        "Thinking": "thinking setting",
    }.get(kind.__name__, kind.__name__.lower())
