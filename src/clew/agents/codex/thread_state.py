"""The state of a thread while its records pass: ids, parents, turns, and what holds for the next message."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from clew.agents.codex.items import folder_of


class _Turn(NamedTuple):
    before: str | None
    """The message right before the turn."""
    before_context: str | None
    """The message before the injected context that leads into the turn."""


class ThreadState:
    """Follows one rollout. A rollout is a linear log without parent ids: a message follows the one before it that
    was not rolled back."""

    def __init__(self, name: str) -> None:
        self.name = name
        """The id that derived message ids begin with."""
        self._prefix = f"{name}:"
        self.last: str | None = None
        """The last message that was not rolled back."""
        self.model: str | None = None
        self.effort: str | None = None
        self.context: dict[str, str] = {}
        """What holds for the messages to come: cwd, git_branch, agent_version, user_type."""
        self._stated: dict[str, str] = {}
        self.has_changed_context = False
        """True when something was said of it since the last message."""
        self.was_rolled_back = False
        self._turns: list[_Turn] = []
        self._before_context: str | None = None
        self._is_in_context = False
        """True behind injected context, which may lead into a turn."""
        self._ids: set[str] = set()
        self._line, self._nth = 0, 0

    def message_id(self, item_id: str | None, line: int) -> str:
        """The id of the message on a line: that of its item unless an earlier item has it, else thread and line.

        Items have ids since v0.142. An id that was given once stays, however the rollout grows.
        """
        self._nth = self._nth + 1 if line == self._line else 1
        self._line = line
        if item_id and item_id not in self._ids and not item_id.startswith(self._prefix):
            self._ids.add(item_id)
            return item_id
        return f"{self._prefix}{line}" if self._nth == 1 else f"{self._prefix}{line}.{self._nth}"

    def add_message(self, uuid: str, is_injected: bool, begins_turn: bool) -> str | None:
        """Add a message; returns the one it follows."""
        parent = self.last
        if begins_turn:
            self._turns.append(_Turn(parent, self._before_context if self._is_in_context else parent))
            self._is_in_context = False
        elif not is_injected:
            self._is_in_context = False
        elif not self._is_in_context:
            self._is_in_context, self._before_context = True, parent
        self.last = uuid
        return parent

    def begin_turn(self) -> None:
        """A turn that begins with something that is no message."""
        self._turns.append(_Turn(self.last, self.last))

    def roll_back(self, turns: int | None) -> None:
        """Leave the last turns; what comes next follows the message before them."""
        if not turns or turns < 0 or not self._turns:
            return
        self.was_rolled_back = True
        # The context that stands before the first turn stays, whatever is rolled back.
        first = self._turns[-turns] if turns < len(self._turns) else self._turns[0]
        self.last = first.before_context if turns < len(self._turns) else first.before
        del self._turns[-turns:]
        self._is_in_context = False

    def update_context(self, **facts: str | None) -> None:
        """Take over what a record says about the messages behind it."""
        self.context.update({name: fact for name, fact in facts.items() if fact})
        self.has_changed_context = self.context != self._stated

    def read_injected(self, texts: Sequence[str]) -> None:
        """Take the working folder from injected context: before v0.32 (September 2025) it stands nowhere else."""
        if "cwd" not in self.context:
            self.update_context(cwd=folder_of(texts))

    def take_changed_context(self) -> dict[str, str]:
        """The part of the context that no message has stated yet."""
        self.has_changed_context = False
        changed = {name: fact for name, fact in self.context.items() if self._stated.get(name) != fact}
        self._stated = dict(self.context)
        return changed
