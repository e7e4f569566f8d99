"""A session on disk, taken through the text of its unified document and back to files."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

from clew.agents.base import Agent, Header, Unit
from clew.export.document import write_document
from clew.export.reading import DocumentStream
from clew.io.codec import dumps, loads
from clew.model.json import JSON

Document = dict[str, JSON]


def document_of(agent: Agent, path: Path) -> Document:
    """The unified document of a session, parsed from its own text."""
    text = io.BytesIO()
    write_document(agent, agent.locate(path), text, timestamp="2026-01-01T00:00:00Z")
    parsed: Document = loads(text.getvalue())
    return parsed


def stream_of(document: Document) -> DocumentStream:
    """A document as it is read."""
    return DocumentStream(io.BytesIO(dumps(document)))


def header_of(document: Document) -> Header:
    """What is neither message nor record."""
    return stream_of(document).header


def units_of(document: Document) -> Iterator[Unit]:
    """Messages and records in the order of the source, without the agent's own records."""
    return (Unit(is_message, value, 0, 0, 0, ()) for is_message, value in stream_of(document).units())


def files_of(agent: Agent, document: Document) -> dict[str, bytes]:
    """The native files of a document, or those that are composed from its messages; the main one is named ""."""
    stream = stream_of(document)
    if stream.native_files:
        return _native_files(stream)
    files: dict[str, bytes] = {}
    for name, content in agent.encode(stream.header, units_of(document)):
        files[name] = files.get(name, b"") + content
    return files


def composed_files(agent: Agent, document: Document) -> dict[str, bytes]:
    """The native files that are composed from the messages of a document."""
    return files_of(agent, {key: value for key, value in document.items() if key != "native"})


def round_trip(agent: Agent, path: Path) -> dict[str, bytes]:
    """The files that come back when a session is taken through the text of its document."""
    text = io.BytesIO()
    write_document(agent, agent.locate(path), text, timestamp="2026-01-01T00:00:00Z")
    return _native_files(DocumentStream(text))


def _native_files(stream: DocumentStream) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    for number, file in enumerate(stream.native_files):
        lines, _ = stream.restored_lines(file)
        files[file.path if number else ""] = b"".join(lines)
    return {name: content for name, content in files.items() if content or name}


def original(agent: Agent, path: Path) -> dict[str, bytes]:
    """The files as they are on disk, named as `round_trip` names them."""
    source = agent.locate(path)
    files = {name: (path.parent / name).read_bytes() for name in (*source.parts, *source.sides)}
    main = path.read_bytes()
    files |= {"": main} if main else {}
    return {name: content for name, content in files.items() if content or name in source.sides}
