"""Events and items that say the same: which events are the only ones to say what they say."""

from __future__ import annotations

import sys
from collections import Counter

from msgspec import UNSET

from clew.agents.codex.lines import Block
from clew.io.codec import dumps
from clew.model.json import JSON

NEAR = 8
"""So many lines may lie between an event and the item that says the same."""
Texts = dict[bytes, int]
"""Texts as they are spelled, and how often each stands there."""
_MOST = 1 << 20
"""So many bytes of words wait together at most."""


class _Run:
    """Events that stand line by line, of which no item has said the words so far: all of them may belong to one."""

    __slots__ = ("end", "size", "waiting")

    def __init__(self, line: int, spelled: bytes) -> None:
        self.end = line
        self.size = len(spelled)
        self.waiting = [(line, spelled)]

    def goes_on(self, line: int) -> bool:
        """True where an event on that line stands with these."""
        return line <= self.end + 1 and self.size < _MOST

    def add(self, line: int, spelled: bytes) -> None:
        """One more event."""
        self.end, self.size = line, self.size + len(spelled)
        self.waiting.append((line, spelled))

    def take(self, texts: Texts) -> None:
        """Let each text have one event that says it; what has one is taken away on both sides."""
        waiting, self.waiting = self.waiting, []
        for event in waiting:
            if event[1] in texts:
                _take(texts, event[1])
            else:
                self.waiting.append(event)


class Twins:
    """Sees words in items and in events, and finds the events that stand alone."""

    def __init__(self) -> None:
        self._lone: set[int] = set()
        self._users: list[tuple[int, frozenset[bytes]]] = []
        """User items that no event repeats so far."""
        self._user_events: list[tuple[int, bytes]] = []
        self._said: list[tuple[int, Texts]] = []
        """Texts of the model that no event repeats so far, with the last line that said or repeated some of them."""
        self._runs: list[_Run] = []

    def saw_user(self, line: int, texts: frozenset[bytes]) -> None:
        """A user item stands right beside its event; its texts as they are spelled."""
        for event in self._user_events:
            if event[1] in texts and line - event[0] <= NEAR:
                self._user_events.remove(event)
                return
        self._settle(line)
        self._users = [*(user for user in self._users if line - user[0] <= 2 * NEAR), (line, texts)]

    def saw_assistant(self, line: int, texts: Texts) -> None:
        """An item of the model follows its events, one for each text, or stands right before them."""
        self._leave(line)
        for run in self._runs:
            run.take(texts)
        self._runs = [run for run in self._runs if run.waiting]
        if texts:
            self._said = [*self._said[-NEAR:], (line, texts)]

    def saw_event(self, line: int, kind: str, spelled: bytes) -> None:
        """An event with words."""
        if kind == "user_message":
            self._saw_user_event(line, spelled)
            return
        self._leave(line)
        for at, (near, texts) in enumerate(self._said):
            if line - near <= NEAR and spelled in texts:
                _take(texts, spelled)
                self._said[at] = line, texts
                return
        if self._runs and self._runs[-1].goes_on(line):
            self._runs[-1].add(line, spelled)
        else:
            self._runs.append(_Run(line, spelled))

    def _saw_user_event(self, line: int, spelled: bytes) -> None:
        for user in self._users:
            if line - user[0] <= NEAR and spelled in user[1]:
                self._users.remove(user)
                return
        self._settle(line)
        self._user_events.append((line, spelled))

    def _settle(self, line: int) -> None:
        """Events that no item repeats word for word belong to one nearby that has none: pictures go with its words."""
        while self._user_events and line - self._user_events[0][0] > NEAR:
            event, _ = self._user_events.pop(0)
            near = [user for user in self._users if abs(user[0] - event) <= NEAR]
            if near:
                self._users.remove(near[0])
            else:
                self._lone.add(event)

    def _leave(self, line: int) -> None:
        while self._runs and line - self._runs[0].end > NEAR:
            self._lone.update(event for event, _ in self._runs.pop(0).waiting)

    def lone(self) -> frozenset[int]:
        """Lines of the events that stand alone, once all lines were seen."""
        self._settle(sys.maxsize)
        self._leave(sys.maxsize)
        return frozenset(self._lone)


def _take(texts: Texts, text: bytes) -> None:
    """One less of a text that is there."""
    left = texts.pop(text) - 1
    if left:
        texts[text] = left


def spelled_texts(content: JSON) -> Texts:
    """The texts of an item as JSON, and how often each stands there."""
    texts = _spelled(content)
    return dict(Counter(texts)) if len(texts) > 1 else dict.fromkeys(texts, 1)


def spelled_prompt(content: JSON) -> frozenset[bytes]:
    """The texts of an item as JSON, and all of them as the one text that an event makes of several."""
    texts = _spelled(content)
    within = [text[1:-1] for text in texts] if len(texts) > 1 else []
    return frozenset(texts + [b'"%b"' % between.join(within) for between in (b"", rb"\n") if within])


def _spelled(content: JSON) -> list[bytes]:
    if isinstance(content, str):
        return [dumps(content)]
    if not isinstance(content, list):
        return []
    return [bytes(b.text) for b in content if isinstance(b, Block) and b.text is not UNSET]
