"""Writes rollouts that Codex itself lists and resumes: its own records under another id, or records composed anew."""

from __future__ import annotations

import re
import uuid
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping

from clew.agents.base import Header, Unit
from clew.agents.codex import locate
from clew.agents.codex.items import SPOKEN, is_injected, starts_turn
from clew.agents.derived_ids import derived_id
from clew.agents.encoding import (
    UNKNOWN,
    Fields,
    attachment_url,
    json_line,
    model_name,
    output_blocks,
    output_text,
    subagents_by_call,
)
from clew.io.codec import dumps
from clew.io.compress import plain_name
from clew.io.paths import safe_relative
from clew.model.json import JSON
from clew.model.time import EPOCH, parse_time, spell_milliseconds, to_milliseconds

VERSION = "0.118.0"
"""The newest version that writes rollouts of this form."""
ID_KEYS = ("id", "session_id", "thread_id", "threadId", "parent_thread_id", "forked_from_id")
"""The keys under which records name a thread."""
_NOT_IN_TOOL_NAMES = re.compile(r"[^A-Za-z0-9_-]")
_NOT_IN_AGENT_PATHS = re.compile(r"[^a-z0-9_]")


def target(header: Header) -> str:
    """Where the rollout belongs below a home folder: one of Codex's own goes back to where it was."""
    session = header.session
    safe_relative(str(session["id"]))
    name = header.recorded_path.name
    folders = str(session.get("workspace_encoded") or "").split("/")
    is_own = header.agent == locate.AGENT and folders[0] in (locate.SESSIONS, locate.ARCHIVED)
    if is_own and locate.is_rollout(name):
        name = plain_name(name)
        return "/".join([".codex", *(safe_relative(folder) for folder in folders), safe_relative(name)])
    started = parse_time(session.get("started_at")) or parse_time(header.export_timestamp) or EPOCH
    name = f"rollout-{started:%Y-%m-%dT%H-%M-%S}-{thread_id(session)}.jsonl"
    return f".codex/{locate.SESSIONS}/{started:%Y/%m/%d}/{safe_relative(name)}"


def thread_id(session: Mapping[str, JSON]) -> str:
    """The id of the thread, which must be a UUID: the session's own where it is one, else one derived from it."""
    name = str(session["id"])
    try:
        return str(uuid.UUID(name))
    except ValueError:
        return derived_id(locate.AGENT, name)


def encode(header: Header, units: Iterable[Unit]) -> Iterator[tuple[str, bytes]]:
    """The lines of a rollout.

    A unit with a native record gives that record; in Codex each record gives one unit. Other messages are composed;
    records of other agents have no place in a rollout.
    """
    copied, composed = _CopiedRecords(), _ComposedRecords(header.session)
    has_head = False
    for unit in units:
        if unit.native:
            has_head = True
            for line in copied.add(unit):
                yield "", line
        elif unit.is_message:
            if not has_head:
                has_head = True
                yield "", composed.head()
            for line in composed.message(unit.value):
                yield "", line
    if not has_head:
        yield "", composed.head()
    for line in copied.finish() if copied.has_lines else composed.finish():
        yield "", line


class _CopiedRecords:
    """Codex's own records.

    Where messages are left out, the copy holds one branch. Then the events of the other turns are left out as well, for
    they repeat what was said in them, and so are the rollbacks that would take away turns of this branch.
    """

    def __init__(self) -> None:
        self.has_lines = False
        self._last_index = 0
        """The index of the last message."""
        self._held: list[bytes] = []
        """A rollback and the records behind it, until it is known whether the message behind them is left out."""

    def add(self, unit: Unit) -> Iterator[bytes]:
        """The lines that are certain once this unit is known."""
        line = json_line(unit.native)
        self.has_lines = True
        if unit.is_message:
            index = unit.value["index"]
            yield from self._held if index == self._last_index + 1 else ()
            self._held, self._last_index = [], index
            yield line
        elif unit.value["after"] > self._last_index:
            self._held = []
        elif self._held or _is_rollback(unit.native):
            self._held.append(line)
        else:
            yield line

    def finish(self) -> Iterator[bytes]:
        """The lines at the end."""
        yield from self._held


def _is_rollback(record: Mapping[str, JSON]) -> bool:
    payload = record.get("payload")
    return isinstance(payload, dict) and payload.get("type") == "thread_rolled_back"


class _ComposedRecords:
    """Records for the messages of any agent, in the form that Codex resumes."""

    def __init__(self, session: Fields) -> None:
        self._session = session
        self._time = parse_time(session.get("started_at")) or EPOCH
        self._cwd = session.get("workspace") or "/"
        self._context: tuple[str, str] | None = None
        """Folder and model as the last `turn_context` states them."""
        self._turns = _Turns()
        self._summary: list[Fields] = []
        """The items of a summary, until all of it is known."""
        self._subagents = subagents_by_call(session)
        """The sub-agents without a record yet."""

    def head(self) -> bytes:
        """The first line, which tells Codex whose rollout it is.

        It names no provider of the model: Codex refuses a rollout that names another than the user's own.
        """
        session = self._session
        return self._line(
            "session_meta",
            {
                "id": thread_id(session),
                "timestamp": spell_milliseconds(self._time),
                "cwd": self._cwd,
                "originator": "clew",
                "cli_version": VERSION,
                **_lineage(session),
            },
        )

    def message(self, message: Fields) -> Iterator[bytes]:
        """The lines of one message."""
        metadata = message.get("metadata") or {}
        if metadata.get("is_sidechain") and not self._session.get("is_agent_session"):
            return
        self._time = parse_time(message.get("timestamp")) or self._time
        if metadata.get("is_compact_summary"):
            self._summary += _items(message)
            return
        yield from self._compaction()
        has_results = any(block["type"] == "tool_result" for block in message["content"])
        if message["role"] == "user" and not has_results:
            turns = self._turns.go_back(message.get("parent_uuid"))
            if turns:
                yield self._event("thread_rolled_back", {"num_turns": turns})
        if message["role"] != "system":
            yield from self._turn_context(metadata)
        yield from self._content(message, bool(metadata.get("is_meta")))
        self._turns.add(message.get("uuid"))

    def finish(self) -> Iterator[bytes]:
        """The summary that nothing follows, and the sub-agents whose call is not there."""
        yield from self._compaction()
        for call in list(self._subagents):
            yield from self._subagents_started(call)

    def _compaction(self) -> Iterator[bytes]:
        """The record by which Codex replaces all earlier items with a summary."""
        history, self._summary = self._summary, []
        if history:
            contents = [item["content"] for item in history if item["type"] == "message"]
            text = "\n\n".join(part["text"] for content in contents for part in content if "text" in part)
            yield self._line("compacted", {"message": text, "replacement_history": history})
            yield self._event("context_compacted", {})

    def _turn_context(self, metadata: Fields) -> Iterator[bytes]:
        """Folder and model from here on, where they changed and a model is known."""
        model = model_name(metadata) or (self._context[1] if self._context else None)
        context = (str(metadata.get("cwd") or self._cwd), str(model))
        if model is None or context == self._context:
            return
        self._context, self._cwd = context, context[0]
        yield self._line(
            "turn_context",
            {
                "cwd": context[0],
                "approval_policy": "on-request",
                "sandbox_policy": {"type": "read-only"},
                "model": context[1],
                "summary": "auto",
            },
        )

    def _content(self, message: Fields, is_meta: bool) -> Iterator[bytes]:
        """The lines of a message's items."""
        for item in _items(message):
            if item["type"] == "message":
                yield from self._spoken(item["content"], message["role"], is_meta)
            elif item["type"] == "reasoning" and not item["encrypted_content"]:
                # The provider takes back only reasoning that it encrypted itself; Codex shows other as an event.
                yield self._event("agent_reasoning", {"text": "".join(part["text"] for part in item["summary"])})
            else:
                yield self._line("response_item", item)
                if item["type"] == "function_call":
                    yield from self._subagents_started(item["call_id"])

    def _spoken(self, parts: list[Fields], role: str, is_meta: bool) -> Iterator[bytes]:
        """An item of texts and images, and the events that repeat it for user interfaces."""
        texts = [part["text"] for part in parts if "text" in part]
        text = "\n".join(texts)
        if role == "assistant":
            for part in parts:
                yield self._event("agent_message", {"message": part["text"]})
        item_role = "developer" if role == "system" else role
        yield self._line("response_item", {"type": "message", "role": item_role, "content": parts})
        # Codex writes no event for context that it injects: a reader would take it for a second message.
        has_event = role == "user" and not is_meta and not text.startswith(SPOKEN)
        if has_event:
            images = [part["image_url"] for part in parts if "image_url" in part]
            yield self._event("user_message", {"message": text, "images": images})
        if role == "user":
            self._turns.begin(_turns_begun(texts, has_event))

    def _subagents_started(self, call: str | None) -> Iterator[bytes]:
        """The events by which Codex knows the sub-agents that a call started."""
        for link in self._subagents.pop(call, ()):
            thread = thread_id({"id": link["session_id"]})
            yield self._event(
                "sub_agent_activity",
                {
                    "event_id": str(call or thread),
                    "occurred_at_ms": to_milliseconds(self._time),
                    "agent_thread_id": thread,
                    "agent_path": _agent_path(link.get("agent_id") or thread),
                    "kind": "started",
                },
            )

    def _event(self, kind: str, payload: Fields) -> bytes:
        return self._line("event_msg", {"type": kind, **payload})

    def _line(self, kind: str, payload: Fields) -> bytes:
        return json_line({"timestamp": spell_milliseconds(self._time), "type": kind, "payload": payload})


class _Turns:
    """The turns that were not rolled back, so that a message with an earlier parent can be written as a rollback."""

    def __init__(self) -> None:
        self._standing: list[int] = []
        """Their numbers, ascending."""
        self._turn_of: dict[str, int] = {}
        """By the id of a message."""
        self._count = 0

    def go_back(self, parent: JSON) -> int:
        """Go back to the turn of a message, if it still stands; returns how many turns are rolled back for it."""
        turn = self._turn_of.get(parent) if isinstance(parent, str) else None
        if turn is None:
            return 0
        at = bisect_left(self._standing, turn)
        if at == len(self._standing) or self._standing[at] != turn:
            return 0
        rolled_back = len(self._standing) - at - 1
        del self._standing[at + 1 :]
        return rolled_back

    def begin(self, count: int) -> None:
        """So many turns begin."""
        for _ in range(count):
            self._count += 1
            self._standing.append(self._count)

    def add(self, message_id: JSON) -> None:
        """A message of the last turn."""
        if isinstance(message_id, str) and self._standing:
            self._turn_of[message_id] = self._standing[-1]


def _turns_begun(texts: list[str], has_event: bool) -> int:
    """How many turns a reader sees begin with a user item of these texts, and with the event where there is one.

    Next to an item that looks injected, the event is a message of its own.
    """
    looks_injected = is_injected(texts)
    return (not looks_injected or starts_turn(texts)) + (looks_injected and has_event)


def _lineage(session: Mapping[str, JSON]) -> Fields:
    """Who started the session: a person, or another session."""
    parent = session.get("parent_session_id")
    if not session.get("is_agent_session") or not parent:
        return {"source": "cli"}
    name = session.get("agent_id")
    names = {"agent_path": _agent_path(str(name)), "agent_nickname": name, "agent_role": None}
    spawn = {"parent_thread_id": parent, "depth": 1, **names}
    return {"source": {"subagent": {"thread_spawn": spawn}}, "thread_source": "subagent", "parent_thread_id": parent}


def _agent_path(name: str) -> str:
    """The path of a sub-agent in the letters that Codex allows: its reader refuses the whole line for any other."""
    return "/".join(("", "root", _NOT_IN_AGENT_PATHS.sub("_", name.lower())))


def _items(message: Fields) -> list[Fields]:
    """The items of a message: texts and images that stand together are one, every other block is its own."""
    items: list[Fields] = []
    for block in message["content"]:
        if (item := _item(block)) is not None:
            items.append(item)
            continue
        if not items or items[-1]["type"] != "message":
            items.append({"type": "message", "role": message["role"], "content": []})
        items[-1]["content"] += _content_parts(block, message["role"])
    return items


def _item(block: Fields) -> Fields | None:
    """The item of a thought, a call or a result; None for texts and attachments."""
    match block["type"]:
        case "thinking":
            summary = [{"type": "summary_text", "text": block["thinking"]}] if block["thinking"] else []
            signature = block.get("signature")
            return {"type": "reasoning", "summary": summary, "content": None, "encrypted_content": signature}
        case "tool_use" if block["tool_id"] is None and block["tool_name"] == "web_search":
            # Codex's own searches of the web have neither an id nor a result.
            return {"type": "web_search_call", "status": "completed", "action": block["input"]}
        case "tool_use":
            name = _NOT_IN_TOOL_NAMES.sub("_", block["tool_name"] or UNKNOWN)
            arguments = block["input"] if isinstance(block["input"], str) else dumps(block["input"]).decode()
            call_id = str(block["tool_id"])
            return {"type": "function_call", "name": name, "arguments": arguments, "call_id": call_id}
        case "tool_result":
            output = tool_output(block.get("output"))
            return {"type": "function_call_output", "call_id": str(block["tool_id"]), "output": output}
    return None


def tool_output(output: JSON) -> JSON:
    """The result of a call: text, or parts where images are among them."""
    if not isinstance(output, list):
        return output_text(output)
    parts = [part for block in output_blocks(output) for part in _content_parts(block, "user")]
    if any("image_url" in part for part in parts):
        return parts
    return "\n".join(part["text"] for part in parts)


def _content_parts(block: Fields, role: str) -> list[Fields]:
    """A text or an attachment as part of a message; only a user's message and a result can hold images."""
    text_type = "output_text" if role == "assistant" else "input_text"
    if block["type"] == "text":
        return [{"type": text_type, "text": block["text"]}]
    if block["type"] == "image" and role == "user" and block.get("image"):
        return [{"type": "input_image", "image_url": attachment_url(block)}]
    return [{"type": text_type, "text": _placeholder(block)}]


def _placeholder(block: Fields) -> str:
    """A text for a block of a kind that Codex does not have."""
    if block["type"] == "document" and block.get("encoding") == "text":
        return str(block.get("document", ""))
    name = block.get("title") or block.get("media_type") or ""
    return f"[{block['type']}{f': {name}' if name else ''}]"
