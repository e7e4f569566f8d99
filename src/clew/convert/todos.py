"""The todo list of a session on its way: as a call sets it, or as it stands on the messages themselves."""

from __future__ import annotations

import msgspec

from clew.agents.target_profile import Capacity
from clew.agents.tools import TODOS, Translator
from clew.analysis.todos import Replay
from clew.model import Todo
from clew.model.json import JSON

_DONE = "completed"


class Todos:
    """Follows the list as it stands, and what the target has been told of it."""

    def __init__(self, capacity: Capacity, translator: Translator, title: str) -> None:
        self._capacity, self._translator, self._title = capacity, translator, title
        # Where no tool sets the list and messages carry it, a call alone sets nothing.
        self._is_set_by_calls = not capacity.todos or translator.writes(TODOS)
        self._replay = Replay()
        self._calls: set[str] = set()
        """Those that set the list there as well, once their results say that they did."""
        self._told: list[Todo] = []
        self.changed = 0
        """Index of the message that changed the list last."""

    def see(self, message: dict[str, JSON]) -> None:
        """Take notice of a message of the path, whether it goes over or not."""
        before = self._replay.todos
        for _ in self._replay.see(message):
            pass
        if _key(self._replay.todos) != _key(before):
            self.changed = message["index"]
        for block in message["content"]:
            if block["type"] == "tool_use" and self._translator.kind(block["tool_name"]) == TODOS:
                self._calls.add(block["tool_id"])
            elif block["type"] == "tool_result" and block["tool_id"] in self._calls:
                self._calls.discard(block["tool_id"])
                if self._is_set_by_calls and not block.get("is_error"):
                    self._told = self._replay.todos

    @property
    def _is_told(self) -> bool:
        if _key(self._replay.todos) == _key(self._told):
            return True
        # An agent puts a list away once all of it is done.
        return not self._replay.todos and all(todo.status == _DONE for todo in self._told)

    def carried(self, role: str) -> dict[str, JSON]:
        """What a message that goes over has to say of the list."""
        if self._is_told or role not in self._capacity.todos:
            return {}
        self._told = self._replay.todos
        return {"todos": msgspec.to_builtins(self._told)}

    def lost(self) -> tuple[str, str] | None:
        """What the target is never told of, and why; asked once all was seen."""
        if self._is_told:
            return None
        why = "no message follows that could carry it" if self._capacity.todos else f"{self._title} has no place for it"
        return ("the todo list" if self._replay.todos else "that the todo list was emptied"), why


def _key(todos: list[Todo]) -> list[tuple[JSON, JSON]]:
    return [(todo.content, todo.status) for todo in todos]
