"""The rules of sage-emacs for a valid conversation and the metadata beside it, and for a saved session."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

from clew.agents.base import SourceFile
from clew.agents.sage_emacs import locate
from clew.agents.sage_emacs.metadata import measure
from clew.agents.sage_emacs.records import MESSAGES, ROLES, TOOL, document_records, is_element
from clew.agents.sage_format import check_metadata
from clew.io.compress import open_source, plain_name
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
    """Every problem of the records, then those of the metadata, or of the header of a saved session."""
    path, file = source.path, str(source.path)
    if locate.is_saved(path):
        header: dict[str, JSON] = {}
        count = 0
        for number, record in enumerate(document_records(source)):
            if number == 0:
                header = record.value or {}
                continue
            count += is_element(record)
            yield from _check_record(record, file)
        for code, detail, key in _check_header(header, count):
            yield problem(code, detail, file=file, path=f"$.{key}")
        return
    with open_source(path) as stream:
        for line in read_records(stream):
            yield from _check_record(line, file)
    if not locate.is_archive(path) and plain_name(path.name) == locate.CONVERSATION:
        yield from check_metadata(source, partial(_metadata_errors, source))


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


def _check_record(record: RawRecord, file: str) -> Iterator[Problem]:
    for code, detail in _record_errors(record.value) if record.value is not None else ():
        yield problem(code, detail, file=file, line=record.line, start=record.start, end=record.stop)


def _record_errors(record: dict[str, JSON]) -> Iterator[tuple[str, str]]:
    role, content = record.get("role"), record.get("content")
    if role == TOOL:
        yield "tool-role", ""
    elif role not in ROLES:
        yield "bad-role", f"the role is {role!r}" if "role" in record else "the role is missing"
    # A message that only calls tools has no text.
    if not isinstance(content, str) or (not content and not record.get("tool_calls")):
        yield "bad-content", "the content is empty" if content == "" else ""
    if record.get("timestamp") is None:
        yield "time-missing", ""
    elif not isinstance(record["timestamp"], str) or parse_time(record["timestamp"]) is None:
        yield "bad-timestamp", f"the timestamp is {record['timestamp']!r}"


def _metadata_errors(source: SourceFile, metadata: Mapping[str, JSON]) -> Iterator[tuple[str, str]]:
    for key, truth in zip(("message_count", "total_size"), measure(source), strict=True):
        if metadata.get(key) != truth:
            yield "metadata-mismatch", f"{key} is {metadata.get(key)!r}, the log says {truth}"
