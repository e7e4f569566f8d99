"""File changes and task lists that the arguments of tool calls ask for; the same rules for every agent."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from clew.agents.tools import FILE_DELETE_TOOLS, FILE_EDIT_TOOLS, FILE_WRITE_TOOLS, Arguments
from clew.analysis.actions import OLD_AND_NEW_TEXTS, PATCH_START, PATHS, common_ends, patched_files
from clew.analysis.todos import as_todo

_PATH_KEYS = (*PATHS, "file")
_OLD_TEXT_KEYS = (*(old for old, _ in OLD_AND_NEW_TEXTS), "before")
_NEW_TEXT_KEYS = (*(new for _, new in OLD_AND_NEW_TEXTS), "after", "new_source")
_CONTENT_KEYS = ("content", "contents", "file_text", "text")
_TODO_LIST_KEYS = {"TodoWrite": "todos", "update_plan": "plan", "write_todos": "todos"}
"""The argument with the task list, by tool."""


class RequestedChange(NamedTuple):
    """A change of a file that a tool call asks for."""

    path: str
    op: str
    """create, edit or delete"""
    added: int | None
    removed: int | None
    """Lines; None where the arguments do not say how many."""


def requested_changes(tool: str, arguments: Arguments) -> list[RequestedChange]:
    """The file changes that a call asks for."""
    name, path = tool.lower(), named_file(arguments)
    if name in FILE_WRITE_TOOLS:
        content = _first_text(arguments, _CONTENT_KEYS)
        added = None if content is None else _count_lines(content)
        return [RequestedChange(path, "edit", added, 0)] if path else []
    if name in FILE_EDIT_TOOLS:
        # A tool of VS Code names a file for each of several replacements.
        several = arguments.get("replacements")
        edits = [edit for edit in several if isinstance(edit, dict)] if isinstance(several, list) else [arguments]
        return [RequestedChange(path, "edit", *_edited_lines(edit)) for edit in edits if (path := named_file(edit))]
    if name in FILE_DELETE_TOOLS:
        return [RequestedChange(path, "delete", 0, None)] if path else []
    return [change for text in _strings(arguments) if PATCH_START in text for change in _patched_files(text)]


def writes_whole_files(tool: str) -> bool:
    """True for a tool that writes whole files: the text of its result says whether the file is new."""
    return tool.lower() in FILE_WRITE_TOOLS


def named_file(arguments: Arguments) -> str | None:
    """The path of the file that a call names."""
    return next((value for key in _PATH_KEYS if isinstance(value := arguments.get(key), str) and value), None)


def written_lines(text: str) -> list[str]:
    """The lines that a call may have written, by the text of all its arguments: of a patch, those that it adds."""
    lines = text.split("\n")
    added = [line[1:] for line in lines if line.startswith("+")]
    return added if PATCH_START in text else lines + added


def requested_todos(tool: str, arguments: Arguments) -> list[tuple[str, str]]:
    """The task list that a call writes: content and status of each item."""
    items = arguments.get(_TODO_LIST_KEYS[tool]) if tool in _TODO_LIST_KEYS else None
    todos = [as_todo(item) for item in items if isinstance(item, dict)] if isinstance(items, list) else []
    return [(todo.content or "", todo.status or "") for todo in todos]


def _first_text(arguments: Arguments, keys: tuple[str, ...]) -> str | None:
    return next((value for key in keys if isinstance(value := arguments.get(key), str)), None)


def _count_lines(text: str) -> int:
    return text.count("\n") + (not text.endswith("\n")) if text else 0


def _edited_lines(arguments: Arguments) -> tuple[int | None, int | None]:
    """How many lines an edit, or a list of edits, adds and removes."""
    edits = arguments.get("edits")
    pairs = [arguments] if not isinstance(edits, list) else [edit for edit in edits if isinstance(edit, dict)]
    added = removed = 0
    for pair in pairs:
        old, new = _first_text(pair, _OLD_TEXT_KEYS), _first_text(pair, _NEW_TEXT_KEYS)
        if old is None and new is None:
            return None, None
        more, less = _changed_lines(old or "", new or "")
        added, removed = added + more, removed + less
    return added, removed


def _changed_lines(old: str, new: str) -> tuple[int, int]:
    """How many lines are added and removed between the common lines at the start and at the end."""
    before, after = old.split("\n") if old else [], new.split("\n") if new else []
    unchanged = sum(common_ends(before, after))
    return len(after) - unchanged, len(before) - unchanged


def _strings(arguments: Arguments) -> Iterator[str]:
    for value in arguments.values():
        if isinstance(value, str):
            yield value
        elif isinstance(value, list):
            yield from (item for item in value if isinstance(item, str))


def _patched_files(patch: str) -> Iterator[RequestedChange]:
    for file in patched_files(patch):
        lines = file.lines.split("\n")
        added, removed = (sum(line.startswith(sign) for line in lines) for sign in "+-")
        if file.op == "Delete":
            # A patch does not say how many lines a deleted file had.
            yield RequestedChange(file.path, "delete", 0, None)
        elif file.target in (None, file.path):
            yield RequestedChange(file.path, "create" if file.op == "Add" else "edit", added, removed)
        else:
            yield RequestedChange(file.path, "delete", 0, 0)
            yield RequestedChange(file.target, "create", added, removed)
