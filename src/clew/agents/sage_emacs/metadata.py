"""metadata.json of a project: what it should say of the current conversation."""

from __future__ import annotations

import json
from collections.abc import Mapping

from clew.agents.base import SourceFile
from clew.io.compress import open_source
from clew.io.records import read_records
from clew.model.json import JSON


def measure(source: SourceFile) -> tuple[int, int]:
    """Number of records and of bytes in a conversation."""
    records = size = 0
    with open_source(source.path) as stream:
        for record in read_records(stream):
            records += record.value is not None
            size = record.start + len(record.text)
    return records, size


def describe(session: Mapping[str, JSON], records: int, size: int, known: Mapping[str, JSON]) -> bytes:
    """The file's bytes; keys beyond the five are kept as they are."""
    metadata: dict[str, JSON] = {
        "project_dir": known.get("project_dir") or session["workspace"],
        "created_at": known.get("created_at") or session["started_at"],
        "updated_at": session["ended_at"] or known.get("updated_at"),
        "message_count": records,
        "total_size": size,
    }
    found = {name: item for name, item in metadata.items() if item not in (None, "")}
    return (json.dumps({**known, **found}, indent=2, ensure_ascii=False) + "\n").encode()
