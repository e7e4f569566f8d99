"""The rules of sage-emacs for a valid conversation and the metadata beside it, and for a saved session."""

from __future__ import annotations

from collections.abc import Iterator

from clew.agents.base import SourceFile
from clew.agents.sage_emacs import locate
from clew.agents.sage_emacs.metadata import measure
from clew.agents.sage_emacs.records import MESSAGES, ROLES, TOOL, document_records, is_element
from clew.io.compress import open_source
from clew.io.records import RawRecord, read_records
from clew.model import Problem
from clew.model.codes import problem
from clew.model.json import JSON
from clew.model.time import parse_time

_HEADER_TYPES: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("name", "model", "provider", "workspace", "created_at", "updated_at"), (str, type(None))),
    **dict.fromkeys(("message_count", "total_tokens"), (int, type(None))),
    MESSAGES: (list,),
}


def check(source: SourceFile) -> Iterator[Problem]:
    """Every problem of the records, then those of the metadata."""
    if locate.is_saved(source.path):
        yield from _check_saved(source)
        return
    file = str(source.path)
    with open_source(source.path) as stream:
        for record in read_records(stream):
            yield from _check_said(record, file)
    if not locate.is_archive(source.path) and locate.plain_name(source.path.name) == locate.CONVERSATION:
        yield from _check_metadata(source)


def _check_saved(source: SourceFile) -> Iterator[Problem]:
    """Every problem of the messages, then what the document says of itself and is not so."""
    file = str(source.path)
    header: dict[str, JSON] = {}
    count = 0
    for number, record in enumerate(document_records(source)):
        if number == 0:
            header = record.value or {}
            continue
        count += is_element(record)
        yield from _check_said(record, file)
    for code, detail, key in _check_header(header, count):
        yield problem(code, detail, file=file, path=f"$.{key}")


def _check_header(header: dict[str, JSON], count: int) -> Iterator[tuple[str, str, str]]:
    for key, accepts in _HEADER_TYPES.items():
        if key in header and type(header[key]) not in accepts:
            yield "wrong-type", f"{key} is of an unexpected type", key
    for key in ("created_at", "updated_at"):
        if type(header.get(key)) is str and parse_time(header[key]) is None:
            yield "bad-timestamp", f"{key} is {header[key]!r}, which is no time", key
    stated = header.get("message_count")
    if type(stated) is int and stated != count:
        yield "metadata-mismatch", f"message_count is {stated}, the list has {count}", "message_count"


def _check_said(record: RawRecord, file: str) -> Iterator[Problem]:
    for code, detail in _check_record(record.value) if record.value is not None else ():
        yield _located(code, detail, file, record)


def _located(code: str, detail: str, file: str, record: RawRecord) -> Problem:
    return problem(code, detail, file=file, line=record.line, start=record.start, end=record.stop)


def _check_record(record: dict[str, JSON]) -> Iterator[tuple[str, str]]:
    role, content = record.get("role"), record.get("content")
    if role == TOOL:
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
