"""Any source, told by way of the unified document: for agents without a quicker way, and for what that refuses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any, NamedTuple, cast

import msgspec

from clew.agents.base import Agent, CountsAtOnce, Encodes, Reading, SourceFile, skim
from clew.agents.told import ANSWER, INPUT, OUTPUT, PROMPT, THINKING, Block, Call, Message, words_of
from clew.derive.facts import Facts
from clew.io.codec import dumps, loads

BATCH = 1 << 20
"""So many bytes of messages are looked at together."""
AT_ONCE = 8 << 20
"""Sources up to this size are read in one pass where their agent can."""


class _Model(msgspec.Struct, gc=False):
    name: str | None = None


class _Metadata(msgspec.Struct, gc=False):
    git_branch: str | None = None
    is_meta: bool = False
    is_sidechain: bool = False
    is_compact_summary: bool = False
    model: _Model | None = None
    message_id: str | None = None


class _Block(msgspec.Struct, gc=False):
    type: str
    text: str | None = None
    thinking: str | None = None
    tool_id: str | None = None
    tool_name: str | None = None
    input: Any = None
    output: Any = None
    is_error: bool = False
    title: str | None = None
    encoding: str | None = None
    document: str | None = None
    value: Any = None


class _Message(msgspec.Struct, gc=False):
    role: str
    content: list[_Block]
    uuid: str | None = None
    parent_uuid: str | None = None
    timestamp: str | None = None
    metadata: _Metadata | None = None


_decode = msgspec.json.Decoder(list[_Message], strict=False).decode
_NOTHING = _Metadata()


class Telling(NamedTuple):
    """A source on its way: its messages, and behind them its facts and what it used."""

    messages: Iterator[list[Message]]
    facts: Callable[[], tuple[Facts, list[Call]]]
    reading: object

    def problems(self) -> list[dict[str, Any]]:
        """What was wrong with its lines, as far as its reading keeps that."""
        return [{"code": code, "line": line} for code, line in getattr(self.reading, "findings", ())]


class NotAtOnce(Exception):
    """What was guessed at the beginning of a source turned out wrong: it must be read in two passes."""


def tell(agent: Agent, source: SourceFile, *, at_once: bool) -> Telling:
    """The messages of a source, many at a time. Their facts are there when they were all taken."""
    places = Places()
    if at_once:
        reading = cast(CountsAtOnce, agent).read_and_count(source)
        return Telling(_messages(reading, places), lambda: _end(*reading.facts(), places), reading)
    facts = skim(agent, source, tree=False, counts=True)
    units = agent.read(source, facts)
    encodes = units if isinstance(units, Encodes) else _Encoded(units)
    return Telling(_messages(encodes, places), lambda: _end(facts, True, places), units)


def _end(facts: Facts, is_right: bool, places: Places) -> tuple[Facts, list[Call]]:
    if not is_right:
        raise NotAtOnce
    return facts, [Call(key, model, counts, at or places.of(key)) for key, model, counts, at in facts.ledger.each()]


class Places:
    """Which message a request stands with, where the ledger does not tell: by the names that messages have."""

    def __init__(self) -> None:
        self.count = 0
        self._of: dict[str, int] = {}

    def see(self, message: _Message) -> None:
        """The next message."""
        self.count += 1
        if message.role == "assistant":
            for name in (message.uuid, message.metadata.message_id if message.metadata else None):
                if name:
                    self._of.setdefault(name, self.count)

    def of(self, key: str) -> int:
        """The first message that answers to the key; a session's name may stand before it."""
        return self._of.get(key) or self._of.get(key.rpartition(" ")[2], 0)


def _messages(units: Encodes, places: Places) -> Iterator[list[Message]]:
    messages, records = bytearray(), bytearray()
    for _ in chain(units.encode(messages, records, b","), (None,)):
        records.clear()
        if messages:
            messages[-1:] = b"]"
            found = _decoded(b"[" + messages)
            messages.clear()
            for message in found:
                places.see(message)
            yield [_told(message) for message in found]


def _decoded(text: bytes) -> list[_Message]:
    try:
        return _decode(text)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        # One odd value must not hide the others.
        return [_careful(message) for message in loads(text)]


def _careful(message: dict[str, Any]) -> _Message:
    try:
        return msgspec.convert(message, _Message, strict=False)
    except (msgspec.ValidationError, RecursionError):
        content = [_Block("unknown", value=block) for block in message.get("content") or ()]
        names = ("uuid", "parent_uuid", "timestamp")
        texts = {name: message[name] for name in names if isinstance(message.get(name), str)}
        return _Message(str(message.get("role")), content, **texts)


def _told(message: _Message) -> Message:
    about = message.metadata or _NOTHING
    return Message(
        message.uuid,
        message.parent_uuid,
        message.timestamp,
        message.role,
        (about.model.name if about.model is not None else None) or "",
        about.git_branch or "",
        about.is_sidechain,
        about.is_meta,
        about.is_compact_summary,
        [_block(block, message.role) for block in message.content],
    )


def _block(block: _Block, role: str) -> Block:
    kind = block.type
    if kind == "text":
        return Block(kind, spoken(role), block.text or "")
    if kind == "thinking":
        return Block(kind, THINKING, block.thinking or "")
    if kind == "tool_use":
        given = block.input if isinstance(block.input, dict) else None
        return Block(kind, INPUT, words_of(block.input), block.tool_id or "", block.tool_name or "", given)
    if kind == "tool_result":
        return Block(kind, OUTPUT, _output(block.output), block.tool_id or "", is_error=block.is_error)
    if kind == "document":
        text = block.document if block.encoding == "text" else None
        return Block(kind, spoken(role), "\n".join(filter(None, (block.title, text))))
    return Block(kind, OUTPUT if kind == "unknown" else "", words_of(block.value) if kind == "unknown" else "")


def spoken(role: str) -> str:
    """The kind of a text, by who said it."""
    return PROMPT if role == "user" else ANSWER if role == "assistant" else OUTPUT


def _output(output: Any) -> str:
    """The texts that a tool gave back; pictures are no text."""
    if isinstance(output, str):
        return output
    if not isinstance(output, list):
        return words_of(output)
    return "\n".join(_part(part) for part in output if not _is_picture(part))


def _part(part: Any) -> str:
    text = part.get("text") if isinstance(part, dict) else None
    return text if isinstance(text, str) else words_of(part)


def _is_picture(part: Any) -> bool:
    return isinstance(part, dict) and part.get("type") in ("image", "document")


class _Encoded:
    """The units of any reading as JSON text."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self.index = 0

    def encode(self, messages: bytearray, records: bytearray, between: bytes) -> Iterator[None]:
        for unit in self._reading:
            if unit.is_message:
                self.index += 1
                messages += dumps(unit.value) + between
                if len(messages) > BATCH:
                    yield
        yield
