"""Writes sessions that Kimi Code itself resumes: its own records under another id, or records composed anew."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain

from clew.agents.base import Header, Unit
from clew.agents.derived_ids import derived_id
from clew.agents.encoding import (
    UNKNOWN,
    Fields,
    attachment_url,
    call_arguments,
    json_line,
    model_name,
    output_blocks,
    output_text,
    select_renamed,
    subagents_by_call,
)
from clew.agents.kimi_code import locate
from clew.agents.kimi_code.events import TODO_STATES
from clew.io.codec import dumps
from clew.io.paths import safe_relative
from clew.model.json import JSON
from clew.model.time import milliseconds

PROTOCOL_VERSION = "1.5"
ID_KEYS = ("id", "sessionId")
"""The keys under which records name their session."""
OWN_TODO_STATES = {common: own for own, common in TODO_STATES.items()}
_USAGE = {
    "input_tokens": "inputOther",
    "output_tokens": "output",
    "cache_read_tokens": "inputCacheRead",
    "cache_creation_tokens": "inputCacheCreation",
}
_NOT_IN_SLUGS = re.compile(r"[^a-z0-9._-]+")
_MAX_SLUG_CHARS = 40
_HASH_CHARS = 12


def target(header: Header) -> str:
    """Where the main file of the session belongs below a home folder."""
    session = header.session
    folder = f".kimi-code/sessions/{project_folder(session)}"
    agent, _, parent = str(session["id"]).partition(".")
    if session.get("is_agent_session"):
        parent = str(session.get("parent_session_id") or parent).rpartition(".")[2]
        return f"{folder}/{safe_relative(parent)}/{locate.AGENTS}/{safe_relative(agent)}/{locate.WIRE}"
    return f"{folder}/{safe_relative(str(session['id']))}/{locate.STATE}"


def project_folder(session: Mapping[str, JSON]) -> str:
    """The name of the folder for the sessions of a project: the recorded one, else as the client makes it."""
    return safe_relative(session.get("workspace_encoded") or folder_name(str(session["workspace"])))


def folder_name(workspace: str) -> str:
    """The name that the client gives to the folder for the sessions of a project."""
    path = workspace.replace("\\", "/").rstrip("/")
    slug = _NOT_IN_SLUGS.sub("-", path.rpartition("/")[2].lower()).strip("-")[:_MAX_SLUG_CHARS].strip("-")
    slug = "workspace" if slug in ("", ".", "..") else slug
    return f"wd_{slug}_{hashlib.sha256(path.encode()).hexdigest()[:_HASH_CHARS]}"


# Records


def encode(header: Header, units: Iterable[Unit]) -> Iterator[tuple[str, bytes]]:
    """The journal of the session, and `state.json` of a session that a person started.

    The client finds what it shows by how lines begin: they have no spaces between their values.
    """
    session = header.session
    is_subagent = bool(session.get("is_agent_session"))
    journal = "" if is_subagent else locate.MAIN_WIRE
    composer = _Composer(session)
    state: Mapping[str, JSON] | None = None
    has_records = False
    for unit in units:
        if _is_state(unit):
            state = unit.native
            continue
        if not unit.native and not has_records:
            yield journal, json_line(composer.head())
        has_records = True
        for record in _copied(unit) if unit.native else composer.add(unit):
            yield journal, json_line(record)
    if not has_records:
        yield journal, json_line(composer.head())
    for record in composer.end_step():
        yield journal, json_line(record)
    if not is_subagent:
        yield "", dumps({**state, "id": session["id"]} if state is not None else _state(session))


def _is_state(unit: Unit) -> bool:
    return not unit.is_message and unit.value.get("type") == locate.STATE_TYPE and "agents" in unit.native


def _copied(unit: Unit) -> Iterator[Mapping[str, JSON]]:
    """The client's own record. Those that repeat messages are left out, since some messages may be."""
    if unit.start != unit.stop and unit.value.get("kind") != "copy":
        yield unit.native


def _state(session: Mapping[str, JSON]) -> Fields:
    """`state.json` for a composed session. The client goes by where the journals lie, not by `homedir`."""
    agents: Fields = {locate.MAIN: {"homedir": f"{locate.AGENTS}/{locate.MAIN}", "type": "main"}}
    for link in chain.from_iterable(subagents_by_call(session).values()):
        agent = _agent_of(link["session_id"])
        agents[agent] = {"homedir": f"{locate.AGENTS}/{agent}", "type": "sub", "parentAgentId": locate.MAIN}
    started = milliseconds(session.get("started_at")) or 0
    state: Fields = {
        "id": session["id"],
        "version": 2,
        "cwd": session["workspace"],
        "archived": False,
        "agents": agents,
        "custom": {},
        "createdAt": started,
        "updatedAt": milliseconds(session.get("ended_at")) or started,
        "isCustomTitle": bool(session.get("title")),
    }
    return {**state, "title": session["title"]} if session.get("title") else state


def _agent_of(session_id: JSON) -> str:
    """The name of a sub-agent, which its session id begins with."""
    return str(session_id).partition(".")[0]


class _Composer:
    """Composes the records of a journal from messages.

    What the model says up to the next message of another author is one step.
    """

    def __init__(self, session: Mapping[str, JSON]) -> None:
        self._session = session
        self._agent = _agent_of(session["id"]) if session.get("is_agent_session") else locate.MAIN
        self._time = milliseconds(session.get("started_at")) or 0
        self._turn, self._step, self._step_id = -1, 0, ""
        self._is_open = self._has_calls = self._has_results = False
        """The step has begun; the model made calls in it; some were answered."""
        self._usage: JSON = None
        self._model: JSON = None
        self._call_ids: dict[JSON, str] = {}
        """The ids of the messages that made calls, by the ids of the calls."""
        self._context: list[tuple[JSON, bool]] = []
        """The ids of the messages that were not undone, and whether they are prompts."""
        self._subagents = subagents_by_call(session)

    def head(self) -> Fields:
        """The first record. The client binds a profile and the person's model to a journal that has none."""
        return {"type": "metadata", "protocol_version": PROTOCOL_VERSION, "created_at": self._time}

    def add(self, unit: Unit) -> Iterator[Fields]:
        """The records of a message, or of an undo."""
        value = unit.value
        if not unit.is_message:
            if value["kind"] == "rewind":
                yield from self._undo(value)
            return
        self._time = milliseconds(value.get("timestamp")) or self._time
        metadata = value.get("metadata") or {}
        uuid = str(value.get("uuid") or derived_id(self._session["id"], value["index"]))
        results = [block for block in value["content"] if block["type"] == "tool_result"]
        rest = [block for block in value["content"] if block["type"] != "tool_result"]
        if metadata.get("todos") is not None:
            yield self._record("tools.update_store", key="todo", value=[_todo(todo) for todo in metadata["todos"]])
        for result in results:
            yield self._result(result)
        if value["role"] == "assistant":
            yield from self._reply(uuid, rest, metadata)
        elif rest:
            yield from self._words(uuid, value["role"], rest, metadata)
        is_prompt = value["role"] == "user" and bool(rest) and not metadata.get("is_meta")
        self._context.append((value.get("uuid"), is_prompt))

    def end_step(self) -> Iterator[Fields]:
        """The end of the step that is under way."""
        if self._is_open:
            self._is_open = False
            reason = "tool_use" if self._has_calls else "end_turn"
            usage = {} if self._usage is None else {"usage": self._usage}
            yield self._event("step.end", uuid=self._step_id, **self._place(), finishReason=reason, **usage)

    def _words(
        self, uuid: str, role: str, blocks: list[Mapping[str, JSON]], metadata: Mapping[str, JSON]
    ) -> Iterator[Fields]:
        """Words of a person, or of an agent to its model."""
        yield from self.end_step()
        content = [part for block in blocks for part in _parts(block)]
        origin: Fields = {"kind": "user"}
        if metadata.get("is_compact_summary"):
            origin = {"kind": "compaction_summary"}
        elif metadata.get("is_meta") or role == "system":
            origin = {"kind": "injection", "variant": "converted"}
        else:
            self._turn, self._step = self._turn + 1, 0
            yield self._record("turn.prompt", input=content, origin=origin, promptId=uuid, turnId=self._turn)
        message = {"role": "user", "content": content, "id": uuid, "toolCalls": [], "origin": origin}
        yield self._record("context.append_message", message=message)

    def _reply(self, uuid: str, blocks: list[Mapping[str, JSON]], metadata: Mapping[str, JSON]) -> Iterator[Fields]:
        if self._is_open and self._has_results:
            yield from self.end_step()
        if not self._is_open:
            self._turn, self._step, self._is_open = max(self._turn, 0), self._step + 1, True
            self._has_calls = self._has_results = False
            self._step_id, self._usage = str(metadata.get("message_id") or derived_id(uuid, "step")), None
            yield self._event("step.begin", uuid=self._step_id, **self._place())
            yield from self._request(model_name(metadata))
        self._usage = self._usage or _usage(metadata.get("token_usage") or {})
        for number, block in enumerate(blocks):
            own_id = uuid if number == 0 else derived_id(uuid, number)
            if block["type"] == "tool_use":
                yield self._call(own_id, block)
                yield from self._started(block["tool_id"])
            else:
                for part in _parts(block):
                    yield self._event("content.part", uuid=own_id, **self._place(), stepUuid=self._step_id, part=part)

    def _request(self, model: JSON) -> Iterator[Fields]:
        """The request that names the model from here on."""
        if model and model != self._model:
            self._model = model
            hashes = {"toolSelect": False, "systemPromptHash": "", "toolsHash": "", "messageCount": len(self._context)}
            yield self._record("llm.request", kind="loop", provider="", model=model, **hashes)

    def _call(self, uuid: str, block: Mapping[str, JSON]) -> Fields:
        self._has_calls = True
        self._call_ids[block["tool_id"]] = uuid
        return self._event(
            "tool.call",
            uuid=uuid,
            **self._place(),
            stepUuid=self._step_id,
            toolCallId=str(block["tool_id"]),
            name=block["tool_name"] or UNKNOWN,
            args=call_arguments(block),
        )

    def _result(self, block: Mapping[str, JSON]) -> Fields:
        self._has_results = True
        result: Fields = {"output": _output(block.get("output"))}
        if block.get("is_error"):
            result["isError"] = True
        call = block["tool_id"]
        parent = self._call_ids.get(call, str(call))
        return self._event("tool.result", parentUuid=parent, toolCallId=str(call), result=result)

    def _started(self, call: JSON) -> Iterator[Fields]:
        """The sub-agents that a call started."""
        for link in self._subagents.pop(call, ()):
            yield self._record(
                "subagent.spawned",
                subagentId=_agent_of(link["session_id"]),
                subagentName="coder",
                parentToolCallId=str(call),
                parentAgentId=self._agent,
                runInBackground=False,
            )

    def _undo(self, record: Mapping[str, JSON]) -> Iterator[Fields]:
        """An undo of the prompts behind a message."""
        leaf = record.get("message_uuid")
        at = next((at for at, (uuid, _) in enumerate(self._context) if uuid == leaf), -1) + 1 if leaf else 0
        count = sum(is_prompt for _, is_prompt in self._context[at:])
        if count:
            yield from self.end_step()
            yield self._record("context.undo", count=count)
            del self._context[at:]

    def _place(self) -> Fields:
        return {"turnId": str(max(self._turn, 0)), "step": self._step}

    def _event(self, kind: str, **fields: JSON) -> Fields:
        return self._record("context.append_loop_event", event={"type": kind, **fields})

    def _record(self, record_type: str, /, **fields: JSON) -> Fields:
        return {"type": record_type, "agentId": self._agent, **fields, "time": self._time}


def _usage(usage: Mapping[str, JSON]) -> JSON:
    has_counts = "input_tokens" in usage or "output_tokens" in usage
    return dict.fromkeys(_USAGE.values(), 0) | select_renamed(usage, _USAGE) if has_counts else None


def _todo(todo: Mapping[str, JSON]) -> Fields:
    status = todo.get("status")
    return {"title": todo.get("content") or "", "status": OWN_TODO_STATES.get(str(status), status)}


def _parts(block: Mapping[str, JSON]) -> Iterator[Fields]:
    """A block as the client has it."""
    match block["type"]:
        case "text":
            yield {"type": "text", "text": block["text"]}
        case "thinking":
            signature = {"encrypted": block["signature"]} if block.get("signature") else {}
            yield {"type": "think", "think": block["thinking"], **signature}
        case "image" if isinstance(block.get("image"), str):
            yield {"type": "image_url", "imageUrl": {"url": attachment_url(block)}}
        case "unknown":
            yield block["value"]
        case kind:
            yield {"type": "text", "text": f"[{kind}]"}


def _output(output: JSON) -> JSON:
    """The result of a call: a text, or parts."""
    if not isinstance(output, list):
        return output_text(output)
    return [part for block in output_blocks(output) for part in _parts(block)]
