"""Writes a demo session as Pi 0.87 does: one tree of entries. A turn that was taken back is a branch that was left."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from datetime import datetime, timedelta

from clew.demo.records import Record, json_lines, milliseconds, timestamp
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

PROVIDER, API = "anthropic", "anthropic-messages"


def pi_files(session: Session) -> Iterator[tuple[str, bytes]]:
    """The file of a session below ~/.pi, by path."""
    log = _Log(session)
    for turn in session.turns:
        log.write_turn(turn)
    log.write("session_info", session.ended, name=session.title)
    folder = f"--{session.folder.strip('/').replace('/', '-')}--"
    time = timestamp(session.started - timedelta(seconds=5)).replace(":", "-").replace(".", "-")
    yield f"agent/sessions/{folder}/{time}_{log.session_id}.jsonl", json_lines(log.records)


class _Log:
    def __init__(self, session: Session) -> None:
        self._session = session
        self._tokens = TokenCounter(session.random)
        self._last_id: str | None = None
        self.session_id = session.new_id()
        started = session.started - timedelta(seconds=5)
        head: Record = {"type": "session", "version": 3, "id": self.session_id, "timestamp": timestamp(started)}
        self.records: list[Record] = [{**head, "cwd": session.folder}]
        self.write("model_change", started, provider=PROVIDER, modelId=session.model)
        self.write("thinking_level_change", started, thinkingLevel="medium")

    def write(self, kind: str, time: datetime, **fields: object) -> None:
        parent, self._last_id = self._last_id, self._session.random.randbytes(4).hex()
        entry: Record = {"type": kind, "id": self._last_id, "parentId": parent, "timestamp": timestamp(time)}
        self.records.append({**entry, **fields})

    def write_turn(self, turn: Turn) -> None:
        start = self._last_id
        if turn.summary is not None:
            self._tokens.compact()
            before = turn.asked - timedelta(seconds=5)
            kept = {"firstKeptEntryId": start, "tokensBefore": self._tokens.context}
            self.write("compaction", before, summary=turn.summary, **kept)
        content: list[Record] = [{"type": "text", "text": turn.prompt}]
        if turn.picture is not None:
            content.append({"type": "image", "data": base64.b64encode(turn.picture).decode(), "mimeType": "image/png"})
        self._write_message("user", turn.asked, content=content)
        thoughts: list[Record] = []
        for step in turn.steps:
            if isinstance(step.work, Thought):
                thoughts = [{"type": "thinking", "thinking": step.work.text, "thinkingSignature": "demo"}]
                continue
            self._write_call(step, thoughts)
            thoughts = []
        assert turn.answer is not None, "only Claude Code has a running session"
        self._write_reply(turn.answered, [*thoughts, {"type": "text", "text": turn.answer}], "stop")
        if turn.is_rewound:
            left, self._last_id = self._last_id, start
            summary = f"The question “{turn.prompt}” was answered: {turn.answer}"
            self.write("branch_summary", turn.answered + timedelta(seconds=20), fromId=left, summary=summary)

    def _write_message(self, role: str, time: datetime, **fields: object) -> None:
        self.write("message", time, message={"role": role, **fields, "timestamp": milliseconds(time)})

    def _write_reply(self, time: datetime, content: list[Record], stop_reason: str) -> None:
        new, cached, output = self._tokens.count_call(str(content))
        cost = {"input": new * 3e-6, "output": output * 15e-6, "cacheRead": cached * 3e-7, "cacheWrite": 0}
        usage: Record = {"input": new, "output": output, "cacheRead": cached, "cacheWrite": 0}
        usage |= {"totalTokens": new + output + cached, "cost": {**cost, "total": sum(cost.values())}}
        model = {"api": API, "provider": PROVIDER, "model": self._session.model}
        self._write_message("assistant", time, content=content, **model, usage=usage, stopReason=stop_reason)

    def _write_call(self, step: Step, thoughts: list[Record]) -> None:
        name, arguments, output, details = self._tool_call(step)
        call_id = f"toolu_{self._session.random.randbytes(9).hex()}"
        remark: list[Record] = [{"type": "text", "text": step.remark}] if step.remark else []
        call: Record = {"type": "toolCall", "id": call_id, "name": name, "arguments": arguments}
        self._write_reply(step.begun, [*thoughts, *remark, call], "toolUse")
        self._write_message(
            "toolResult",
            step.done,
            toolCallId=call_id,
            toolName=name,
            content=[{"type": "text", "text": output}],
            **({"details": details} if details else {}),
            isError=isinstance(step.work, Command) and step.work.is_failure,
        )

    def _tool_call(self, step: Step) -> tuple[str, Record, str, Record]:
        """Name, arguments, result, and what the program keeps for itself."""
        work = step.work
        if isinstance(work, Command):
            output = f"{work.output}\n\nCommand exited with code 1" if work.is_failure else work.output
            return "bash", {"command": work.command}, output, {}
        if isinstance(work, Read):
            return "read", {"path": work.path}, work.content, {}
        if isinstance(work, Grep):
            return "grep", {"pattern": work.pattern}, work.output, {}
        # Pi has neither sub-agents nor plans.
        assert not isinstance(work, Thought | Plan | SubagentTask)
        return self._change_call(work)

    def _change_call(self, change: Change) -> tuple[str, Record, str, Record]:
        if change.old is None:
            output = f"Successfully wrote to {change.path}"
            return "write", {"path": change.path, "content": change.after}, output, {}
        arguments: Record = {"path": change.path, "edits": [{"oldText": change.old, "newText": change.new}]}
        output = f"Successfully replaced 1 block(s) in {change.path}."
        patch = f"--- {change.path}\n+++ {change.path}\n" + "".join(unified_diff(change, 4).splitlines(True)[2:])
        return "edit", arguments, output, {"patch": patch}
