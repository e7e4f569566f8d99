"""A message on its way into the log: what it says, where the session stands, and what its author is told of it."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
from msgspec import UNSET, UnsetType

from clew.model.json import JSON
from clew.store.tree import MAIN
from clew.store.wire import MessageRecord, TodoItem, refuse_odd


class Receipt(msgspec.Struct, frozen=True, gc=False):
    """A record is in the log: its id and its number."""

    uuid: str
    seq: int
    written: bool = True
    """False where the log held a record of this id already."""


@dataclass(slots=True)
class State:
    """Where a session stands."""

    seq: int = 0
    head: str | None = None
    branch: str = MAIN
    is_tip: bool = True
    """False where what follows the head may begin a branch."""
    todos: list[TodoItem] | msgspec.Raw | UnsetType = UNSET
    """The task list at the head; UNSET where the end of the log does not tell."""

    def copied(self) -> State:
        """The same apart."""
        return State(self.seq, self.head, self.branch, self.is_tip, self.todos)


class Draft(msgspec.Struct, gc=False):
    """A message that has no place yet. Without a parent it follows the head."""

    record: MessageRecord
    parent: str | None | UnsetType = UNSET
    sidechain: bool | None = None
    extra: dict[str, JSON] | None = None

    def __post_init__(self) -> None:
        """Refused here, and not when it is written: that must be quick."""
        if self.extra:
            refuse_odd(self.extra, "the metadata")
