"""Parses the messages that `clew record` reads: one JSON object per line, from any program.

Only `role` and `content` are required. Keys may be in snake_case or camelCase; unknown keys go into the metadata.
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


class _Fields:
    """A JSON object whose keys are taken out one by one; the unknown ones are left."""

    def __init__(self, value: dict[str, JSON]) -> None:
        self.left = dict(value)

    def pop(self, name: str, kind: type[T]) -> T | None:
        """Remove a key in any of its spellings and return its value; null counts as absent."""
        for spelling in _SPELLINGS.get(name, (name,)):
            value = self.left.pop(spelling, None)
            if value is None:
                continue
            if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
                raise UsageError(f"{spelling} is not {_TYPE_NAMES.get(kind, kind.__name__)}")
            return value
        return None

    def has(self, name: str) -> bool:
        """True when the key is there, even if its value is null."""
        return any(spelling in self.left for spelling in _SPELLINGS.get(name, (name,)))


_TYPE_NAMES: dict[type, str] = {str: "text", dict: "an object", list: "a list", bool: "true or false"}


def parse_message(line: bytes, context_reader: ContextReader) -> Draft:
    """Parse a line; raises UsageError with the reason."""
    try:
        value = loads(line)
    except NOT_JSON as error:
        raise UsageError(f"is not JSON: {_lone_surrogate(line) or error}") from None
    if not isinstance(value, dict):
        raise UsageError("is not a JSON object")
    return _draft(value, context_reader)


def _lone_surrogate(line: bytes) -> str | None:
    """Explain a lone surrogate: JSON can hold one as an escape, but it is not valid text."""
    try:
        half = re.search("[\ud800-\udfff]", json.dumps(json.loads(line), ensure_ascii=False))
    except (ValueError, RecursionError):
        return None
    return f"a text holds half of a surrogate pair, \\u{ord(half[0]):04x}" if half is not None else None


def _draft(value: dict[str, JSON], context_reader: ContextReader) -> Draft:
    """Make a draft of a JSON object."""
    message = _Fields(value)
    role = message.pop("role", str)
    if role not in _ROLES:
        raise UsageError(f"the role is {role!r}, not one of {', '.join(_ROLES)}" if role else "has no role")
    parent: str | None | UnsetType = UNSET
    if message.has("parent"):
        parent = message.pop("parent", str)
    results = _results(message, role)
    record = MessageRecord(
        type="tool_result" if results else role,  # type: ignore[arg-type]
        uuid=message.pop("uuid", str) or "",
        message=_body(message, role) if not results else UNSET,
        tool_results=results or UNSET,
        usage=_optional(message, "usage", dict, lambda item: _convert(item, Usage, _USAGE)),
        thinking_metadata=_optional(message, "thinking", dict, lambda item: _convert(item, Thinking, {})),
        todos=_optional(message, "todos", list, lambda items: [_convert(item, TodoItem, {}) for item in items]),
    )
    sidechain = message.pop("sidechain", bool)
    _set_context(record, message, context_reader)
    return Draft(record, parent, sidechain, _remaining(message))


def _body(message: _Fields, role: str) -> MessageBody:
    if not message.has("content"):
        raise UsageError("has no content")
    content = message.left.pop("content")
    if content is None:
        content = ""
    is_blocks = isinstance(content, list) and all(isinstance(block, dict) for block in content)
    if not isinstance(content, str) and not is_blocks:
        raise UsageError("content is neither text nor a list of blocks")
    calls = message.pop("calls", list)
    return MessageBody(
        role=role, content=content, tool_calls=[_convert(call, ToolCall, _CALL) for call in calls] if calls else UNSET
    )


def _results(message: _Fields, role: str) -> list[ToolResult]:
    results = [_convert(item, ToolResult, _RESULT) for item in message.pop("results", list) or ()]
    if role != "tool":
        if results and message.left.get("content"):
            raise UsageError("has both content and tool results; a message holds one of them")
        if results:
            message.left.pop("content", None)
        return results
    call = message.pop("call", str)
    if call is not None:
        content = message.left.pop("content", None)
        if content is None:
            content = ""
        results.append(
            ToolResult(
                tool_call_id=call,
                tool_name=message.pop("tool", str) or "unknown",
                content=content if isinstance(content, str) else msgspec.json.encode(content).decode(),
                success=message.pop("success", bool) is not False,
                error=message.pop("error", str),
            )
        )
    if not results:
        raise UsageError("has the role tool, but neither tool_call_id nor tool_results")
    return results


def _optional(message: _Fields, name: str, kind: type[T], make: Callable[[T], Any]) -> Any:
    value = message.pop(name, kind)
    return UNSET if value is None else make(value)


def _set_context(record: MessageRecord, message: _Fields, context_reader: ContextReader) -> None:
    """Set context, time and version, as far as the message has them; the writer adds the rest."""
    given = message.pop("context", dict)
    if given is not None:
        here = context_reader.read()
        record.context = _convert({"cwd": here.cwd, "platform": here.platform, **given}, Context, {})
    if (timestamp := message.pop("timestamp", str)) is not None:
        record.timestamp = timestamp
    if (version := message.pop("version", str)) is not None:
        record.version = version


def _remaining(message: _Fields) -> dict[str, JSON] | None:
    """The unknown keys, and the metadata of the message."""
    given = message.pop("metadata", dict) or {}
    return {**{name: item for name, item in message.left.items() if item is not None}, **given} or None


def _convert(value: JSON, kind: type[T], other: dict[str, str]) -> T:
    """Convert a part of a message to a struct; an unknown key is an error, so that nothing is lost."""
    if not isinstance(value, dict):
        raise UsageError(f"a {_name(kind)} is not an object")
    spelled = {other.get(name, _camel(name)): item for name, item in value.items() if item is not None}
    known = {field.encode_name for field in msgspec.structs.fields(kind)}  # type: ignore[arg-type]
    odd = [name for name in spelled if name not in known]
    if odd:
        raise UsageError(f"a {_name(kind)} has no {odd[0]!r}; it has {', '.join(sorted(known))}")
    try:
        return msgspec.convert(spelled, kind)
    except msgspec.ValidationError as error:
        raise UsageError(f"a {_name(kind)} cannot be used: {error}") from None


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
