"""Writes sessions that sage-emacs continues: its own records under another id, or records composed from messages.

Content becomes one string, and a result goes into the record of its call.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping

from clew.agents.base import Header, Unit
from clew.agents.encoding import Fields, joined_text, json_line, output_text, select_renamed
from clew.agents.sage_emacs import locate
from clew.agents.sage_emacs.metadata import describe
from clew.agents.sage_emacs.records import MESSAGES, TOOL
from clew.agents.sage_format import encode_call, replace_links
from clew.model.json import JSON

MAX_WAITING_MESSAGES = 64
"""How many messages wait for the results of their calls."""
MAX_MERGED_MESSAGES = 10_000
"""How many messages are remembered that were merged into others."""

_ID_KEYS = ("session_id", "sessionId")
_METADATA_KEYS = {"cwd": "cwd", "git_branch": "gitBranch", "agent_version": "version"}
_USAGE_KEYS = ("input_tokens", "output_tokens", "cache_read_tokens")


def encode(header: Header, units: Iterable[Unit]) -> Iterator[tuple[str, bytes]]:
    """The lines of a conversation or archive, and the metadata of a conversation; or one document."""
    target = locate.target(header)
    if locate.is_saved(target):
        yield "", _saved_document(header.session, units)
        return
    count = size = 0
    for record in _records(header.session, units):
        line = json_line(record)
        count, size = count + 1, size + len(line)
        yield "", line
    if not locate.is_archive(target):
        # The metadata describe the current conversation only.
        yield locate.METADATA, describe(header.session, count, size, {})


def _saved_document(session: Mapping[str, JSON], units: Iterable[Unit]) -> bytes:
    messages = [
        {key: item for key, item in record.items() if key not in _ID_KEYS} for record in _records(session, units)
    ]
    models = (record.get("model") for record in messages if record["role"] == "assistant")
    document: Fields = {
        "name": session.get("title"),
        "model": next((model for model in models if model), None),
        MESSAGES: messages,
        "created_at": session["started_at"],
        "updated_at": session["ended_at"] or session["started_at"],
        "message_count": len(messages),
        "workspace": session["workspace"],
    }
    return json.dumps({key: item for key, item in document.items() if item is not None}, indent=2).encode()


def _records(session: Mapping[str, JSON], units: Iterable[Unit]) -> Iterator[Fields]:
    """The records of a conversation: copied where they are sage-emacs' own, else composed from messages."""
    composed = _ComposedRecords(session)
    for unit in units:
        if unit.native:
            yield from composed.flush()
            if unit.start < unit.stop:
                record = dict(unit.native)
                if unit.is_message:
                    replace_links(record, unit.value)
                yield record
        elif unit.is_message:
            yield from composed.add(unit.value)
    yield from composed.flush()


class _ComposedRecords:
    """Records for the messages of any agent. A record with calls waits for their results."""

    def __init__(self, session: Mapping[str, JSON]) -> None:
        self._session_id = session["id"]
        self._waiting: list[Fields] = []
        self._merged: dict[str, str] = {}
        """By the uuid of a message without a record: the uuid of the record that replaces it; "" for none."""

    def flush(self) -> list[Fields]:
        """The records that wait, complete or not."""
        waiting, self._waiting = self._waiting, []
        return waiting

    def add(self, message: Fields) -> Iterator[Fields]:
        """Take the next message; gives the records that are complete."""
        blocks = message["content"]
        results = [block for block in blocks if block["type"] == "tool_result"]
        text = joined_text(blocks)
        calls = [encode_call(block, "args") for block in blocks if block["type"] == "tool_use"]
        strays = [result for result in results if not self._answer(result)]
        if not text and not calls:
            self._merge(message, bool(results) and not strays)
        for number, stray in enumerate(strays):
            yield from self.flush()
            yield self._stray_result(message, stray, number)
        if text or calls:
            if not calls:
                yield from self.flush()
            self._waiting.append(self._record(message, text, calls))
            if not calls or len(self._waiting) > MAX_WAITING_MESSAGES:
                yield from self.flush()

    def _answer(self, result: Fields) -> bool:
        """Put a result to its call, if that still waits."""
        for record in reversed(self._waiting):
            for call in record.get("tool_calls", ()):
                if call.get("id") == result["tool_id"] and "success" not in call:
                    call["result"] = output_text(result.get("output"))
                    call["success"] = result.get("is_error") is not True
                    return True
        return False

    def _merge(self, message: Fields, is_answer: bool) -> None:
        """Note which record replaces a message that has none of its own."""
        uuid = message.get("uuid")
        if uuid is not None:
            replacement = self._waiting[-1].get("uuid") if is_answer and self._waiting else self._parent(message)
            self._merged[uuid] = replacement or ""
            if len(self._merged) > MAX_MERGED_MESSAGES:
                del self._merged[next(iter(self._merged))]

    def _parent(self, message: Fields) -> str | None:
        parent: str | None = message.get("parent_uuid")
        return self._merged.get(parent, parent) or None if parent is not None else None

    def _record(self, message: Fields, text: str, calls: list[Fields]) -> Fields:
        record: Fields = {"role": message["role"], "content": text}
        record |= {name: message[name] for name in ("timestamp", "uuid") if name in message}
        record |= {"parentUuid": self._parent(message), "session_id": self._session_id}
        metadata = message.get("metadata") or {}
        record |= select_renamed(metadata, _METADATA_KEYS)
        if "name" in (model := metadata.get("model") or {}):
            record["model"] = model["name"]
        if calls:
            record["tool_calls"] = calls
        if "estimated_tokens" in metadata:
            record["tokens"] = {"estimated": metadata["estimated_tokens"]}
        usage = metadata.get("token_usage") or {}
        if counts := {name: usage[name] for name in _USAGE_KEYS if name in usage}:
            record["usage"] = counts
        return record

    def _stray_result(self, message: Fields, result: Fields, number: int) -> Fields:
        """A result whose call is not at hand, as a record of the role `tool`."""
        record: Fields = {"role": TOOL, "tool_call_id": result["tool_id"]}
        if result.get("tool_name"):
            record["name"] = result["tool_name"]
        record |= {"content": output_text(result.get("output")), "success": result.get("is_error") is not True}
        if message.get("timestamp") is not None:
            record["timestamp"] = message["timestamp"]
        record |= {"uuid": f"{message.get('uuid') or ''}:r{number}", "parentUuid": self._parent(message)}
        return {**record, "session_id": self._session_id}
