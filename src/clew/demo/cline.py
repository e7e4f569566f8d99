"""Writes a demo session as Cline 3 does: a description of the session, its messages, and those of its sub-agents."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from datetime import datetime

from clew.demo.records import Record, indented_json, json_text, milliseconds, timestamp
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
    unified_diff,
)

VERSION, PROVIDER = "3.0.65", "anthropic"


def cline_files(session: Session) -> Iterator[tuple[str, bytes]]:
    """The files of a session below ~/.cline, by path."""
    session_id = _new_id(session, session.started)
    folder = f"data/sessions/{session_id}"
    conversation = _Conversation(session)
    for turn in session.turns:
        conversation.write_turn(turn)
    origin: Record = {"source": "cli", "mode": "user", "sessionId": session_id, "version": VERSION}
    yield f"{folder}/{session_id}.messages.json", _document("lead", session.ended, origin, conversation.messages)
    for name, (subagent, ended) in conversation.subagents.items():
        nested_id = f"{session_id}__{name}"
        link = {"mode": "subagent", "sessionId": nested_id, "parentThreadId": session_id, "subagent": name}
        yield f"{folder}/{name}.messages.json", _document("subagent", ended, {**origin, **link}, subagent.messages)
    yield f"{folder}/{session_id}.json", indented_json(_manifest(session, session_id, f"/home/ada/.cline/{folder}"))


def _new_id(session: Session, time: datetime) -> str:
    return f"{milliseconds(time)}_{session.random.randbytes(3).hex()[:5]}"


def _document(agent: str, updated: datetime, origin: Record, messages: list[Record]) -> bytes:
    head: Record = {"version": 1, "updated_at": timestamp(updated), "agent": agent, "sessionId": origin["sessionId"]}
    return indented_json({**head, "origin": origin, "messages": messages})


def _manifest(session: Session, session_id: str, folder: str) -> Record:
    origin = {"mode": "user", "version": VERSION}
    return {
        "version": 1,
        "session_id": session_id,
        "source": "cli",
        "pid": session.random.randrange(2_000, 60_000),
        "started_at": timestamp(session.started),
        "ended_at": timestamp(session.ended),
        "exit_code": 0,
        "status": "completed",
        "interactive": True,
        "provider": PROVIDER,
        "model": session.model,
        "cwd": session.folder,
        "workspace_root": session.folder,
        "enable_tools": True,
        "enable_spawn": True,
        "enable_teams": False,
        "prompt": session.turns[-1].prompt,
        "metadata": {"sessionHistoryOrigin": origin, "git": {"branch": session.branch}, "title": session.title},
        "messages_path": f"{folder}/{session_id}.messages.json",
    }


class _Conversation:
    """The messages of a session, or of a sub-agent."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._tokens = TokenCounter(session.random)
        self.messages: list[Record] = []
        self.subagents: dict[str, tuple[_Conversation, datetime]] = {}

    def write_turn(self, turn: Turn, *, is_subagent: bool = False) -> None:
        prompt = turn.prompt if is_subagent else f'<user_input mode="act">{turn.prompt}</user_input>'
        content: list[Record] = [{"type": "text", "text": prompt}]
        if turn.picture is not None:
            data = base64.b64encode(turn.picture).decode()
            content.append({"type": "image", "data": data, "mediaType": "image/png"})
        self._write("user", turn.asked, content)
        thoughts: list[Record] = []
        for step in turn.steps:
            if isinstance(step.work, Thought):
                thoughts = [{"type": "thinking", "thinking": step.work.text, "signature": "demo"}]
                continue
            self._write_call(step, thoughts)
            thoughts = []
        assert turn.answer is not None, "only Claude Code has a running session"
        self._write_reply(turn.answered, [*thoughts, {"type": "text", "text": turn.answer}])

    def _write(self, role: str, time: datetime, content: list[Record], **fields: object) -> None:
        message: Record = {"id": self._session.new_id(), "role": role, "content": content, "ts": milliseconds(time)}
        self.messages.append({**message, **fields})

    def _write_reply(self, time: datetime, content: list[Record]) -> None:
        new, cached, output = self._tokens.count_call(json_text(content))
        metrics = {"inputTokens": new + cached, "outputTokens": output, "cacheReadTokens": cached}
        model = {"id": self._session.model, "provider": PROVIDER}
        self._write("assistant", time, content, modelInfo=model, metrics={**metrics, "cacheWriteTokens": 0})

    def _write_call(self, step: Step, thoughts: list[Record]) -> None:
        name, arguments, result = self._tool_call(step)
        call_id = f"toolu_{self._session.random.randbytes(10).hex()}"
        remark: list[Record] = [{"type": "text", "text": step.remark}] if step.remark else []
        call: Record = {"type": "tool_use", "id": call_id, "name": name, "input": arguments}
        self._write_reply(step.begun, [*thoughts, *remark, call])
        answer: Record = {"type": "tool_result", "tool_use_id": call_id, "name": name, "content": result}
        self._write("user", step.done, [answer])

    def _tool_call(self, step: Step) -> tuple[str, Record, object]:
        """Name, arguments and result."""
        work, folder = step.work, self._session.folder
        if isinstance(work, Command):
            return "run_commands", {"commands": [work.command]}, [_command_result(work)]
        if isinstance(work, Read):
            path = f"{folder}/{work.path}"
            lines = (f"{number} | {line}" for number, line in enumerate(work.content.splitlines(), 1))
            return "read_files", {"files": [{"path": path}]}, [_result(path, "\n".join(lines))]
        if isinstance(work, Grep):
            return "search_codebase", {"queries": [work.pattern]}, [_result(work.pattern, work.output)]
        if isinstance(work, SubagentTask):
            subagent = _Conversation(self._session)
            subagent.write_turn(Turn(work.prompt, step.begun, (), work.answer, step.done), is_subagent=True)
            self.subagents[f"agent_{_new_id(self._session, step.begun)}"] = subagent, step.done
            task: Record = {"systemPrompt": f"{work.description}. Report only what was asked for.", "task": work.prompt}
            answer = {"text": work.answer, "iterations": 1, "finishReason": "completed"}
            return "spawn_agent", task, json_text(answer)
        # Cline 3 has no plans.
        assert not isinstance(work, Thought | Plan)
        return self._change_call(work)

    def _change_call(self, change: Change) -> tuple[str, Record, object]:
        path = f"{self._session.folder}/{change.path}"
        arguments: Record = {"path": path, "new_text": change.after}
        text = f"File created successfully at: {path}"
        if change.before is not None:
            old, new = (change.before, change.after) if change.old is None else (change.old, change.new)
            arguments = {"path": path, "old_text": old, "new_text": new}
            text = f"Edited {path}\n```diff\n{''.join(unified_diff(change, 0).splitlines(True)[2:])}```"
        return "editor", arguments, json_text(_result(f"edit:{path}", text))


def _result(query: str, result: str) -> Record:
    return {"query": query, "result": result, "success": True}


def _command_result(work: Command) -> Record:
    if not work.is_failure:
        return _result(work.command, f"{work.output}\n")
    error = "Command exited with code 1"
    return {"query": work.command, "result": f"{work.output}\n[{error}]", "error": error, "success": False}
