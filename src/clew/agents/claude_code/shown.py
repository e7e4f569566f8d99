"""Messages for who only looks at them: of a regular line, what is shown is read and all else skipped, unread.

A line in which anything is not as expected takes the general way. Messages come without extensions, and with as much
metadata as faces show; else they are those of `read`.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from msgspec import UNSET, UnsetType

from clew.agents.base import SourceFile, open_main
from clew.agents.claude_code.reading import ClaudeReading
from clew.agents.claude_code.tables import RECORDS
from clew.agents.mapping import Values
from clew.io.records import read_line, read_texts
from clew.model.json import JSON

_ROLES = frozenset({"user", "assistant"})
_USUAL_TIME = 24


class _Origin(msgspec.Struct):
    kind: str | UnsetType = UNSET


class _Said(msgspec.Struct):
    content: str | list[dict[str, JSON]]
    id: str | UnsetType = UNSET
    model: str | None | UnsetType = UNSET


class _Line(msgspec.Struct):
    type: str
    message: _Said | None = None
    timestamp: str = ""
    uuid: str | None | UnsetType = UNSET
    parent_uuid: str | None | UnsetType = msgspec.field(default=UNSET, name="parentUuid")
    logical_parent_uuid: str | None | UnsetType = msgspec.field(default=UNSET, name="logicalParentUuid")
    is_sidechain: bool | UnsetType = msgspec.field(default=UNSET, name="isSidechain")
    is_meta: bool | UnsetType = msgspec.field(default=UNSET, name="isMeta")
    is_compact_summary: bool | UnsetType = msgspec.field(default=UNSET, name="isCompactSummary")
    origin: _Origin | UnsetType = UNSET


_decode = msgspec.json.Decoder(_Line).decode
_ERRORS = (msgspec.DecodeError, UnicodeError, RecursionError)


def shown(source: SourceFile, shared: Values) -> Iterator[dict[str, JSON]]:
    """The messages of a session, in order."""
    reading = ClaudeReading(source, shared)
    if source.parts:
        yield from (unit.value for unit in reading if unit.is_message)
        return
    with open_main(source) as stream:
        for text, whole in read_texts(stream):
            line = _line(text) if whole else None
            if line is not None:
                if line.type in RECORDS:
                    continue
                message = _quick(reading, line)
                if message is not None:
                    yield message
                    continue
            for record in read_line(text, 0, 0, whole):
                unit = reading.unit(record)
                if unit.is_message:
                    unit.value.pop("extensions", None)
                    yield unit.value


def _line(text: bytes) -> _Line | None:
    try:
        line = _decode(text)
        if not text.isascii():
            text.decode()
    except _ERRORS:
        return None
    return line


def _quick(reading: ClaudeReading, line: _Line) -> dict[str, JSON] | None:
    """The message of a regular line; None for any other."""
    time, said = line.timestamp, line.message
    if said is None or line.type not in _ROLES or len(time) != _USUAL_TIME or time[-1] != "Z" or time[10] != "T":
        return None
    content = said.content
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else _blocks(content, reading.calls)
    if blocks is None:
        return None
    reading.index += 1
    message: dict[str, JSON] = {"index": reading.index, "role": line.type}
    if line.parent_uuid is not UNSET:
        message["parent_uuid"] = line.parent_uuid
    if line.uuid is not UNSET:
        message["uuid"] = line.uuid
    message["timestamp"] = time
    message["content"] = blocks
    message["metadata"] = _metadata(line, said)
    return message


def _metadata(line: _Line, said: _Said) -> dict[str, JSON]:
    metadata: dict[str, JSON] = {}
    if line.is_sidechain is not UNSET:
        metadata["is_sidechain"] = line.is_sidechain
    if line.is_meta is not UNSET:
        metadata["is_meta"] = line.is_meta
    if said.id is not UNSET:
        metadata["message_id"] = said.id
    if said.model is not UNSET:
        metadata["model"] = {"name": said.model}
    if line.type == "user":
        if line.is_compact_summary is not UNSET:
            metadata["is_compact_summary"] = line.is_compact_summary
        if line.origin is not UNSET and line.origin.kind is not UNSET:
            metadata["origin"] = line.origin.kind
    if line.logical_parent_uuid is not UNSET:
        metadata["logical_parent_uuid"] = line.logical_parent_uuid
    return metadata


def _blocks(content: list[dict[str, JSON]], calls: dict[str, str]) -> list[dict[str, JSON]] | None:
    """The unified blocks of native ones; None where one of them is not regular."""
    blocks: list[dict[str, JSON]] = []
    for block in content:
        kind = block.get("type")
        fitted = block
        if kind == "tool_use":
            key, name = block.get("id"), block.get("name")
            if type(key) is not str or type(name) is not str or "input" not in block:
                return None
            calls[key] = name
            fitted = {"type": kind, "tool_id": key, "tool_name": name, "input": block["input"]}
        elif kind == "tool_result":
            result = _result(block, calls)
            if result is None:
                return None
            fitted = result
        elif (kind != "text" and kind != "thinking") or type(block.get(kind)) is not str:
            return None
        blocks.append(fitted)
    return blocks


def _result(block: dict[str, JSON], calls: dict[str, str]) -> dict[str, JSON] | None:
    key, output, is_error = block.get("tool_use_id"), block.get("content"), block.get("is_error")
    if type(key) is not str or "tool_name" in block:
        return None
    if type(output) is list:
        if not all(map(_is_text, output)):
            return None
    elif type(output) is not str:
        return None
    result: dict[str, JSON] = {"type": "tool_result", "tool_id": key, "tool_name": calls.get(key), "output": output}
    if type(is_error) is bool:
        result["is_error"] = is_error
    return result


def _is_text(item: JSON) -> bool:
    return type(item) is dict and item.get("type") == "text" and type(item.get("text")) is str
