"""Rollouts for the sessions of other agents, such as Codex itself lists and resumes."""

from __future__ import annotations

import re
import uuid
from bisect import bisect_left
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from clew.agents.base import Header
from clew.agents.codex import locate
from clew.agents.codex.injected_context import SPOKEN, is_injected, starts_turn
from clew.agents.codex.parts import data_address, spoken_type
from clew.agents.folding import Message, Step, derived_id
from clew.agents.jsonl import RecentCalls
from clew.io.codec import dumps
from clew.io.paths import safe_relative
from clew.model.json import JSON
from clew.model.time import parse_time

VERSION = "0.118.0"
"""The newest version that writes rollouts of this form."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NAME = re.compile(r"[^A-Za-z0-9_-]")
_OTHER_LETTERS = re.compile(r"[^a-z0-9_]")


def target(header: Header) -> str:
    """Where the rollout belongs below a home: its own sessions go back to where they were."""
    session = header.session
    safe_relative(str(session["id"]))
    named = Path(str((session.get("source") or {}).get("path", "")).replace("\\", "/")).name
    folders = str(session.get("workspace_encoded") or "").split("/")
    own = header.extensions.get(locate.AGENT) or {}
    if "orders" in own and locate.is_rollout(named) and folders[0] in (locate.SESSIONS, locate.ARCHIVED):
        name = named.removesuffix(".zst").removesuffix(".gz")
        return "/".join([".codex", *(safe_relative(folder) for folder in folders), safe_relative(name)])
    begun = parse_time(session.get("started_at")) or parse_time(header.export_timestamp) or _EPOCH
    name = f"rollout-{begun:%Y-%m-%dT%H-%M-%S}-{thread_id(session)}.jsonl"
    return f".codex/{locate.SESSIONS}/{begun:%Y/%m/%d}/{safe_relative(name)}"


def thread_id(session: dict[str, JSON]) -> str:
    """A thread's id must be a UUID: the session's own where it is one, else one made from it."""
    name = str(session["id"])
    try:
        return str(uuid.UUID(name))
    except ValueError:
        return derived_id(locate.AGENT, name)


def composed(header: Header, units: Iterator[Step]) -> Iterator[tuple[str, bytes]]:
    """The lines of a rollout; records of another agent have no place in it."""
    composer = _Composer(header)
    for line in composer.head():
        yield "", line
    for is_message, value in units:
        if is_message:
            for line in composer.message(value):
                yield "", line
    for line in composer.tail():
        yield "", line


class _Composer:
    def __init__(self, header: Header) -> None:
        self._session = header.session
        self._time = parse_time(header.session.get("started_at")) or _EPOCH
        self._cwd = header.session.get("workspace") or "/"
        self._told: tuple[str, str] | None = None
        self._turns = _Turns()
        links = [link for link in self._session.get("subagents") or () if link.get("session_id")]
        self._agents: dict[str | None, list[Message]] = {}
        """The sub-agents that are not told of yet, by the call that started them."""
        for link in links:
            self._agents.setdefault(link.get("tool_id"), []).append(link)

    def head(self) -> Iterator[bytes]:
        """The first line, which tells Codex whose rollout it is.

        It names no provider of the model: Codex refuses a rollout that names another than the user's own.
        """
        session = self._session
        yield self._line(
            "session_meta",
            {
                "id": thread_id(session),
                "timestamp": _spell(self._time),
                "cwd": self._cwd,
                "originator": "clew",
                "cli_version": VERSION,
                **_lineage(session),
            },
        )

    def message(self, message: Message) -> Iterator[bytes]:
        """The lines of one message."""
        metadata = message.get("metadata") or {}
        if metadata.get("is_sidechain") and not self._session.get("is_agent_session"):
            return
        self._time = parse_time(message.get("timestamp")) or self._time
        results = any(block["type"] == "tool_result" for block in message["content"])
        if message["role"] == "user" and not results:
            turns = self._turns.back(message.get("parent_uuid"))
            if turns:
                yield self._event("thread_rolled_back", {"num_turns": turns})
        if message["role"] != "system":
            yield from self._context(message, metadata)
        yield from self._blocks(message, bool(metadata.get("is_meta")))
        self._turns.add(message.get("uuid"))

    def _context(self, message: Message, metadata: Message) -> Iterator[bytes]:
        """What holds from here on: folder and model, once a model is known."""
        model = (metadata.get("model") or {}).get("name") or (self._told[1] if self._told else None)
        told = (str(metadata.get("cwd") or self._cwd), str(model))
        if model is None or told == self._told:
            return
        self._told, self._cwd = told, told[0]
        yield self._line(
            "turn_context",
            {
                "cwd": told[0],
                "approval_policy": "on-request",
                "sandbox_policy": {"type": "read-only"},
                "model": told[1],
                "summary": "auto",
            },
        )

    def _blocks(self, message: Message, is_meta: bool) -> Iterator[bytes]:
        said: list[Message] = []
        role = message["role"]
        for block in message["content"]:
            if block["type"] == "thinking" and not block.get("signature"):
                # The model takes back only what it has sealed itself; Codex shows the rest.
                yield self._event("agent_reasoning", {"text": block["thinking"]})
                continue
            item = self._item(block)
            if item is None:
                said += _words(block, role)
            else:
                yield from self._said(said, role, is_meta)
                said = []
                yield self._line("response_item", item)
                if block["type"] == "tool_use":
                    yield from self._started(block["tool_id"])
        yield from self._said(said, role, is_meta)

    def tail(self) -> Iterator[bytes]:
        """The sub-agents whose call is not there."""
        for call in list(self._agents):
            yield from self._started(call)

    def _started(self, call: str | None) -> Iterator[bytes]:
        """The events by which Codex knows the sub-agents that a call started."""
        for link in self._agents.pop(call, ()):
            thread = thread_id({"id": link["session_id"]})
            yield self._event(
                "sub_agent_activity",
                {
                    "event_id": str(call or thread),
                    "occurred_at_ms": int(self._time.timestamp() * 1000),
                    "agent_thread_id": thread,
                    "agent_path": _path_of(link.get("agent_id") or thread),
                    "kind": "started",
                },
            )

    def _said(self, said: list[Message], role: str, is_meta: bool) -> Iterator[bytes]:
        """Words and pictures, with the event that tells of them."""
        if not said:
            return
        texts = [word["text"] for word in said if "text" in word]
        text = "\n".join(texts)
        item = {"type": "message", "role": "developer" if role == "system" else role, "content": said}
        if role == "assistant":
            for word in said:
                yield self._event("agent_message", {"message": word["text"]})
        yield self._line("response_item", item)
        # Of what it puts in itself, Codex writes no event: both would count as words of their own.
        is_told = role == "user" and not is_meta and not text.startswith(SPOKEN)
        if is_told:
            pictures = [word["image_url"] for word in said if "image_url" in word]
            yield self._event("user_message", {"message": text, "images": pictures})
        if role == "user":
            self._turns.begin(_begun(texts, is_told))

    def _item(self, block: Message) -> Message | None:
        """The item of a thought, a call or a result; None for words."""
        match block["type"]:
            case "thinking":
                summary = [{"type": "summary_text", "text": block["thinking"]}] if block["thinking"] else []
                signature = block.get("signature")
                return {"type": "reasoning", "summary": summary, "content": None, "encrypted_content": signature}
            case "tool_use":
                name = _NAME.sub("_", block["tool_name"] or "unknown")
                arguments = dumps(block["input"]).decode() if not isinstance(block["input"], str) else block["input"]
                call = {"type": "function_call", "name": name, "arguments": arguments}
                return {**call, "call_id": str(block["tool_id"])}
            case "tool_result":
                return {
                    "type": "function_call_output",
                    "call_id": str(block["tool_id"]),
                    "output": output_of(block.get("output")),
                }
        return None

    def _event(self, kind: str, payload: Message) -> bytes:
        return self._line("event_msg", {"type": kind, **payload})

    def _line(self, kind: str, payload: Message) -> bytes:
        return dumps({"timestamp": _spell(self._time), "type": kind, "payload": payload}) + b"\n"


def _lineage(session: Message) -> Message:
    """Who started the session: a person, or another session."""
    parent = session.get("parent_session_id")
    if not session.get("is_agent_session") or not parent:
        return {"source": "cli"}
    name = session.get("agent_id")
    named = {"agent_path": _path_of(str(name)), "agent_nickname": name, "agent_role": None}
    spawn = {"parent_thread_id": parent, "depth": 1, **named}
    return {"source": {"subagent": {"thread_spawn": spawn}}, "thread_source": "subagent", "parent_thread_id": parent}


def _path_of(name: str) -> str:
    """The path of a sub-agent in the letters that Codex allows: its reader refuses the whole line for any other."""
    return "/".join(("", "root", _OTHER_LETTERS.sub("_", name.lower())))


class _Turns:
    """The turns that stand, so that going back to an earlier one can be told as Codex tells it."""

    def __init__(self) -> None:
        self._standing: list[int] = []
        self._turn_of = RecentCalls()
        self._begun = 0

    def back(self, parent: JSON) -> int:
        """Go back to the turn of `parent`, if it still stands; returns how many turns are left behind for it."""
        known = self._turn_of.get(parent) if isinstance(parent, str) else None
        if known is None:
            return 0
        turn = int(known)
        at = bisect_left(self._standing, turn)
        if at == len(self._standing) or self._standing[at] != turn:
            return 0
        left = len(self._standing) - at - 1
        del self._standing[at + 1 :]
        return left

    def begin(self, turns: int) -> None:
        """So many turns begin."""
        for _ in range(turns):
            self._begun += 1
            self._standing.append(self._begun)

    def add(self, name: JSON) -> None:
        """A message of the turn at hand."""
        if isinstance(name, str) and self._standing:
            self._turn_of[name] = str(self._standing[-1])


def _begun(texts: list[str], is_told: bool) -> int:
    """How many turns begin, for who reads it, with a user item of these texts, and with the event if it tells of them.

    Next to an item that looks put in, the event stands for itself.
    """
    is_put_in = is_injected(texts, None)
    return (not is_put_in or starts_turn(texts)) + (is_put_in and is_told)


def _words(block: Message, role: str) -> list[Message]:
    kind = block["type"]
    if kind == "text":
        return [{"type": spoken_type(role), "text": block["text"]}]
    if kind == "image" and role == "user" and (address := data_address(block, "image")):
        return [{"type": "input_image", "image_url": address}]
    return [{"type": spoken_type(role), "text": _stand_in(block)}]


def _stand_in(block: Message) -> str:
    """The words for what Codex has no block for."""
    if block["type"] == "document" and block.get("encoding") == "text":
        return str(block.get("document", ""))
    name = block.get("title") or block.get("media_type") or ""
    return f"[{block['type']}{f': {name}' if name else ''}]"


def output_of(output: JSON) -> JSON:
    """The result of a call: text, or blocks where there are pictures among it."""
    if output is None or isinstance(output, str):
        return output or ""
    if not isinstance(output, list):
        return dumps(output).decode()
    words = [word for block in output if isinstance(block, dict) for word in _words(block, "user")]
    if any("image_url" in word for word in words):
        return words
    return "\n".join(word["text"] for word in words)


def _spell(stamp: datetime) -> str:
    return stamp.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"
