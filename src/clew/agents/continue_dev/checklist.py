"""The todo list of Continue: a text with a line `- [x] task` or `- [ ] task` for each task."""

from __future__ import annotations

import re
from collections.abc import Iterable

from clew.model.json import JSON

_IN_PROGRESS = " (in progress)"
"""Written behind a task that is under way, because Continue has no mark for it."""
_LINE = re.compile(r"\s*[-*] \[([ xX])\] (.+)")


def parse_checklist(text: str) -> list[dict[str, JSON]]:
    """The tasks of a list, each with its content and status."""
    found = (_LINE.fullmatch(line) for line in text.splitlines())
    return [_task(match[2].strip(), is_done=match[1] != " ") for match in found if match is not None]


def _task(content: str, *, is_done: bool) -> dict[str, JSON]:
    if is_done:
        return {"content": content, "status": "completed"}
    if content.endswith(_IN_PROGRESS):
        return {"content": content.removesuffix(_IN_PROGRESS), "status": "in_progress"}
    return {"content": content, "status": "pending"}


def format_checklist(todos: Iterable[JSON]) -> str:
    """A list as text."""
    return "\n".join(_line(todo) for todo in todos if isinstance(todo, dict))


def _line(todo: dict[str, JSON]) -> str:
    status = todo.get("status")
    mark, end = "x" if status == "completed" else " ", _IN_PROGRESS if status == "in_progress" else ""
    return f"- [{mark}] {todo.get('content', '')}{end}"
