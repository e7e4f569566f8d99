"""Files that are one JSON document with an array of records in it, read as records like JSON lines.

The first record is the document with an empty array; then each element of the array; then what is left over.
"""

from __future__ import annotations

import io
import re
from array import array
from collections.abc import Iterable, Iterator
from typing import BinaryIO, NamedTuple

import msgspec
from msgspec import Raw

from clew.errors import InvalidDocument
from clew.io import records
from clew.io.codec import NOT_JSON, loads
from clew.io.jsonstream import Scanner
from clew.io.records import TOO_LONG, RawRecord, read_line
from clew.model.json import JSON

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_SPACE = rb"[ \t\r\n]*"
_KEY = re.compile(_SPACE + rb',?%b"((?:[^"\\]|\\.)*)"%b:%b' % (_SPACE, _SPACE, _SPACE), re.DOTALL)
_WHITE = re.compile(_SPACE)
_GAP = re.compile(_SPACE + rb",?" + _SPACE)
_CLOSE = re.compile(_SPACE + rb"\}" + _SPACE)
_decode_members = msgspec.json.Decoder(dict[str, Raw]).decode
_decode_elements = msgspec.json.Decoder(list[Raw]).decode


class DocumentRecord(RawRecord, gc=False):
    """A record of a document."""

    width: int = 0
    """How many bytes it has in the document; of the header, those before the array's elements."""
    is_header: bool = False
    """True for the document without the elements of its array."""

    @property
    def stop(self) -> int:
        return self.start + self.width


class _Outline(NamedTuple):
    """Where the array and its elements are. `close` None: the document is torn; `end` is where its rest begins."""

    open: int
    spans: array[int]
    """Start and stop of each element."""
    close: int | None
    end: int


def read_document_stream(stream: BinaryIO, keys: Iterable[str] = ()) -> Iterator[DocumentRecord]:
    """The records of `read_document`; a document that is too long is one record that is not decoded."""
    raw = stream.read(records.MAX_RECORD_BYTES + 1)
    if len(raw) <= records.MAX_RECORD_BYTES:
        return read_document(raw, keys)
    width = len(raw)
    del raw
    while piece := stream.read(records.PIECE):
        width += len(piece)
    return iter((DocumentRecord(1, 0, b"", b"", None, None, (TOO_LONG,), width=width),))


def read_document(raw: bytes, keys: Iterable[str] = ()) -> Iterator[DocumentRecord]:
    """The header, then each element of the array, then what is left over.

    The array is the first member named in `keys` that is one; with no keys the document itself is the array.
    """
    outline = _find_array(raw, tuple(keys))
    if outline is None:
        yield from _whole(raw)
        return
    yield _header(raw, outline)
    line, counted_to = 1, 0
    for at in range(0, len(outline.spans), 2):
        start, stop = outline.spans[at], outline.spans[at + 1]
        line, counted_to = line + raw.count(b"\n", counted_to, start), start
        yield _element(raw[start:stop], line, start)
    if outline.end < len(raw) or outline.close is None:
        yield _left_over(raw[outline.end :], line + raw.count(b"\n", counted_to, outline.end), outline)


def _find_array(raw: bytes, keys: tuple[str, ...]) -> _Outline | None:
    try:
        found = _find_in_valid(raw, keys)
    except (*NOT_JSON, msgspec.ValidationError):
        found = None
    return found or _find_in_damaged(raw, keys)


def _find_in_valid(raw: bytes, keys: tuple[str, ...]) -> _Outline | None:
    """The array of a document that is valid JSON; None where a key stands twice or no array is found."""
    begin = len(_BYTE_ORDER_MARK) if raw.startswith(_BYTE_ORDER_MARK) else 0
    if not keys:
        return _elements_of(raw, raw.find(b"[", begin), Raw(raw[begin:]))
    found: _Outline | None = None
    at = raw.find(b"{", begin) + 1
    for name, value in _decode_members(raw[begin:]).items():
        key = _KEY.match(raw, at)
        if key is None or loads(b'"' + key.group(1) + b'"') != name:
            return None
        if found is None and name in keys and raw.startswith(b"[", key.end()):
            found = _elements_of(raw, key.end(), value)
        at = key.end() + memoryview(value).nbytes
    is_closed = _CLOSE.fullmatch(raw, at) is not None
    return found._replace(end=len(raw)) if found is not None and is_closed else None


def _elements_of(raw: bytes, at: int, value: Raw) -> _Outline:
    begin = at = at + 1
    spans = array("q")
    for element in _decode_elements(value):
        at = _after(_GAP, raw, at)
        spans.append(at)
        at += memoryview(element).nbytes
        spans.append(at)
    close = _after(_WHITE, raw, at)
    return _Outline(begin, spans, close, _after(_WHITE, raw, close + 1))


def _after(pattern: re.Pattern[bytes], raw: bytes, at: int) -> int:
    match = pattern.match(raw, at)
    return match.end() if match else at


def _find_in_damaged(raw: bytes, keys: tuple[str, ...]) -> _Outline | None:
    """The array of a document that may be torn, or followed by something else."""
    scanner = Scanner(io.BytesIO(raw), len(_BYTE_ORDER_MARK) if raw.startswith(_BYTE_ORDER_MARK) else 0)
    found: _Outline | None = None
    try:
        if not keys:
            found = _scan_array(scanner)
        for key in scanner.members() if keys else ():
            scanner.key_done()
            if found is None and key in keys and scanner.peek() == b"[":
                found = _scan_array(scanner)
                if found.close is None:
                    return found
            else:
                scanner.skip()
    except InvalidDocument:
        # Torn behind the array: the members there are part of the rest.
        return found and found._replace(close=None, end=found.spans[-1] if found.spans else found.open)
    return found and (found._replace(end=_after(_WHITE, raw, scanner.offset)) if found.close is not None else found)


def _scan_array(scanner: Scanner) -> _Outline:
    spans = array("q")
    scanner.expect(b"[")
    begin = end = scanner.offset
    try:
        while scanner.peek() != b"]":
            if spans:
                scanner.expect(b",")
            scanner.peek()
            start = scanner.offset
            scanner.skip()
            end = scanner.offset
            spans.extend((start, end))
        close = scanner.offset
        scanner.expect(b"]")
    except InvalidDocument:
        return _Outline(begin, spans, None, end)
    return _Outline(begin, spans, close, scanner.offset)


def _whole(raw: bytes) -> Iterator[DocumentRecord]:
    """A document in which there is no such array is one record."""
    if not raw:
        return
    try:
        value = loads(raw)
    except NOT_JSON:
        value = None
    is_object = isinstance(value, dict)
    finding = "torn-tail" if value is None and raw.lstrip()[:1] in (b"{", b"[") else "malformed-json"
    findings = () if is_object else (finding,)
    yield DocumentRecord(1, 0, raw, b"", value if is_object else None, None, findings, width=len(raw))


def _header(raw: bytes, outline: _Outline) -> DocumentRecord:
    head = raw[: outline.open]
    tail = b"]}" if outline.close is None else raw[outline.close : outline.end]
    try:
        value: JSON = loads(head.removeprefix(_BYTE_ORDER_MARK) + tail)
    except NOT_JSON:
        value = None
    value = value if isinstance(value, dict) else {}
    return DocumentRecord(1, 0, head, b"", value, None, width=outline.open, is_header=True)


def _element(text: bytes, line: int, start: int) -> DocumentRecord:
    # White space between values may hold line ends; inside of strings there are none.
    found = list(read_line(text.replace(b"\r", b" ").replace(b"\n", b" ") + b"\n", line, start))
    value, findings = (found[0].value, found[0].findings) if len(found) == 1 else (None, ("malformed-json",))
    return DocumentRecord(line, start, text, b"", value, None, findings, width=len(text))


def _left_over(raw: bytes, line: int, outline: _Outline) -> DocumentRecord:
    is_torn = outline.close is None
    finding = "torn-tail" if is_torn else "nul-run" if not raw.strip(b"\0 \t\r\n") else "trailing-bytes"
    return DocumentRecord(line, outline.end, raw, b"", None, None, (finding,), width=len(raw))
