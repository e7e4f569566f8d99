"""Sessions of Claude Code with tool calls, for tests of reading, of searched words and of comparison."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

WORKSPACE = "/home/ada/tidepool"


def uuid_of(session: str, number: int) -> str:
    """The uuid of a record; those of another session are others, or its messages would be copies."""
    return f"0f6a1c52-22{session[-2:]}-4000-8000-{number:012}"


def record(
    session: str, number: int, role: str, content: Any, *, parent: int | None = None, second: int | None = None
) -> dict[str, Any]:
    """A record; its parent is the one before it unless another is named, 0 for none."""
    above = number - 1 if parent is None else parent
    at = number if second is None else second
    message: dict[str, Any] = {"role": role, "content": content}
    if role == "assistant":
        usage = {"input_tokens": 100, "output_tokens": 10}
        message |= {"id": f"msg_{session[-2:]}_{number}", "model": "claude-sonnet-4-5", "usage": usage}
    return {
        "type": role,
        "uuid": uuid_of(session, number),
        "parentUuid": uuid_of(session, above) if above else None,
        "sessionId": session,
        "timestamp": f"2026-11-02T{10 + at // 3600:02}:{at // 60 % 60:02}:{at % 60:02}.000Z",
        "cwd": WORKSPACE,
        "message": message,
    }


def prompt(session: str, number: int, text: str, **more: Any) -> dict[str, Any]:
    """A prompt of the user."""
    return record(session, number, "user", text, **more)


def answer(session: str, number: int, text: str, **more: Any) -> dict[str, Any]:
    """A reply without calls."""
    return record(session, number, "assistant", [{"type": "text", "text": text}], **more)


def call(session: str, number: int, name: str, arguments: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A reply with one tool call."""
    block = {"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": arguments}
    return record(session, number, "assistant", [block], **more)


def result(session: str, number: int, of: int, text: str, *, is_error: bool = False, **more: Any) -> dict[str, Any]:
    """The result of the call in another record."""
    block = {"type": "tool_result", "tool_use_id": f"toolu_{of}", "content": text, "is_error": is_error}
    return record(session, number, "user", [block], **more)


def turns(session: str, count: int, first: int = 1) -> Iterator[dict[str, Any]]:
    """Turns of four messages: a prompt, a command, its output, an answer. Every fifth command fails."""
    for turn in range(count):
        number = first + 4 * turn
        yield prompt(session, number, f"Measure pool {turn + 1}.")
        yield call(session, number + 1, "Bash", {"command": f"gauge --pool {turn + 1}", "description": "Read a gauge"})
        is_error = turn % 5 == 4
        output = "\n".join(f"Reading {line} of pool {turn + 1}" for line in range(1, 31))
        yield result(session, number + 2, number + 1, output, is_error=is_error)
        yield answer(session, number + 3, f"Pool {turn + 1} is measured.")


def write_session(home: Path, session: str, records: Iterable[dict[str, Any]]) -> Path:
    """Write a session below a home."""
    path = home / ".claude" / "projects" / WORKSPACE.replace("/", "-") / f"{session}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(value) + "\n" for value in records))
    return path
