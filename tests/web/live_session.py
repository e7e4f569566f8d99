"""A small session that tests write to while it is shown."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

SESSION = "0f6a1c52-0000-4000-8000-0000000000cc"
ADDRESS = f"/session/claude-code/{SESSION}"


def line(number: int, text: str, when: datetime | None = None) -> str:
    """A prompt."""
    time = when.strftime("%Y-%m-%dT%H:%M:%S.000Z") if when else f"2026-11-01T10:00:{number % 60:02}.000Z"
    value = {
        "type": "user",
        "uuid": f"0f6a1c52-0000-4000-8000-{number:012}",
        "parentUuid": f"0f6a1c52-0000-4000-8000-{number - 1:012}" if number > 1 else None,
        "sessionId": SESSION,
        "timestamp": time,
        "cwd": "/home/ada/live",
        "message": {"role": "user", "content": text},
    }
    return json.dumps(value) + "\n"


def session_file(home: Path) -> Path:
    """A session with one message."""
    path = home / ".claude" / "projects" / "-home-ada-live" / f"{SESSION}.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text(line(1, "First."))
    return path
