"""Encode sessions as events: copied records of its own sessions, or composed ones."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Iterator, Mapping

from clew.agents.copilot_cli import locate
from clew.agents.derived_ids import derived_id
from clew.agents.encoding import (
    NO_RESULT,
    ApiMessage,
    ApiOrder,
    Fields,
    call_arguments,
    joined_text,
    json_line,
    model_name,
    output_blocks,
    text_or_image,
)
from clew.agents.target_profile import Header
from clew.io.codec import dumps
from clew.model.json import JSON
from clew.model.time import spell_milliseconds
from clew.model.unit import Unit

VERSION = "1.0.102"
"""The version whose events are written."""


def encode(header: Header, units: Iterable[Unit]) -> Iterator[tuple[str, bytes]]:
    """The events of a session, and the file that describes its workspace."""
    session = header.session
    writer = _EventWriter(session)
    for unit in units:
        if unit.native:
            yield from (("", line) for line in writer.copied(unit.native))
        elif unit.is_message:
            yield from (("", line) for line in writer.message(unit.value))
    yield from (("", line) for line in writer.finish())
    yield locate.WORKSPACE_FILE, _workspace(session)


def _workspace(session: Mapping[str, JSON]) -> bytes:
    """The description of the workspace. Texts are JSON string literals, which are valid YAML."""
    started = spell_milliseconds(session.get("started_at"))
    ended = spell_milliseconds(session.get("ended_at")) if session.get("ended_at") else started
    lines = {"id": session["id"], "cwd": _spell_text(session["workspace"])}
    if session.get("title"):
        lines |= {"name": _spell_text(session["title"]), "user_named": "true"}
    lines |= {"summary_count": "0", "fork_count": "0", "created_at": started, "updated_at": ended}
    return "".join(f"{name}: {value}\n" for name, value in lines.items()).encode()


def _spell_text(text: JSON) -> str:
    return dumps(str(text)).decode()


class _EventWriter:
    """Writes events, each of which names the one before it."""

    def __init__(self, session: Mapping[str, JSON]) -> None:
        self._session = session
        self._order = ApiOrder(session, NO_RESULT, splits_texts=True)
        self._last_id: str | None = None
        self._count = 0
        self._has_started = False
        self._turns = 0
        self._is_turn_open = False
        self._time = spell_milliseconds(session.get("started_at"))
        self._written_assets: set[JSON] = set()
        self._summary: list[str] = []
        """The texts of a summary, until all of it is known."""

    def copied(self, record: Mapping[str, JSON]) -> Iterator[bytes]:
        """An event of the client itself, behind the events that were held back."""
        yield from self._end_messages()
        yield from self._compaction()
        self._has_started = True
        event = dict(record)
        if "parentId" in event:
            event["parentId"] = self._last_id
        if isinstance(event.get("id"), str):
            self._last_id = event["id"]
        yield json_line(event)

    def message(self, message: Fields) -> Iterator[bytes]:
        """The events that are complete, now that this message is there."""
        yield from self._start()
        if (message.get("metadata") or {}).get("is_compact_summary"):
            yield from self._end_messages()
            self._time = spell_milliseconds(message.get("timestamp") or self._time)
            self._summary += [block["text"] for block in message["content"] if block["type"] == "text"]
            return
        yield from self._compaction()
        for each in self._order.add(message):
            yield from self._message(each)

    def finish(self) -> Iterator[bytes]:
        """The events that were held back."""
        yield from self._start()
        yield from self._end_messages()
        yield from self._compaction()

    def _end_messages(self) -> Iterator[bytes]:
        for message in self._order.finish():
            yield from self._message(message)
        yield from self._end_turn()

    def _compaction(self) -> Iterator[bytes]:
        """The event by which the client replaces all earlier messages with a summary."""
        texts, self._summary = self._summary, []
        if texts:
            yield self._event("session.compaction_complete", {"success": True, "summaryContent": "\n\n".join(texts)})

    def _event(self, kind: str, data: Fields, event_id: JSON = None) -> bytes:
        self._count += 1
        name = event_id if isinstance(event_id, str) else derived_id(self._session["id"], "event", self._count)
        event = {"type": kind, "data": data, "id": name, "timestamp": self._time, "parentId": self._last_id}
        self._last_id = name
        return json_line(event)

    def _start(self) -> Iterator[bytes]:
        if self._has_started:
            return
        self._has_started = True
        data = {
            "sessionId": self._session["id"],
            "version": 1,
            "producer": "clew",
            "copilotVersion": VERSION,
            "startTime": self._time,
            "context": {"cwd": self._session["workspace"]},
        }
        yield self._event("session.start", data)

    def _message(self, message: ApiMessage) -> Iterator[bytes]:
        if message.role == "assistant":
            yield from self._end_turn()
            self._time = spell_milliseconds(message.end_time)
            yield from self._reply(message)
            return
        self._time = spell_milliseconds(message.time)
        if message.role == "tool":
            yield from self._result(message.content[0])
        else:
            yield from self._end_turn()
            yield from self._prompt(message)

    def _prompt(self, message: ApiMessage) -> Iterator[bytes]:
        parts = _parts(message.content)
        data: Fields = {"content": joined_text(parts)}
        images = [_Asset(part) for part in parts if part["type"] == "image"]
        yield from self._assets(images)
        if images:
            data["attachments"] = [{"type": "blob", "displayName": "image", **image.reference} for image in images]
        yield self._event("user.message", data, message.uuid)

    def _assets(self, images: list[_Asset]) -> Iterator[bytes]:
        """The content of images, which messages refer to."""
        for image in images:
            if image.reference["assetId"] not in self._written_assets:
                self._written_assets.add(image.reference["assetId"])
                yield self._event("session.binary_asset", {"type": "image", **image.reference, "data": image.data})

    def _reply(self, message: ApiMessage) -> Iterator[bytes]:
        """A reply begins a turn, which ends behind the results of its calls."""
        turn = {"turnId": str(self._turns)}
        self._turns += 1
        self._is_turn_open = True
        yield self._event("assistant.turn_start", turn)
        thoughts = [block["thinking"] for block in message.content if block["type"] == "thinking"]
        calls = [
            {"toolCallId": block["tool_id"], "name": block["tool_name"], "arguments": call_arguments(block)}
            for block in message.content
            if block["type"] == "tool_use"
        ]
        reply: Fields = {"messageId": message.uuid, "content": joined_text(message.content)}
        reply["toolRequests"] = [{**call, "type": "function"} for call in calls]
        if model := model_name(message.metadata):
            reply["model"] = model
        if any(thoughts):
            reply["reasoningText"] = "\n\n".join(filter(None, thoughts))
        yield self._event("assistant.message", {**reply, **turn}, message.uuid)
        for call in calls:
            data = {"toolCallId": call["toolCallId"], "toolName": call["name"], "arguments": call["arguments"]}
            yield self._event("tool.execution_start", {**data, **turn})

    def _end_turn(self) -> Iterator[bytes]:
        if self._is_turn_open:
            self._is_turn_open = False
            yield self._event("assistant.turn_end", {"turnId": str(self._turns - 1)})

    def _result(self, block: Fields) -> Iterator[bytes]:
        parts = _parts(output_blocks(block.get("output")))
        text = "\n".join(part["text"] for part in parts if part["type"] == "text")
        data: Fields = {"toolCallId": block["tool_id"], "turnId": str(self._turns - 1)}
        if block.get("is_error") is True:
            data |= {"success": False, "error": {"message": text, "code": "failure"}}
            yield self._event("tool.execution_complete", data)
            return
        result: Fields = {"content": text}
        images = [_Asset(part) for part in parts if part["type"] == "image"]
        yield from self._assets(images)
        if images:
            result["binaryResultsForLlm"] = [{"type": "image", **image.reference} for image in images]
        yield self._event("tool.execution_complete", {**data, "success": True, "result": result})


def _parts(blocks: Iterable[Fields]) -> list[Fields]:
    return [part for block in blocks if (part := text_or_image(block)) is not None]


class _Asset:
    """An image with its bytes, and how events refer to it."""

    def __init__(self, part: Fields) -> None:
        self.data = str(part["data"])
        try:
            content = base64.b64decode(self.data)
        except ValueError:
            content = self.data.encode()
        self.reference: Fields = {
            "assetId": f"sha256:{hashlib.sha256(content).hexdigest()}",
            "mimeType": part["mimeType"],
            "byteLength": len(content),
        }
