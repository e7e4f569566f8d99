"""The todo list of a session on its way: as a call sets it, or as it stands on the messages themselves."""

from __future__ import annotations

from typing import TypeGuard

from clew.agents.receiving import Capacity
from clew.agents.tools import TODOS, Translator
from clew.model.json import JSON

_DONE = "completed"


class Todos:
    """Follows the list as it stands, and what the target has been told of it."""

    def __init__(self, capacity: Capacity, translator: Translator, title: str) -> None:
        self._capacity, self._translator, self._title = capacity, translator, title
        # Where no tool sets the list and messages carry it, a call alone sets nothing.
        self._is_set_by_calls = not capacity.todos or translator.writes(TODOS)
        self._now: list[JSON] = []
        self._told: list[JSON] = []
        self.changed = 0
        """Index of the message that changed the list last."""

    def see(self, message: dict[str, JSON]) -> None:
        """Take notice of a message of the path, whether it goes over or not."""
        listed = (message.get("metadata") or {}).get("todos")
        if _is_list(listed):
            self._set(listed, message["index"])
        for block in message["content"]:
            if block["type"] == "tool_use" and self._translator.kind(block["tool_name"]) == TODOS:
                common = self._translator.common(block["tool_name"], block["input"])
                called = common.get("todos") if isinstance(common, dict) else None
                if _is_list(called):
                    self._set(called, message["index"])
                    self._told = self._now if self._is_set_by_calls else self._told

    def _set(self, todos: list[JSON], index: int) -> None:
        if _key(todos) != _key(self._now):
            self._now, self.changed = todos, index

    @property
    def _is_told(self) -> bool:
        if _key(self._now) == _key(self._told):
            return True
        # An agent puts a list away once all of it is done.
        return not self._now and all(todo.get("status") == _DONE for todo in self._told)

    def carried(self, role: str) -> dict[str, JSON]:
        """What a message that goes over has to say of the list."""
        if self._is_told or role not in self._capacity.todos:
            return {}
        self._told = self._now
        return {"todos": self._now}

    def lost(self) -> tuple[str, str] | None:
        """What the target is never told of, and why; asked once all was seen."""
        if self._is_told:
            return None
        why = "no message follows that could carry it" if self._capacity.todos else f"{self._title} has no place for it"
        return ("the todo list" if self._now else "that the todo list was emptied"), why


def _is_list(todos: JSON) -> TypeGuard[list[JSON]]:
    return isinstance(todos, list) and all(isinstance(todo, dict) for todo in todos)


def _key(todos: list[JSON]) -> list[tuple[JSON, JSON]]:
    return [(todo.get("content"), todo.get("status")) for todo in todos]
