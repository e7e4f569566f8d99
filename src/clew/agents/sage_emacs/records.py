"""sage-emacs' formats as typed records.

A conversation, or an archive of one, is JSON lines: one object per message, with the tool calls and their results in
it. A session that was saved under a name is one JSON document with a list of the same objects (`SavedHeader`).
Versions of the program differ in the optional keys. The modules of this package know the key names, and no
others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import UNSET, Struct, UnsetType

from clew.agents.sage_emacs.locate import is_saved
from clew.agents.sage_format import text_objects
from clew.agents.source import SINGLE_PASS_BYTES, SourceFile, open_main
from clew.io.compress import damage
from clew.io.json_document import DocumentRecord, read_document_stream
from clew.io.records import RawRecord
from clew.io.typed_records import OptionalText, RecordDecoder, TokenCount, decode_value, unknown_in
from clew.model.json import JSON
from clew.model.message import SourceRef

ROLES = ("user", "assistant", "system")
TOOL = "tool"
"""The role of a record that is the result of a tool."""
MESSAGES = "messages"
"""The key of the list of messages in a saved session."""
_LEFT_OVER = frozenset({"torn-tail", "nul-run", "trailing-bytes"})
"""Findings of bytes after the list of a torn document, or after a complete document."""


class ToolCall(Struct, gc=False):
    """A call together with its result."""

    id: str | None = None
    name: str | None = None
    args: Any = None
    result: Any = None
    duration_ms: int | float | None = None
    success: bool | None | UnsetType = UNSET


class TokenEstimate(Struct, gc=False):
    estimated: TokenCount | UnsetType = UNSET


class Usage(Struct, gc=False):
    input_tokens: TokenCount | UnsetType = UNSET
    output_tokens: TokenCount | UnsetType = UNSET
    cache_read_tokens: TokenCount | UnsetType = UNSET


class ConversationRecord(Struct, gc=False):
    """One message; `content` is a text or a list of blocks, and anything where the role is `tool`."""

    role: Any = None
    content: Any = None
    timestamp: Any = UNSET
    uuid: str | UnsetType = UNSET
    parentUuid: OptionalText = UNSET
    session_id: str | None = None
    sessionId: str | None = None
    cwd: OptionalText = UNSET
    gitBranch: OptionalText = UNSET
    version: OptionalText = UNSET
    model: OptionalText = UNSET
    tool_calls: list[Any] | None = None
    tokens: TokenEstimate | None = None
    usage: Usage | None = None
    tool_call_id: str | None = None
    name: str | UnsetType = UNSET
    success: bool | None | UnsetType = UNSET


class SavedHeader(Struct, gc=False):
    """The keys beside the messages of a saved session. `total_tokens` is an estimate, and is counted nowhere."""

    name: str | UnsetType = UNSET
    model: str | None = None
    workspace: str | None = None
    created_at: Any = UNSET
    updated_at: Any = UNSET


CONVERSATION = RecordDecoder(ConversationRecord)


class Item(Struct, gc=False):
    """A record of a conversation, the header of a saved session, or a piece of a file that is neither."""

    record: ConversationRecord | SavedHeader | RawRecord
    source: SourceRef
    line: int


class ConversationFile:
    """The records of a session, which can be iterated again: from memory if the file is small, else by decoding."""

    def __init__(self, source: SourceFile) -> None:
        self._source = source
        self.damage: str | None = None
        self._items = list(self._read()) if source.size <= SINGLE_PASS_BYTES else None

    def __iter__(self) -> Iterator[Item]:
        return self._read() if self._items is None else iter(self._items)

    def _read(self) -> Iterator[Item]:
        with open_main(self._source) as stream:
            if is_saved(self._source.path):
                for number, found in enumerate(read_document_stream(stream, (MESSAGES,))):
                    yield Item(_decode_element(found, is_header=number == 0), SourceRef(0, number), found.line)
            else:
                for line, record in CONVERSATION.decode_file(stream):
                    yield Item(record, SourceRef(0, line - 1), line)
            self.damage = damage(stream)


def document_records(source: SourceFile) -> Iterator[DocumentRecord]:
    """The header of a saved session, then each element of its list of messages, then what is left over."""
    with open_main(source) as stream:
        yield from read_document_stream(stream, (MESSAGES,))


def is_element(record: DocumentRecord) -> bool:
    """True for an element of the list of messages, False for the header and for what is left over."""
    return not record.is_header and _LEFT_OVER.isdisjoint(record.findings)


def _decode_element(found: DocumentRecord, *, is_header: bool) -> ConversationRecord | SavedHeader | RawRecord:
    # With no list of messages in it, a document is nothing but its header.
    if found.value is None:
        return found
    return decode_value(found.value, SavedHeader) if is_header else decode_value(found.value, ConversationRecord)


_COMMON_KEYS = ("role", "content", "timestamp", "uuid", "parentUuid", "session_id", "sessionId", "cwd", "gitBranch")
_KNOWN_KEYS = {
    **dict.fromkeys(ROLES, (*_COMMON_KEYS, "version", "model", "tool_calls", "tokens", "usage")),
    TOOL: (*_COMMON_KEYS, "version", "model", "tool_call_id", "name", "success"),
}
"""The keys of records by their role."""
_HEADER_KEYS = (MESSAGES, "provider", "message_count", "total_tokens")
"""The keys of a saved session that are not decoded."""


def find_unknown_keys(record: Mapping[str, JSON]) -> Iterator[str]:
    """The keys of a native record that are not known, each after the name of the object that holds it."""
    if MESSAGES in record and "role" not in record:
        yield from unknown_in("saved", record, SavedHeader, _HEADER_KEYS)
        return
    role = record.get("role")
    known = _KNOWN_KEYS.get(role) if type(role) is str else None
    if known is None:
        yield from unknown_in("unknown", record, known=("content", "timestamp"))
        return
    yield from unknown_in(str(role), record, known=known)
    if role != TOOL:
        yield from unknown_in("tokens", record.get("tokens"), TokenEstimate)
        yield from unknown_in("usage", record.get("usage"), Usage, ("estimated_cost_usd",))
        yield from unknown_in("call", record.get("tool_calls"), ToolCall)
        yield from unknown_in("text", text_objects(record.get("content")), known=("type", "text"))
