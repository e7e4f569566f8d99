"""The state of a thread while its lines pass: who follows whom, and what holds for the next message."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from clew.agents.codex.words import folder_of


class _Turn(NamedTuple):
    before: str | None
    """The message right before the turn."""
    context: str | None
    """The message before the injected context that leads into the turn."""


class Thread:
    """Follows one rollout."""

    def __init__(self, name: str) -> None:
        self.name = name
        """The id that derived message ids begin with."""
        self.prefix = f"{name}:"
        self.last: str | None = None
        """The last message that was not rolled back."""
        self.model: str | None = None
        self.effort: str | None = None
        self.surroundings: dict[str, str] = {}
        """What holds for the messages to come: cwd, git_branch, agent_version, user_type."""
        self._stated: dict[str, str] = {}
        self.has_news = False
        """True when something was said of them since the last message."""
        self.was_rolled_back = False
        self._turns: list[_Turn] = []
        self._before_context: str | None = None
        self.in_context = False
        """True behind context that was put in, which may lead into a turn."""
        self._line, self._nth = 0, 0

    def uuid(self, item: str | None, line: int, repeated: frozenset[str]) -> str:
        """The id of the message on a line: its own where that is unique, else the thread's and the line."""
        if line == self._line:
            self._nth += 1
        else:
            self._line, self._nth = line, 1
        if item and item not in repeated and not item.startswith(self.prefix):
            return item
        return f"{self.prefix}{line}" if self._nth == 1 else f"{self.prefix}{line}.{self._nth}"

    def follow(self, uuid: str, injected: bool, begins: bool) -> str | None:
        """Add a message; returns the one it follows."""
        parent = self.last
        if begins:
            self._turns.append(_Turn(parent, self._before_context if self.in_context else parent))
            self.in_context = False
        elif injected:
            if not self.in_context:
                self.in_context, self._before_context = True, parent
        else:
            self.in_context = False
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
        self.last = first.context if turns < len(self._turns) else first.before
        del self._turns[-turns:]
        self.in_context = False

    def surround(self, **facts: str | None) -> None:
        """Take over what was said about the surroundings."""
        self.surroundings.update({name: fact for name, fact in facts.items() if fact})
        self.has_news = self.surroundings != self._stated

    def read_context(self, texts: Sequence[str]) -> None:
        """Injected context names the folder, which the oldest sessions say nowhere else."""
        if "cwd" not in self.surroundings:
            self.surround(cwd=folder_of(texts))

    def news(self) -> dict[str, str]:
        """The surroundings that no message has stated yet."""
        if not self.has_news:
            return {}
        self.has_news = False
        news = {name: fact for name, fact in self.surroundings.items() if self._stated.get(name) != fact}
        self._stated = dict(self.surroundings)
        return news
