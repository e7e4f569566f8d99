"""Records for the sessions of other agents, with every key the program's own reader demands."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from clew.agents.folding import Message, Step, derived_id
from clew.agents.jsonl import RecentCalls
from clew.agents.sage_agent.fold import unfold_message, unfold_snapshot
from clew.agents.sage_agent.locate import AGENT
from clew.agents.sage_agent.metadata import VERSION
from clew.io.codec import dumps
from clew.model.json import JSON

_WINDOWS, _MAC = re.compile(r"[A-Za-z]:|\\\\"), re.compile(r"/(?:Users|Volumes|private)/")


def composed(units: Iterator[Step], session: Mapping[str, JSON]) -> Iterator[Step]:
    """Messages and the snapshots that can be undone to; other records have no place here."""
    composer = _Composer(session)
    for is_message, value in units:
        if is_message:
            yield from ((True, unfold_message(message)) for message in composer.messages(value))
        elif _is_whole(value.get("snapshot")):
            yield False, composer.snapshot(value)


def _is_whole(snapshot: JSON) -> bool:
    """True when a snapshot says for each file what became of it."""
    files: dict[str, JSON] = (snapshot or {}).get("files") or {}
    return bool(files) and all("state" in file and "size" in file for file in files.values())


class _Composer:
    def __init__(self, session: Mapping[str, JSON]) -> None:
        self._session = session
        self._time = session.get("started_at")
        self._names = RecentCalls()
        self._todos: JSON = []
        """The list as it stands: every message tells it."""

    def messages(self, message: Message) -> Iterator[Message]:
        """One message, or two where results and words stand together."""
        blocks = message["content"]
        for call in (block for block in blocks if block["type"] == "tool_use"):
            self._names[call["tool_id"]] = call["tool_name"]
        results = [self._result(block) for block in blocks if block["type"] == "tool_result"]
        text = "\n\n".join(block["text"] for block in blocks if block["type"] == "text" and block["text"])
        calls = [_call(block) for block in blocks if block["type"] == "tool_use"]
        base = self._base(message)
        if results:
            answer = {**base, "content": [_text(""), *results], "extensions": _as_result()}
            if not text and not calls:
                yield answer
                return
            yield {**answer, "uuid": f"{base['uuid']}:r"}
            base["parent_uuid"] = f"{base['uuid']}:r"
        yield {**base, "content": [_text(text), *calls]}

    def _base(self, message: Message) -> Message:
        self._time = message.get("timestamp") or self._time
        return {
            "role": message["role"],
            "uuid": message.get("uuid") or derived_id(self._session["id"], message["index"]),
            "parent_uuid": message.get("parent_uuid"),
            "timestamp": self._time,
            "metadata": self._metadata(message.get("metadata") or {}),
        }

    def _metadata(self, metadata: Message) -> Message:
        cwd = metadata.get("cwd") or self._session["workspace"]
        usage = metadata.get("token_usage") or {}
        self._todos = metadata.get("todos", self._todos)
        kept = {name: metadata[name] for name in ("git_branch", "user_type", "thinking") if metadata.get(name)}
        if "input_tokens" in usage and "output_tokens" in usage:
            kept["token_usage"] = usage
        return {
            **kept,
            "cwd": cwd,
            "platform": metadata.get("platform") or platform_of(cwd),
            "agent_version": metadata.get("agent_version") or VERSION,
            "todos": self._todos or [],
            "is_branch": metadata.get("is_branch") is True,
        }

    def _result(self, block: Message) -> Message:
        name = block.get("tool_name") or self._names.get(block["tool_id"]) or "unknown"
        is_error = block.get("is_error") is True
        return {
            "type": "tool_result",
            "tool_id": block["tool_id"],
            "tool_name": name,
            "output": _output(block),
            "is_error": is_error,
        }

    def snapshot(self, record: Message) -> Message:
        """A snapshot for the file of snapshots."""
        usual = {"message_uuid": record.get("message_uuid"), "timestamp": self._time, "is_update": False}
        snapshot = {**usual, **record["snapshot"]}
        native = {"after": record["after"], "kind": "snapshot", "type": "file_history_snapshot", "snapshot": snapshot}
        return unfold_snapshot({**native, "extensions": {AGENT: {"part": 1}}})


def platform_of(cwd: str) -> str:
    """The system a working folder looks like."""
    return "windows" if _WINDOWS.match(cwd) else "macos" if _MAC.match(cwd) else "linux"


def _as_result() -> Message:
    return {AGENT: {"rest": {"type": "tool_result", "message": {"role": "tool"}}}}


def _text(text: str) -> Message:
    return {"type": "text", "text": text}


def _call(block: Message) -> Message:
    return {"type": "tool_use", "tool_id": block["tool_id"], "tool_name": block["tool_name"], "input": block["input"]}


def _output(result: Message) -> str:
    output: JSON = result.get("output")
    if isinstance(output, str) or output is None:
        return output or ""
    if isinstance(output, list):
        texts = [block.get("text") for block in output if isinstance(block, dict)]
        return "\n".join(text for text in texts if isinstance(text, str))
    return dumps(output).decode()
