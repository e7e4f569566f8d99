"""Small sessions of Claude Code for the tests of `clew mcp`."""

import json
from pathlib import Path
from typing import Any


def write_session(
    home: Path,
    *messages: tuple[str, str | list[dict[str, Any]]],
    session: str = "s1",
    cwd: str = "/p",
    branch: str = "",
) -> None:
    """Write a session with these messages, each a role and its content, below a home."""
    records = [
        {
            "type": role,
            "sessionId": session,
            "uuid": f"u{number}",
            "parentUuid": f"u{number - 1}" if number > 1 else None,
            "cwd": cwd,
            **({"gitBranch": branch} if branch else {}),
            "timestamp": f"2026-01-01T{number // 3600:02}:{number // 60 % 60:02}:{number % 60:02}Z",
            "message": {"role": role, "content": content},
        }
        for number, (role, content) in enumerate(messages, 1)
    ]
    path = home / ".claude" / "projects" / "-p" / f"{session}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records))
