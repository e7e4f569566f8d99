"""The task list of a session over its messages, whatever era of whatever agent wrote it.

A whole list comes from the message itself, from a call of a tool for todos or its result, or from a reminder of the
agent; a single task from TaskCreate and TaskUpdate calls. A call counts when its result is there and no error.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Literal

import msgspec
from msgspec import UNSET

from clew.analysis.messages import is_sidechain, metadata_of
from clew.model import Todo
from clew.model.json import JSON

_LISTS = {"TodoWrite": "todos", "update_plan": "plan"}
"""Calls that give the whole list, and the key they give it under."""
SINGLE = ("TaskCreate", "TaskUpdate")
"""Calls that give one task."""
_CALLS = (*_LISTS, *SINGLE)
_NAMES = {
    "content": ("content", "subject", "step", "description"),
    "status": ("status",),
    "active_form": ("active_form", "activeForm"),
    "priority": ("priority",),
    "id": ("id",),
}
_NUMBER = re.compile(r"#(\w+)")


class TodoChange(msgspec.Struct, frozen=True):
    """What became of one item."""

    kind: Literal["added", "changed", "removed"]
    before: Todo | None
    after: Todo | None


class TodoState(msgspec.Struct, frozen=True):
    """The list as it stands after a message that changed it."""

    index: int
    todos: list[Todo]
    changes: list[TodoChange]


def progression(messages: Iterable[dict[str, JSON]]) -> list[TodoState]:
    """Every state of the list, in order; messages that change nothing give none.

    A sub-agent inside the session keeps a list of its own: only the chain of the first message is followed.
    """
    replay = Replay()
    states: list[TodoState] = []
    lane: bool | None = None
    for message in messages:
        lane = is_sidechain(message) if lane is None else lane
        if is_sidechain(message) != lane:
            continue
        for todos in replay.see(message):
            before = states[-1].todos if states else []
            changes = compare_todos(before, todos)
            if changes:
                states.append(TodoState(message["index"], todos, changes))
    return states


def todos_at(messages: Iterable[dict[str, JSON]], index: int) -> list[Todo]:
    """The list as it stood after message `index`."""
    states = [state for state in progression(messages) if state.index <= index]
    return states[-1].todos if states else []


def compare_todos(before: list[Todo], after: list[Todo]) -> list[TodoChange]:
    """What changed from one list to another; items are the same by id, else by content."""
    old, new = _keyed(before), _keyed(after)
    changes = [
        TodoChange("changed" if key in old else "added", old.get(key), todo)
        for key, todo in new.items()
        if old.get(key) != todo
    ]
    return changes + [TodoChange("removed", todo, None) for key, todo in old.items() if key not in new]


def _keyed(todos: list[Todo]) -> dict[tuple[str, int], Todo]:
    seen: dict[str, int] = {}
    keyed: dict[tuple[str, int], Todo] = {}
    for todo in todos:
        name = f"id {todo.id}" if isinstance(todo.id, str) else f"content {todo.content}"
        number = seen[name] = seen.get(name, 0) + 1
        keyed[name, number] = todo
    return keyed


def as_todo(value: JSON) -> Todo:
    """One item in our words; what is not of the expected type is left out."""
    todo = Todo()
    if not isinstance(value, dict):
        return Todo(content=value) if isinstance(value, str) else todo
    for name, spellings in _NAMES.items():
        for spelling in spellings:
            item = value.get(spelling)
            if type(item) is int and name == "id":
                item = str(item)
            if isinstance(item, str):
                setattr(todo, name, item)
                break
    return todo


def as_todos(value: JSON) -> list[Todo] | None:
    """The items of a list in our words; None where it is no list."""
    return [as_todo(item) for item in value] if isinstance(value, list) else None


class Replay:
    """The current list, and the calls that wait for their result."""

    def __init__(self) -> None:
        self.todos: list[Todo] = []
        self._calls: dict[str, dict[str, JSON]] = {}

    def see(self, message: dict[str, JSON]) -> Iterator[list[Todo]]:
        """The list after each step that this message takes."""
        stated = as_todos(metadata_of(message).get("todos"))
        if stated is not None:
            yield self._replace(stated)
        for block in message["content"]:
            if block["type"] == "tool_use" and block.get("tool_name") in _CALLS and block.get("tool_id"):
                self._calls[block["tool_id"]] = block
        for block in message["content"]:
            if block["type"] == "tool_result":
                call = self._calls.pop(block.get("tool_id") or "", None)
                if call is not None and not block.get("is_error"):
                    yield self._apply(call, block)

    def _replace(self, todos: list[Todo]) -> list[Todo]:
        self.todos = todos
        return todos

    def _apply(self, call: dict[str, JSON], block: dict[str, JSON]) -> list[Todo]:
        arguments = call.get("input")
        if not isinstance(arguments, dict):
            return self.todos
        if call["tool_name"] in _LISTS:
            return self._replace(as_todos(arguments.get(_LISTS[call["tool_name"]])) or [])
        if call["tool_name"] == "TaskCreate":
            return self._replace([*self.todos, _created(arguments, block)])
        return self._replace(list(self._updated(arguments)))

    def _updated(self, arguments: dict[str, JSON]) -> Iterator[Todo]:
        # A task is called by its subject; what describes it further is no name.
        change = as_todo({**arguments, "description": None, "id": arguments.get("taskId")})
        for todo in self.todos:
            if todo.id != change.id:
                yield todo
            elif change.status != "deleted":
                stated = {name: value for name in _NAMES if (value := getattr(change, name)) is not UNSET}
                yield msgspec.structs.replace(todo, **stated)


def stepped(todos: list[Todo], call: dict[str, JSON], answer: dict[str, JSON]) -> list[Todo] | None:
    """The list after a call that gives one task, and its result; None for any other call, and one that failed."""
    if call.get("tool_name") not in SINGLE or answer.get("is_error"):
        return None
    replay = Replay()
    replay.todos = todos
    return replay._apply(call, answer)


def _created(arguments: dict[str, JSON], block: dict[str, JSON]) -> Todo:
    """A new task; only the result knows its id."""
    todo = as_todo({"status": "pending", **arguments})
    number = _NUMBER.search(block["output"]) if isinstance(block.get("output"), str) else None
    if number is not None:
        todo.id = number.group(1)
    return todo
