"""Writes demo sessions as Sage Agent and sage-emacs do. They store no thoughts, and their stories change no files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple

from clew.demo.records import Record, json_lines, timestamp
from clew.demo.sessions import Command, Read, Session, Step, Thought, TokenCounter, Turn

VERSION = "0.13.43"


def sage_agent_files(session: Session) -> Iterator[tuple[str, bytes]]:
    """The files of a session below ~/.sage, by path."""
    log = _Messages(session)
    for turn in session.turns:
        log.write_turn(turn)
    metadata = {
        "id": log.session_id,
        "firstPrompt": session.turns[0].prompt,
        "lastPrompt": session.turns[-1].prompt,
        "summary": session.title,
        "createdAt": timestamp(session.started),
        "updatedAt": timestamp(session.ended),
        "workingDirectory": session.folder,
        "gitBranch": session.branch,
        "model": session.model,
        "version": VERSION,
        "messageCount": len(log.records),
        "state": "completed",
        "isSidechain": False,
        "metadata": {},
    }
    folder = f"sessions/{log.session_id}"
    yield f"{folder}/messages.jsonl", json_lines(log.records)
    yield f"{folder}/metadata.json", json.dumps(metadata, indent=2, ensure_ascii=False).encode()


class _ToolCall(NamedTuple):
    name: str
    arguments: Record
    output: str
    is_failure: bool


class _Messages:
    def __init__(self, session: Session) -> None:
        self._session = session
        self._tokens = TokenCounter(session.random)
        self._parent: str | None = None
        self.session_id = session.new_id()
        self.records: list[Record] = []

    def write_turn(self, turn: Turn) -> None:
        self._write("user", turn.asked, {"role": "user", "content": turn.prompt})
        for step in _tool_steps(turn):
            self._write_call(step)
        assert turn.answer is not None, "only Claude Code has a running session"
        self._write_reply(turn.answered, {"role": "assistant", "content": turn.answer})

    def _write(self, kind: str, time: datetime, message: Record, **fields: object) -> None:
        session, own_id = self._session, self._session.new_id()
        context = {"cwd": session.folder, "gitBranch": session.branch, "platform": "linux"}
        record: Record = {
            "type": kind,
            "uuid": own_id,
            "parentUuid": self._parent,
            "timestamp": timestamp(time),
            "sessionId": self.session_id,
            "version": VERSION,
            "context": context,
            "message": message,
            **fields,
            "todos": [],
            "isSidechain": False,
        }
        self.records.append(record)
        self._parent = own_id

    def _write_reply(self, time: datetime, message: Record) -> None:
        new, cached, output = self._tokens.count_call(str(message))
        usage = {"inputTokens": new, "outputTokens": output, "cacheReadTokens": cached, "cacheWriteTokens": 0}
        self._write("assistant", time, message, usage=usage)

    def _write_call(self, step: Step) -> None:
        call_id = f"call_{self._session.random.randbytes(6).hex()}"
        call = _tool_call(step)
        called = {"id": call_id, "name": call.name, "arguments": call.arguments}
        self._write_reply(step.begun, {"role": "assistant", "content": step.remark, "toolCalls": [called]})
        result: Record = {"toolCallId": call_id, "toolName": call.name, "content": call.output}
        result["success"] = not call.is_failure
        if call.is_failure:
            result |= {"content": "", "error": call.output}
        self._write("tool_result", step.done, {"role": "tool", "content": "", "toolResults": [result]})


def sage_emacs_files(session: Session) -> Iterator[tuple[str, bytes]]:
    """The files of a session below ~/.emacs.d, by path."""
    records: list[Record] = []
    for turn in session.turns:
        records.append(_emacs_record(session, "user", turn.prompt, turn.asked))
        if steps := _tool_steps(turn):
            calls = [_emacs_call(step) for step in steps]
            records.append(_emacs_record(session, "assistant", steps[0].remark, steps[0].begun, tool_calls=calls))
        assert turn.answer is not None, "only Claude Code has a running session"
        tokens = {"estimated": len(turn.answer) // 4}
        records.append(_emacs_record(session, "assistant", turn.answer, turn.answered, tokens=tokens))
    content = json_lines(records)
    metadata = {
        "project_dir": session.folder,
        "created_at": _local_time(session.started),
        "updated_at": _local_time(session.ended),
        "message_count": len(records),
        "total_size": len(content),
    }
    folder = f"sage/projects/{session.folder.replace('/', '-')}"
    yield f"{folder}/conversation.jsonl", content
    yield f"{folder}/metadata.json", json.dumps(metadata, indent=2).encode()


def _emacs_record(session: Session, role: str, text: str, time: datetime, **fields: object) -> Record:
    own_id = f"{time:%Y%m%d-%H%M%S}-{session.random.randbytes(4).hex()}"
    return {"role": role, "content": text, "timestamp": _local_time(time), "uuid": own_id, **fields}


def _emacs_call(step: Step) -> Record:
    call = _tool_call(step)
    return {
        "name": "run_shell" if call.name == "bash" else call.name,
        "args": call.arguments,
        "result": call.output,
        "duration_ms": int((step.done - step.begun).total_seconds() * 1000),
        "success": not call.is_failure,
    }


def _tool_steps(turn: Turn) -> list[Step]:
    return [step for step in turn.steps if not isinstance(step.work, Thought)]


def _tool_call(step: Step) -> _ToolCall:
    if isinstance(step.work, Read):
        return _ToolCall("read_file", {"path": step.work.path}, step.work.content, is_failure=False)
    assert isinstance(step.work, Command), step.work
    return _ToolCall("bash", {"command": step.work.command}, step.work.output, step.work.is_failure)


def _local_time(time: datetime) -> str:
    return f"{time:%Y-%m-%dT%H:%M:%S}+0000"
