"""Gemini CLI's chat format as typed records, and the files of a session as a sequence of them.

Until March 2026 a chat was one JSON document that the client wrote anew at every change; since then it is a log of JSON
lines that the client replays. A line adds a message or writes one anew (`id`), takes messages back (`$rewindTo`),
changes the header (`$set`, which may replace all messages), or is the header. Saved chats (`/chat save`) hold turns as
the API has them, and `logs.json` is a list of prompts. The modules of this package know the key names, and no others.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from enum import Enum
from itertools import islice
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field

from clew.agents.base import SourceFile, open_file
from clew.agents.gemini_content import find_unknown_part_keys
from clew.io.codec import NOT_JSON, loads
from clew.io.compress import damage, plain_name
from clew.io.json_document import read_document
from clew.io.records import MAX_RECORD_BYTES, TOO_LONG, RawRecord
from clew.io.typed_records import RecordDecoder, decode_leniently, decode_value, unknown_in
from clew.model.codes import problem
from clew.model.json import JSON
from clew.model.problem import Problem

HEAD_BYTES = 1 << 16
"""How much of a file is looked at to tell a document from lines."""
HELD_BYTES = 16 << 20
"""The records of a file up to this size are held in memory, instead of reading the file twice."""
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class Tokens(Struct, gc=False):
    """Counts of one request. `cached` is a part of `input`; `thoughts` are no part of `output`."""

    input: Any = UNSET
    output: Any = UNSET
    cached: Any = UNSET
    thoughts: Any = UNSET
    tool: Any = UNSET
    total: Any = UNSET


class Thought(Struct, gc=False):
    subject: Any = UNSET
    description: Any = UNSET


class TodoDisplay(Struct, gc=False):
    """What the client displays for a call, as far as it is a task list."""

    todos: Any = UNSET


class ToolCall(Struct, gc=False):
    """A call and its result. The values are not typed, so that an odd one loses no other call of the list."""

    id: Any = None
    name: Any = None
    args: Any = None
    result: Any = None
    status: Any = None
    timestamp: Any = None
    resultDisplay: TodoDisplay | str | list[Any] | int | float | bool | None = None
    agentId: Any = None


class SessionState(Struct, gc=False):
    """What the header says of the session, and `$set` changes."""

    sessionId: Any = UNSET
    projectHash: Any = UNSET
    startTime: Any = UNSET
    lastUpdated: Any = UNSET
    summary: Any = UNSET
    directories: Any = UNSET
    kind: Any = UNSET
    memoryScratchpad: Any = UNSET


STATE_KEYS = SessionState.__struct_fields__


class Patch(SessionState, gc=False):
    messages: list[Any] | UnsetType = UNSET


class ChatDocument(SessionState, gc=False):
    """A chat, or a saved chat, that is one document."""

    messages: list[Raw] | UnsetType = UNSET
    history: list[Raw] | UnsetType = UNSET


class UsageRecord(SessionState, gc=False):
    """What token usage needs of a record, and what tells the kinds of records apart."""

    id: str | None = None
    timestamp: Any = UNSET
    type: Any = UNSET
    tokens: Tokens | None = None
    model: Any = UNSET
    set: Patch | None = field(default=None, name="$set")
    rewind_to: str | None = field(default=None, name="$rewindTo")
    role: Any = UNSET
    messages: list[Any] | UnsetType = UNSET

    @property
    def is_header(self) -> bool:
        """True for a record that says whose session it is; other writers leave out the hash of the project."""
        return type(self.sessionId) is str and (type(self.projectHash) is str or self.startTime is not UNSET)


class ChatRecord(UsageRecord, gc=False):
    """A line of an event log, an element of a chat, a turn of a saved chat, or an entry of the log of prompts."""

    content: Any = UNSET
    """A text, a part, or a list of texts and parts."""
    thoughts: list[Thought] | None = None
    toolCalls: list[ToolCall] | None = None
    parts: Any = UNSET
    """The content of a turn of a saved chat."""
    message: Any = UNSET
    messageId: Any = UNSET
    """An entry of the log of prompts has this, and `message`."""


CHAT = RecordDecoder(ChatRecord)
USAGE = RecordDecoder(UsageRecord)
_decode_document = msgspec.json.Decoder(ChatDocument).decode
_decode_list = msgspec.json.Decoder(list[Raw]).decode

T = TypeVar("T", bound=UsageRecord)


class Action(Enum):
    """What a record does to the list of messages."""

    NOTHING = 0
    ADD = 1
    """Adds a message, or writes one anew."""
    REWIND = 2
    REPLACE = 3
    """Forgets all messages; those inside of the record follow."""


class Step(NamedTuple, Generic[T]):
    """A record in its place."""

    action: Action
    record: T | None
    """None: a piece of a file that is no record."""
    file: int
    number: int
    """The line, beginning with 0; in a document 0 for what stands around the array, then each element."""
    is_inside: bool = False
    """True for a message inside of a record that replaces all messages."""
    is_document_header: bool = False
    problems: tuple[Problem, ...] = ()


class ChatFile:
    """One file of a session. A document is held as bytes, because the client may replace it at any time."""

    def __init__(self, source: SourceFile, number: int) -> None:
        self.number = number
        self._source, self._name = source, source.parts[number - 1] if number else ""
        self.path = str(source.path.parent / self._name if number else source.path)
        with open_file(source, self._name) as stream:
            content = stream.read(HELD_BYTES + 1)
            self.is_document = is_document(content[:HEAD_BYTES], self.path)
            self.is_held = len(content) <= HELD_BYTES
            self._is_too_long = False
            if self.is_document:
                content += stream.read(MAX_RECORD_BYTES)
                self._is_too_long = len(content) > MAX_RECORD_BYTES
            self._content = content if self.is_document or self.is_held else None
            self.damage = damage(stream)

    def steps(self, decoder: RecordDecoder[T]) -> Iterator[Step[T]]:
        """The records of the file in order."""
        if self.is_document:
            yield from self._document_steps(decoder)
            return
        content = self._content
        with io.BytesIO(content) if content is not None else open_file(self._source, self._name) as stream:
            last_line = 0
            for line, record in decoder.decode_file(stream):
                if isinstance(record, RawRecord):
                    yield self._fragment(record.findings, line - 1, line)
                else:
                    yield from self._record_steps(record, line - 1, is_first=line != last_line)
                last_line = line
            # Of a compressed file this is known once it was read to its end.
            self.damage = damage(stream) or self.damage

    def _fragment(self, findings: tuple[str, ...], number: int, line: int | None) -> Step[Any]:
        problems = tuple(problem(code, file=self.path, line=line) for code in findings)
        return Step(Action.NOTHING, None, self.number, number, problems=problems)

    def _record_steps(self, record: T, number: int, is_first: bool = True) -> Iterator[Step[T]]:
        """A record of a log, tested in the client's own order.

        Behind damage an object with an id and without a type is a part of a message, such as a call.
        """
        if record.rewind_to is not None:
            yield Step(Action.REWIND, record, self.number, number)
        elif record.id is not None and (is_first or record.type is not UNSET):
            yield Step(Action.ADD, record, self.number, number)
        else:
            holder = record.set if record.set is not None else record if record.is_header else None
            if holder is None or holder.messages is UNSET:
                yield Step(Action.NOTHING, record, self.number, number)
                return
            yield Step(Action.REPLACE, record, self.number, number)
            for value in holder.messages:
                if type(value) is not dict:
                    yield self._fragment(("not-an-object",), number, None)._replace(is_inside=True)
                    continue
                inner = decode_value(value, type(record))
                action = Action.ADD if inner.id is not None else Action.NOTHING
                yield Step(action, inner, self.number, number, is_inside=True)

    def _document_steps(self, decoder: RecordDecoder[T]) -> Iterator[Step[T]]:
        assert self._content is not None
        if self._is_too_long:
            yield self._fragment((TOO_LONG,), 0, 1)
            return
        header = ChatDocument()
        elements: list[Raw] | UnsetType
        try:
            if self._content.lstrip()[:1] == b"[":
                elements = _decode_list(self._content)
            else:
                header = _decode_document(self._content)
                elements = header.messages if header.messages is not UNSET else header.history
        except (msgspec.MsgspecError, RecursionError, UnicodeError):
            elements = UNSET
        if elements is UNSET:
            yield from self._irregular_document_steps(decoder.record_type)
            return
        record = decoder.record_type(**{name: getattr(header, name) for name in STATE_KEYS})
        record.messages = [] if header.messages is not UNSET else UNSET
        yield self._header_step(record)
        for number, element in enumerate(elements, 1):
            for found in decoder.decode_line(bytes(element)):
                if isinstance(found, RawRecord):
                    yield self._fragment(found.findings, number, None)
                else:
                    yield self._element_step(found, number)

    def _header_step(self, record: T) -> Step[T]:
        return Step(Action.NOTHING, record, self.number, 0, is_document_header=True)

    def _element_step(self, record: T, number: int) -> Step[T]:
        is_message = type(record.type) is str or record.id is not None or record.role in ("user", "model")
        return Step(Action.ADD if is_message else Action.NOTHING, record, self.number, number)

    def _irregular_document_steps(self, record_type: type[T]) -> Iterator[Step[T]]:
        """The records of a document that is torn, followed by other bytes, or holds no array of messages."""
        assert self._content is not None
        keys = document_keys(self._content, self.path) or ()
        for number, found in enumerate(read_document(self._content, keys)):
            if found.value is None:
                yield self._fragment(found.findings, number, found.line)
            elif found.is_header:
                yield self._header_step(decode_leniently(found.value, record_type))
            elif found.width == len(self._content):
                yield from self._record_steps(decode_leniently(found.value, record_type), 0)
            else:
                yield self._element_step(decode_leniently(found.value, record_type), number)


def first_session_id(source: SourceFile, max_steps: int) -> str | None:
    """The session id that a header among the first records claims."""
    for step in islice(ChatFile(source, 0).steps(USAGE), max_steps):
        if step.record is not None and step.record.id is None and type(step.record.sessionId) is str:
            return step.record.sessionId
    return None


def is_document(head: bytes, name: str) -> bool:
    """True for a file that is one document over several lines, or an array.

    The client reads a `.jsonl` file that has no header as a document, so the name decides only where the text does not.
    """
    text = head.removeprefix(_BYTE_ORDER_MARK).lstrip()
    line = text.partition(b"\n")[0].strip()
    if line[:1] == b"[" or line == b"{":
        return True
    try:
        value = loads(line)
    except NOT_JSON:
        return line[:1] == b"{" and plain_name(name).endswith(".json")
    return isinstance(value, dict) and type(value.get("history")) is list


def document_keys(head: bytes, name: str) -> tuple[str, ...] | None:
    """The keys of the array that holds the messages of a document, none where it is the array; None for a log."""
    if not is_document(head, name):
        return None
    is_list = head.removeprefix(_BYTE_ORDER_MARK).lstrip()[:1] == b"["
    return () if is_list else ("messages", "history")


def is_header(native: Mapping[str, JSON]) -> bool:
    """True for a native record that is the header of a chat; `UsageRecord.is_header` for a mapping."""
    return type(native.get("sessionId")) is str and (type(native.get("projectHash")) is str or "startTime" in native)


def embedded_messages(native: Mapping[str, JSON]) -> list[JSON] | None:
    """The messages inside of a native record that replaces all messages; None for any other record."""
    if type(native.get("$rewindTo")) is str or type(native.get("id")) is str:
        return None
    patch = native.get("$set")
    holder = patch if type(patch) is dict else native if is_header(native) else {}
    messages = holder.get("messages")
    return messages if type(messages) is list else None


def message_record(native: Mapping[str, JSON], uuid: JSON) -> Mapping[str, JSON]:
    """The message with this id in a native record: one of those inside of it, else the record itself."""
    messages: list[JSON] = embedded_messages(native) or []
    for message in reversed(messages):
        if type(message) is dict and message.get("id") == uuid:
            return message
    return native


_MESSAGE_KEYS = ("displayContent", "sessionId")
_CALL_KEYS = ("displayName", "description", "renderOutputAsMarkdown", "error")
_STATE_OWN_KEYS = ("messages", "history", "authType")


def find_unknown_keys(native: Mapping[str, JSON]) -> Iterator[str]:
    """The keys of a native record that this version of clew does not know, each behind the kind of its object."""
    if type(native.get("$rewindTo")) is str:
        yield from unknown_in("rewind", native, known=("$rewindTo",))
    elif type(native.get("id")) is str or _is_message(native):
        yield from _unknown_in_message(native)
    elif type(native.get("$set")) is dict:
        yield from unknown_in("patch", native, known=("$set",))
        yield from unknown_in("set", native["$set"], known=(*STATE_KEYS, "messages"))
    elif is_header(native) or "messages" in native or "history" in native:
        yield from unknown_in("header", native, known=(*STATE_KEYS, *_STATE_OWN_KEYS))
    else:
        yield from unknown_in("other", native)
    for message in embedded_messages(native) or ():
        if type(message) is dict:
            yield from _unknown_in_message(message)


def _is_message(native: Mapping[str, JSON]) -> bool:
    """True for an element of a document that is a message without an id, a turn, or an entry of the log of prompts."""
    if "messageId" in native and "message" in native:
        return True
    return native.get("type") in ("user", "gemini", "info", "warning", "error") or (
        native.get("role") in ("user", "model") and "parts" in native
    )


def _unknown_in_message(message: Mapping[str, JSON]) -> Iterator[str]:
    kind = message.get("type", message.get("role"))
    name = kind if type(kind) is str else "message"
    yield from unknown_in(name, message, ChatRecord, _MESSAGE_KEYS)
    for key in ("content", "parts", "message"):
        content = message.get(key)
        for part in content if type(content) is list else [content]:
            yield from find_unknown_part_keys(part)
    for key, item_name, item_type, known in (
        ("thoughts", "thought", Thought, ("timestamp",)),
        ("toolCalls", "call", ToolCall, _CALL_KEYS),
    ):
        yield from unknown_in(item_name, message.get(key), item_type, known)
