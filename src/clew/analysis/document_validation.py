"""Problems of a unified document: against its types, and in what the types cannot say."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from clew.analysis.validation import validate
from clew.errors import InvalidDocument
from clew.model import Message, Problem, Record
from clew.model.base import Part
from clew.model.codes import problem
from clew.model.fields import move_unknown_to_extensions
from clew.model.json import JSON
from clew.model.load import explain, load_document
from clew.model.time import parse_time


def check_document(source: bytes | dict[str, JSON], file: str | None = None) -> list[Problem]:
    """Every problem of a document; an empty list is a valid one."""
    try:
        document = _object(source)
        header = load_document({**document, "messages": [], "records": []})
    except InvalidDocument as error:
        return [_wrong(str(error), file)]
    problems = list(_arrays(document, file))
    if parse_time(header.export_timestamp) is None:
        detail = f"export_timestamp {header.export_timestamp!r} is no time"
        problems.append(problem("bad-timestamp", detail, file=file, path="$.export_timestamp"))
    if not problems:
        messages, records = document["messages"], document.get("records") or []
        problems += _numbers(messages, records, file)
        problems += _graph(document.get("graph"), messages, file)
        problems += validate(messages, records, file)
    return problems


def _object(source: bytes | dict[str, JSON]) -> dict[str, JSON]:
    """The document as JSON; raises InvalidDocument where it is none."""
    try:
        value = msgspec.json.decode(source) if isinstance(source, bytes) else source
    except (msgspec.MsgspecError, RecursionError) as error:
        raise InvalidDocument(f"$: not JSON: {error}") from error
    if not isinstance(value, dict):
        raise InvalidDocument("$: a document is an object")
    if not isinstance(value.get("messages"), list):
        raise InvalidDocument("$.messages: the messages are an array")
    if not isinstance(value.get("records", []), list):
        raise InvalidDocument("$.records: the records are an array")
    return value


def _wrong(detail: str, file: str | None, index: int | None = None) -> Problem:
    path, _, _ = detail.partition(": ")
    return problem("bad-document", detail, file=file, index=index, path=path if path.startswith("$") else "$")


def _arrays(document: dict[str, JSON], file: str | None) -> Iterator[Problem]:
    """Each message and record by itself, so that one that is wrong does not hide the others."""
    parts: tuple[tuple[str, type[Part]], ...] = (("messages", Message), ("records", Record))
    for name, part in parts:
        for at, value in enumerate(document.get(name) or ()):
            try:
                msgspec.convert(move_unknown_to_extensions(value, part), part)
            except msgspec.ValidationError as error:
                detail = f"$.{name}[{at}]{explain(error).removeprefix('$')}"
                yield _wrong(detail, file, at + 1 if part is Message else None)
            except InvalidDocument as error:
                yield _wrong(f"$.{name}[{at}]: {error}", file)


def _numbers(messages: list[dict[str, JSON]], records: list[dict[str, JSON]], file: str | None) -> Iterator[Problem]:
    """Dense and unique from one; only the first that is not, as all behind it would be wrong too."""
    for expected, message in enumerate(messages, 1):
        if message["index"] != expected:
            detail = f"message {expected} has the index {message['index']}"
            yield problem("bad-index", detail, file=file, index=expected, path=f"$.messages[{expected - 1}].index")
            break
    before = 0
    for at, record in enumerate(records):
        if not before <= record["after"] <= len(messages):
            detail = f"record {at + 1} stands after message {record['after']}, out of order or out of range"
            yield problem("bad-index", detail, file=file, path=f"$.records[{at}].after")
            break
        before = record["after"]


def _graph(graph: JSON, messages: list[dict[str, JSON]], file: str | None) -> Iterator[Problem]:
    """Every uuid and index the graph names is that of a message; index 0 stands for another record."""
    if graph is None:
        return
    known = {(message.get("uuid"), message["index"]) for message in messages}
    uuids = {uuid for uuid, _ in known}
    for at, uuid in enumerate(graph["active_path"]):
        if uuid not in uuids:
            yield problem("bad-graph", f"no message {uuid}", file=file, path=f"$.graph.active_path[{at}]")
    for at, fork in enumerate(graph["fork_points"]):
        for end in (fork, *fork["branches"]):
            if end["index"] and (end["uuid"], end["index"]) not in known:
                detail = f"message {end['index']} is not {end['uuid']}"
                yield problem("bad-graph", detail, file=file, path=f"$.graph.fork_points[{at}]")
