"""Writes a demo session as Kimi Code 2.1 does: a description of the session, and a journal for each of its agents."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from datetime import datetime
from hashlib import sha256
from typing import NamedTuple

from clew.demo.records import Record, json_lines, json_text, milliseconds
from clew.demo.sessions import (
    Change,
    Command,
    Grep,
    Plan,
    Read,
    Session,
    Step,
    SubagentTask,
    Thought,
    TokenCounter,
    Turn,
)

ALIAS = "kimi-code/kimi-for-coding"
TODO_STATES = {"completed": "done"}


def kimi_code_files(session: Session) -> Iterator[tuple[str, bytes]]:
    """The files of a session below ~/.kimi-code, by path."""
    journal = _Journal(session, "main", session.started)
    for turn in session.turns:
        journal.write_turn(turn)
    session_id = f"session_{session.new_id()}"
    project = f"wd_{session.project}_{sha256(session.folder.encode()).hexdigest()[:12]}"
    folder = f"sessions/{project}/{session_id}"
    agents: Record = {"main": {"homedir": f"/home/ada/.kimi-code/{folder}/agents/main", "type": "main"}}
    for number, subagent in enumerate(journal.subagents):
        name = f"agent-{number}"
        home = f"/home/ada/.kimi-code/{folder}/agents/{name}"
        agents[name] = {"homedir": home, "type": "sub", "parentAgentId": "main"}
        yield f"{folder}/agents/{name}/wire.jsonl", json_lines(subagent.records)
    times = {"createdAt": milliseconds(session.started), "updatedAt": milliseconds(session.ended)}
    state = {"id": session_id, "version": 2, "cwd": session.folder, "archived": False, "agents": agents, "custom": {}}
    title = {"title": session.title, "isCustomTitle": True}
    yield f"{folder}/state.json", json_text({**state, **times, **title}).encode()
    yield f"{folder}/agents/main/wire.jsonl", json_lines(journal.records)


class _ToolCall(NamedTuple):
    name: str
    arguments: Record
    output: str


class _Journal:
    def __init__(self, session: Session, agent: str, started: datetime) -> None:
        self._session, self._agent = session, agent
        self._tokens = TokenCounter(session.random)
        self._turn, self._step = -1, 0
        self.subagents: list[_Journal] = []
        self.records: list[Record] = [
            {"type": "metadata", "protocol_version": "1.5", "created_at": milliseconds(started)}
        ]
        self._write(started, "profile.bind", modelAlias=ALIAS, profileName="agent", thinkingEffort="on")

    def write_turn(self, turn: Turn) -> None:
        self._turn, self._step = self._turn + 1, 0
        content: list[Record] = [{"type": "text", "text": turn.prompt}]
        if turn.picture is not None:
            data = base64.b64encode(turn.picture).decode()
            content.append({"type": "image_url", "imageUrl": {"url": f"data:image/png;base64,{data}"}})
        prompt_id, origin = self._session.new_id(), {"kind": "user"}
        if self._agent != "main":
            origin = {"kind": "system_trigger", "name": "subagent"}
        self._write(turn.asked, "turn.prompt", input=content, origin=origin, promptId=prompt_id, turnId=self._turn)
        message = {"role": "user", "content": content, "id": prompt_id, "toolCalls": [], "origin": origin}
        self._write(turn.asked, "context.append_message", message=message)
        thought: Thought | None = None
        for step in turn.steps:
            if isinstance(step.work, Thought):
                thought = step.work
                continue
            self._write_step(step.begun, step.remark, thought, step)
            thought = None
        assert turn.answer is not None, "only Claude Code has a running session"
        self._write_step(turn.answered, turn.answer, thought)
        self._write(turn.answered, "turn.ended", turnId=self._turn, reason="completed")
        if turn.is_rewound:
            self._write(turn.answered, "context.undo", count=1)

    def _write_step(self, time: datetime, text: str, thought: Thought | None, step: Step | None = None) -> None:
        """One request to the model, and the call that it asks for."""
        self._step += 1
        step_id = self._session.new_id()
        place: Record = {"turnId": str(self._turn), "step": self._step}
        call = self._tool_call(step) if step is not None else None
        new, cached, output = self._tokens.count_call(f"{text}{call}")
        usage = {"inputOther": new, "output": output, "inputCacheRead": cached, "inputCacheCreation": 0}
        self._write_event(time, "step.begin", uuid=step_id, **place)
        self._write(time, "llm.request", kind="loop", provider="kimi", model=self._session.model, modelAlias=ALIAS)
        self._write(time, "usage.record", model=ALIAS, usage=usage, usageScope="turn")
        parts: list[Record] = [{"type": "think", "think": thought.text}] if thought is not None else []
        parts += [{"type": "text", "text": text}] if text else []
        for part in parts:
            self._write_event(time, "content.part", uuid=self._session.new_id(), **place, stepUuid=step_id, part=part)
        if step is not None and call is not None:
            self._write_call(step, call, {**place, "stepUuid": step_id})
        done = step.done if step is not None else time
        reason = "end_turn" if call is None else "tool_use"
        self._write_event(done, "step.end", uuid=step_id, **place, finishReason=reason, usage=usage)

    def _write_call(self, step: Step, call: _ToolCall, place: Record) -> None:
        own_id, call_id = self._session.new_id(), f"call_{self._session.random.randbytes(10).hex()}"
        body: Record = {"uuid": own_id, **place, "toolCallId": call_id, "name": call.name, "args": call.arguments}
        self._write_event(step.begun, "tool.call", **body)
        if isinstance(step.work, SubagentTask):
            link = {"subagentId": f"agent-{len(self.subagents) - 1}", "subagentName": "explore"}
            self._write(step.begun, "subagent.spawned", **link, parentToolCallId=call_id, parentAgentId=self._agent)
        elif isinstance(step.work, Plan):
            self._write(step.done, "tools.update_store", key="todo", value=call.arguments["todos"])
        is_failure = isinstance(step.work, Command) and step.work.is_failure
        result: Record = {"output": call.output, **({"isError": True} if is_failure else {})}
        self._write_event(step.done, "tool.result", parentUuid=own_id, toolCallId=call_id, result=result)

    def _tool_call(self, step: Step) -> _ToolCall:
        work, folder = step.work, self._session.folder
        match work:
            case Command():
                return _ToolCall("Bash", {"command": work.command}, work.output)
            case Read():
                numbered = (f"{number}\t{line}" for number, line in enumerate(work.content.splitlines(), 1))
                return _ToolCall("Read", {"path": f"{folder}/{work.path}"}, "\n".join(numbered))
            case Grep():
                return _ToolCall("Grep", {"pattern": work.pattern, "path": folder}, work.output)
            case Plan():
                todos = [{"title": title, "status": TODO_STATES.get(state, state)} for title, state in work.items]
                return _ToolCall("TodoList", {"todos": todos}, "Todo list updated.")
            case SubagentTask():
                subagent = _Journal(self._session, f"agent-{len(self.subagents)}", step.begun)
                subagent.write_turn(Turn(work.prompt, step.begun, (), work.answer, step.done))
                self.subagents.append(subagent)
                arguments: Record = {"description": work.description, "prompt": work.prompt, "subagent_type": "explore"}
                return _ToolCall("Agent", arguments, f"status: completed\n\n[summary]\n{work.answer}")
        assert isinstance(work, Change)
        path = f"{folder}/{work.path}"
        if work.old is not None:
            edit: Record = {"path": path, "old_string": work.old, "new_string": work.new}
            return _ToolCall("Edit", edit, f"Replaced 1 occurrence in {path}")
        return _ToolCall("Write", {"path": path, "content": work.after}, f"Wrote {len(work.after)} bytes to {path}")

    def _write_event(self, time: datetime, kind: str, **event: object) -> None:
        self._write(time, "context.append_loop_event", event={"type": kind, **event})

    def _write(self, time: datetime, record_type: str, /, **body: object) -> None:
        self.records.append({"type": record_type, "agentId": self._agent, **body, "time": milliseconds(time)})
