"""The todo list of Continue: a text with a line `- [x] task` or `- [ ] task` for each task."""

from __future__ import annotations

import re
from collections.abc import Iterable

from clew.model.json import JSON

_LINE = re.compile(r"\s*[-*] \[([ xX])\] (.+)")


def parse_checklist(text: str) -> list[dict[str, JSON]]:
    """The tasks of a list, each with its content and status."""
    found = (_LINE.fullmatch(line) for line in text.splitlines())
    return [
        {"content": match[2].strip(), "status": "pending" if match[1] == " " else "completed"}
        for match in found
        if match is not None
    ]


def format_checklist(todos: Iterable[JSON]) -> str:
    """A list as text. It has no mark for a task that is under way."""
    tasks = [todo for todo in todos if isinstance(todo, dict)]
    return "\n".join(
        f"- [{'x' if todo.get('status') == 'completed' else ' '}] {todo.get('content', '')}" for todo in tasks
    )
