"""Unified documents read as a stream: the header, the messages, and the native files they carry."""

from __future__ import annotations

import base64
import binascii
import hashlib
import tempfile
from collections.abc import Callable, Iterator
from typing import IO

import msgspec

from clew.agents.base import Header
from clew.errors import InvalidDocument
from clew.io.codec import NOT_JSON, dumps, loads
from clew.io.jsonstream import Scanner
from clew.model.json import JSON
from clew.model.version import check_version

SPOOL_BYTES = 1 << 20


class NativeFile(msgspec.Struct):
    """One of the agent's own files, as a document carries it."""

    path: str
    """The main file's name for the first; for the others, relative to the folder of the main file."""
    sha256: str | None
    records_at: int
    """Where its records begin in the document."""
    final_newline: bool = True


class DocumentStream:
    """One document in a seekable stream."""

    def __init__(self, stream: IO[bytes], start: int = 0) -> None:
        self._stream = stream
        self._arrays: dict[str, int] = {}
        self._graph: int | None = None
        self.native_files: list[NativeFile] = []
        """Empty for a document without the original."""
        self.messages_sha256: str | None = None
        """Of the messages when the document was written."""
        self._members: dict[str, JSON] = {}
        scanner = Scanner(stream, start)
        for key in scanner.members():
            scanner.key_done()
            self._member(scanner, key)
        self.end = scanner.offset
        self.header = self._header()

    def _member(self, scanner: Scanner, key: str) -> None:
        first = scanner.peek()
        if key in ("messages", "records") and first == b"[":
            self._arrays[key] = scanner.offset
            for _ in scanner.element_texts():
                pass
        elif key == "graph":
            # It repeats the ids of all messages, so it is read on demand.
            self._graph = scanner.offset
            scanner.skip()
        elif key == "native" and first == b"{":
            for name in scanner.members():
                scanner.key_done()
                if name == "files" and scanner.peek() == b"[":
                    self._native_files(scanner)
                elif name == "messages_sha256":
                    self.messages_sha256 = str(scanner.value())
                else:
                    scanner.skip()
        else:
            self._members[key] = scanner.value()

    def _native_files(self, scanner: Scanner) -> None:
        scanner.expect(b"[")
        if scanner.peek() == b"]":
            scanner.expect(b"]")
            return
        while True:
            self.native_files.append(_native_file(scanner))
            if scanner.expect(b",", b"]") == b"]":
                return

    def _header(self) -> Header:
        members = self._members
        if str(members.get("schema_version")).startswith("ATIF-"):
            raise InvalidDocument("no unified document, but a trajectory of ATIF: name a file with one of them .json")
        for name in ("schema_version", "agent", "session"):
            if name not in members:
                raise InvalidDocument(f"no unified document: {name!r} is missing")
        if "messages" not in self._arrays:
            raise InvalidDocument("no unified document: 'messages' is missing")
        check_version(members["schema_version"])
        extensions = members.get("extensions") or {}
        if not (isinstance(members["session"], dict) and isinstance(extensions, dict)):
            raise InvalidDocument("no unified document: 'session' and 'extensions' are objects")
        return Header(
            str(members["schema_version"]),
            str(members.get("export_timestamp", "")),
            str(members["agent"]),
            members["session"],
            extensions,
        )

    @property
    def graph(self) -> JSON:
        """The document's own graph, None where it has none."""
        return None if self._graph is None else Scanner(self._stream, self._graph).value()

    def messages(self) -> Iterator[dict[str, JSON]]:
        """The messages alone."""
        return self._array("messages")

    def _array(self, name: str) -> Iterator[dict[str, JSON]]:
        if name not in self._arrays:
            return
        for value in Scanner(self._stream, self._arrays[name]).elements():
            if not isinstance(value, dict):
                raise InvalidDocument(f"{name} holds something that is no object")
            yield value

    def units(self) -> Iterator[tuple[bool, dict[str, JSON]]]:
        """Messages (True) and records (False) in the order of the source."""
        records = self._array("records")
        record = next(records, None)
        for message in self._array("messages"):
            while record is not None and record.get("after", 0) < message.get("index", 0):
                yield False, record
                record = next(records, None)
            yield True, message
        while record is not None:
            yield False, record
            record = next(records, None)

    def native_lines(self, file: NativeFile) -> Iterator[bytes]:
        """The bytes of a native file, line by line, as the document spells them."""
        return self._lines(file, _record_bytes)

    def respelled_lines(self, file: NativeFile) -> Iterator[bytes]:
        """The same with every JSON record in compact form, for documents that another tool has rewritten."""
        return self._lines(file, _compact_record_bytes)

    def _lines(self, file: NativeFile, spell: Callable[[bytes], bytes]) -> Iterator[bytes]:
        waiting: bytes | None = None
        for text, is_end in _record_texts(Scanner(self._stream, file.records_at)):
            if waiting is not None:
                yield waiting
            waiting = spell(text) + (b"\n" if is_end else b"")
        if waiting is not None:
            yield waiting if file.final_newline else waiting.removesuffix(b"\n")

    def restored_lines(self, file: NativeFile) -> tuple[Iterator[bytes], bool]:
        """The lines of a native file, and whether they are exactly those that its SHA-256 was made of.

        If another tool has rewritten the document, compact JSON usually restores the original bytes.
        """
        for lines in (self.native_lines, self.respelled_lines):
            digest = hashlib.sha256()
            for line in lines(file):
                digest.update(line)
            if digest.hexdigest() == file.sha256:
                return lines(file), True
        return self.respelled_lines(file), False


def _native_file(scanner: Scanner) -> NativeFile:
    path, sha256, records_at, final_newline = None, None, None, True
    for name in scanner.members():
        scanner.key_done()
        if name == "records" and scanner.peek() == b"[":
            records_at = scanner.offset
            for _ in _record_texts(scanner):
                pass
            continue
        value = scanner.value()
        if name == "path":
            path = value
        elif name == "sha256":
            sha256 = value
        elif name == "final_newline":
            final_newline = value is not False
    if not isinstance(path, str) or records_at is None:
        raise InvalidDocument("a native file has no path or no records")
    return NativeFile(path, sha256 if isinstance(sha256, str) else None, records_at, final_newline)


def _record_texts(scanner: Scanner) -> Iterator[tuple[bytes, bool]]:
    """The records of a native file as JSON text; of a line in pieces each piece, and whether it is the last."""
    scanner.expect(b"[")
    if scanner.peek() == b"]":
        scanner.expect(b"]")
        return
    while True:
        if scanner.peek() == b"[":
            waiting = b'""'
            for piece in scanner.element_texts():
                yield waiting, False
                waiting = b"[%b]" % piece
            yield waiting, True
        else:
            yield scanner.text(), True
        if scanner.expect(b",", b"]") == b"]":
            return


def _record_bytes(text: bytes) -> bytes:
    """The line of a native file that a record represents."""
    if text[:1] == b"{" and b"\n" not in text:
        return text
    return _compact_record_bytes(text)


def _compact_record_bytes(text: bytes) -> bytes:
    try:
        value = loads(text)
    except NOT_JSON as error:
        raise InvalidDocument(f"a native record is no JSON: {error}") from None
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, list):
        try:
            return b"".join(base64.b64decode(piece, validate=True) for piece in value)
        except (binascii.Error, TypeError) as error:
            raise InvalidDocument(f"a native record is no base64: {error}") from None
    return dumps(value)


def read_documents(stream: IO[bytes]) -> Iterator[DocumentStream]:
    """Every document in the stream: one in a .json file, many in an .ndjson file."""
    if stream.seekable():
        yield from _documents(stream)
        return
    with tempfile.SpooledTemporaryFile(SPOOL_BYTES) as copy:
        for piece in iter(lambda: stream.read(SPOOL_BYTES), b""):
            copy.write(piece)
        yield from _documents(copy)


def _documents(stream: IO[bytes]) -> Iterator[DocumentStream]:
    start = 0
    while Scanner(stream, start).peek():
        document = DocumentStream(stream, start)
        yield document
        start = document.end
