"""Messages for who only looks at them: of a regular line, what is shown is read and all else skipped, unread.

A line in which anything is not as expected takes the general way. Messages come without extensions, and with as much
metadata as faces show; else they are those of `read`. The lines are those of the first pass with their words, so that
one pass can do for both where a source is small.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, cast

import msgspec
from msgspec import UNSET, UnsetType

from clew.agents.base import Shown, SourceFile, open_main
from clew.agents.claude_code.header import session_object
from clew.agents.claude_code.lines import Line, Told
from clew.agents.claude_code.scan import UNREAD, Scanner
from clew.agents.claude_code.straight import see_straight
from clew.derive.facts import Facts
from clew.io.records import read_line, read_texts
from clew.model.json import JSON

if TYPE_CHECKING:
    from clew.agents.claude_code.reading import ClaudeReading
    from clew.agents.mapping import Values

_USUAL_TIME = 24
MAX_CALLS = 10_000
"""How many tool calls are remembered, so that their results can be named."""
_MESSAGES = frozenset({"user", "assistant", "system", "attachment"})
"""All other types of lines are records."""
_IMAGE, _SOURCE = frozenset({"type", "source"}), frozenset({"type", "media_type", "data"})
"""What a regular image and its source say."""
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
    source: JSON | UnsetType = UNSET


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
    if source.parts:
        from clew.agents.claude_code.reading import ClaudeReading

        return (unit.value for unit in ClaudeReading(source, shared) if unit.is_message)
    return _messages(_Place(source, shared), None)


def shown_at_once(source: SourceFile) -> Shown:
    """The same with the header and the tree, from one pass over a source of one file."""
    scanner = Scanner(Facts(), source.path, tree=True, counts=False)
    lines: list[_Line | bytes] = []
    messages = list(_messages(_Place(source, _NO_VALUES), lines))
    is_straight = bytes not in set(map(type, lines)) and see_straight(scanner, cast(list[Line], lines))
    if not is_straight:
        scanner.see_mixed([line if isinstance(line, bytes) else _told(line) for line in lines])
    facts = scanner.finish()
    return Shown(session_object(source, facts), None if is_straight else facts.tree, messages)


class _Place:
    """How far a source is read, and which calls there were; the general way is loaded for the first line it takes."""

    def __init__(self, source: SourceFile, shared: Values) -> None:
        self.source, self._shared = source, shared
        self.index = 0
        self.calls: dict[str, str] = {}
        self._reading: ClaudeReading | None = None

    def general(self, text: bytes, whole: bool) -> Iterator[dict[str, JSON]]:
        """The messages of the next line."""
        records = list(read_line(text, 0, 0, whole))
        if all(record.value is None for record in records):
            # Damage is no message, and nothing need be loaded to say so.
            return
        if self._reading is None:
            from clew.agents.claude_code.reading import ClaudeReading

            self._reading = ClaudeReading(self.source, self._shared)
            self._reading.calls.update(self.calls)
            self.calls = self._reading.calls
        self._reading.index = self.index
        units = [self._reading.unit(record) for record in records]
        self.index = self._reading.index
        for unit in units:
            if unit.is_message:
                unit.value.pop("extensions", None)
                yield unit.value


def _messages(place: _Place, lines: list[_Line | bytes] | None) -> Iterator[dict[str, JSON]]:
    """The messages; the lines they are in are put down on the way, as text where they are not regular."""
    with open_main(place.source) as stream:
        for text, whole in read_texts(stream):
            # What is skipped may be no UTF-8: it changes nothing in what is shown.
            try:
                line = _decode(text) if whole else None
            except _ERRORS:
                line = None
            if lines is not None:
                lines.append((text if whole else UNREAD) if line is None else line)
            message = _quick(place, line) if line is not None else None
            if message is not None:
                yield message
            elif line is None or line.type in _MESSAGES:
                yield from place.general(text, whole)


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


def _quick(place: _Place, line: _Line) -> dict[str, JSON] | None:
    """The message of a regular line; None for any other."""
    kind, time, said = line.type, line.timestamp, line.message
    if line.uuid is None or type(time) is not str or len(time) != _USUAL_TIME or time[10::13] != "TZ":
        return None
    if said is None:
        kind, blocks = "system", _noted(line)
    elif kind == "assistant" or kind == "user":
        content = said.content
        blocks = _blocks(content, place.calls) if type(content) is list else [{"type": "text", "text": content}]
    else:
        return None
    if blocks is None:
        return None
    place.index = index = place.index + 1
    message: dict[str, JSON] = {
        "index": index,
        "role": kind,
        "parent_uuid": line.parentUuid,
        "uuid": line.uuid,
        "timestamp": time,
        "content": blocks,
        "metadata": _metadata(line, said),
    }
    if line.parentUuid is UNSET:
        del message["parent_uuid"]
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
    side = line.isSidechain
    metadata: dict[str, JSON] = {"is_sidechain": side} if side is not None else {}
    if line.isMeta is not None:
        metadata["is_meta"] = line.isMeta
    if said is not None:
        reply, model = said.id, said.model
        if reply is not UNSET:
            metadata["message_id"] = reply
        if model is not UNSET:
            metadata["model"] = {"name": model}
        if line.isCompactSummary is not None and line.type == "user":
            metadata["is_compact_summary"] = line.isCompactSummary
        if (origin := line.origin) is not None and origin.kind is not None and line.type == "user":
            metadata["origin"] = origin.kind
    if line.logicalParentUuid is not UNSET:
        metadata["logical_parent_uuid"] = line.logicalParentUuid
    return metadata


def _blocks(content: list[_Block], calls: dict[str, str]) -> list[dict[str, JSON]] | None:
    """The unified blocks of native ones; None where one of them is not regular."""
    blocks: list[dict[str, JSON]] = []
    for block in content:
        kind = block.type
        fitted: dict[str, JSON] | None = None
        if kind == "tool_use":
            key, name = block.id, block.name
            if key is not None and name is not None and block.input is not UNSET:
                calls[key] = name
                if len(calls) > MAX_CALLS:
                    del calls[next(iter(calls))]
                fitted = {"type": kind, "tool_id": key, "tool_name": name, "input": block.input}
        elif kind == "tool_result":
            fitted = _result(block, calls)
        elif kind == "text":
            fitted = {"type": kind, "text": block.text} if block.text is not UNSET else None
        elif kind == "thinking" and block.thinking is not UNSET:
            fitted = {"type": kind, "thinking": block.thinking}
        elif kind == "image":
            fitted = _image(block.source)
        if fitted is None:
            return None
        blocks.append(fitted)
    return blocks


def _result(block: _Block, calls: dict[str, str]) -> dict[str, JSON] | None:
    key = block.tool_use_id
    if key is None or block.tool_name is not UNSET:
        return None
    output = block.content if type(block.content) is str else _items(block.content)
    if output is None:
        return None
    result: dict[str, JSON] = {"type": "tool_result", "tool_id": key, "tool_name": calls.get(key), "output": output}
    if block.is_error is not None:
        result["is_error"] = block.is_error
    return result


def _items(content: JSON | UnsetType) -> list[JSON] | None:
    """What a result is made of: texts and images; None where there is anything else."""
    if type(content) is not list:
        return None
    items = [_item(item) if type(item) is dict else None for item in content]
    return None if None in items else items


def _item(item: dict[str, JSON]) -> dict[str, JSON] | None:
    if item.get("type") == "text":
        return {"type": "text", "text": item["text"]} if type(item.get("text")) is str else None
    return _image(item["source"]) if item.keys() == _IMAGE and item["type"] == "image" else None


def _image(source: JSON | UnsetType) -> dict[str, JSON] | None:
    """The unified block of an image that is inside the session; None for any other."""
    if type(source) is not dict or source.keys() != _SOURCE or not all(type(value) is str for value in source.values()):
        return None
    kind, media, data = source["type"], source["media_type"], source["data"]
    return {"type": "image", "encoding": kind, "media_type": media, "image": data}
