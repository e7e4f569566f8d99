"""Writes a demo session as Qwen Code 0.24 does: a transcript of JSON lines, and one for each sub-agent."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from datetime import datetime

from clew.demo.records import Record, json_lines, json_text, timestamp
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

VERSION = "0.24.4"
AGENT_TYPE = "general-purpose"


def qwen_code_files(session: Session) -> Iterator[tuple[str, bytes]]:
    """The files of a session below ~/.qwen, by path."""
    log = _Log(session, session.new_id())
    for turn in session.turns:
        log.write_turn(turn)
    log.write(session.ended, "system", subtype="custom_title", systemPayload={"customTitle": session.title})
    folder = f"projects/{re.sub('[^A-Za-z0-9]', '-', session.folder)}"
    yield f"{folder}/chats/{log.session_id}.jsonl", json_lines(log.records)
    for agent, (subagent, meta) in log.subagents.items():
        path = f"{folder}/subagents/{log.session_id}/agent-{agent}"
        yield f"{path}.jsonl", json_lines(subagent.records)
        yield f"{path}.meta.json", json_text(meta).encode()


class _Log:
    """The records of a session, or of a sub-agent; each follows the one before it."""

    def __init__(self, session: Session, session_id: str, agent: str | None = None) -> None:
        self._session, self._agent = session, agent
        self._tokens = TokenCounter(session.random)
        self._last: str | None = None
        self.session_id = session_id
        self.records: list[Record] = []
        self.subagents: dict[str, tuple[_Log, Record]] = {}

    def write(self, time: datetime, kind: str, **fields: object) -> None:
        record: Record = {
            "uuid": self._session.new_id(),
            "parentUuid": self._last,
            "sessionId": self.session_id,
            "timestamp": timestamp(time),
            "type": kind,
            "cwd": self._session.folder,
            "version": VERSION,
            "gitBranch": self._session.branch,
        }
        if self._agent is not None:
            record |= {"agentId": self._agent, "agentName": AGENT_TYPE, "isSidechain": True}
        self.records.append(record | fields)
        self._last = str(record["uuid"])

    def write_turn(self, turn: Turn) -> None:
        before = self._last
        parts: list[Record] = [{"text": turn.prompt}]
        if turn.picture is not None:
            data = base64.b64encode(turn.picture).decode()
            parts.append({"inlineData": {"mimeType": "image/png", "data": data}})
        origin = {"provenance": "real_user"} if self._agent is None else {}
        self.write(turn.asked, "user", **origin, message={"role": "user", "parts": parts})
        thought: list[Record] = []
        for step in turn.steps:
            if isinstance(step.work, Thought):
                thought = [{"text": step.work.text, "thought": True}]
                continue
            said: list[Record] = [{"text": step.remark}] if step.remark else []
            self._write_call(step, [*thought, *said])
            thought = []
        assert turn.answer is not None, "only Claude Code has a running session"
        self._write_reply(turn.answered, [*thought, {"text": turn.answer}])
        if turn.is_rewound:
            self._last = before
            self.write(turn.answered, "system", subtype="rewind", systemPayload={"truncatedCount": 2})

    def _write_reply(self, time: datetime, parts: list[Record]) -> None:
        new, cached, output = self._tokens.count_call(json_text(parts))
        thoughts = 40 * sum("thought" in part for part in parts)
        usage = {
            "promptTokenCount": new + cached,
            "candidatesTokenCount": output,
            "thoughtsTokenCount": thoughts,
            "totalTokenCount": new + cached + output,
            "cachedContentTokenCount": cached,
        }
        message = {"role": "model", "parts": parts}
        self.write(time, "assistant", model=self._session.model, message=message, usageMetadata=usage)

    def _write_call(self, step: Step, before: list[Record]) -> None:
        call_id = f"call_{self._session.random.randbytes(12).hex()}"
        name, arguments, output, display = self._tool_call(step, call_id)
        self._write_reply(step.begun, [*before, {"functionCall": {"id": call_id, "name": name, "args": arguments}}])
        is_failure = isinstance(step.work, Command) and step.work.is_failure
        response = {"id": call_id, "name": name, "response": {"error" if is_failure else "output": output}}
        status = "error" if is_failure else "success"
        result = {"callId": call_id, "status": status, "resultDisplay": display, "executionStatus": status}
        message = {"role": "user", "parts": [{"functionResponse": response}]}
        self.write(step.done, "tool_result", message=message, toolCallResult=result)

    def _tool_call(self, step: Step, call_id: str) -> tuple[str, Record, str, object]:
        """The tool, its arguments, what the model reads as the result, and what the program shows."""
        work, folder = step.work, self._session.folder
        if isinstance(work, Command):
            output = f"Command: {work.command}\nDirectory: (root)\nOutput: {work.output}"
            return "run_shell_command", {"command": work.command, "is_background": False}, output, work.output
        if isinstance(work, Read):
            return "read_file", {"file_path": f"{folder}/{work.path}"}, work.content, ""
        if isinstance(work, Grep):
            return "grep_search", {"pattern": work.pattern}, work.output, work.output
        if isinstance(work, Plan):
            todos = [{"id": str(at), "content": text, "status": status} for at, (text, status) in enumerate(work.items)]
            display: Record = {"type": "todo_list", "todos": todos}
            return "todo_write", {"todos": todos}, "Todos have been modified successfully.", display
        if isinstance(work, SubagentTask):
            agent = f"{AGENT_TYPE}-{call_id}"
            subagent = _Log(self._session, self.session_id, agent)
            subagent.write_turn(Turn(work.prompt, step.begun, (), work.answer, step.done))
            meta: Record = {"agentId": agent, "agentType": AGENT_TYPE, "parentSessionId": self.session_id}
            meta |= {"toolUseId": call_id, "parentAgentId": None, "status": "completed", "model": self._session.model}
            self.subagents[agent] = subagent, meta
            task: Record = {"description": work.description, "prompt": work.prompt, "subagent_type": AGENT_TYPE}
            return "agent", task | {"run_in_background": False}, work.answer, {"type": "task_execution"}
        assert isinstance(work, Change)
        path = f"{folder}/{work.path}"
        display = {"fileDiff": "", "fileName": path.rpartition("/")[2], "filePath": path}
        display |= {"originalContent": work.before or "", "newContent": work.after}
        if work.old is not None:
            arguments: Record = {"file_path": path, "old_string": work.old, "new_string": work.new}
            return "edit", arguments, f"The file: {path} has been updated.", display
        verb = "created and wrote to new file" if work.before is None else "overwrote file"
        return "write_file", {"file_path": path, "content": work.after}, f"Successfully {verb}: {path}.", display
