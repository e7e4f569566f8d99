"""The files of a session, step by step: lines of an event log, or the elements of a document."""

from __future__ import annotations

import io
from collections.abc import Iterator
from enum import IntEnum
from typing import BinaryIO, NamedTuple

from clew.agents.base import SourceFile, open_file
from clew.agents.gemini.records import is_document
from clew.agents.gemini.tables import HISTORY, MESSAGES, PATCH, REWIND, is_header
from clew.agents.jsondoc import begin_document, read_document, unread_document
from clew.io.codec import COMPACT, dumps
from clew.io.compress import damage
from clew.io.records import MAX_RECORD_BYTES, RawRecord, read_line, read_lines
from clew.model.json import JSON

HEAD = 1 << 16
BOM = b"\xef\xbb\xbf"


class Joined:
    """A stream with the bytes in front of it that were read already."""

    def __init__(self, head: bytes, stream: BinaryIO) -> None:
        self._head, self._stream = io.BytesIO(head), stream

    def read(self, size: int) -> bytes:
        """At most so many bytes, and never more than a head."""
        size = min(size, HEAD)
        return self._head.read(size) or self._stream.read(size)

    def readline(self, size: int) -> bytes:
        line = self._head.readline(size)
        if line.endswith(b"\n") or len(line) == size:
            return line
        return line + self._stream.readline(size - len(line))


class Does(IntEnum):
    """What a step does to the list of messages."""

    NOTHING = 0
    MESSAGE = 1
    """Adds a message, or writes one anew."""
    REWIND = 2
    CLEAR = 3
    """Forgets all messages; those that follow inside it are the new ones."""


class Step(NamedTuple):
    """One record in its place."""

    does: Does
    record: RawRecord
    id: str | None = None
    """Of the message that is added, or that is gone back to."""
    part: int = 0
    element: int | None = None
    """Its number inside the line that holds it."""
    holds: bool = False
    """True for a line that was taken apart."""
    is_copy: bool = False
    """True where the line that holds it is kept whole."""


class Steps:
    """All steps of a session, in order."""

    def __init__(self, source: SourceFile) -> None:
        self.source = source
        self.damage: str | None = None
        self.base = self.ordinal = 0
        """Where the line or document begins that the last step is from, and its number in there."""

    def __iter__(self) -> Iterator[Step]:
        for part in range(1 + len(self.source.parts)):
            with self._open(part) as stream:
                head = stream.read(HEAD)
                if is_document(head, self._name(part)):
                    yield from self._numbered(of_stream(head, stream, part), 0)
                else:
                    for text, line, start, whole in read_lines(Joined(head, stream)):  # type: ignore[arg-type]
                        yield from self._numbered(of_line(text, line, start, whole, part), start)
                self.damage = damage(stream) or self.damage

    def _numbered(self, steps: Iterator[Step], base: int) -> Iterator[Step]:
        self.base = base
        for self.ordinal, step in enumerate(steps):
            yield step

    def _open(self, part: int) -> BinaryIO:
        return open_file(self.source, self.source.parts[part - 1] if part else "")

    def _name(self, part: int) -> str:
        return self.source.parts[part - 1] if part else self.source.path.name

    def read_again(self, part: int, base: int) -> list[Step]:
        """The steps of one line, or of a document."""
        with self._open(part) as stream:
            head = stream.read(HEAD)
            if is_document(head, self._name(part)):
                return list(of_stream(head, stream, part))
            return list(of_line(_line_at(stream, head, base), 0, base, True, part))


class Fetcher:
    """Reads single steps again; the line or document read last is at hand."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self._place: tuple[int, int] | None = None
        self._found: list[Step] = []

    def fetch(self, part: int, base: int, ordinal: int) -> Step:
        """The step that stands there."""
        if self._place != (part, base):
            self._found, self._place = self._steps.read_again(part, base), (part, base)
        return self._found[ordinal]


def _line_at(stream: BinaryIO, head: bytes, base: int) -> bytes:
    if stream.seekable():
        stream.seek(base)
        return stream.readline(MAX_RECORD_BYTES)
    left = base - len(head)
    while left > 0 and (piece := stream.read(min(left, HEAD))):
        left -= len(piece)
    return Joined(head[base:], stream).readline(MAX_RECORD_BYTES)


def of_stream(head: bytes, stream: BinaryIO, part: int) -> Iterator[Step]:
    """The steps of a document that begins with `head`; one that is too long does nothing."""
    raw, is_whole = begin_document(stream, head)
    if is_whole:
        yield from of_document(raw, part)
    else:
        yield from (Step(Does.NOTHING, record, part=part) for record in unread_document(raw, stream))


def of_document(raw: bytes, part: int) -> Iterator[Step]:
    """The steps of a document."""
    keys = () if raw.removeprefix(BOM).lstrip()[:1] == b"[" else (MESSAGES, HISTORY)
    for number, record in enumerate(read_document(raw, keys)):
        value = record.value
        if value is None or record.document is not None:
            yield Step(Does.NOTHING, record, part=part)
        elif record.width == len(raw) and not number:
            yield from (step._replace(part=part) for step in _of_record(record, part))
        else:
            yield of_element(record, part)


def of_element(record: RawRecord, part: int) -> Step:
    """The step of an element of a document."""
    value = record.value or {}
    name = value.get("id")
    return Step(Does.MESSAGE if _is_said(value) else Does.NOTHING, record, name if _is_id(name) else None, part)


def _is_said(value: dict[str, JSON]) -> bool:
    """True for an element that is a message: of a chat, of a saved chat, or a prompt of the log."""
    if type(value.get("type")) is str:
        return True
    return _is_id(value.get("id")) or value.get("role") in ("user", "model")


def _is_id(value: JSON) -> bool:
    return type(value) is str


def of_line(text: bytes, line: int, start: int, whole: bool, part: int) -> Iterator[Step]:
    """The steps of one line."""
    for record in read_line(text, line, start, whole):
        yield from _of_record(record, part)


def _of_record(record: RawRecord, part: int) -> Iterator[Step]:
    """The steps of a line, tested in the client's own order.

    Inside a damaged line an object with an id and without a type is part of a message, not one.
    """
    value = record.value
    if value is None:
        yield Step(Does.NOTHING, record, part=part)
    elif type(value.get(REWIND)) is str:
        yield Step(Does.REWIND, record, value[REWIND], part)
    elif _is_id(value.get("id")) and not (record.findings and "type" not in value):
        yield Step(Does.MESSAGE, record, value["id"], part)
    else:
        held = value.get(PATCH) if type(value.get(PATCH)) is dict else value if is_header(value) else {}
        if held is not None and type(held.get(MESSAGES)) is list:
            yield from _of_container(record, part, held, is_patch=held is not value)
        else:
            yield Step(Does.NOTHING, record, part=part)


def _of_container(record: RawRecord, part: int, held: dict[str, JSON], is_patch: bool) -> Iterator[Step]:
    """A line with messages in it; one that is spelled plainly is taken apart, any other is kept whole."""
    assert record.value is not None
    elements = held[MESSAGES]
    is_plain = record.dialect == COMPACT
    if is_plain:
        emptied = {**held, MESSAGES: []}
        value = {**record.value, PATCH: emptied} if is_patch else emptied
        record = RawRecord(record.line, record.start, record.text, record.end, value, COMPACT, record.findings)
    yield Step(Does.CLEAR, record, None, part, holds=is_plain)
    for number, element in enumerate(elements):
        text = dumps(element) + b"\n"
        is_object = isinstance(element, dict)
        inner = RawRecord(record.line, record.start, text, b"\n", element if is_object else None, COMPACT)
        name = element.get("id") if is_object else None
        does = Does.MESSAGE if _is_id(name) else Does.NOTHING
        if does is Does.MESSAGE or is_plain:
            if not is_object:
                inner.dialect = None
            yield Step(does, inner, name, part, number, is_copy=not is_plain)
