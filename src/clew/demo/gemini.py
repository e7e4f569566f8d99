"""Writes a demo session as Gemini CLI 0.61 does: an event log of JSON lines, and one for each sub-agent."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from datetime import datetime, timedelta
from hashlib import sha256
from typing import NamedTuple

from clew.demo.records import Record, json_lines, timestamp
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

SUBAGENT_MODEL = "gemini-2.5-flash"
DISPLAY_NAMES = {
    "read_file": "ReadFile",
    "write_file": "WriteFile",
    "replace": "Edit",
    "run_shell_command": "Shell",
    "grep_search": "SearchText",
    "write_todos": "WriteTodos",
}


def gemini_files(session: Session) -> Iterator[tuple[str, bytes]]:
    """The files of a session below ~/.gemini, by path."""
    log = _Log(session, session.model, session.started, "main")
    for turn in session.turns:
        log.write_turn(turn)
    log.records.append({"$set": {"summary": session.title}})
    folder = f"tmp/{session.project}"
    yield f"{folder}/.project_root", session.folder.encode()
    yield f"{folder}/chats/session-{session.started:%Y-%m-%dT%H-%M}-{log.session_id[:8]}.jsonl", json_lines(log.records)
    for subagent in log.subagents:
        yield f"{folder}/chats/{log.session_id}/{subagent.session_id}.jsonl", json_lines(subagent.records)


class _ToolCall(NamedTuple):
    name: str
    arguments: Record
    output: str
    """What the model reads as the result."""
    display: object
    """What the program shows."""


class _Log:
    def __init__(self, session: Session, model: str, started: datetime, kind: str) -> None:
        self._session, self._model = session, model
        self._tokens = TokenCounter(session.random)
        self.session_id = session.new_id()
        self.subagents: list[_Log] = []
        head: Record = {
            "sessionId": self.session_id,
            "projectHash": sha256(session.folder.encode()).hexdigest(),
            "startTime": timestamp(started - timedelta(seconds=15)),
            "lastUpdated": timestamp(started - timedelta(seconds=15)),
            "kind": kind,
        }
        self.records = [head]

    def write_turn(self, turn: Turn) -> None:
        parts: list[Record] = [{"text": turn.prompt}]
        if turn.picture is not None:
            data = base64.b64encode(turn.picture).decode()
            parts.append({"inlineData": {"mimeType": "image/png", "data": data}})
        prompt_id = self._write(turn.asked, {"type": "user", "content": parts})
        thoughts: list[Record] = []
        for step in turn.steps:
            if isinstance(step.work, Thought):
                thought = {"subject": "Considering the request", "description": step.work.text}
                thoughts = [{**thought, "timestamp": timestamp(step.begun)}]
                continue
            self._write_reply(step.remark, step.begun, thoughts, self._call_record(step))
            thoughts = []
        assert turn.answer is not None, "only Claude Code has a running session"
        self._write_reply(turn.answer, turn.answered, thoughts)
        if turn.is_rewound:
            self.records.append({"$rewindTo": prompt_id})

    def _write(self, time: datetime, body: Record) -> str:
        own_id = self._session.new_id()
        self.records.append({"id": own_id, "timestamp": timestamp(time), **body})
        self.records.append({"$set": {"lastUpdated": timestamp(time)}})
        return own_id

    def _write_reply(self, text: str, time: datetime, thoughts: list[Record], tool_call: Record | None = None) -> None:
        """A reply; with a call it is written again once the call is done."""
        new, cached, output = self._tokens.count_call(f"{text}{tool_call}")
        thinking = 40 * len(thoughts)
        tokens: Record = {
            "input": new + cached,
            "output": output,
            "cached": cached,
            "thoughts": thinking,
            "tool": 0,
            "total": new + cached + output + thinking,
        }
        body: Record = {"type": "gemini", "content": text, "thoughts": thoughts, "tokens": tokens, "model": self._model}
        own_id = self._write(time, body)
        if tool_call is not None:
            self.records.append({"id": own_id, "timestamp": timestamp(time), **body, "toolCalls": [tool_call]})

    def _call_record(self, step: Step) -> Record:
        name, arguments, output, display = self._tool_call(step)
        call_id = f"{name}-{int(step.begun.timestamp() * 1000)}-{self._session.random.randbytes(4).hex()}"
        is_failure = isinstance(step.work, Command) and step.work.is_failure
        response = {"error" if is_failure else "output": output}
        call: Record = {
            "id": call_id,
            "name": name,
            "args": arguments,
            "result": [{"functionResponse": {"id": call_id, "name": name, "response": response}}],
            "status": "error" if is_failure else "success",
            "timestamp": timestamp(step.done),
            "resultDisplay": display,
            "displayName": DISPLAY_NAMES.get(name, name),
            "description": str(next(iter(arguments.values())))[:60],
            "renderOutputAsMarkdown": True,
        }
        if isinstance(step.work, SubagentTask):
            call["agentId"] = self.subagents[-1].session_id
        return call

    def _tool_call(self, step: Step) -> _ToolCall:
        work, folder = step.work, self._session.folder
        if isinstance(work, Command):
            output = work.output if work.is_failure else f"Command: {work.command}\nOutput: {work.output}"
            return _ToolCall("run_shell_command", {"command": work.command, "dir_path": "."}, output, work.output)
        if isinstance(work, Read):
            return _ToolCall("read_file", {"file_path": f"{folder}/{work.path}"}, work.content, "")
        if isinstance(work, Grep):
            return _ToolCall("grep_search", {"pattern": work.pattern, "dir_path": "."}, work.output, work.output)
        if isinstance(work, Plan):
            todos = [{"description": subject, "status": status} for subject, status in work.items]
            return _ToolCall("write_todos", {"todos": todos}, "Successfully updated the todo list.", {"todos": todos})
        if isinstance(work, SubagentTask):
            subagent = _Log(self._session, SUBAGENT_MODEL, step.begun, "subagent")
            subagent.write_turn(Turn(work.prompt, step.begun, (), work.answer, step.done))
            self.subagents.append(subagent)
            return _ToolCall("codebase_investigator", {"objective": work.prompt}, work.answer, work.answer)
        assert isinstance(work, Change)
        return self._change_call(work)

    def _change_call(self, change: Change) -> _ToolCall:
        path = f"{self._session.folder}/{change.path}"
        name = change.path.rpartition("/")[2]
        lines = unified_diff(change).splitlines(keepends=True)[2:]
        display = {
            "fileDiff": f"Index: {name}\n{'=' * 67}\n--- {name}\tCurrent\n+++ {name}\tProposed\n{''.join(lines)}",
            "fileName": name,
            "filePath": path,
            "originalContent": change.before,
            "newContent": change.after,
            "diffStat": {
                "model_added_lines": sum(line.startswith("+") for line in lines),
                "model_removed_lines": sum(line.startswith("-") for line in lines),
            },
            "isNewFile": change.before is None,
        }
        if change.old is not None:
            arguments: Record = {"file_path": path, "old_string": change.old, "new_string": change.new}
            return _ToolCall("replace", arguments, f"Successfully modified file: {path} (1 replacements).", display)
        verb = "created and wrote to new file" if change.before is None else "overwrote file"
        return _ToolCall(
            "write_file", {"file_path": path, "content": change.after}, f"Successfully {verb}: {path}.", display
        )
