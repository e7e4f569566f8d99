"""Small transcripts of Claude Code, written record by record for the tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def transcript(folder: Path, *records: dict[str, Any]) -> Path:
    """A transcript of these records."""
    path = folder / "aaaaaaaa-0000-4000-8000-000000000001.jsonl"
    path.write_text("".join(json.dumps(record, separators=(",", ":")) + "\n" for record in records))
    return path


def spoke(role: str, said: str | list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    """A record in which somebody says a text, or these blocks."""
    content = [{"type": "text", "text": said}] if isinstance(said, str) else said
    record = {"type": role, "sessionId": "s", "cwd": "/home/ada", "timestamp": "2026-10-20T09:00:00.000Z", **more}
    return {**record, "message": {"role": role, "content": content}}


def tried(*, is_error: bool) -> list[dict[str, Any]]:
    """A call and its result."""
    call = {"type": "tool_use", "id": "c1", "name": "Bash", "input": {"command": "false"}}
    result = {"type": "tool_result", "tool_use_id": "c1", "content": "no", "is_error": is_error}
    return [
        spoke("user", "try", uuid="u1", parentUuid=None),
        spoke("assistant", [call], uuid="u2", parentUuid="u1"),
        spoke("user", [result], uuid="u3", parentUuid="u2"),
    ]


def helped(parent: str | None) -> list[dict[str, Any]]:
    """A sub-agent within the file of its session, hanging on nothing or on a message."""
    return [
        spoke("user", "one", uuid="u1", parentUuid=None),
        spoke("assistant", "two", uuid="u2", parentUuid="u1"),
        spoke("user", "aside", uuid="s1", parentUuid=parent, isSidechain=True),
        spoke("assistant", "aside too", uuid="s2", parentUuid="s1", isSidechain=True),
        spoke("user", "three", uuid="u3", parentUuid="u2"),
    ]
