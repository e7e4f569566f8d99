"""Writes sessions that Sage Agent resumes: its own records under another id, or records composed from messages.

Its reader demands every key of a composed record, and does not list a session without `metadata.json`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from clew.agents.base import Header, Unit
from clew.agents.derived_ids import derived_id
from clew.agents.encoding import UNKNOWN, Fields, joined_text, json_line, output_text, select_renamed
from clew.agents.sage_agent.locate import METADATA, SNAPSHOTS
from clew.agents.sage_agent.metadata import VERSION
from clew.agents.sage_agent.records import counts_as_message, message_body
from clew.agents.sage_format import encode_call, encode_metadata, replace_links
from clew.agents.tools import RecentCalls
from clew.model.json import JSON

_WINDOWS, _MAC = re.compile(r"[A-Za-z]:|\\\\"), re.compile(r"/(?:Users|Volumes|private)/")
_TODO_KEYS = {"content": "content", "status": "status", "active_form": "activeForm", "priority": "priority", "id": "id"}
_USAGE_KEYS = {
    "input_tokens": "inputTokens",
    "output_tokens": "outputTokens",
    "cache_read_tokens": "cacheReadTokens",
    "cache_creation_tokens": "cacheWriteTokens",
}
_THINKING_KEYS = {"level": "level", "disabled": "disabled", "triggers": "triggers"}
_TRACKED_KEYS = {
    "original_content": "originalContent",
    "content_hash": "contentHash",
    "size": "size",
    "state": "state",
}
_BACKUP_KEYS = {"backup": "backupPath", "original_hash": "originalHash"}


def encode(header: Header, units: Iterable[Unit]) -> Iterator[tuple[str, bytes]]:
    """The lines of the log and of the snapshots, then the metadata."""
    session = header.session
    composed = _ComposedRecords(session)
    facts: Fields = {}
    count = 0
    for unit in units:
        if unit.native:
            if unit.start < unit.stop:
                count += not unit.part and counts_as_message(unit.native)
                # The first message that has a model or branch counts.
                metadata = unit.value.get("metadata") or {}
                found = {"model": (metadata.get("model") or {}).get("name"), "gitBranch": metadata.get("git_branch")}
                for name, item in found.items():
                    if item:
                        facts.setdefault(name, item)
                yield SNAPSHOTS if unit.part else "", json_line(_copied_record(unit))
        elif unit.is_message:
            for record in composed.message(unit.value):
                count += 1
                yield "", json_line(record)
        elif _is_complete(unit.value.get("snapshot")):
            yield SNAPSHOTS, json_line(composed.snapshot(unit.value))
    described: Fields = {
        "id": session["id"],
        "customTitle": session.get("title"),
        "createdAt": session["started_at"],
        "updatedAt": session["ended_at"] or session["started_at"],
        "workingDirectory": session["workspace"],
        "version": VERSION,
        "messageCount": count,
        "state": "completed",
        "isSidechain": bool(session["is_agent_session"]),
        "parentSessionId": session.get("parent_session_id"),
        **facts,
        "metadata": {},
    }
    yield METADATA, encode_metadata({name: item for name, item in described.items() if item is not None})


def _is_complete(snapshot: JSON) -> bool:
    """True when a snapshot has the state and size of each file, so that an undo can use it."""
    files: Fields = (snapshot or {}).get("files") or {}
    return bool(files) and all("state" in file and "size" in file for file in files.values())


def _copied_record(unit: Unit) -> Fields:
    """One of Sage Agent's own records, with the links that its message has."""
    record = dict(unit.native)
    body = message_body(unit.native)
    if unit.is_message and body is not None:
        if body is unit.native:
            replace_links(record, unit.value)
        else:
            record["payload"] = payload = dict(body)
            replace_links(payload, unit.value)
    return record


class _ComposedRecords:
    """Records for the messages of any agent, with every key that the program's own reader demands."""

    def __init__(self, session: Mapping[str, JSON]) -> None:
        self._session = session
        self._time = session.get("started_at")
        self._tool_names = RecentCalls()
        self._todos: JSON = []
        """The current list: every message repeats it."""

    def message(self, message: Fields) -> Iterator[Fields]:
        """One record, or two where a message has both results and other content."""
        blocks = message["content"]
        calls = [self._call(block) for block in blocks if block["type"] == "tool_use"]
        results = [self._result(block) for block in blocks if block["type"] == "tool_result"]
        text = joined_text(blocks)
        uuid = message.get("uuid") or derived_id(self._session["id"], message["index"])
        parent = message.get("parent_uuid")
        self._time = message.get("timestamp") or self._time
        fields = self._fields(message.get("metadata") or {})
        if results:
            is_alone = not text and not calls
            links = uuid if is_alone else f"{uuid}:r", parent
            yield self._record("tool_result", links, {"role": "tool", "content": "", "toolResults": results}, fields)
            if is_alone:
                return
            parent = f"{uuid}:r"
        inner: Fields = {"role": message["role"], "content": text}
        yield self._record(message["role"], (uuid, parent), inner | ({"toolCalls": calls} if calls else {}), fields)

    def _record(self, kind: str, links: tuple[str, JSON], inner: Fields, fields: Fields) -> Fields:
        record: Fields = {"type": kind, "uuid": links[0], "parentUuid": links[1], "timestamp": self._time}
        record |= {"sessionId": self._session["id"], "version": fields["version"], "context": fields["context"]}
        optional = ("usage", "thinkingMetadata", "todos", "isSidechain")
        return {**record, "message": inner, **{name: fields[name] for name in optional if name in fields}}

    def _fields(self, metadata: Fields) -> Fields:
        """The keys of a record apart from its ids, time and text."""
        cwd = metadata.get("cwd") or self._session["workspace"]
        context: Fields = {"cwd": cwd}
        if metadata.get("git_branch"):
            context["gitBranch"] = metadata["git_branch"]
        context["platform"] = metadata.get("platform") or platform_of(cwd)
        if metadata.get("user_type"):
            context["userType"] = metadata["user_type"]
        self._todos = metadata.get("todos", self._todos)
        fields: Fields = {"version": metadata.get("agent_version") or VERSION, "context": context}
        usage = metadata.get("token_usage") or {}
        if "input_tokens" in usage and "output_tokens" in usage:
            fields["usage"] = select_renamed(usage, _USAGE_KEYS)
        if metadata.get("thinking"):
            fields["thinkingMetadata"] = select_renamed(metadata["thinking"], _THINKING_KEYS)
        fields["todos"] = [select_renamed(todo, _TODO_KEYS) for todo in self._todos or []]
        fields["isSidechain"] = metadata.get("is_branch") is True
        return fields

    def _call(self, block: Fields) -> Fields:
        self._tool_names[block["tool_id"]] = block["tool_name"]
        return encode_call(block, "arguments")

    def _result(self, block: Fields) -> Fields:
        result: Fields = {} if block["tool_id"] is None else {"toolCallId": block["tool_id"]}
        name = block.get("tool_name") or self._tool_names.get(block["tool_id"]) or UNKNOWN
        return {
            **result,
            "toolName": name,
            "content": output_text(block.get("output")),
            "success": block.get("is_error") is not True,
        }

    def snapshot(self, record: Fields) -> Fields:
        """A snapshot for the file of snapshots."""
        usual = {"message_uuid": record.get("message_uuid"), "timestamp": self._time, "is_update": False}
        snapshot = {**usual, **record["snapshot"]}
        tracked, backups = (_file_map(snapshot["files"], keys) for keys in (_TRACKED_KEYS, _BACKUP_KEYS))
        return {
            "type": "file_history_snapshot",
            "messageId": snapshot["message_uuid"],
            "timestamp": snapshot["timestamp"],
            "isSnapshotUpdate": snapshot["is_update"],
            "snapshot": {"trackedFiles": tracked, "fileBackups": backups},
        }


def platform_of(cwd: str) -> str:
    """The operating system that a working folder looks like."""
    return "windows" if _WINDOWS.match(cwd) else "macos" if _MAC.match(cwd) else "linux"


def _file_map(files: Mapping[str, Fields], keys: Mapping[str, str]) -> Fields:
    """The files of a snapshot that have any of these fields."""
    found = {path: select_renamed(file, keys) for path, file in files.items()}
    return {path: file for path, file in found.items() if file}
