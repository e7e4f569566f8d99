"""The rules of sage-emacs for a valid conversation, and for the metadata beside it."""

from __future__ import annotations

from collections.abc import Iterator

from clew.agents.base import SourceFile
from clew.agents.sage_emacs import locate
from clew.agents.sage_emacs.metadata import measure
from clew.agents.sage_emacs.tables import ROLES
from clew.io.compress import open_source
from clew.io.records import RawRecord, read_records
from clew.model import Problem
from clew.model.codes import problem
from clew.model.json import JSON
from clew.model.time import parse_time


def check(source: SourceFile) -> Iterator[Problem]:
    """Every problem of the records, then those of the metadata."""
    file = str(source.path)
    with open_source(source.path) as stream:
        for record in read_records(stream):
            if record.value is not None:
                for code, detail in _check_record(record.value):
                    yield _located(code, detail, file, record)
    if not locate.is_archive(source.path) and locate.plain_name(source.path.name) == locate.CONVERSATION:
        yield from _check_metadata(source)


def _located(code: str, detail: str, file: str, record: RawRecord) -> Problem:
    return problem(code, detail, file=file, line=record.line, start=record.start, end=record.stop)


def _check_record(record: dict[str, JSON]) -> Iterator[tuple[str, str]]:
    role, content = record.get("role"), record.get("content")
    if role == "tool":
        yield "tool-role", ""
    elif role not in ROLES:
        yield "bad-role", f"the role is {role!r}" if "role" in record else "the role is missing"
    # Who only calls a tool says nothing.
    if not isinstance(content, str) or (not content and not record.get("tool_calls")):
        yield "bad-content", "the content is empty" if content == "" else ""
    if record.get("timestamp") is None:
        yield "time-missing", ""
    elif not isinstance(record["timestamp"], str) or parse_time(record["timestamp"]) is None:
        yield "bad-timestamp", f"the timestamp is {record['timestamp']!r}"


def _check_metadata(source: SourceFile) -> Iterator[Problem]:
    place = str(source.path.parent / locate.METADATA)
    metadata = locate.metadata(source.path)
    if metadata is None:
        yield problem("metadata-damaged", file=place)
    elif not metadata and not source.sides:
        yield problem("metadata-missing", file=place)
    else:
        records, size = measure(source)
        for key, truth in (("message_count", records), ("total_size", size)):
            if metadata.get(key) != truth:
                yield problem("metadata-mismatch", f"{key} is {metadata.get(key)!r}, the log says {truth}", file=place)
