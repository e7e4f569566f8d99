"""Sessions of Claude Code written by hand, record by record, for tests about files."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from clew.agents import registry
from clew.file_history.history import FileHistory

SESSION = "5f0e7c1a-0d5b-4b6e-9d3a-6f1f0a2b3c4d"
FOLDER = "/home/ada/bell"


class Transcript:
    """A transcript that grows; `write` puts it and its copies below a home."""

    def __init__(self, version: str = "2.1.325", folder: str = FOLDER) -> None:
        self.records: list[dict[str, Any]] = []
        self.backups: dict[str, bytes] = {}
        self.index = 0
        self._version = version
        self._folder = folder
        self._last: str | None = None
        self.calls = 0

    def add(self, kind: str, content: Any, parent: str | None = None, **more: Any) -> int:
        """A message; returns its index."""
        self.index += 1
        uuid = f"u-{self.index}"
        message: dict[str, Any] = {"role": kind, "content": content}
        if kind == "assistant":
            message |= {"id": f"msg_{self.index}", "model": "claude-opus-4-8", "type": "message"}
        self.records.append(
            {
                "parentUuid": parent if parent is not None else self._last,
                "isSidechain": False,
                "cwd": self._folder,
                "sessionId": SESSION,
                "version": self._version,
                "type": kind,
                "message": message,
                "uuid": uuid,
                "timestamp": f"2026-10-01T08:{self.index // 60:02}:{self.index % 60:02}.000Z",
                **more,
            }
        )
        self._last = uuid
        return self.index

    def prompt(self, text: str = "Go on.", parent: str | None = None) -> int:
        """The person says something."""
        return self.add("user", text, parent)

    def call(self, name: str, given: dict[str, Any]) -> int:
        """The model calls a tool."""
        self.calls += 1
        return self.add("assistant", [{"type": "tool_use", "id": f"t-{self.calls}", "name": name, "input": given}])

    def result(self, told: Any = None, text: str = "done", error: bool = False, call: int | None = None) -> int:
        """What came of the last call, or of one by its number."""
        block = {"type": "tool_result", "tool_use_id": f"t-{call or self.calls}", "content": text}
        if error:
            block["is_error"] = True  # type: ignore[assignment]
        return self.add("user", [block], **({"toolUseResult": told} if told is not None else {}))

    def tool(self, name: str, given: dict[str, Any], told: Any = None, error: bool = False) -> int:
        """A call and its result; returns the index of the result."""
        self.call(name, given)
        return self.result(told, error=error)

    def read(self, path: str, text: str) -> int:
        """A file is read whole."""
        count = text.count("\n") + 1
        file = {"filePath": path, "content": text, "numLines": count, "startLine": 1, "totalLines": count}
        return self.tool("Read", {"file_path": path}, {"type": "text", "file": file})

    def edit(self, path: str, old: str, new: str, original: str | None) -> int:
        """A file is changed; `original` is what the record says it was."""
        told: dict[str, Any] = {
            "filePath": path,
            "oldString": old,
            "newString": new,
            "originalFile": original,
            "structuredPatch": [],
        }
        return self.tool("Edit", {"file_path": path, "old_string": old, "new_string": new}, told)

    def create(self, path: str, text: str) -> int:
        """A new file is written."""
        told: dict[str, Any] = {
            "type": "create",
            "filePath": path,
            "content": text,
            "structuredPatch": [],
            "originalFile": None,
        }
        return self.tool("Write", {"file_path": path, "content": text}, told)

    def shell(self, command: str) -> int:
        """A command runs."""
        return self.tool("Bash", {"command": command}, {"stdout": "", "stderr": "", "interrupted": False})

    def copy(self, path: str, body: bytes | None, version: int, call: int) -> None:
        """The agent notes the copy it made of a file before it changed it; None where there was none."""
        entry = self._entry(path, body, version)
        self.records.append(
            {
                "type": "file-history-delta",
                "messageId": f"u-{call}",
                "snapshotMessageId": "u-1",
                "trackingPath": path.removeprefix(f"{self._folder}/"),
                "backup": entry,
                "timestamp": "2026-10-01T08:00:00.000Z",
            }
        )

    def snapshot(self, prompt: int, files: dict[str, tuple[bytes | None, int]]) -> None:
        """All files that the agent keeps copies of, at a prompt."""
        entries = {
            path.removeprefix(f"{self._folder}/"): self._entry(path, body, version)
            for path, (body, version) in files.items()
        }
        inner = {"messageId": f"u-{prompt}", "trackedFileBackups": entries, "timestamp": "2026-10-01T08:00:00.000Z"}
        record = {"type": "file-history-snapshot", "messageId": f"u-{prompt}", "snapshot": inner}
        self.records.append({**record, "isSnapshotUpdate": False})

    def _entry(self, path: str, body: bytes | None, version: int) -> dict[str, Any]:
        name = f"{hashlib.sha256(path.encode()).hexdigest()[:16]}@v{version}"
        if body is not None:
            self.backups[name] = body
        when = "2026-10-01T08:00:00.000Z"
        return {"backupFileName": name if body is not None else None, "version": version, "backupTime": when}

    def write(self, home: Path) -> FileHistory:
        """Put it on disk."""
        path = home / ".claude" / "projects" / "-home-ada-bell" / f"{SESSION}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(record) + "\n" for record in self.records), encoding="utf-8")
        copies = home / ".claude" / "file-history" / SESSION
        copies.mkdir(parents=True, exist_ok=True)
        for name, body in self.backups.items():
            (copies / name).write_bytes(body)
        agent = registry.get("claude-code")
        return FileHistory(agent, agent.locate(path))
