"""A large JSON object read as a stream: member by member, array element by element, in any layout."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import IO, TypeVar

import msgspec

from clew.errors import InvalidDocument
from clew.io.codec import NOT_JSON, decode, loads
from clew.model.json import JSON

T = TypeVar("T")

_PIECE = 1 << 16
_decode_object = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_SPACE = re.compile(rb"[ \t\r\n]*+")
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_TOKEN = re.compile(rb'[^"{}\[\]]++|"[^"\\]*+(?:\\.[^"\\]*+)*+"|[{}\[\]]', re.DOTALL)
_SCALAR = re.compile(rb"[^,\]}\s]++")


class Scanner:
    """Walks over JSON text in a seekable stream. Several scanners may share one stream."""

    def __init__(self, stream: IO[bytes], start: int = 0) -> None:
        self._stream = stream
        self._buffer = b""
        self._base = start
        self._at = 0
        self._ended = False

    @property
    def offset(self) -> int:
        """Where in the stream the scanner stands."""
        return self._base + self._at

    def _more(self) -> bool:
        """Read on; what lies behind the position is forgotten. False at the end of the stream."""
        if self._ended:
            return False
        size = max(_PIECE, len(self._buffer) - self._at)
        self._stream.seek(self._base + len(self._buffer))
        piece = self._stream.read(size)
        self._ended = not piece
        self._buffer = self._buffer[self._at :] + piece
        self._base += self._at
        self._at = 0
        return bool(piece)

    def peek(self) -> bytes:
        """The next byte that is no white space; empty at the end."""
        while True:
            space = _SPACE.match(self._buffer, self._at)
            self._at = space.end() if space else self._at
            if self._at < len(self._buffer):
                return self._buffer[self._at : self._at + 1]
            if not self._more():
                return b""

    def expect(self, *wanted: bytes) -> bytes:
        """Step over the next byte, which must be one of those wanted."""
        found = self.peek()
        if found not in wanted:
            names = " or ".join(byte.decode() for byte in wanted)
            raise InvalidDocument(f"expected {names} at byte {self.offset}, found {found.decode('latin-1')!r}")
        self._at += 1
        return found

    def members(self) -> Iterator[str]:
        """The keys of the object here; the caller takes each value before going on."""
        self.expect(b"{")
        if self.peek() == b"}":
            self._at += 1
            return
        while True:
            yield str(self.value())
            if self.expect(b",", b"}") == b"}":
                return

    def key_done(self) -> None:
        """Step over the colon behind a key."""
        self.expect(b":")

    def elements(self) -> Iterator[JSON]:
        """The values of the array here, one at a time, decoded."""
        return self._array(self.value)

    def value(self) -> JSON:
        """The value here, decoded."""
        first = self.peek()
        line = self._line(loads) if first == b"{" else None
        if line is not None:
            return line
        raw = self._raw(first)
        try:
            return loads(raw)
        except NOT_JSON:
            return _decode(raw, self.offset)

    def text(self) -> bytes:
        """The value here as it is spelled, however deeply it is nested."""
        first = self.peek()
        if first != b"{":
            return self._raw(first)
        line = self._line(_object_text)
        if line is not None:
            return bytes(line)
        raw = self._raw(first)
        try:
            return _object_text(raw)
        except RecursionError:
            return raw  # its brackets match; deeper than this nobody can look
        except NOT_JSON:
            _decode(raw, self.offset)
            return raw

    def element_texts(self) -> Iterator[bytes]:
        """The values of the array here, one at a time, as they are spelled."""
        return self._array(self.text)

    def _array(self, read_element: Callable[[], T]) -> Iterator[T]:
        self.expect(b"[")
        if self.peek() == b"]":
            self._at += 1
            return
        while True:
            yield read_element()
            if self.expect(b",", b"]") == b"]":
                return

    def skip(self) -> None:
        """Step over the value here."""
        self._raw(self.peek())

    def _line(self, read: Callable[[bytes], JSON]) -> JSON:
        """Our own layout has one element a line: then its end is known without a look inside."""
        end = self._buffer.find(b"\n", self._at)
        while end < 0 and len(self._buffer) - self._at < _PIECE and self._more():
            end = self._buffer.find(b"\n", self._at)
        if end < 0:
            return None
        stop = end - 1 if self._buffer[end - 1 : end] == b"," else end
        try:
            value = read(self._buffer[self._at : stop])
        except NOT_JSON:
            return None
        self._at = stop
        return value

    def _raw(self, first: bytes) -> bytes:
        if first in (b"{", b"["):
            return self._container()
        return self._match(_STRING if first == b'"' else _SCALAR, final=first != b'"')

    def _match(self, pattern: re.Pattern[bytes], final: bool) -> bytes:
        while True:
            match = pattern.match(self._buffer, self._at)
            # A scalar that touches the end of the buffer may go on.
            if match and (match.end() < len(self._buffer) or not final or self._ended):
                self._at = match.end()
                return match.group()
            if not self._more() and not (match and final):
                raise InvalidDocument(f"the text ends inside a value at byte {self.offset}")

    def _container(self) -> bytes:
        depth, end = 0, self._at
        while True:
            match = _TOKEN.match(self._buffer, end)
            if match is None and self._buffer[end : end + 1] == b'"':
                end = self._string_end(end)
                continue
            if match is None:
                scanned = end - self._at
                if not self._more():
                    raise InvalidDocument(f"the text ends inside a value at byte {self.offset}")
                end = self._at + scanned
                continue
            end = match.end()
            token = self._buffer[match.start()]
            depth += (token in b"{[") - (token in b"}]") if match.end() - match.start() == 1 else 0
            if depth == 0:
                raw = self._buffer[self._at : end]
                self._at = end
                return raw

    def _string_end(self, start: int) -> int:
        """The end of a string that goes on behind the buffer; what was searched is not searched again."""
        searched = start + 1
        while True:
            end = self._buffer.find(b'"', searched)
            if end < 0:
                start, searched = start - self._at, len(self._buffer) - self._at
                if not self._more():
                    raise InvalidDocument(f"the text ends inside a value at byte {self.offset}")
                start, searched = start + self._at, searched + self._at
                continue
            text = end
            while self._buffer[text - 1 : text] == b"\\":
                text -= 1
            if (end - text) % 2 == 0:
                return end + 1
            searched = end + 1


def _object_text(text: bytes) -> bytes:
    """The text of one JSON object, decoded no further than to know that it ends here."""
    _decode_object(text)
    return text


def read_json(text: bytes) -> JSON:
    """A JSON value, read the quick way where that is possible."""
    try:
        return loads(text)
    except NOT_JSON:
        return _decode(text, 0)


def _decode(raw: bytes, offset: int) -> JSON:
    try:
        return decode(raw).value
    except ValueError as error:
        raise InvalidDocument(f"not JSON at byte {offset}: {error}") from None
