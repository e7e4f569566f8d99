"""Sessions that are longer than what a page shows at once."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

MIDDLING, MIDDLING_COUNT = "0f6a1c52-0000-4000-8000-0000000000ee", 950


def write_long_session(
    home: Path, session: str, count: int, texts: Mapping[int, str] | None = None, prompt_every: int = 10
) -> None:
    """Write a session of Claude Code. `texts` are those of some messages by their numbers."""
    project = home / ".claude" / "projects" / "-home-ada-long"
    project.mkdir(parents=True, exist_ok=True)
    texts = texts or {}
    with (project / f"{session}.jsonl").open("w") as out:
        for number in range(1, count + 1):
            who = "user" if number % prompt_every == 1 else "assistant"
            out.write(_line(number, who, texts.get(number, f"Word {number}. " * 9), session))


def _line(number: int, who: str, text: str, session: str) -> str:
    value = {
        "type": who,
        "uuid": f"0f6a1c52-1111-4000-8000-{number:012}",
        "parentUuid": f"0f6a1c52-1111-4000-8000-{number - 1:012}" if number > 1 else None,
        "sessionId": session,
        "timestamp": "2026-11-02T10:00:00.000Z",
        "cwd": "/home/ada/long",
        "message": {"role": who, "content": text if who == "user" else [{"type": "text", "text": text}]},
    }
    return json.dumps(value) + "\n"
