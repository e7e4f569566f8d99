"""Messages for who only looks at them: of a regular line, what is shown is read and all else skipped, unread.

A line in which anything is not as expected takes the general way. Messages come without extensions, and with as much
metadata as faces show; else they are those of `read`. The lines are those of the first pass with their words, so that
one pass can do for both where a source is small.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec
from msgspec import UNSET, UnsetType

from clew.agents.base import SourceFile, open_main
from clew.agents.claude_code.lines import Line, Told
from clew.agents.claude_code.reading import ClaudeReading
from clew.agents.claude_code.scan import Scanner
from clew.agents.claude_code.tables import RECORDS
from clew.agents.jsonl import MAX_CALLS, RecentCalls, keep_call
from clew.agents.mapping import Values
from clew.derive.facts import Facts
from clew.io.records import read_line, read_texts
from clew.model.json import JSON

_USUAL_TIME = 24
_BATCH = 256
"""So many lines are looked at together."""
_NO_VALUES: Values = {"session_id": None, "slug": None, "agent_id": None}
"""What most records repeat is known behind the first pass only; it changes nothing but extensions."""


class _Block(msgspec.Struct, gc=False):
    type: str | None = None
    text: str | UnsetType = UNSET
    thinking: str | UnsetType = UNSET
    id: str | None = None
    name: str | None = None
    input: JSON | UnsetType = UNSET
    tool_use_id: str | None = None
    content: JSON | UnsetType = UNSET
    is_error: bool | None = None
    tool_name: JSON | UnsetType = UNSET


class _Said(msgspec.Struct, kw_only=True, gc=False):
    model: str | None | UnsetType = UNSET
    id: str | UnsetType = UNSET
    content: str | list[_Block]


class _Line(Line, gc=False):
    message: _Said | None = None  # type: ignore[assignment]
    parentUuid: str | None | UnsetType = UNSET  # type: ignore[assignment]
    logicalParentUuid: str | None | UnsetType = UNSET  # type: ignore[assignment]
    content: str | UnsetType = UNSET


_decode = msgspec.json.Decoder(_Line).decode
_ERRORS = (msgspec.DecodeError, UnicodeError, RecursionError)


def shown(source: SourceFile, shared: Values) -> Iterator[dict[str, JSON]]:
    """The messages of a session, in order."""
    reading = ClaudeReading(source, shared)
    if source.parts:
        return (unit.value for unit in reading if unit.is_message)
    return _messages(reading, None)


def shown_at_once(source: SourceFile) -> tuple[Facts, Iterator[dict[str, JSON]]]:
    """The same and the facts of the first pass, tree and all but counts, from one pass over a source of one file."""
    scanner = Scanner(Facts(), source.path, tree=True, counts=False)
    lines: list[Told | bytes] = []
    messages: list[dict[str, JSON]] = []
    for message in _messages(ClaudeReading(source, _NO_VALUES), lines.append):
        messages.append(message)
        if len(lines) >= _BATCH:
            scanner.see_mixed(lines)
            lines.clear()
    scanner.see_mixed(lines)
    return scanner.finish(), _given(messages)


def _given(messages: list[dict[str, JSON]]) -> Iterator[dict[str, JSON]]:
    """The messages, none of which is held once it was given."""
    messages.reverse()
    while messages:
        yield messages.pop()


def _messages(reading: ClaudeReading, note: Callable[[Told | bytes], None] | None) -> Iterator[dict[str, JSON]]:
    """The messages; `note` is given what the first pass wants of each line, or the line where it is odd."""
    with open_main(reading.source) as stream:
        for text, whole in read_texts(stream):
            # What is skipped may be no UTF-8: it changes nothing in what is shown.
            try:
                line = _decode(text) if whole else None
            except _ERRORS:
                line = None
            if note is not None:
                note(_told(line) if line is not None else text)
            if line is not None:
                message = _quick(reading, line)
                if message is not None:
                    yield message
                    continue
                if line.type in RECORDS:
                    continue
            for record in read_line(text, 0, 0, whole):
                unit = reading.unit(record)
                if unit.is_message:
                    unit.value.pop("extensions", None)
                    yield unit.value


def _told(line: _Line) -> Told:
    """What the first pass wants of a line, which knows no difference between none and nothing."""
    said, parent, logical = line.message, line.parentUuid, line.logicalParentUuid
    reply = said.id if said is not None else None
    return (
        line,
        line.type,
        line.uuid,
        None if parent is UNSET else parent,
        None if logical is UNSET else logical,
        line.timestamp,
        line.sessionId,
        line.version,
        line.isSidechain,
        None if reply is UNSET else reply,
        said.content if said is not None else None,
        line.toolUseResult,
    )


def _quick(reading: ClaudeReading, line: _Line) -> dict[str, JSON] | None:
    """The message of a regular line; None for any other."""
    kind, time, said = line.type, line.timestamp, line.message
    if line.uuid is None or type(time) is not str or len(time) != _USUAL_TIME or time[-1] != "Z" or time[10] != "T":
        return None
    if said is None:
        role, blocks = "system", _noted(line)
    elif kind == "assistant" or kind == "user":
        role, content = kind, said.content
        blocks = _blocks(content, reading.calls) if type(content) is list else [{"type": "text", "text": content}]
    else:
        return None
    if blocks is None:
        return None
    reading.index = index = reading.index + 1
    message: dict[str, JSON] = {"index": index, "role": role}
    if line.parentUuid is not UNSET:
        message["parent_uuid"] = line.parentUuid
    message["uuid"] = line.uuid
    message["timestamp"] = time
    message["content"] = blocks
    message["metadata"] = _metadata(line, said)
    return message


def _noted(line: _Line) -> list[dict[str, JSON]] | None:
    """What a note of the agent shows, and a file or a setting that it noted; None for what is neither."""
    if line.type == "system":
        return [{"type": "text", "text": line.content}] if line.content is not UNSET else []
    attached = line.attachment
    if line.type != "attachment" or attached is None or attached.type == "queued_command":
        return None
    return []


def _metadata(line: _Line, said: _Said | None) -> dict[str, JSON]:
    side, logical = line.isSidechain, line.logicalParentUuid
    metadata: dict[str, JSON] = {"is_sidechain": side} if side is not None else {}
    if line.isMeta is not None:
        metadata["is_meta"] = line.isMeta
    if said is not None:
        if said.id is not UNSET:
            metadata["message_id"] = said.id
        if said.model is not UNSET:
            metadata["model"] = {"name": said.model}
    if line.type == "user":
        if line.isCompactSummary is not None:
            metadata["is_compact_summary"] = line.isCompactSummary
        if line.origin is not None and line.origin.kind is not None:
            metadata["origin"] = line.origin.kind
    if logical is not UNSET:
        metadata["logical_parent_uuid"] = logical
    return metadata


def _blocks(content: list[_Block], calls: RecentCalls) -> list[dict[str, JSON]] | None:
    """The unified blocks of native ones; None where one of them is not regular."""
    blocks: list[dict[str, JSON]] = []
    for block in content:
        kind = block.type
        fitted: dict[str, JSON] | None = None
        if kind == "tool_use":
            key, name = block.id, block.name
            if key is not None and name is not None and block.input is not UNSET:
                keep_call(calls, key, name)
                if len(calls) > MAX_CALLS:
                    calls.forget()
                fitted = {"type": kind, "tool_id": key, "tool_name": name, "input": block.input}
        elif kind == "tool_result":
            fitted = _result(block, calls)
        elif kind == "text":
            fitted = {"type": kind, "text": block.text} if block.text is not UNSET else None
        elif kind == "thinking" and block.thinking is not UNSET:
            fitted = {"type": kind, "thinking": block.thinking}
        if fitted is None:
            return None
        blocks.append(fitted)
    return blocks


def _result(block: _Block, calls: RecentCalls) -> dict[str, JSON] | None:
    key, output = block.tool_use_id, block.content
    if key is None or block.tool_name is not UNSET:
        return None
    if type(output) is not str and not (type(output) is list and all(map(_is_text, output))):
        return None
    result: dict[str, JSON] = {"type": "tool_result", "tool_id": key, "tool_name": calls.get(key), "output": output}
    if block.is_error is not None:
        result["is_error"] = block.is_error
    return result


def _is_text(item: JSON) -> bool:
    return type(item) is dict and item.get("type") == "text" and type(item.get("text")) is str
