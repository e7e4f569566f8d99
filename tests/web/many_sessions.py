"""A home with many short sessions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.counting.homes import claude, prompt, reply


def session_id(number: int) -> str:
    """The id of a session."""
    return f"{number:08x}-1111-4111-8111-111111111111"


def address(number: int) -> str:
    """The address of a session's page."""
    return f"/session/claude-code/{session_id(number)}"


def write_sessions(home: Path, count: int) -> None:
    """Write sessions of three projects, one on each day from 2026-01-01 on, "Task number 000" and so on."""
    for number in range(count):
        identity = session_id(number)
        place: dict[str, Any] = {
            "cwd": f"/srv/project{number % 3}",
            "timestamp": f"2026-{1 + number // 28:02}-{1 + number % 28:02}T10:00:00.000Z",
            "gitBranch": f"topic{number % 5}",
            "sessionId": identity,
        }
        asked = prompt(f"Task number {number:03}", uuid=f"prompt-{number}", **place)
        claude(home, asked, reply(f"m{number}", 1, 2, **place), session=identity)
