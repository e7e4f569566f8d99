"""Sessions as events that GitHub Copilot CLI lists and resumes: its own under another id, or composed anew."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Iterator, Mapping

from clew.agents.copilot_cli import locate
from clew.agents.derived_ids import derived_id
from clew.agents.target_profile import Header
from clew.io.codec import dumps
from clew.model.json import JSON
from clew.model.time import parse_time
from clew.model.unit import Unit

UNANSWERED = "no result was recorded"
"""The result of a call that has none."""
VERSION = "1.0.102"
"""The version whose events are written."""
_UNKNOWN_TIME = "1970-01-01T00:00:00.000Z"

NativeRecord = dict[str, JSON]


def encode(header: Header, units: Iterable[Unit]) -> Iterator[tuple[str, bytes]]:
    """The events of a session, and the file that describes its workspace."""
    session = header.session
    writer = _EventWriter(session)
    has_own = False
    for unit in units:
        if unit.native:
            has_own = True
            yield "", writer.copied(unit.native)
        elif unit.is_message:
            yield from (("", line) for line in writer.message(unit.value))
    if not has_own:
        yield from (("", line) for line in writer.finish())
    yield locate.WORKSPACE_FILE, _workspace(session)


def _workspace(session: Mapping[str, JSON]) -> bytes:
    """The description of the workspace. Texts are spelled as in JSON, which YAML reads as they are."""
    started = _spell_milliseconds(session.get("started_at"))
    ended = _spell_milliseconds(session.get("ended_at")) if session.get("ended_at") else started
    lines = {"id": session["id"], "cwd": _spell_text(session["workspace"])}
    if session.get("title"):
        lines |= {"name": _spell_text(session["title"]), "user_named": "true"}
    lines |= {"summary_count": "0", "fork_count": "0", "created_at": started, "updated_at": ended}
    return "".join(f"{name}: {value}\n" for name, value in lines.items()).encode()


def _spell_text(text: JSON) -> str:
    return dumps(str(text)).decode()


def _spell_milliseconds(time: JSON) -> str:
    stamp = parse_time(time)
    if stamp is None:
        return _UNKNOWN_TIME
    return stamp.strftime("%Y-%m-%dT%H:%M:%S.") + f"{stamp.microsecond // 1000:03}Z"


class _EventWriter:
    """Writes events, each of which names the one before it.

    Replies without a result between them are written as one: the providers of models refuse a call whose result does
    not follow.
    """

    def __init__(self, session: Mapping[str, JSON]) -> None:
        self._session = session
        self._last_id: str | None = None
        self._count = 0
        self._turns = 0
        self._is_turn_open = False
        self._time = _spell_milliseconds(session.get("started_at"))
        self._reply: NativeRecord | None = None
        """The reply that is not written yet."""
        self._open_calls: dict[str, NativeRecord] = {}
        self._written_assets: set[JSON] = set()
        self._summary: list[str] = []
        """The texts of a summary, until all of it is known."""

    def copied(self, record: Mapping[str, JSON]) -> bytes:
        """An event of the client itself, behind the event that was written last."""
        event = dict(record)
        if "parentId" in event:
            event["parentId"] = self._last_id
        if isinstance(event.get("id"), str):
            self._last_id = event["id"]
        return dumps(event) + b"\n"

    def message(self, message: NativeRecord) -> Iterator[bytes]:
        """The events that are complete, now that this message is there."""
        time = _spell_milliseconds(message["timestamp"]) if message.get("timestamp") is not None else self._time
        if not self._count:
            yield self._start()
        if (message.get("metadata") or {}).get("is_compact_summary"):
            yield from self._write_reply()
            yield from self._end_turn()
            self._time = time
            self._summary += [block["text"] for block in message["content"] if block["type"] == "text"]
            return
        yield from self._compaction()
        if message["role"] == "assistant":
            if not self._joins_reply(message):
                yield from self._write_reply()
                yield from self._end_turn()
            self._time = time
            self._add_to_reply(message)
            return
        yield from self._write_reply()
        self._time = time
        results = [block for block in message["content"] if block["type"] == "tool_result"]
        for block in results:
            yield from self._result(block)
        others = [block for block in message["content"] if block["type"] != "tool_result"]
        if others:
            yield from self._end_turn()
            yield from self._prompt(others, message.get("uuid"))

    def finish(self) -> Iterator[bytes]:
        """The events that were held back."""
        if not self._count:
            yield self._start()
        yield from self._write_reply()
        yield from self._end_turn()
        yield from self._compaction()

    def _compaction(self) -> Iterator[bytes]:
        """The event by which the client replaces all earlier messages with a summary."""
        texts, self._summary = self._summary, []
        if texts:
            yield self._event("session.compaction_complete", {"success": True, "summaryContent": "\n\n".join(texts)})

    def _event(self, kind: str, data: NativeRecord, event_id: JSON = None) -> bytes:
        self._count += 1
        name = event_id if isinstance(event_id, str) else derived_id(self._session["id"], "event", self._count)
        event = {"type": kind, "data": data, "id": name, "timestamp": self._time, "parentId": self._last_id}
        self._last_id = name
        return dumps(event) + b"\n"

    def _start(self) -> bytes:
        data = {
            "sessionId": self._session["id"],
            "version": 1,
            "producer": "clew",
            "copilotVersion": VERSION,
            "startTime": self._time,
            "context": {"cwd": self._session["workspace"]},
        }
        return self._event("session.start", data)

    def _prompt(self, blocks: list[NativeRecord], event_id: JSON) -> Iterator[bytes]:
        texts = [block["text"] for block in blocks if block["type"] == "text"]
        data: NativeRecord = {"content": "\n\n".join(texts)}
        images = [_Asset(block) for block in blocks if block["type"] == "image"]
        yield from self._assets(images)
        if images:
            data["attachments"] = [{"type": "blob", "displayName": "image", **image.reference} for image in images]
        yield self._event("user.message", data, event_id)

    def _assets(self, images: list[_Asset]) -> Iterator[bytes]:
        """The content of images, which messages refer to."""
        for image in images:
            if image.reference["assetId"] not in self._written_assets:
                self._written_assets.add(image.reference["assetId"])
                yield self._event("session.binary_asset", {"type": "image", **image.reference, "data": image.data})

    # Replies

    def _joins_reply(self, message: NativeRecord) -> bool:
        """Whether a reply goes on with the one before: it does unless both speak and no call waits for its result."""
        if self._reply is None:
            return False
        has_text = any(block["type"] == "text" for block in message["content"])
        return bool(self._reply["toolRequests"]) or not (has_text and self._reply["content"])

    def _add_to_reply(self, message: NativeRecord) -> None:
        if self._reply is None:
            self._reply = {"messageId": message.get("uuid"), "content": "", "toolRequests": []}
        reply, metadata = self._reply, message.get("metadata") or {}
        model = (metadata.get("model") or {}).get("name")
        if model:
            reply["model"] = model
        for block in message["content"]:
            if block["type"] == "text":
                reply["content"] = "\n\n".join(filter(None, (reply["content"], block["text"])))
            elif block["type"] == "thinking" and block["thinking"]:
                reply["reasoningText"] = "\n\n".join(filter(None, (reply.get("reasoningText"), block["thinking"])))
            elif block["type"] == "tool_use":
                arguments = block["input"] if isinstance(block["input"], dict) else {"input": block["input"]}
                call = {"toolCallId": block["tool_id"], "name": block["tool_name"], "arguments": arguments}
                reply["toolRequests"].append({**call, "type": "function"})

    def _write_reply(self) -> Iterator[bytes]:
        reply, self._reply = self._reply, None
        if reply is None:
            return
        turn = {"turnId": str(self._turns)}
        self._turns += 1
        self._is_turn_open = True
        yield self._event("assistant.turn_start", turn)
        reply["messageId"] = reply["messageId"] or derived_id(self._session["id"], "reply", self._turns)
        yield self._event("assistant.message", {**reply, **turn}, reply["messageId"])
        for call in reply["toolRequests"]:
            self._open_calls[call["toolCallId"]] = call
            data = {"toolCallId": call["toolCallId"], "toolName": call["name"], "arguments": call["arguments"]}
            yield self._event("tool.execution_start", {**data, **turn})

    def _end_turn(self) -> Iterator[bytes]:
        """End the last reply. The providers of models refuse calls without a result."""
        for call in list(self._open_calls):
            yield from self._result({"tool_id": call, "output": UNANSWERED, "is_error": True})
        if self._is_turn_open:
            self._is_turn_open = False
            yield self._event("assistant.turn_end", {"turnId": str(self._turns - 1)})

    def _result(self, block: NativeRecord) -> Iterator[bytes]:
        if self._open_calls.pop(block["tool_id"], None) is None:
            return
        text, images = _output(block.get("output"))
        data: NativeRecord = {"toolCallId": block["tool_id"], "turnId": str(self._turns - 1)}
        if block.get("is_error") is True:
            yield self._event(
                "tool.execution_complete", {**data, "success": False, "error": {"message": text, "code": "failure"}}
            )
            return
        result: NativeRecord = {"content": text}
        yield from self._assets(images)
        if images:
            result["binaryResultsForLlm"] = [{"type": "image", **image.reference} for image in images]
        yield self._event("tool.execution_complete", {**data, "success": True, "result": result})


class _Asset:
    """An image, and how events refer to it."""

    def __init__(self, block: NativeRecord) -> None:
        self.data = str(block.get("image") or "")
        try:
            content = base64.b64decode(self.data)
        except ValueError:
            content = self.data.encode()
        self.reference: NativeRecord = {
            "assetId": f"sha256:{hashlib.sha256(content).hexdigest()}",
            "mimeType": block.get("media_type"),
            "byteLength": len(content),
        }


def _output(output: JSON) -> tuple[str, list[_Asset]]:
    """The text of a result, and the pictures in it."""
    if isinstance(output, list):
        blocks = [block for block in output if isinstance(block, dict)]
        texts = [block["text"] for block in blocks if isinstance(block.get("text"), str)]
        return "\n".join(texts), [_Asset(block) for block in blocks if block.get("type") == "image"]
    if output is None or isinstance(output, str):
        return output or "", []
    return dumps(output).decode(), []
