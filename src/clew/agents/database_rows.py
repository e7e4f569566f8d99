"""The lines that `clew.agents.database` makes of rows, the JSON in their columns, and the base class of decoders."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from typing import TypeVar

import msgspec

from clew.agents.base import SourceFile
from clew.agents.content import text_or_none, text_or_unset
from clew.agents.decoding import EventDecoder
from clew.io.codec import NOT_JSON, loads
from clew.io.typed_records import RecordDecoder, decode_leniently, decode_value
from clew.model.blocks import Block
from clew.model.codes import problem
from clew.model.events import Event, SessionInfo
from clew.model.json import JSON
from clew.model.message import Message, Metadata, Role
from clew.model.record import ORIGIN

T = TypeVar("T", bound=msgspec.Struct)


class Line(msgspec.Struct):
    """A line of the file: the header, a row, or one of an original that a converted session carries."""

    clew_rows: JSON = None
    agent: JSON = None
    schema: JSON = None
    session: JSON = None
    table: JSON = None
    row: JSON = None
    type: JSON = None


LINES = RecordDecoder(Line)


def decode_row(row: JSON, kind: type[T]) -> T:
    """A struct from the columns of a row; columns of other types are left out."""
    return decode_value(row, kind) if isinstance(row, dict) else kind()


def decode_json(text: str | None, kind: type[T]) -> T | None:
    """A struct from JSON text; fields of other types are left out. None for text that is not a JSON object."""
    if text is None:
        return None
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        pass
    value = parse_json(text)
    return decode_leniently(value, kind) if isinstance(value, dict) else None


def parse_json(text: JSON) -> JSON:
    """The value of JSON text; None for anything else."""
    try:
        return loads(text.encode("utf-8", "surrogatepass")) if isinstance(text, str) else None
    except NOT_JSON:
        return None


def json_in_column(native: Mapping[str, JSON], column: str) -> JSON:
    """The value of the JSON text in a column of a native row; None where there is none."""
    row = native.get("row")
    return parse_json(row.get(column)) if isinstance(row, dict) else None


RESULT_SUFFIX = ":result"
"""Behind the uuid of a call: the uuid of the message with its result, which the same row holds."""


class RowDecoder(EventDecoder):
    """Decodes the rows of a session. Rows name no parents: each message follows the one before it."""

    def __init__(self, source: SourceFile) -> None:
        super().__init__(source)
        self.session = ""
        self._uuids: set[str] = set()

    def decode(self, line: Line) -> Iterator[Event]:
        """The events of a line."""
        if line.clew_rows is not None:
            self.session = text_or_none(line.session) or ""
            yield SessionInfo(session_id=self.session or None, has_derived_parents=True)
            yield self.make_record("state", "header")
        elif line.table is None and line.type == ORIGIN:
            yield self.make_record("state", ORIGIN)
        else:
            yield from self.row_events(line.table, line.row)

    @abstractmethod
    def row_events(self, table: JSON, row: JSON) -> Iterator[Event]:
        """The events of a row."""

    def unknown_row(self, table: JSON) -> Iterator[Event]:
        """The event of a row of a table that is not known."""
        yield self.make_record("other", text_or_unset(table))

    def malformed_row(self, column: str, type: str | None) -> Iterator[Event]:
        """The events of a row that cannot be decoded, because there is no valid JSON in a column."""
        yield problem("malformed-json", line=self.ref.record + 1, path=f"row.{column}")
        yield self.make_record("other", text_or_unset(type))

    def make_next(
        self, role: Role, uuid: str, blocks: list[Block], time: str | None, metadata: Metadata | None = None
    ) -> Message:
        """The next message, which follows the last one."""
        parent, self.chain.last = self.chain.last, uuid
        return self.make_message(role, blocks, metadata, uuid=uuid, parent=parent, time=time)

    def unused_uuid(self, name: str) -> str:
        """An id for a message: its name, unless an earlier message has it."""
        uuid, count = name, 1
        while uuid in self._uuids:
            count += 1
            uuid = f"{name}#{count}"
        self._uuids.add(uuid)
        return uuid
