"""What metadata.json of a project contains about its conversation, and how it is written."""

from __future__ import annotations

from collections.abc import Mapping

from clew.agents.base import SourceFile
from clew.agents.sage_emacs import locate
from clew.agents.sage_emacs.events import ENDED_AT
from clew.agents.sage_format import encode_metadata, normalized_time
from clew.analysis.facts import Facts
from clew.io.compress import open_source
from clew.io.records import read_records
from clew.model.json import JSON


def session_fields(source: SourceFile, facts: Facts) -> dict[str, JSON]:
    """Folder and times of a session, and when it was archived."""
    path, known = source.path, locate.metadata(source.path) or {}
    archived = locate.archive_time(path)
    started, ended = facts.first_time, facts.last_time
    if started is None and locate.is_saved(path):
        started, ended = facts.extra.get("started_at"), facts.extra.get(ENDED_AT)
    elif started is None and locate.is_archive(path):
        ended = archived
    elif started is None:
        started, ended = normalized_time(known.get("created_at")), normalized_time(known.get("updated_at"))
    # The encoded name of a project's folder cannot be decoded.
    recorded = known.get("project_dir")
    workspace = recorded if isinstance(recorded, str) and recorded else facts.cwd or ""
    fields: dict[str, JSON] = {
        "workspace": workspace.rstrip("/") or workspace,
        "started_at": started,
        "ended_at": ended,
    }
    if archived is not None:
        fields["extensions"] = {locate.AGENT: {"archived_at": archived}}
    return fields


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
    return encode_metadata({**known, **found})
