"""The base class of decoders, which turn the native records of a session into events."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import BinaryIO, TypeVar

from msgspec import UNSET, UnsetType

from clew.agents.base import SourceFile, fragment_events, open_file
from clew.agents.derived_ids import MessageChain
from clew.agents.tools import RecentCalls
from clew.io.compress import damage
from clew.io.json_document import read_document_stream
from clew.io.records import RawRecord
from clew.io.typed_records import OptionalText
from clew.model.blocks import Block, ToolResult, ToolUse
from clew.model.codes import problem
from clew.model.events import Event, SubagentStarted
from clew.model.json import JSON
from clew.model.message import Message, Metadata, Role, SourceRef
from clew.model.record import ORIGIN, Record
from clew.model.time import canonical_time, format_utc
from clew.model.usage import TokenUsage

R = TypeVar("R")

_NO_METADATA = Metadata()
MAX_EPOCH_MILLISECONDS = 1 << 45
"""A number beyond this is no time; it would be in the year 3084."""


class EventDecoder:
    """What must be known of earlier records to decode the next one, and how its events are made.

    A subclass decodes the records of one agent. `read_lines` and `read_document` call it for each record of a file.
    """

    def __init__(self, source: SourceFile, scope: str = "") -> None:
        self.source = source
        self.index = 0
        """The index of the last message."""
        self.ref = SourceRef(0, 0)
        """The record that is being decoded. Events of one record share this object."""
        self.chain = MessageChain(scope)
        self.tool_names = RecentCalls()
        self._linked_subagents: set[str] = set()

    # Records

    def read_lines(
        self,
        decode_file: Callable[[BinaryIO], Iterator[tuple[int, R | RawRecord]]],
        decode: Callable[[R], Iterable[Event]],
        file: int = 0,
    ) -> Iterator[Event]:
        """The events of a file of JSON lines, nearly always with the `decode_file` of a `RecordDecoder`.

        The main file has the number 0, the first of `source.parts` 1.
        """
        with self._open_session_file(file) as stream:
            for line, record in decode_file(stream):
                self.ref = SourceRef(file, line - 1)
                yield from self.fragment(record, line) if isinstance(record, RawRecord) else decode(record)
            yield from self._archive_damage(stream, file)

    def read_document(
        self, keys: tuple[str, ...], decode: Callable[[dict[str, JSON], bool], Iterable[Event]], file: int = 0
    ) -> Iterator[Event]:
        """The events of a file that is one JSON document, in which the member `keys` is the array of records.

        `decode` gets each record, and True for the document without its array.
        """
        with self._open_session_file(file) as stream:
            for number, record in enumerate(read_document_stream(stream, keys)):
                self.ref, value = SourceRef(file, number), record.value
                yield from self.fragment(record, record.line) if value is None else decode(value, record.is_header)
            yield from self._archive_damage(stream, file)

    def fragment(self, record: RawRecord, line: int) -> Iterator[Event]:
        """The events of a piece of a file that is no record."""
        file, number = self.ref.file, self.ref.record
        return fragment_events(self.source, record, line, after=self.index, file=file, number=number)

    def _open_session_file(self, file: int) -> BinaryIO:
        return open_file(self.source, self.source.parts[file - 1] if file else "")

    def _archive_damage(self, stream: BinaryIO, file: int) -> Iterator[Event]:
        if found := damage(stream):
            path = self.source.path.parent / self.source.parts[file - 1] if file else self.source.path
            yield problem("damaged-archive", found, file=str(path))

    # Events

    def make_message(
        self,
        role: Role,
        blocks: list[Block],
        metadata: Metadata | None = None,
        *,
        uuid: OptionalText = UNSET,
        parent: OptionalText = UNSET,
        time: JSON = UNSET,
    ) -> Message:
        """The next message, from the record that is being decoded. Results get the names of their calls."""
        self.index += 1
        names = self.tool_names
        for block in blocks:
            if type(block) is ToolUse:
                names[block.tool_id] = block.tool_name
            elif type(block) is ToolResult and block.tool_id is not None and not block.tool_name:
                block.tool_name = names.get(block.tool_id) or block.tool_name
        return Message(
            index=self.index,
            uuid=uuid,
            parent_uuid=parent,
            role=role,
            timestamp=canonical_time(time),
            content=blocks,
            metadata=UNSET if metadata is None or metadata == _NO_METADATA else metadata,
            source=self.ref,
        )

    def make_chained(
        self,
        role: Role,
        blocks: list[Block],
        metadata: Metadata | None = None,
        *,
        uuid: OptionalText = UNSET,
        parent: OptionalText = UNSET,
        time: JSON = UNSET,
    ) -> Message:
        """The next message of a log without ids or parents: it gets an id, and follows the last message."""
        message = self.make_message(role, blocks, metadata, uuid=uuid, parent=parent, time=time)
        self.chain.add(message)
        return message

    def make_record(
        self,
        kind: str,
        type: OptionalText = UNSET,
        *,
        text: OptionalText = UNSET,
        time: JSON = UNSET,
        uuid: OptionalText = UNSET,
        parent: OptionalText = UNSET,
        message_uuid: OptionalText = UNSET,
    ) -> Record:
        """What the record that is being decoded becomes if it is no message."""
        return Record(
            after=self.index,
            kind="state" if type == ORIGIN else kind,
            type=type,
            uuid=uuid,
            parent_uuid=parent,
            timestamp=canonical_time(time),
            text=text,
            message_uuid=message_uuid,
            source=self.ref,
        )

    def start_subagent(self, session_id: str, agent_id: str | None, call: str | None) -> Iterator[SubagentStarted]:
        """Link a sub-agent to the call that started it; later calls may name it again."""
        if session_id not in self._linked_subagents:
            self._linked_subagents.add(session_id)
            yield SubagentStarted(session_id=session_id, agent_id=agent_id, tool_id=call)


def metadata_of(message: Message) -> Metadata:
    """The metadata of a message, to be changed; it has none until something is known of it."""
    if message.metadata is UNSET:
        message.metadata = Metadata()
    return message.metadata


# Values


def token_usage(
    *,
    input: int | None | UnsetType = None,
    output: int | None | UnsetType = None,
    cache_read: int | None | UnsetType = None,
    cache_write: int | None | UnsetType = None,
    reasoning: int | None | UnsetType = None,
    is_cache_in_input: bool = False,
) -> TokenUsage:
    """The counts of a request in the document's form: input without what was cached. Unknown counts stay unset."""
    cache_read, cache_write = _known(cache_read), _known(cache_write)
    if is_cache_in_input and isinstance(input, int):
        input = max(0, input - (cache_read or 0) - (cache_write or 0))
    return TokenUsage(
        input_tokens=_known(input),
        output_tokens=_known(output),
        cache_read_tokens=cache_read,
        cache_creation_tokens=cache_write,
        reasoning_tokens=_known(reasoning),
    )


def _known(count: int | None | UnsetType) -> int | UnsetType:
    return count if isinstance(count, int) and count >= 0 else UNSET


def time_of_seconds(seconds: int | None) -> str | None:
    """The time this many seconds after 1970; None where there is none."""
    return time_of_milliseconds(seconds * 1000 if seconds is not None else None)


def time_of_milliseconds(milliseconds: int | None) -> str | None:
    """The time this many milliseconds after 1970; None where there is none."""
    if milliseconds is None or not 0 < milliseconds < MAX_EPOCH_MILLISECONDS:
        return None
    return format_utc(milliseconds * 1000)


def known_facts(**facts: JSON) -> dict[str, JSON]:
    """Those of the facts that are known."""
    return {name: fact for name, fact in facts.items() if fact is not None}
