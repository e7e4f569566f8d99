"""A session with a planted value in every place that a session has, as Claude Code writes it."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

from tests.redact.planted import Planter

SESSION = "0b0e2d8c-5a0f-4a5e-9d53-0d5a4f3c2b11"
WORKSPACE = "/srv/tide"


def values(seed: str = "history") -> dict[str, str]:
    """The planted values by the place they stand in."""
    plant = Planter(seed)
    return {
        "prompt": plant.github(),
        "reply": plant.anthropic(),
        "thinking": plant.google(),
        "command": plant.openai(),
        "output": plant.slack(),
        "nested": plant.jwt(),
        "env": plant.password(),
        "key_id": plant.aws_id(),
        "key": plant.aws_secret(),
        "pem": plant.pem(),
        "title": plant.github(),
        "todo": plant.anthropic(),
        "unknown": plant.openai(),
        "member": plant.github(),
        "torn": plant.slack(),
        "written": plant.google(),
        "packed": plant.github(),
        "split": plant.github(),
    }


class _Lines:
    """Lines that follow each other."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._last: str | None = None

    def said(self, kind: str, content: Any, **more: Any) -> None:
        uuid = f"00000000-0000-4000-8000-{len(self.lines):012}"
        line = {
            "parentUuid": self._last,
            "isSidechain": False,
            "userType": "external",
            "cwd": WORKSPACE,
            "sessionId": SESSION,
            "version": "2.1.14",
            "gitBranch": "main",
            "type": kind,
            "message": {"role": kind, "content": content},
            "uuid": uuid,
            "timestamp": f"2026-01-21T07:50:{len(self.lines):02}.000Z",
        }
        self._last = uuid
        self.add({**line, **more})

    def add(self, record: dict[str, Any]) -> None:
        self.lines.append(json.dumps(record, ensure_ascii=False, separators=(",", ":")))


def _call(identity: str, name: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": identity, "name": name, "input": arguments}


def _result(identity: str, content: Any) -> list[dict[str, Any]]:
    return [{"type": "tool_result", "tool_use_id": identity, "content": content}]


def lines(planted: dict[str, str]) -> list[str]:
    """The lines of the session; the last one is torn."""
    made = _Lines()
    made.said("user", f"Use {planted['prompt']} for the tide table.")
    made.said(
        "assistant",
        [
            {"type": "thinking", "thinking": f"The map needs {planted['thinking']}.", "signature": "E" + "q7Rt" * 60},
            {"type": "text", "text": f"I call it with `{planted['reply']}`."},
            _call("toolu_01a", "Bash", command=f"curl -H 'Authorization: Bearer {planted['command']}' https://x.test"),
        ],
    )
    made.said("user", _result("toolu_01a", f"posted as {planted['output']}\n"), toolUseResult={"stdout": "ok"})
    made.said("assistant", [_call("toolu_01b", "Read", file_path=f"{WORKSPACE}/.env")])
    env = (
        f"DB_PASSWORD={planted['env']}\nAWS_ACCESS_KEY_ID={planted['key_id']}\nAWS_SECRET_ACCESS_KEY={planted['key']}\n"
    )
    made.said(
        "user",
        _result("toolu_01b", env),
        toolUseResult={"type": "text", "file": {"filePath": f"{WORKSPACE}/.env", "content": env}},
    )
    made.said("assistant", [_call("toolu_01c", "Bash", command="cat ~/.ssh/id_ed25519; jq . session.json")])
    made.said(
        "user",
        _result("toolu_01c", [{"type": "text", "text": planted["pem"] + "\n" + json.dumps({"t": planted["nested"]})}]),
    )
    made.said(
        "assistant",
        [_call("toolu_01d", "Write", file_path=f"{WORKSPACE}/m.py", content=f"K = '{planted['written']}'\n")],
    )
    made.said(
        "user",
        _result("toolu_01d", "File created successfully"),
        toolUseResult={
            "type": "create",
            "filePath": f"{WORKSPACE}/m.py",
            "content": f"K = '{planted['written']}'\n",
            "structuredPatch": [],
            "originalFile": None,
        },
        todos=[{"content": f"revoke {planted['todo']}", "status": "pending", "activeForm": "revoking"}],
    )
    half = planted["split"]
    made.said(
        "assistant", [{"type": "text", "text": f"It is {half[:20]}"}, {"type": "text", "text": f"{half[20:]} in two."}]
    )
    packed = base64.b64encode(f"GITHUB_TOKEN={planted['packed']}\n".encode()).decode()
    made.said("user", f"As base64: {packed} and the password was {planted['env']} again.")
    made.said("assistant", [{"type": "text", "text": "Done."}], **{"hostile": {planted["member"]: True}})
    made.add({"type": "ai-title", "aiTitle": f"Rotate {planted['title']}", "sessionId": SESSION})
    made.add({"type": "newest-kind", "payload": [{"deep": f"x={planted['unknown']}"}], "sessionId": SESSION})
    return [*made.lines, '{"type":"user","message":{"role":"user","content":"then ' + planted["torn"]]


def write(home: Path, planted: dict[str, str]) -> Path:
    """The session below a home folder."""
    path = home / ".claude" / "projects" / "-srv-tide" / f"{SESSION}.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text("\n".join(lines(planted)), encoding="utf-8")
    return path
