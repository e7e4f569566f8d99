"""Writes a demo session as GitHub Copilot CLI 1.0.102 does: a log of events, those of sub-agents among them."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from datetime import datetime
from hashlib import sha256

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
)

TODO_STATUSES = {"completed": "done"}


def copilot_cli_files(session: Session) -> Iterator[tuple[str, bytes]]:
    """The files of a session below ~/.copilot, by path."""
    log = _Log(session)
    for turn in session.turns:
        # A rewind cuts the log, and leaves no mark.
        if not turn.is_rewound:
            log.write_turn(turn)
    log.write("session.shutdown", session.ended, {"shutdownType": "routine", "modelMetrics": log.metrics()})
    folder = f"session-state/{log.session_id}"
    yield f"{folder}/events.jsonl", json_lines(log.records)
    times = f"created_at: {timestamp(session.started)}\nupdated_at: {timestamp(session.ended)}\n"
    names = f'branch: {session.branch}\nclient_name: github/cli\nname: "{session.title}"\nuser_named: false\n'
    yield f"{folder}/workspace.yaml", f"id: {log.session_id}\ncwd: {session.folder}\n{names}{times}".encode()


class _Log:
    def __init__(self, session: Session) -> None:
        self._session = session
        self._tokens = TokenCounter(session.random)
        self._totals: dict[str, int] = {}
        self._requests = 0
        self._todos: set[str] = set()
        self.session_id = session.new_id()
        self.records: list[Record] = []
        context = {"cwd": session.folder, "gitRoot": session.folder, "branch": session.branch}
        head: Record = {"sessionId": self.session_id, "version": 1, "producer": "copilot-agent"}
        head |= {"copilotVersion": "1.0.102", "startTime": timestamp(session.started), "selectedModel": session.model}
        self.write("session.start", session.started, {**head, "context": context})

    def write(self, kind: str, time: datetime, data: Record, agent: str | None = None) -> None:
        record: Record = {"type": kind, "data": data, **({"agentId": agent} if agent else {})}
        record |= {"id": self._session.new_id(), "timestamp": timestamp(time)}
        self.records.append({**record, "parentId": self.records[-1]["id"] if self.records else None})

    def metrics(self) -> Record:
        """The tokens of all requests, as the client states them when it ends."""
        return {self._session.model: {"requests": {"count": self._requests, "cost": 0}, "usage": self._totals}}

    def write_turn(self, turn: Turn) -> None:
        if turn.summary is not None:
            self._tokens.compact()
            self.write("session.compaction_complete", turn.asked, {"success": True, "summaryContent": turn.summary})
        attachments: list[Record] = []
        if turn.picture is not None:
            asset: Record = {"assetId": f"sha256:{sha256(turn.picture).hexdigest()}", "mimeType": "image/png"}
            data = base64.b64encode(turn.picture).decode()
            self.write("session.binary_asset", turn.asked, {**asset, "type": "image", "data": data})
            attachments.append({"type": "blob", "displayName": "image.png", **asset})
        self.write("user.message", turn.asked, {"content": turn.prompt, "attachments": attachments})
        thought = ""
        for step in turn.steps:
            if isinstance(step.work, Thought):
                thought = step.work.text
                continue
            self._write_step(step, thought)
            thought = ""
        assert turn.answer is not None, "only Claude Code has a running session"
        self._write_reply(turn.answered, turn.answer, thought)

    def _write_reply(
        self, time: datetime, text: str, thought: str = "", call: Record | None = None, agent: str | None = None
    ) -> None:
        api_call = f"chatcmpl-{self._session.random.randbytes(10).hex()}"
        new, cached, output = self._tokens.count_call(f"{text}{call}")
        usage = {"inputTokens": new + cached, "outputTokens": output, "cacheReadTokens": cached, "cacheWriteTokens": 0}
        self._requests += 1
        self._totals = {name: self._totals.get(name, 0) + count for name, count in usage.items()}
        counts: Record = {"model": self._session.model, **usage, "cost": 0.0, "apiCallId": api_call}
        self.write("session.usage_record", time, {"usage": counts}, agent)
        reply: Record = {"messageId": self._session.new_id(), "model": self._session.model, "content": text}
        reply |= {"toolRequests": [{**call, "type": "function"}] if call else [], "apiCallId": api_call}
        self.write("assistant.message", time, {**reply, **({"reasoningText": thought} if thought else {})}, agent)

    def _write_step(self, step: Step, thought: str) -> None:
        name, arguments, output = self._tool_call(step)
        call: Record = {"toolCallId": f"call_{self._session.random.randbytes(10).hex()}", "name": name}
        self._write_reply(step.begun, step.remark, thought, {**call, "arguments": arguments})
        started: Record = {"toolCallId": call["toolCallId"], "toolName": name, "arguments": arguments}
        self.write("tool.execution_start", step.begun, started)
        if isinstance(step.work, SubagentTask):
            self._write_subagent(step, step.work, call)
        result: Record = {"toolCallId": call["toolCallId"], "success": True, "result": {"content": output}}
        if isinstance(step.work, Command):
            result["shellExecution"] = {"exitCode": int(step.work.is_failure)}
        self.write("tool.execution_complete", step.done, result)

    def _write_subagent(self, step: Step, task: SubagentTask, call: Record) -> None:
        agent = self._session.new_id()
        names: Record = {"toolCallId": call["toolCallId"], "agentName": "explore", "agentDisplayName": "explore"}
        self.write("subagent.started", step.begun, {**names, "agentDescription": task.description}, agent)
        self.write("user.message", step.begun, {"content": task.prompt, "source": f"agent-{self.session_id}"}, agent)
        self._write_reply(step.done, task.answer, agent=agent)
        self.write("subagent.completed", step.done, names, agent)

    def _tool_call(self, step: Step) -> tuple[str, Record, str]:
        """Name, arguments and result of the call that does the work."""
        work, folder = step.work, self._session.folder
        if isinstance(work, Command):
            output = f"{work.output}\n<shellId: 0 completed with exit code {int(work.is_failure)}>"
            return "bash", {"command": work.command, "description": step.remark or "Run it", "mode": "sync"}, output
        if isinstance(work, Read):
            return "view", {"path": f"{folder}/{work.path}"}, work.content
        if isinstance(work, Grep):
            return "grep", {"pattern": work.pattern, "output_mode": "content"}, work.output
        if isinstance(work, Plan):
            return "sql", {"description": "Update the plan", "query": self._plan_query(work)}, "Done."
        if isinstance(work, SubagentTask):
            arguments = {"agent_type": "explore", "name": "explore", "description": work.description}
            return "task", {**arguments, "prompt": work.prompt}, work.answer
        assert isinstance(work, Change)
        path = f"{folder}/{work.path}"
        if work.before is None:
            created = f"Created file {path} with {len(work.after)} characters"
            return "create", {"path": path, "file_text": work.after}, created
        old, new = (work.before, work.after) if work.old is None else (work.old, work.new)
        return "edit", {"path": path, "old_str": old, "new_str": new}, f"File {path} updated with changes."

    def _plan_query(self, plan: Plan) -> str:
        """The statements that bring the table of todos to a plan."""
        statements = []
        for number, (subject, status) in enumerate(plan.items, 1):
            key, state = f"step-{number}", TODO_STATUSES.get(status, status)
            title = subject.replace("'", "''")
            if key in self._todos:
                statements.append(f"UPDATE todos SET status = '{state}' WHERE id = '{key}'")
            else:
                statements.append(f"INSERT INTO todos (id, title, status) VALUES ('{key}', '{title}', '{state}')")
            self._todos.add(key)
        return "; ".join(statements)
