"""Events and items that say the same: which events are the only ones to say what they say."""

from __future__ import annotations

from msgspec import UNSET

from clew.agents.codex.lines import Block
from clew.io.codec import dumps
from clew.model.json import JSON

NEAR = 8
"""So many lines may lie between an event and the item that says the same."""


class Twins:
    """Sees words in items and in events, and finds the events that stand alone."""

    def __init__(self) -> None:
        self._lone: set[int] = set()
        self._users: list[int] = []
        """Lines of the user items seen last."""
        self._user_events: list[int] = []
        self._said: list[tuple[int, frozenset[bytes]]] = []
        self._events: list[tuple[int, bytes]] = []

    def saw_user(self, line: int) -> None:
        """A user item stands right beside its event, whatever pictures go with its words."""
        while self._user_events and line - self._user_events[0] > NEAR:
            self._lone.add(self._user_events.pop(0))
        if self._user_events:
            self._user_events.pop(0)
        else:
            self._users = [*self._users[-NEAR:], line]

    def saw_assistant(self, line: int, texts: frozenset[bytes]) -> None:
        """An item of the model follows its event, or stands right before it; its texts as they are spelled."""
        self._leave(line)
        for event in self._events:
            if event[1] in texts:
                self._events.remove(event)
                return
        self._said = [*self._said[-NEAR:], (line, texts)]

    def saw_event(self, line: int, kind: str, spelled: bytes) -> None:
        """An event with words."""
        if kind == "user_message":
            near = [user for user in self._users if line - user <= NEAR]
            if near:
                self._users = near[1:]
            else:
                self._user_events.append(line)
            return
        self._leave(line)
        for said in self._said:
            if line - said[0] <= NEAR and spelled in said[1]:
                self._said.remove(said)
                return
        self._events.append((line, spelled))

    def _leave(self, line: int) -> None:
        while self._events and line - self._events[0][0] > NEAR:
            self._lone.add(self._events.pop(0)[0])

    def lone(self) -> frozenset[int]:
        """Lines of the events that stand alone, once all lines were seen."""
        waiting = {line for line, _ in self._events} | set(self._user_events)
        return frozenset(self._lone | waiting)


def spelled_texts(content: JSON) -> frozenset[bytes]:
    """The texts of an item as JSON."""
    if isinstance(content, str):
        return frozenset([dumps(content)])
    if not isinstance(content, list):
        return frozenset()
    return frozenset(bytes(b.text) for b in content if isinstance(b, Block) and b.text is not UNSET)
