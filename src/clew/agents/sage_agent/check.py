"""The rules of Sage Agent for its logs, snapshots and metadata."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from clew.agents.base import SourceFile
from clew.agents.sage_agent import locate
from clew.agents.sage_agent.metadata import disagreements
from clew.agents.sage_agent.records import SNAPSHOT_TYPES, counts_as_message, message_body
from clew.agents.sage_agent.snapshots import ACTIONS
from clew.agents.sage_format import check_metadata
from clew.io.compress import open_source, plain_name
from clew.io.records import read_records
from clew.model import Problem
from clew.model.codes import problem
from clew.model.json import JSON

THINKING_LEVELS = ("none", "low", "medium", "high")
FILE_STATES = {*ACTIONS, "unchanged"}


def check(source: SourceFile) -> Iterator[Problem]:
    """Every problem of the records, then of the links between files, then of the metadata."""
    uuids: set[str] = set()
    calls: set[str] = set()
    snapshots: list[tuple[str, str, int]] = []
    count = index = 0
    for path in (source.path, *(source.path.parent / name for name in source.parts)):
        file = str(path)
        with open_source(path) as stream:
            for line, value in ((record.line, record.value) for record in read_records(stream)):
                if value is None:
                    continue
                count += counts_as_message(value)
                if value.get("type") in SNAPSHOT_TYPES:
                    if (error := _snapshot_error(value)) is not None:
                        yield problem("bad-snapshot", error, file=file, line=line)
                    if isinstance(value.get("messageId"), str):
                        snapshots.append((value["messageId"], file, line))
                    continue
                body = message_body(value)
                uuids |= {part["uuid"] for part in (value, body or {}) if isinstance(part.get("uuid"), str)}
                if body is not None:
                    index += 1
                    for code, detail in _message_errors(body, calls):
                        yield problem(code, detail, file=file, line=line, index=index)
    for message, file, line in snapshots:
        # A snapshot may come before its message.
        if message not in uuids:
            yield problem("unknown-snapshot-message", f"no message has the uuid {message}", file=file, line=line)
    if plain_name(source.path.name) == locate.MESSAGES:
        yield from check_metadata(source, lambda known: disagreements(known, locate.session_id(source), count))


def _message_errors(body: Mapping[str, JSON], calls: set[str]) -> Iterator[tuple[str, str]]:
    """The errors of a message; adds its calls to those of the messages before it."""
    thinking = body.get("thinkingMetadata")
    if isinstance(thinking, dict) and (level := thinking.get("level")) not in THINKING_LEVELS:
        yield "bad-thinking-level", f"the thinking level is {level!r}"
    inner = body.get("message")
    inner = inner if isinstance(inner, dict) else {}
    calls.update(_ids(inner.get("toolCalls"), "id"), _ids(body.get("tool_calls"), "id"))
    results = [*_ids(body.get("toolResults"), "toolCallId"), *_ids(inner.get("toolResults"), "toolCallId")]
    for call in (*results, *_ids(body.get("tool_results"), "tool_call_id")):
        if call not in calls:
            yield "orphan-result", f"a result refers to the call {call!r}, which does not exist"


def _ids(items: JSON, key: str) -> list[str]:
    if not isinstance(items, list):
        return []
    return [item[key] for item in items if isinstance(item, dict) and isinstance(item.get(key), str)]


def _snapshot_error(record: dict[str, JSON]) -> str | None:
    snapshot = record.get("snapshot")
    if not isinstance(record.get("messageId"), str):
        return "the snapshot names no message"
    if not isinstance(snapshot, dict):
        return "the snapshot is not an object"
    for name in ("trackedFiles", "fileBackups"):
        files = snapshot.get(name, {})
        if not isinstance(files, dict) or not all(isinstance(file, dict) for file in files.values()):
            return f"{name} is no map of objects"
    states = {str(file.get("state")) for file in snapshot.get("trackedFiles", {}).values()}
    unknown = sorted(states - FILE_STATES)
    return f"unknown state {unknown[0]!r}" if unknown else None
