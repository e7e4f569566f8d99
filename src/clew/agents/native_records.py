"""The agent's own records behind the events of a session, for code that needs more than an event holds."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import IO, BinaryIO

import msgspec

from clew.io.compress import open_source, seekable
from clew.io.json_document import read_document_stream
from clew.io.records import MAX_RECORD_BYTES, PIECE, TOO_LONG, RawRecord, read_line, read_records
from clew.model import Message, Record, SourceRef
from clew.model.events import Event, SessionInfo
from clew.model.json import JSON
from clew.model.unit import Unit

HEAD_BYTES = 1 << 16

DocumentKeys = Callable[[bytes, str], tuple[str, ...] | None]
"""From the first bytes and the name of a file: None for JSON lines; for a file that is one JSON document the keys of
the array that holds its records, none where the document itself is that array."""


def units_of_events(
    events: Iterator[Event], open_file: Callable[[int], BinaryIO], names: Sequence[str], document_keys: DocumentKeys
) -> Iterator[Unit]:
    """The messages and records among the events, each with its native record.

    Events of one native record share one `SourceRef` object: a damaged line can hold several records.
    """
    with _NativeFiles(open_file, names, document_keys) as files:
        last, position, session = None, 0, None
        for event in events:
            if isinstance(event, SessionInfo):
                session = event.session_id
            if not isinstance(event, Message | Record):
                continue
            is_message, value = isinstance(event, Message), msgspec.to_builtins(event)
            ref = event.source if isinstance(event.source, SourceRef) else None
            records = files.records(ref) if ref is not None else []
            if ref is None or not records:
                last = ref
                yield Unit(is_message, value, 0, 0, 0, (), claimed_session=session)
                continue
            position = 0 if ref != last else position + (ref is not last)
            record = records[min(position, len(records) - 1)]
            has_bytes = ref is not last and position < len(records)
            last = ref
            yield Unit(
                is_message,
                value,
                record.line,
                record.start if has_bytes else record.stop,
                record.stop,
                record.findings if has_bytes else (),
                ref.file,
                record.value or {},
                session,
            )


class _NativeFiles:
    """The native records of a session by file and number."""

    def __init__(self, open_file: Callable[[int], BinaryIO], names: Sequence[str], document_keys: DocumentKeys) -> None:
        self._open, self._names, self._document_keys = open_file, names, document_keys
        self._files: dict[int, _Lines | _Document] = {}

    def __enter__(self) -> _NativeFiles:
        return self

    def __exit__(self, *_error: object) -> None:
        for file in self._files.values():
            file.stream.close()

    def records(self, ref: SourceRef) -> list[RawRecord]:
        """The records of a line, nearly always one; of a document the one with this number."""
        if ref.file not in self._files:
            self._files[ref.file] = self._opened(ref.file)
        return self._files[ref.file].records(ref.record)

    def _opened(self, number: int) -> _Lines | _Document:
        stream = seekable(self._open(number))
        keys = self._document_keys(stream.read(HEAD_BYTES), self._names[number])
        stream.seek(0)
        return _Lines(stream) if keys is None else _Document(stream, keys)


class _Lines:
    """A file of JSON lines, of which any can be read."""

    def __init__(self, stream: IO[bytes]) -> None:
        self.stream = stream
        self._starts = array("Q", [0])

    def records(self, number: int) -> list[RawRecord]:
        """The records of a line; the first line has the number 0."""
        while len(self._starts) <= number + 1:
            if not self._find_next_line():
                return []
        start, stop = self._starts[number], self._starts[number + 1]
        if stop - start > MAX_RECORD_BYTES:
            self.stream.seek(stop - 1)
            width = stop - start - (self.stream.read(1) == b"\n")
            return [_TooLong(number + 1, start, b"", b"", None, None, (TOO_LONG,), width=width)]
        self.stream.seek(start)
        return list(read_line(self.stream.read(stop - start), number + 1, start))

    def _find_next_line(self) -> bool:
        start = self._starts[-1]
        self.stream.seek(start)
        size = 0
        while piece := self.stream.readline(PIECE):
            size += len(piece)
            if piece.endswith(b"\n"):
                break
        if size:
            self._starts.append(start + size)
        return size > 0


class _TooLong(RawRecord, gc=False):
    """A line that is too long to be read."""

    width: int = 0

    @property
    def stop(self) -> int:
        return self.start + self.width


class _Document:
    """A file that is one JSON document: its records are the elements of an array."""

    def __init__(self, stream: IO[bytes], keys: tuple[str, ...]) -> None:
        self.stream = stream
        self._records = list(read_document_stream(stream, keys))  # type: ignore[arg-type]

    def records(self, number: int) -> list[RawRecord]:
        """The document without the array has the number 0, its first element 1."""
        return list(self._records[number : number + 1])


def first_value(path: Path, key: str, *, kind: str | None = None, limit: int | None = None) -> str | None:
    """The text under a key of the first record of a file of JSON lines that has one there; reads no further.

    `kind` is the type that the record must have, `limit` the number of records that are looked at.
    """
    with open_source(path) as stream:
        for record in islice(read_records(stream), limit):
            value = record.value.get(key) if record.value else None
            if isinstance(value, str) and record.value and (kind is None or record.value.get("type") == kind):
                return value
    return None


_WRAPPERS = ("payload", "message")
"""Keys under which the records of some agents hold the message itself."""


def content_of(native: Mapping[str, JSON]) -> JSON:
    """Return the content of a native message that no block shows; None where there is none."""
    return _find(native, "content")


def output_of(native: Mapping[str, JSON]) -> JSON:
    """Return the output of a tool in a native record; None where there is none."""
    return _find(native, "output")


def _find(native: Mapping[str, JSON], name: str) -> JSON:
    objects = [native, *(native[key] for key in _WRAPPERS if isinstance(native.get(key), dict))]
    return next((each[name] for each in objects if each.get(name)), None)
