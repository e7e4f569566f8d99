"""Unified documents read as a stream: header first, then messages and records in the order of the source."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from typing import IO

from clew.agents.base import Agent, Header, ReadsMessages
from clew.agents.jsonl import CANARY
from clew.errors import InvalidDocument
from clew.io.codec import loads
from clew.io.jsonstream import Scanner, read_json
from clew.model.json import JSON
from clew.model.version import check_version

_SPOOL = 1 << 20
UNTOUCHED = b'"spelling":' + bytes(CANARY)


class DocumentStream:
    """One document in a seekable stream."""

    def __init__(self, stream: IO[bytes], start: int = 0) -> None:
        self._stream = stream
        self._arrays: dict[str, int] = {}
        self._graph: int | None = None
        self.is_original = False
        """True for a document as clew wrote it: no other tool has spelled it anew."""
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
            for _ in scanner.elements():
                pass
        elif key == "graph":
            # It names every message once more: read when it is asked for.
            self._graph = scanner.offset
            scanner.skip()
        elif key == "extensions":
            text = scanner.text()
            self.is_original = UNTOUCHED in text
            self._members[key] = read_json(text)
        else:
            self._members[key] = scanner.value()

    def _header(self) -> Header:
        members = self._members
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

    def _array(self, name: str, read: Callable[[bytes], JSON] = loads) -> Iterator[dict[str, JSON]]:
        if name not in self._arrays:
            return
        for value in Scanner(self._stream, self._arrays[name]).elements(read):
            if not isinstance(value, dict):
                raise InvalidDocument(f"{name} holds something that is no object")
            yield value

    def units(self, read: Callable[[bytes], JSON] = loads) -> Iterator[tuple[bool, dict[str, JSON]]]:
        """Messages, decoded by `read`, and records, merged into the order of the source."""
        records = self._array("records")
        record = next(records, None)
        for message in self._array("messages", read):
            while record is not None and record.get("after", 0) < message.get("index", 0):
                yield False, record
                record = next(records, None)
            yield True, message
        while record is not None:
            yield False, record
            record = next(records, None)


def read_documents(stream: IO[bytes]) -> Iterator[DocumentStream]:
    """Every document in the stream: one in a .json file, many in an .ndjson file."""
    if stream.seekable():
        yield from _documents(stream)
        return
    with tempfile.SpooledTemporaryFile(_SPOOL) as copy:
        for piece in iter(lambda: stream.read(_SPOOL), b""):
            copy.write(piece)
        yield from _documents(copy)


def _documents(stream: IO[bytes]) -> Iterator[DocumentStream]:
    start = 0
    while Scanner(stream, start).peek():
        document = DocumentStream(stream, start)
        yield document
        start = document.end


def exact_units(agent: Agent, document: DocumentStream) -> Iterator[tuple[bool, dict[str, JSON]]]:
    """The units of a document for its agent's writer, which may want values as the document spells them."""
    if document.is_original and isinstance(agent, ReadsMessages):
        return document.units(_unless_laid_out(agent.read_message))
    return document.units()


def _unless_laid_out(read: Callable[[bytes], JSON]) -> Callable[[bytes], JSON]:
    """Text with line feeds in it was laid out by another tool, and must not get into a line as it is."""
    return lambda text: loads(text) if b"\n" in text else read(text)
