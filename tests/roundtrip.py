"""A session on disk, taken through the text of its unified document and back to files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from clew.agents.base import Agent, Header, Unit
from clew.io.codec import dumps, loads
from clew.model import SCHEMA_VERSION
from clew.model.json import JSON

Document = dict[str, JSON]


def document_of(agent: Agent, path: Path) -> Document:
    """The unified document of a session, parsed from its own text."""
    source = agent.locate(path)
    facts = agent.scan(source)
    reading = agent.read(source, facts)
    units: list[Unit] = list(reading)
    document: Document = {
        "schema_version": SCHEMA_VERSION,
        "export_timestamp": "2026-01-01T00:00:00Z",
        "agent": agent.id,
        "session": agent.session(source, facts),
        "messages": [unit.value for unit in units if unit.is_message],
        "records": [unit.value for unit in units if not unit.is_message],
        "extensions": reading.extensions(),
    }
    parsed: Document = loads(dumps(document))
    return parsed


def units_of(document: Document) -> Iterator[tuple[bool, dict[str, JSON]]]:
    """Messages and records in the order of the source."""
    waiting = list(document["records"])
    for message in [None, *document["messages"]]:
        if message is not None:
            yield True, message
        index = message["index"] if message is not None else 0
        while waiting and waiting[0]["after"] <= index:
            yield False, waiting.pop(0)


def header_of(document: Document) -> Header:
    """What is neither message nor record."""
    return Header(
        document["schema_version"],
        document["export_timestamp"],
        document["agent"],
        document["session"],
        document["extensions"],
    )


def files_of(agent: Agent, document: Document) -> dict[str, bytes]:
    """The native files an agent writes for a document; the main one is named ""."""
    files: dict[str, bytes] = {}
    for name, content in agent.write(header_of(document), units_of(document)):
        files[name] = files.get(name, b"") + content
    return files


def round_trip(agent: Agent, path: Path) -> dict[str, bytes]:
    """The files that come back when a session is taken through the text of its document."""
    return files_of(agent, document_of(agent, path))


def original(agent: Agent, path: Path) -> dict[str, bytes]:
    """The files as they are on disk, named as `round_trip` names them."""
    source = agent.locate(path)
    files = {name: (path.parent / name).read_bytes() for name in (*source.parts, *source.sides)}
    main = path.read_bytes()
    files |= {"": main} if main else {}
    return {name: content for name, content in files.items() if content or name in source.sides}
