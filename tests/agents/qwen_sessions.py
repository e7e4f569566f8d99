"""Builds transcripts of Qwen Code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

FOLDER = "/home/ada/src/tidebell"
SESSION = "5a1d0c52-7b0e-4c5e-9d59-3f0c7f6a1e11"
USAGE = {"promptTokenCount": 900, "candidatesTokenCount": 42, "thoughtsTokenCount": 10, "totalTokenCount": 942}


class Transcript:
    """The records of a session; each follows the one before it."""

    def __init__(self, session: str = SESSION, **common: Any) -> None:
        self.session, self.common = session, common
        self.records: list[dict[str, Any]] = []
        self.last: str | None = None

    def add(self, kind: str, **fields: Any) -> str:
        """Add a record; returns its uuid."""
        number = len(self.records)
        uuid = str(uuid5(NAMESPACE_URL, f"{self.session} {self.common} {number}"))
        base = {
            "uuid": uuid,
            "parentUuid": self.last,
            "sessionId": self.session,
            "timestamp": f"2026-11-16T10:{number // 60:02}:{number % 60:02}.000Z",
            "type": kind,
            "cwd": FOLDER,
            "version": "0.24.4",
            "gitBranch": "main",
        }
        self.records.append({**base, **self.common, **fields})
        self.last = uuid
        return uuid

    def prompt(self, *texts: str, **fields: Any) -> str:
        parts = [{"text": text} for text in texts]
        return self.add("user", **{"provenance": "real_user", "message": {"role": "user", "parts": parts}, **fields})

    def reply(self, *parts: dict[str, Any], **fields: Any) -> str:
        message = {"role": "model", "parts": list(parts)}
        usage = {**USAGE, "cachedContentTokenCount": 600}
        return self.add("assistant", **{"model": "lab-model", "message": message, "usageMetadata": usage, **fields})

    def result(self, call: str, name: str, output: str, *, is_error: bool = False, display: Any = "") -> str:
        response = {"id": call, "name": name, "response": {"error" if is_error else "output": output}}
        status = "error" if is_error else "success"
        return self.add(
            "tool_result",
            provenance="tool_result",
            message={"role": "user", "parts": [{"functionResponse": response}]},
            toolCallResult={"callId": call, "status": status, "resultDisplay": display, "executionStatus": status},
        )

    def system(self, subtype: str, **payload: Any) -> str:
        return self.add("system", provenance="system", subtype=subtype, systemPayload=payload)

    def telemetry(self, **event: Any) -> str:
        counts = {"input_token_count": 900, "output_token_count": 42, "cached_content_token_count": 600}
        counts |= {"thoughts_token_count": 10, "total_token_count": 942}
        return self.system(
            "ui_telemetry", uiEvent={"event.name": "qwen-code.api_response", "model": "lab-model", **counts, **event}
        )

    def write(self, home: Path) -> Path:
        """Write the file of the session below a home."""
        path = project(home) / "chats" / f"{self.session}.jsonl"
        if "agentId" in self.common:
            path = project(home) / "subagents" / self.session / f"agent-{self.common['agentId']}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(record, separators=(",", ":")) + "\n" for record in self.records))
        return path


def project(home: Path) -> Path:
    return home / ".qwen" / "projects" / "-home-ada-src-tidebell"


def call(identity: str, name: str, **arguments: Any) -> dict[str, Any]:
    return {"functionCall": {"id": identity, "name": name, "args": arguments}}


def diff_display(path: str, before: str, after: str) -> dict[str, Any]:
    name = path.rpartition("/")[2]
    return {"fileDiff": "", "fileName": name, "filePath": path, "originalContent": before, "newContent": after}


def write_subagent(home: Path, agent: str, tool: str, parent: str | None = None) -> Path:
    """A sub-agent of the session, with the note about it beside its transcript."""
    child = Transcript(agentId=agent, agentName="general-purpose", isSidechain=True)
    child.prompt("Count the words of README.md and report.", provenance=None)
    child.reply({"text": "README.md has 9 words."}, model=None, agentRunId="run-1", agentRound=1)
    path = child.write(home)
    meta = {"agentId": agent, "agentType": "general-purpose", "parentSessionId": SESSION, "toolUseId": tool}
    note = {**meta, "parentAgentId": parent, "status": "completed", "model": "small-model"}
    path.with_name(f"agent-{agent}.meta.json").write_text(json.dumps(note, indent=2))
    return path


def write_session(home: Path) -> Path:
    """A session with all kinds of records, and its sub-agent."""
    bell, text = f"{FOLDER}/bell.py", "def ring(times):\n    return 'dong ' * times\n"
    log = Transcript()
    log.prompt("Make a script that rings the bell three times.")
    log.system("attribution_snapshot", snapshot={"type": "attribution-snapshot", "version": 1, "fileStates": {}})
    log.telemetry(prompt_id=f"{SESSION}########0")
    log.reply(
        {"text": "A script, then.", "thought": True},
        {"text": "I write the script."},
        call("call_1", "write_file", file_path=bell, content=text),
    )
    log.result(
        "call_1",
        "write_file",
        f"Successfully created and wrote to new file: {bell}.",
        display=diff_display(bell, "", text),
    )
    log.reply(
        call("call_2", "run_shell_command", command="exit 3", description="Fail", is_background=False),
        call("call_3", "todo_write", todos=[{"id": "1", "content": "Add a test", "status": "pending"}]),
    )
    log.result("call_2", "run_shell_command", "Command: exit 3\nExit Code: 3", is_error=True)
    todos = [{"id": "1", "content": "Add a test", "status": "pending"}]
    log.result("call_3", "todo_write", "Todos have been modified.", display={"type": "todo_list", "todos": todos})
    log.reply(call("call_4", "agent", description="Count", prompt="Count the words.", subagent_type="general-purpose"))
    log.result("call_4", "agent", "Background agent launched successfully.")
    log.telemetry(prompt_id=f"{SESSION}#general-purpose-call_4#0", subagent_id="general-purpose-call_4")
    log.telemetry(prompt_id=f"{SESSION}#memory-1#0", subagent_id="memory-1")
    log.prompt("<task-notification>done</task-notification>", subtype="notification", provenance="system")
    log.reply({"text": "The bell rings, and README.md has 9 words."})
    log.system("slash_command", phase="invocation", rawCommand="/about")
    log.system("custom_title", customTitle="A bell for high water", titleSource="manual")
    write_subagent(home, "general-purpose-call_4", "call_4")
    return log.write(home)
