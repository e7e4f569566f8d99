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


def write_sessions(home: Path, count: int, first_year: int = 2026) -> None:
    """Write sessions of three projects, one on each day from January 1 on, "Task number 000" and so on."""
    for number in range(count):
        identity = session_id(number)
        month, day = divmod(number, 28)
        place: dict[str, Any] = {
            "cwd": f"/srv/project{number % 3}",
            "timestamp": f"{first_year + month // 12}-{1 + month % 12:02}-{1 + day:02}T10:00:00.000Z",
            "gitBranch": f"topic{number % 5}",
            "sessionId": identity,
        }
        asked = prompt(f"Task number {number:03}", uuid=f"prompt-{number}", **place)
        claude(home, asked, reply(f"m{number}", 1, 2, **place), session=identity)
