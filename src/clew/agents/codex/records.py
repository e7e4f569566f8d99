"""The records of a rollout, whether it is lines or, in the oldest sessions, one document with a list of items."""

from __future__ import annotations

from collections.abc import Iterator

from clew.agents.base import SourceFile, open_main
from clew.io.records import RawRecord, read_records
from clew.model.json import JSON

ITEMS = "items"
SESSION = "session"


def is_document(source: SourceFile) -> bool:
    """True for a session that is one JSON document."""
    return source.path.name.removesuffix(".gz").removesuffix(".zst").endswith(".json")


def records_of(source: SourceFile) -> Iterator[RawRecord]:
    """Every record of a session in its order; of a document first what stands around its items."""
    # Hardly a session is a document: who reads lines need not load what reads one.
    from clew.agents.jsondoc import read_stream

    with open_main(source) as stream:
        yield from read_stream(stream, (ITEMS,)) if is_document(source) else read_records(stream)


def head_of(record: dict[str, JSON]) -> dict[str, JSON] | None:
    """What a document says of its session; None for any other record."""
    session = record.get(SESSION)
    return session if isinstance(session, dict) and isinstance(record.get(ITEMS), list) else None
