"""The task list of a session: how each message changed it, and the thinking level that held then."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator
from typing import NamedTuple

import msgspec

from clew.analysis.todos import TodoState, progression
from clew.errors import UnknownReference
from clew.model.json import JSON
from clew.stored_session import StoredSession


class TodoHistory(NamedTuple):
    """The states of a task list in order, and the thinking level by message."""

    states: list[TodoState]
    thinking: dict[int, str]

    def rows(self) -> list[dict[str, JSON]]:
        """Every state as JSON."""
        return [{**msgspec.to_builtins(state), "thinking": self.thinking.get(state.index)} for state in self.states]

    def row_at(self, message: int) -> dict[str, JSON]:
        """The task list as it was at a message, as JSON; the history ends with that message."""
        todos = self.states[-1].todos if self.states else []
        return {"index": message, "todos": msgspec.to_builtins(todos), "thinking": self.thinking.get(message)}


def todo_history(
    session: StoredSession, message: int | None = None, branch: Collection[str] | None = None
) -> TodoHistory:
    """The task list up to a message, up to the end of a branch (uuids of its messages), or as it is now.

    Raises UnknownReference if there is no such message.
    """
    messages = list(_messages_to(session, message, branch))
    if message is not None and (not messages or messages[-1]["index"] != message):
        raise UnknownReference(f"session {session.id} has no message {message}")
    return TodoHistory(progression(messages), dict(_thinking_levels(messages)))


def _messages_to(
    session: StoredSession, message: int | None, branch: Collection[str] | None
) -> Iterator[dict[str, JSON]]:
    """The messages that led to the one wanted, to the end of a branch, or to where the conversation stands."""
    if branch is not None:
        on_branch = set(branch)
        for unit in session.units():
            if unit.is_message and unit.value["uuid"] in on_branch and unit.value["index"] <= (message or sys.maxsize):
                yield unit.value
        return
    tree = session.tree
    indexes = tree.links.messages
    node = tree.leaf if message is None else next((n for n, index in enumerate(indexes) if index == message), -1)
    on_path = {indexes[step] for step in tree.links.ancestors(node) if indexes[step]}
    if message is None:
        on_path.update(indexes[step] for step in tree.path)
    for unit in session.units():
        if unit.is_message and unit.value["index"] in on_path:
            yield unit.value


def _thinking_levels(messages: list[dict[str, JSON]]) -> Iterator[tuple[int, str]]:
    """For each message the thinking level that held when it was written."""
    level: str | None = None
    for message in messages:
        thinking = (message.get("metadata") or {}).get("thinking") or {}
        if thinking.get("disabled") is True:
            level = "off"
        elif thinking.get("level"):
            level = str(thinking["level"])
        if level is not None:
            yield message["index"], level
