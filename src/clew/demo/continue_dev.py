"""Writes a demo session as the command line of Continue 1.5 does: a document for each session, and a list of all."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator
from random import Random
from typing import NamedTuple
from uuid import UUID

from clew.demo.records import Record, indented_json, json_text, milliseconds
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

SESSIONS = "sessions"
SESSION_LIST = f"{SESSIONS}/sessions.json"


def continue_files(session: Session) -> Iterator[tuple[str, bytes]]:
    """The file of a session below ~/.continue, by path."""
    history = _History(session)
    for turn in session.turns:
        history.write_turn(turn)
    document = {
        "sessionId": _session_id(session),
        "title": session.title,
        "workspaceDirectory": session.folder,
        "history": history.items,
    }
    yield f"{SESSIONS}/{_session_id(session)}.json", indented_json(document)


def session_list(sessions: Iterable[Session]) -> bytes:
    """The list of sessions, which alone says when each one began."""
    return indented_json([_list_entry(session) for session in sessions if session.agent == "continue"])


def _list_entry(session: Session) -> Record:
    return {
        "sessionId": _session_id(session),
        "title": session.title,
        "dateCreated": str(milliseconds(session.started)),
        "workspaceDirectory": session.folder,
        "messageCount": len(session.turns),
    }


def _session_id(session: Session) -> str:
    return str(UUID(int=Random(f"{session.project}: {session.title}").getrandbits(128), version=4))


class _ToolCall(NamedTuple):
    name: str
    arguments: Record
    output: str


class _History:
    def __init__(self, session: Session) -> None:
        self._session = session
        self._tokens = TokenCounter(session.random)
        self.items: list[Record] = []

    def write_turn(self, turn: Turn) -> None:
        content: object = turn.prompt
        if turn.picture is not None:
            url = f"data:image/png;base64,{base64.b64encode(turn.picture).decode()}"
            content = [{"type": "text", "text": turn.prompt}, {"type": "imageUrl", "imageUrl": {"url": url}}]
        self._write({"role": "user", "content": content}, editorState=turn.prompt)
        for step in turn.steps:
            if isinstance(step.work, Thought):
                self._write({"role": "thinking", "content": step.work.text})
            else:
                self._write_call(step)
        assert turn.answer is not None, "only Claude Code has a running session"
        self._write({"role": "assistant", "content": turn.answer, "usage": self._usage(turn.answer)})

    def _write(self, message: Record, **fields: object) -> None:
        self.items.append({"message": message, "contextItems": [], **fields})

    def _usage(self, reply: str) -> Record:
        new, cached, output = self._tokens.count_call(reply)
        return {
            "prompt_tokens": new + cached,
            "completion_tokens": output,
            "total_tokens": new + cached + output,
            "prompt_tokens_details": {"cached_tokens": cached},
            "completion_tokens_details": {"reasoning_tokens": 0},
            "model": self._session.model,
            "cost_cents": 0,
        }

    def _write_call(self, step: Step) -> None:
        name, arguments, output = self._tool_call(step)
        function = {"name": name, "arguments": json_text(arguments)}
        call: Record = {"id": f"call_{self._session.random.randbytes(10).hex()}", "type": "function"}
        call["function"] = function
        usage = self._usage(f"{step.remark}{call}")
        is_failure = isinstance(step.work, Command) and step.work.is_failure
        state = {
            "toolCallId": call["id"],
            "toolCall": call,
            "status": "errored" if is_failure else "done",
            "parsedArgs": arguments,
            "output": [{"content": output, "name": "Tool Result", "description": "Tool execution result"}],
        }
        message: Record = {"role": "assistant", "content": step.remark, "toolCalls": [call], "usage": usage}
        self._write(message, toolCallStates=[state])

    def _tool_call(self, step: Step) -> _ToolCall:
        work, folder = step.work, self._session.folder
        if isinstance(work, Command):
            error = "Error executing tool Bash: Error (exit code 1): " if work.is_failure else ""
            return _ToolCall("Bash", {"command": work.command}, f"{error}{work.output}")
        if isinstance(work, Read):
            path = f"{folder}/{work.path}"
            return _ToolCall("Read", {"filepath": path}, f"Content of {path}:\n{work.content}")
        if isinstance(work, Grep):
            return _ToolCall("Search", {"pattern": work.pattern}, work.output)
        if isinstance(work, Plan):
            lines = (f"- [{'x' if status == 'completed' else ' '}] {subject}" for subject, status in work.items)
            checklist = "\n".join(lines)
            return _ToolCall("Checklist", {"checklist": checklist}, f"Task list status:\n{checklist}")
        # Continue records no sub-agents.
        assert not isinstance(work, Thought | SubagentTask)
        return self._change_call(work)

    def _change_call(self, change: Change) -> _ToolCall:
        path = f"{self._session.folder}/{change.path}"
        diff = "".join(unified_diff(change).splitlines(True)[2:])
        index = f"Index: {path}\n{'=' * 67}\n--- {path}\n+++ {path}\n{diff}"
        if change.old is not None:
            edit: Record = {"file_path": path, "old_string": change.old, "new_string": change.new}
            return _ToolCall("Edit", edit, f"Successfully edited {path}\nDiff:\n{index}")
        verb = "created" if change.before is None else "updated"
        return _ToolCall("Write", {"filepath": path, "content": change.after}, f"Successfully {verb} file: {path}")
