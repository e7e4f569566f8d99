"""Writes a demo session as Mistral Vibe 3 does: a description, a journal, and a snapshot of what the client shows."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from hashlib import sha256
from typing import NamedTuple

import msgspec

from clew.demo.records import Record, indented_json, json_lines, json_text, milliseconds, timestamp
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


def mistral_vibe_files(session: Session) -> Iterator[tuple[str, bytes]]:
    """The files of a session below ~/.vibe, by path."""
    journal = _Journal(session)
    for number, turn in enumerate(session.turns, 1):
        journal.write_turn(turn, f"turn-{number}")
    folder = f"logs/session/unified/{journal.session_id}"
    yield f"{folder}/meta.json", indented_json(_meta(session, journal.session_id))
    yield f"{folder}/journal/{1:016}.jsonl", json_lines(journal.records)
    for name, content in journal.snapshot_files():
        yield f"{folder}/{name}", content


def _meta(session: Session, session_id: str) -> Record:
    return {
        "session_id": session_id,
        "parent_session_id": None,
        "start_time": session.started.isoformat(),
        "end_time": session.ended.isoformat(),
        "git_commit": None,
        "git_branch": session.branch,
        "environment": {"working_directory": session.folder},
        "origin_directory": session.folder,
        "username": "ada",
        "child_sessions": [],
        "loops": [],
        "title": session.title,
        "title_source": "auto",
        "config": {"active_model": session.model, "model_name": session.model},
    }


class _ToolCall(NamedTuple):
    """A call as the model makes it, the tool that the client runs for it, and the result."""

    name: str
    arguments: Record
    tool_name: str
    result: Record
    content: str = ""


class _Journal:
    def __init__(self, session: Session) -> None:
        self._session = session
        self._tokens = TokenCounter(session.random)
        self._turn_id = ""
        self._total = {"inputTokens": 0, "cachedInputTokens": 0, "outputTokens": 0, "totalTokens": 0}
        self._entries: dict[str, Record] = {}
        self.session_id = session.new_id()
        self.records: list[Record] = []

    def write_turn(self, turn: Turn, turn_id: str) -> None:
        self._turn_id = turn_id
        self._write("command_reserved", client_command_id=turn_id, method="turn/start")
        prompt = {"role": "user", "source": "turn_start", "content": [{"type": "text", "text": turn.prompt}]}
        self._show("append_entry", f"user-{turn_id}-1", "message", turn.asked, turn.asked, **prompt)
        thought: Thought | None = None
        for step in turn.steps:
            if isinstance(step.work, Thought):
                thought = step.work
                continue
            call, call_id = self._tool_call(step), f"call_{self._session.random.randbytes(10).hex()}"
            self._write_reply(step.begun, step.remark, thought, call, call_id)
            self._write_effect(step, call, call_id)
            thought = None
        assert turn.answer is not None, "only Claude Code has a running session"
        self._write_reply(turn.answered, turn.answer, thought)
        self._write("receipt_succeeded", client_command_id=turn_id, response={})

    def snapshot_files(self) -> Iterator[tuple[str, bytes]]:
        """A snapshot of the whole conversation, as the client takes it after each turn."""
        sequence = len(self.records)
        generation = f"{sequence:016}"
        chunk = msgspec.json.encode(list(self._entries.values()))
        chunk_name = sha256(chunk).hexdigest()
        yield f"chunks/{chunk_name}.json", chunk
        head: Record = {"session_id": self.session_id, "snapshot_sequence": sequence}
        session = {"id": self.session_id, "tokenUsage": self._total}
        state = {**head, "projection_state_version": 1, "snapshot": {"history": {"entries": []}, "session": session}}
        state_json = msgspec.json.encode(state)
        yield f"generations/{generation}/projection-state.json", state_json
        projection = {"chunks": [chunk_name], "path": "projection-state.json", "sha256": sha256(state_json).hexdigest()}
        created = timestamp(self._session.ended)
        manifest = {**head, "generation": generation, "manifest_version": 1, "created_at": created}
        manifest_json = msgspec.json.encode({**manifest, "projection_state": projection})
        yield f"generations/{generation}/manifest.json", manifest_json
        current = {**head, "generation": generation, "manifest_sha256": sha256(manifest_json).hexdigest()}
        store = {"store_format": "mistral.vibe.unified-session-store/v1", "store_format_minor": 9}
        yield "CURRENT", msgspec.json.encode({**current, **store})

    def _write_reply(
        self, time: datetime, text: str, thought: Thought | None, call: _ToolCall | None = None, call_id: str = ""
    ) -> None:
        action = self._session.new_id()
        new, cached, output = self._tokens.count_call(f"{text}{call}")
        counts = {"inputTokens": new + cached, "cachedInputTokens": cached, "outputTokens": output}
        for name, count in (*counts.items(), ("totalTokens", new + cached + output)):
            self._total[name] += count
        usage = {"input_tokens": new + cached, "cached_input_tokens": cached, "output_tokens": output}
        parts: list[Record] = []
        if thought is not None:
            parts.append({"type": "reasoning", "content": [{"type": "text", "text": thought.text}]})
        if text:
            parts.append({"type": "text", "text": text})
        if call is not None:
            arguments = json_text(call.arguments)
            parts.append({"type": "tool_call", "id": call_id, "name": call.name, "arguments_json": arguments})
        self._write("action_intent", action_id=action, kind="completion")
        reply = {"finish_reason": "stop" if call is None else "tool_call", "parts": parts}
        result = {"type": "completion_succeeded", "action_id": action, "result": {**reply, "usage": usage}}
        self._write("action_result", action_id=action, result=result, state="succeeded")
        if thought is not None:
            body: Record = {"text": thought.text, "summary": [], "outcome": {"type": "committed"}}
            self._show("append_entry", f"reasoning-{action}-0", "reasoning", time, time, **body)
        if text:
            body = {"role": "assistant", "source": "harness", "content": [{"type": "text", "text": text}]}
            self._show("append_entry", f"assistant-{action}", "message", time, time, **body)

    def _write_effect(self, step: Step, call: _ToolCall, call_id: str) -> None:
        """A call that is carried out: it is shown as running, then with its result."""
        action = self._session.new_id()
        detail = {"kind": "tool", "toolName": call.tool_name, "input": call.arguments, "display": {}}
        effect: Record = {"title": call.tool_name, "detail": detail}
        content = [{"type": "text", "text": call.content}] if call.content else []
        output = {"type": "success", "content": content, "structured_content": call.result}
        done = {"status": "completed", "decision": "execute", "display": {}, "outputText": "", "output": output}
        begun = step.begun + timedelta(milliseconds=20)
        entry_id = f"effect-{action}"
        self._write("action_intent", action_id=action, kind="tool")
        self._show("append_entry", entry_id, "effect", begun, begun, **effect, state={"status": "running"})
        result = {"type": "tool_succeeded", "action_id": action, "call_id": call_id, "result": output}
        self._write("action_result", action_id=action, result=result, state="succeeded")
        self._show("replace_entry", entry_id, "effect", begun, step.done, **effect, state=done)

    def _show(
        self, operation: str, entry_id: str, kind: str, created: datetime, updated: datetime, **body: object
    ) -> None:
        """Add an entry to what the client shows, or replace one."""
        entry: Record = {
            "id": entry_id,
            "type": kind,
            "createdAt": milliseconds(created),
            "updatedAt": milliseconds(updated),
            "generationStatus": "completed",
            "inputEntryId": None,
            "relatedEntryId": None,
            "sessionId": self.session_id,
            "turnId": self._turn_id,
            **body,
        }
        self._entries[entry_id] = entry
        self._write("projection_delta", delta=[{"op": operation, "entry": entry}])

    def _write(self, record_type: str, **payload: object) -> None:
        """Append a record, which names the one before it by its hash."""
        record: Record = {
            "payload": payload,
            "previous_record_sha256": self.records[-1]["record_sha256"] if self.records else None,
            "recovery_journal_record_version": 1,
            "sequence": len(self.records) + 1,
            "type": record_type,
        }
        self.records.append({**record, "record_sha256": sha256(msgspec.json.encode(record)).hexdigest()})

    def _tool_call(self, step: Step) -> _ToolCall:
        work, folder = step.work, self._session.folder
        if isinstance(work, Command | Grep):
            is_failure = isinstance(work, Command) and work.is_failure
            command = work.command if isinstance(work, Command) else f"grep -rnE '{work.pattern}' ."
            streams = {"stdout": f"{work.output}\n", "stderr": "", "timed_out": False, "was_truncated": False}
            result: Record = {"command": command, "returncode": int(is_failure), **streams}
            return _ToolCall("bash", {"command": command}, "file_system.bash", result)
        if isinstance(work, Read):
            lines = work.content.count("\n")
            result = {"content": work.content, "lines_read": lines, "total_lines": lines, "was_truncated": False}
            result["path"] = f"{folder}/{work.path}"
            return _ToolCall("read_file", {"path": work.path}, "file_system.read_file", result)
        if isinstance(work, Plan):
            items = enumerate(work.items, 1)
            todos = [
                {"id": str(n), "content": text, "status": state, "priority": "medium"} for n, (text, state) in items
            ]
            message = f"Updated {len(todos)} todos"
            arguments: Record = {"action": "write", "todos": todos}
            return _ToolCall("todo", arguments, "vibe.todo", {"message": message}, message)
        # Mistral Vibe records no sub-agents.
        assert not isinstance(work, Thought | SubagentTask)
        return self._change_call(work)

    def _change_call(self, change: Change) -> _ToolCall:
        path = f"{self._session.folder}/{change.path}"
        if change.old is not None:
            arguments: Record = {"file_path": change.path, "old_string": change.old, "new_string": change.new}
            result: Record = {"file": path, "lines_changed": change.new.count("\n"), "warnings": []}
            return _ToolCall("edit", arguments, "file_system.search_replace", result)
        result = {"bytes_written": len(change.after.encode()), "file_existed": change.before is not None, "path": path}
        arguments = {"path": change.path, "content": change.after}
        return _ToolCall("write_file", arguments, "file_system.write_file", result)
