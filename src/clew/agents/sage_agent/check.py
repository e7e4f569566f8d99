"""The rules of Sage Agent for its logs, snapshots and metadata."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from clew.agents.base import SourceFile
from clew.agents.sage_agent import locate
from clew.agents.sage_agent.metadata import disagreements
from clew.agents.sage_agent.records import SNAPSHOT_TYPES, counts_as_message, message_body
from clew.io.compress import open_source
from clew.io.records import read_records
from clew.model import Problem
from clew.model.codes import problem
from clew.model.json import JSON

LEVELS = ("none", "low", "medium", "high")
STATES = ("created", "modified", "deleted", "unchanged")


def check(source: SourceFile) -> Iterator[Problem]:
    """Every problem of the records, then of the links between files, then of the metadata."""
    checker = _Checker()
    for path in (source.path, *(source.path.parent / name for name in source.parts)):
        with open_source(path) as stream:
            for record in read_records(stream):
                if record.value is not None:
                    yield from checker.check(record.value, str(path), record.line)
    yield from checker.unknown_messages()
    if locate.plain_name(source.path.name) == locate.MESSAGES:
        yield from _check_metadata(source, checker.counted)


class _Checker:
    def __init__(self) -> None:
        self.counted = 0
        self._index = 0
        self._calls: set[str] = set()
        self._uuids: set[str] = set()
        self._snapshots: list[tuple[str, str, int]] = []

    def check(self, record: dict[str, JSON], file: str, line: int) -> Iterator[Problem]:
        self.counted += counts_as_message(record)
        if record.get("type") in SNAPSHOT_TYPES:
            yield from self._check_snapshot(record, file, line)
            return
        if (body := message_body(record)) is not None:
            self._index += 1
            for code, detail in self._check_message(body):
                yield problem(code, detail, file=file, line=line, index=self._index)
        if isinstance(record.get("uuid"), str):
            self._uuids.add(record["uuid"])

    def _check_message(self, record: Mapping[str, JSON]) -> Iterator[tuple[str, str]]:
        if isinstance(record.get("uuid"), str):
            self._uuids.add(record["uuid"])
        thinking = record.get("thinkingMetadata")
        level = thinking.get("level") if isinstance(thinking, dict) else None
        if isinstance(thinking, dict) and level not in LEVELS:
            yield "bad-thinking-level", f"the thinking level is {level!r}"
        inner = record.get("message")
        inner = inner if isinstance(inner, dict) else {}
        self._calls.update(_ids(inner.get("toolCalls"), "id"), _ids(record.get("tool_calls"), "id"))
        results = [*_ids(record.get("toolResults"), "toolCallId"), *_ids(inner.get("toolResults"), "toolCallId")]
        for call in (*results, *_ids(record.get("tool_results"), "tool_call_id")):
            if call not in self._calls:
                yield "orphan-result", f"a result answers the call {call!r}, which is not here"

    def _check_snapshot(self, record: dict[str, JSON], file: str, line: int) -> Iterator[Problem]:
        fault = _snapshot_fault(record)
        if fault is not None:
            yield problem("bad-snapshot", fault, file=file, line=line)
        if isinstance(record.get("messageId"), str):
            self._snapshots.append((record["messageId"], file, line))

    def unknown_messages(self) -> Iterator[Problem]:
        """Snapshots of messages that are nowhere; asked at the end, as snapshots may come first."""
        for message, file, line in self._snapshots:
            if message not in self._uuids:
                yield problem("unknown-snapshot-message", f"no message has the uuid {message}", file=file, line=line)


def _ids(items: JSON, key: str) -> list[str]:
    if not isinstance(items, list):
        return []
    return [item[key] for item in items if isinstance(item, dict) and isinstance(item.get(key), str)]


def _snapshot_fault(record: dict[str, JSON]) -> str | None:
    snapshot = record.get("snapshot")
    if not isinstance(record.get("messageId"), str):
        return "the snapshot names no message"
    if not isinstance(snapshot, dict):
        return "the snapshot is no object"
    for name in ("trackedFiles", "fileBackups"):
        files = snapshot.get(name, {})
        if not isinstance(files, dict) or not all(isinstance(file, dict) for file in files.values()):
            return f"{name} is no map of objects"
    states = {str(file.get("state")) for file in snapshot.get("trackedFiles", {}).values()}
    odd = sorted(states - set(STATES))
    return f"unknown state {odd[0]!r}" if odd else None


def _check_metadata(source: SourceFile, counted: int) -> Iterator[Problem]:
    place = str(source.path.parent / locate.METADATA)
    metadata = locate.metadata(source.path)
    if metadata is None:
        yield problem("metadata-damaged", file=place)
    elif not metadata and not source.sides:
        yield problem("metadata-missing", file=place)
    else:
        for code, detail in disagreements(metadata, locate.session_id(source), counted):
            yield problem(code, detail, file=place)
