"""Sessions that are one JSON document with an array of records in it, read and written like JSON lines.

Each element of the array is brought to one compact line; what remains is the *header*, the document with an empty
array. How the document was laid out is noted once, on the header, and every element that the layout gives back byte
for byte needs no more than its line. Other elements, odd gaps and a torn end travel as they are.

The bytes of the document are held while it is read; of its elements only those of one piece are decoded at a time.
"""

from __future__ import annotations

import base64
import io
import re
from array import array
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import BinaryIO, NamedTuple

import msgspec
from msgspec import Raw

from clew.agents.folding import note
from clew.agents.jsonl import JsonlWriter, side_bytes
from clew.errors import InvalidDocument
from clew.io import records
from clew.io.codec import COMPACT, NOT_JSON, dumps, loads
from clew.io.jsonstream import Scanner
from clew.io.records import PIECE as UNREAD_PIECE
from clew.io.records import TOO_LONG, RawRecord, read_line
from clew.model.json import JSON

_MARK = "\x00elements"
"""Stands for the array while the header is laid out; no real value is spelled like it."""
_BOM = b"\xef\xbb\xbf"
_INDENTS = (2, 4, -1, 0, 1, 3, 8)
"""Tried in this order; 0 is one line with spaces, -1 one without."""
_SPACE = rb"[ \t\r\n]*"
_KEY = re.compile(_SPACE + rb',?%b"((?:[^"\\]|\\.)*)"%b:%b' % (_SPACE, _SPACE, _SPACE), re.DOTALL)
_WHITE = re.compile(_SPACE)
_USUAL_OPEN, _USUAL_LEAD, _USUAL_CLOSE = b'\n  "%b": [\n', b"\n    ", b"\n  ]"
_USUAL_BETWEEN = _USUAL_LEAD + b"}," + _USUAL_LEAD + b"{"
_GAP = re.compile(_SPACE + rb",?" + _SPACE)
_CLOSE = re.compile(_SPACE + rb"\}" + _SPACE)
_members = msgspec.json.Decoder(dict[str, Raw]).decode
_elements = msgspec.json.Decoder(list[Raw]).decode
_format = msgspec.json.format


class Layout(NamedTuple):
    """How elements are laid out: the indent of one level, the margin before each line, and how lines end."""

    indent: int
    margin: bytes
    newline: bytes

    def spell(self, line: bytes) -> bytes:
        """A compact line in this layout."""
        text = line if self.indent < 0 else _format(line, indent=self.indent)
        return text.replace(b"\n", self.newline + self.margin) if self.indent > 0 else text


class DocumentRecord(RawRecord, gc=False):
    """A record of a document; `text` is its compact line, or its own bytes where it is verbatim."""

    width: int = 0
    """How many bytes it has in the document."""
    gap: bytes | None = None
    """What stands before it, where that is not the usual."""
    verbatim: bool = False
    behind: bool = False
    """True for what stands behind the end of the document."""
    document: dict[str, JSON] | None = None
    """On the header: what the writer needs beside its members."""

    @property
    def stop(self) -> int:
        return self.start + self.width


Span = tuple[int, int]


class _Outline(NamedTuple):
    """Where things are. `close` None: the document is torn; `end` is where what can be read of it ends."""

    key: str | None
    open: int
    spans: array[int]
    close: int | None
    end: int
    is_guess: bool = False
    """True where the usual layout was taken for granted: then an element that is no JSON says that it is not there,
    and `spans` only tells where the elements begin and end."""


def begin_document(stream: BinaryIO, head: bytes = b"") -> tuple[bytes, bool]:
    """A document that begins with `head`, and whether that is all of it; if not, it is too long to be read."""
    raw = head + stream.read(max(0, records.MAX_RECORD_BYTES + 1 - len(head)))
    return raw, len(raw) <= records.MAX_RECORD_BYTES


def unread_document(begun: bytes, stream: BinaryIO) -> Iterator[DocumentRecord]:
    """A document that is too long, in pieces that are not decoded."""
    start = 0
    pieces = (begun[at : at + UNREAD_PIECE] for at in range(0, len(begun), UNREAD_PIECE))
    for text in chain(pieces, iter(lambda: stream.read(UNREAD_PIECE), b"")):
        yield DocumentRecord(1, start, text, b"", None, None, (TOO_LONG,), width=len(text))
        start += len(text)


def read_stream(stream: BinaryIO, keys: Iterable[str] = ()) -> Iterator[DocumentRecord]:
    """The records of `read_document`; a document that is too long comes in pieces that are not decoded."""
    raw, is_whole = begin_document(stream)
    return read_document(raw, keys) if is_whole else unread_document(raw, stream)


def read_document(raw: bytes, keys: Iterable[str] = ()) -> Iterator[DocumentRecord]:
    """The header, then each element of the array, then what is left over.

    The array is the first member named in `keys` that is one; with no keys the document itself is the array.
    """
    keys = tuple(keys)
    outline = _outline(raw, keys)
    if outline is None:
        yield from _whole(raw)
        return
    first = outline.spans[0] if outline.spans else outline.close if outline.close is not None else outline.open
    lead = raw[outline.open : first]
    layout = _detect(raw, lead, outline)
    yield _header(raw, outline, layout, lead)
    usual, line, at, before = b"," + lead, 1, 0, outline.open
    elements = _spans(raw, outline)
    while (span := next(elements, None)) is not None:
        start, stop = span
        before = start - len(usual) if outline.is_guess else before
        text = raw[start:stop]
        compact = _compact(text)
        if compact is None and outline.is_guess:
            outline = _known_outline(raw, keys, outline, start)
            elements = _pairs(outline.spans, outline.spans.index(start))
            continue
        odd_gap = raw[before:start] if start != first and raw[before:start] != usual else None
        before = stop
        if compact is not None and layout.spell(compact) != text:
            compact = None
        line, at = line + raw.count(b"\n", at, start), start
        yield _element(text, compact, line, start, odd_gap)
    if outline.end < len(raw) or outline.close is None:
        line += raw.count(b"\n", at, outline.end)
        yield _left_over(raw[outline.end :], line, outline)


def _spans(raw: bytes, outline: _Outline) -> Iterator[Span]:
    """Where each element begins and ends."""
    return _guessed(raw, *outline.spans) if outline.is_guess else _pairs(outline.spans)


def _pairs(spans: array[int], at: int = 0) -> Iterator[Span]:
    return ((spans[each], spans[each + 1]) for each in range(at, len(spans), 2))


def _guessed(raw: bytes, at: int, stop: int) -> Iterator[Span]:
    """The elements of the usual layout, cut where one ends and the next begins."""
    while (end := raw.find(_USUAL_BETWEEN, at, stop)) >= 0:
        yield at, end + len(_USUAL_LEAD) + 1
        at = end + len(_USUAL_BETWEEN) - 1
    yield at, stop


def note_document(value: dict[str, JSON], agent: str, record: RawRecord) -> None:
    """Note on a unit what its record needs to get back to its place in the document."""
    if not isinstance(record, DocumentRecord):
        return
    if record.document is not None:
        note(value, agent, document=record.document)
    if record.gap is not None:
        note(value, agent, gap=_kept(record.gap))
    if record.verbatim:
        note(value, agent, verbatim=True)
    if record.behind:
        note(value, agent, behind=True)


def _outline(raw: bytes, keys: tuple[str, ...]) -> _Outline | None:
    return _guessed_outline(raw, keys) or _sure_outline(raw, keys)


def _sure_outline(raw: bytes, keys: tuple[str, ...]) -> _Outline | None:
    try:
        quick = _quick_outline(raw, keys)
    except (*NOT_JSON, msgspec.ValidationError):
        quick = None
    return quick or _careful_outline(raw, keys)


def _guessed_outline(raw: bytes, keys: tuple[str, ...]) -> _Outline | None:
    """The outline of a document that is laid out as nearly all are: there the lines that close elements are known."""
    first, key = len(raw), ""
    for each in keys:
        at = raw.find(_USUAL_OPEN % each.encode(), 0, first)
        first, key = (at, each) if at >= 0 else (first, key)
    begin = raw.find(b"[", first) + 1
    at = begin + len(_USUAL_LEAD)
    last = raw.rfind(_USUAL_LEAD + b"}" + _USUAL_CLOSE, at) if begin else -1
    close = last + len(_USUAL_LEAD) + len(_USUAL_CLOSE)
    if last < 0 or not raw.startswith(b"{", at) or _header_value(raw[:begin], raw[close:]) is None:
        return None
    spans = array("q", (at, last + len(_USUAL_LEAD) + 1))
    return _Outline(key, begin, spans, close, len(raw), is_guess=True)


def _known_outline(raw: bytes, keys: tuple[str, ...], guess: _Outline, start: int) -> _Outline:
    """The outline as it really is, once the element at `start` was guessed wrong.

    The elements before it are what they seemed to be. Where the array ends elsewhere, the rest is one piece.
    """
    sure = _sure_outline(raw, keys)
    if sure is not None and sure.close == guess.close and start in sure.spans:
        return sure
    return guess._replace(spans=array("q", (start, guess.spans[-1])), is_guess=False)


def _quick_outline(raw: bytes, keys: tuple[str, ...]) -> _Outline | None:
    """The outline of a document that is whole JSON; None where the careful way must tell."""
    begin = len(_BOM) if raw.startswith(_BOM) else 0
    if not keys:
        return _quick_array(raw, raw.find(b"[", begin), Raw(raw[begin:]), None)
    found: _Outline | None = None
    at = raw.find(b"{", begin) + 1
    for name, value in _members(raw[begin:]).items():
        key = _KEY.match(raw, at)
        if key is None or loads(b'"' + key.group(1) + b'"') != name:
            # Some key stands twice.
            return None
        if found is None and name in keys and raw.startswith(b"[", key.end()):
            found = _quick_array(raw, key.end(), value, name)
        at = key.end() + memoryview(value).nbytes
    end = _CLOSE.fullmatch(raw, at)
    return found and found._replace(end=len(raw)) if end else None


def _quick_array(raw: bytes, at: int, value: Raw, key: str | None) -> _Outline:
    begin = at = at + 1
    spans = array("q")
    for element in _elements(value):
        at = _after(_GAP, raw, at)
        spans.append(at)
        at += memoryview(element).nbytes
        spans.append(at)
    close = _after(_WHITE, raw, at)
    return _Outline(key, begin, spans, close, _after(_WHITE, raw, close + 1))


def _after(pattern: re.Pattern[bytes], raw: bytes, at: int) -> int:
    match = pattern.match(raw, at)
    return match.end() if match else at


def _careful_outline(raw: bytes, keys: tuple[str, ...]) -> _Outline | None:
    """The outline of a document that may be torn, or followed by something else."""
    scanner = Scanner(io.BytesIO(raw), len(_BOM) if raw.startswith(_BOM) else 0)
    found: _Outline | None = None
    try:
        if not keys:
            found = _careful_array(scanner, None)
        for key in scanner.members() if keys else ():
            scanner.key_done()
            if found is None and key in keys and scanner.peek() == b"[":
                found = _careful_array(scanner, key)
                if found.close is None:
                    return found
            else:
                scanner.skip()
    except InvalidDocument:
        # Torn behind the array: the members there are part of the rest.
        return found and found._replace(close=None, end=found.spans[-1] if found.spans else found.open)
    return found and (found._replace(end=_after(_WHITE, raw, scanner.offset)) if found.close is not None else found)


def _careful_array(scanner: Scanner, key: str | None) -> _Outline:
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
        return _Outline(key, begin, spans, None, end)
    return _Outline(key, begin, spans, close, scanner.offset)


def _whole(raw: bytes) -> Iterator[DocumentRecord]:
    """A document in which there is no such array, as it is."""
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


def _detect(raw: bytes, lead: bytes, outline: _Outline) -> Layout:
    """The layout of the first element, which the others share."""
    before, end, margin = lead.rpartition(b"\n")
    newline = b"\r\n" if before.endswith(b"\r") else b"\n"
    if margin.strip(b" \t"):
        margin = b""  # damage, and none that the others would share
    start, stop = next(_spans(raw, outline), (0, 0))
    text = raw[start:stop] or b"{}"
    line = _compact(text) or b""
    for indent in _INDENTS if line else ():
        layout = Layout(indent, margin if end else b"", newline)
        if layout.spell(line) == text:
            return layout
    return Layout(_INDENTS[0], margin, newline)


def _compact(text: bytes) -> bytes | None:
    try:
        return _format(text, indent=-1)
    except (msgspec.DecodeError, RecursionError):
        return None


def _header(raw: bytes, outline: _Outline, layout: Layout, lead: bytes) -> DocumentRecord:
    head, tail, close = raw[: outline.open], b"", b""
    document: dict[str, JSON] = {"indent": layout.indent, "margin": layout.margin.decode(), "lead": _kept(lead)}
    if layout.newline != b"\n":
        document["newline"] = layout.newline.decode()
    if outline.close is not None:
        last = outline.spans[-1] if outline.spans else outline.close
        close, tail = raw[last : outline.close], raw[outline.close : outline.end]
        document["close"] = _kept(close)
    value = _header_value(head, tail)
    spelled = _spelled_header(value, outline.key, layout) if value is not None and outline.key is not None else None
    if spelled is None or (head, tail.rstrip()) != (spelled[0], spelled[1] if tail else b""):
        document["head"] = _kept(head)
        document["tail"] = _kept(tail)
    elif tail != spelled[1]:
        document["end"] = _kept(tail[len(tail.rstrip()) :])
    document["array"] = outline.key
    line = dumps(value or {}) + b"\n"
    return DocumentRecord(1, 0, line, b"\n", value or {}, COMPACT, width=outline.open, document=document)


def _header_value(head: bytes, tail: bytes) -> dict[str, JSON] | None:
    """The document without its elements; of a torn one the members before them."""
    try:
        value = loads(head.removeprefix(_BOM) + (tail or b"]}"))
    except NOT_JSON:
        return None
    return value if isinstance(value, dict) else None


def _spelled_header(value: dict[str, JSON], key: str, layout: Layout) -> tuple[bytes, bytes]:
    """What stands before and behind the elements."""
    text = Layout(layout.indent, b"", layout.newline).spell(dumps({**value, key: [_MARK]}))
    before, _, behind = text.partition(dumps(_MARK))
    return before.rstrip(), behind.lstrip()


def _element(text: bytes, compact: bytes | None, line: int, start: int, gap: bytes | None) -> DocumentRecord:
    """The record of an element; `compact` is its line, None where the layout does not give it back."""
    if compact is not None:
        found = _single(compact, line, start)
        if found is not None:
            own = (found.text, found.end, found.value, found.dialect, found.findings)
            return DocumentRecord(line, start, *own, len(text), gap)
    found = _single(_one_line(text), line, start)
    value = found.value if found is not None else None
    findings = found.findings if found is not None else ("malformed-json",)
    return DocumentRecord(line, start, text + b"\n", b"\n", value, None, findings, len(text), gap, verbatim=True)


def _single(text: bytes, line: int, start: int) -> RawRecord | None:
    """The record of an element; None where it falls to pieces."""
    records = list(read_line(text + b"\n", line, start))
    return records[0] if len(records) == 1 else None


def _one_line(text: bytes) -> bytes:
    """White space between values may hold line ends; inside of strings there are none."""
    return text.replace(b"\r", b" ").replace(b"\n", b" ")


def _left_over(raw: bytes, line: int, outline: _Outline) -> DocumentRecord:
    torn = outline.close is None
    finding = "torn-tail" if torn else "nul-run" if not raw.strip(b"\0 \t\r\n") else "trailing-bytes"
    return DocumentRecord(
        line, outline.end, raw + b"\n", b"\n", None, None, (finding,), len(raw), b"", verbatim=True, behind=not torn
    )


def _kept(raw: bytes) -> JSON:
    """Bytes as a document holds them; `side_bytes` gives them back."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(raw).decode()}


class DocumentWriter:
    """Puts the lines of one document back into its layout."""

    def __init__(self, document: dict[str, JSON], line: bytes) -> None:
        newline = str(document.get("newline", "\n")).encode()
        self._layout = Layout(int(document["indent"]), str(document["margin"]).encode(), newline)
        self._lead = side_bytes(document["lead"])
        self._is_first = True
        if "head" in document:
            self.head, tail = side_bytes(document["head"]), side_bytes(document["tail"])
        else:
            self.head, tail = _spelled_header(loads(line), document["array"], self._layout)
            tail += side_bytes(document.get("end", ""))
        self._tail = side_bytes(document["close"]) + tail if "close" in document else b""

    def element(self, own: dict[str, JSON], line: bytes) -> bytes:
        """The next element with what stands before it; or what is left over, behind the end."""
        if own.get("behind"):
            return self.end() + line
        gap = side_bytes(own["gap"]) if "gap" in own else self._lead if self._is_first else b"," + self._lead
        self._is_first = False
        return gap + (line if own.get("verbatim") else self._layout.spell(line))

    def end(self) -> bytes:
        """What closes the document."""
        tail, self._tail = self._tail, b""
        return (self._lead if self._is_first and tail else b"") + tail


class DocumentsWriter(JsonlWriter):
    """Writes sessions whose files are JSON lines or documents."""

    def lines(self, units: Iterator[tuple[bool, dict[str, JSON]]]) -> Iterator[tuple[str, bytes]]:
        """The bytes of each unit with the name of the file they belong to."""
        documents: dict[str, DocumentWriter] = {}
        for is_message, value in units:
            own = (value.get("extensions") or {}).get(self._agent) or {}
            part = own.get("part", 0)
            name = self._parts[part] if part < len(self._parts) else ""
            line = self._raw(own, is_message, value)
            if "document" in own:
                documents[name] = DocumentWriter(own["document"], line)
                yield name, documents[name].head
            elif name in documents:
                yield name, documents[name].element(own, line)
            else:
                yield name, line + own.get("end", "\n").encode()
        for name, document in documents.items():
            yield name, document.end()
