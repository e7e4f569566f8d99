"""Units back to the bytes of a session: documents in their layout, lines with the messages they held."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from typing import IO

from clew.agents.base import Header
from clew.agents.folding import Step, own_extension
from clew.agents.gemini import tables
from clew.agents.gemini.fold import unfolded
from clew.agents.gemini.locate import AGENT
from clew.agents.jsondoc import DocumentWriter
from clew.agents.jsonl import JsonlWriter
from clew.io.codec import dumps, loads
from clew.model.json import JSON

_SPOOL = 1 << 20
_MARK = "\x00elements"


class GeminiWriter(JsonlWriter):
    """Writes what GeminiReading read."""

    def __init__(self, header: Header) -> None:
        super().__init__(AGENT, header, lambda is_message, value: tables.chosen(is_message, value, AGENT), {})
        self._documents: dict[str, DocumentWriter] = {}
        self._open: _Container | None = None

    def lines(self, units: Iterator[Step]) -> Iterator[tuple[str, bytes]]:
        """The bytes of each unit with the name of the file they belong to."""
        with tempfile.SpooledTemporaryFile(_SPOOL) as spool:
            shelf = _Shelf(spool)
            for is_message, value in unfolded(units):
                own = own_extension(value, AGENT)
                is_place = not is_message and value.get("type") == tables.PLACE
                line = (shelf.take(value["message_uuid"]) if is_place else self._raw(own, is_message, value)) or b""
                if own.get("later"):
                    shelf.put(value["uuid"], line)
                elif not own.get("copy") and (line or not is_place):
                    yield from self._piece(own, line)
        yield from self._closed()
        for name, document in self._documents.items():
            yield name, document.end()

    def _piece(self, own: dict[str, JSON], line: bytes) -> Iterator[tuple[str, bytes]]:
        if own.get("held") and self._open is not None:
            yield self._open.name, self._open.element(line)
            return
        yield from self._closed()
        part = own.get("part", 0)
        name = self._parts[part] if part < len(self._parts) else ""
        end = own.get("end", "\n").encode()
        if own.get("holds"):
            self._open = _Container(name, line, end)
            yield name, self._open.head
        elif "document" in own:
            self._documents[name] = DocumentWriter(own["document"], line)
            yield name, self._documents[name].head
        elif name in self._documents:
            yield name, self._documents[name].element(own, line)
        else:
            yield name, line + end

    def _closed(self) -> Iterator[tuple[str, bytes]]:
        if self._open is not None:
            yield self._open.name, self._open.tail
            self._open = None


class PlainWriter(GeminiWriter):
    """Writes a session as an event log of its own, whatever its files were: lines that replay to the same list."""

    def lines(self, units: Iterator[Step]) -> Iterator[tuple[str, bytes]]:
        """The header and each message, with what takes messages back; versions that do not count are left out."""
        with tempfile.SpooledTemporaryFile(_SPOOL) as spool:
            shelf = _Shelf(spool)
            for is_message, value in unfolded(units):
                own = own_extension(value, AGENT)
                line: bytes | None = None
                if value.get("type") == tables.PLACE:
                    line = shelf.take(value["message_uuid"])
                elif is_message or value["kind"] in ("state", "summary") or own.get("held"):
                    line = dumps(self.native(own, is_message, value))
                if line is not None:
                    is_inside = not own.get("later") and own.get("held")
                    yield from self._piece({"held": is_inside, "holds": own.get("holds")}, line)
                if own.get("later") and line is not None:
                    shelf.put(value["uuid"], line)
        yield from self._closed()


class _Container:
    """A line with messages in it, while they are put back."""

    def __init__(self, name: str, line: bytes, end: bytes) -> None:
        self.name = name
        value = loads(line)
        held = value[tables.PATCH] if isinstance(value.get(tables.PATCH), dict) else value
        held[tables.MESSAGES] = [_MARK]
        self.head, _, tail = dumps(value).partition(dumps(_MARK))
        self.tail = tail + end
        self._before = b""

    def element(self, line: bytes) -> bytes:
        """The next element."""
        before, self._before = self._before, b","
        return before + line


class _Shelf:
    """Lines that are due later than the message they hold; many of them wait on disk."""

    def __init__(self, spool: IO[bytes]) -> None:
        self._spool = spool
        self._places: dict[str, tuple[int, int]] = {}
        self._end = 0

    def put(self, uuid: str, line: bytes) -> None:
        """Keep a line for its place."""
        self._spool.seek(self._end)
        self._spool.write(line)
        self._places[uuid] = (self._end, len(line))
        self._end += len(line)

    def take(self, uuid: JSON) -> bytes | None:
        """The line that was kept; None where its message was left out."""
        start, size = self._places.pop(uuid, (0, None))
        if size is None:
            return None
        self._spool.seek(start)
        return self._spool.read(size)
