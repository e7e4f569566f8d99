"""Which events are the only copy of a text.

Until v0.147 Codex logs what a person or the model says twice: as an item, and as an event (`user_message` or
`agent_message`) a few lines before or behind it. Items are the messages of a session. But some items were never
written, above all in rollouts of other writers: an event whose text no item nearby repeats becomes the message.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator

import msgspec
from msgspec import UNSET

from clew.agents.codex.items import is_injected_item, texts_of
from clew.agents.codex.records import EVENT_LINE, AnyRecord, UsagePayload
from clew.io.records import RawRecord
from clew.model import Problem

NEAR_RECORDS = 8
"""So many records may lie between an event and the item that says the same."""
MAX_RUN_CHARS = 1 << 20
"""Events that stand side by side wait for one item together, up to so many characters."""

Texts = dict[str, int]
"""The texts of an item, and how often each stands there."""


class _EventRun:
    """Events of the model that stand side by side and that no item has repeated so far: one item may repeat all."""

    __slots__ = ("end", "size", "waiting")

    def __init__(self) -> None:
        self.end = self.size = 0
        self.waiting: list[tuple[int, str]] = []


class DuplicateMatcher:
    """Sees the texts of items and events, each with the number of its record."""

    def __init__(self) -> None:
        self.undecided: set[int] = set()
        """Events of which is not known yet whether an item repeats them."""
        self.only_copies: set[int] = set()
        """Events that no item repeats."""
        self._prompts: list[tuple[int, frozenset[str]]] = []
        """User items that no event repeats so far."""
        self._user_events: list[tuple[int, str]] = []
        self._replies: list[tuple[int, Texts]] = []
        """Texts of the model that no event repeats so far, with the last record that said or repeated some of them."""
        self._runs: list[_EventRun] = []

    def add_prompt(self, number: int, texts: frozenset[str]) -> None:
        """A user item, with the texts that its event may have."""
        for event in self._user_events:
            if event[1] in texts and number - event[0] <= NEAR_RECORDS:
                self._user_events.remove(event)
                self.undecided.discard(event[0])
                return
        recent = (prompt for prompt in self._prompts if number - prompt[0] <= 4 * NEAR_RECORDS)
        self._prompts = [*recent, (number, texts)]

    def add_user_event(self, number: int, text: str) -> None:
        """An event with the words of a person."""
        for prompt in self._prompts:
            if number - prompt[0] <= NEAR_RECORDS and text in prompt[1]:
                self._prompts.remove(prompt)
                return
        self._user_events.append((number, text))
        self.undecided.add(number)

    def add_reply(self, number: int, texts: Texts) -> None:
        """An item of the model: its events, one for each text, stand before it or right behind it."""
        for run in self._runs:
            waiting, run.waiting = run.waiting, []
            for event in waiting:
                if event[1] in texts:
                    _take_one(texts, event[1])
                    self.undecided.discard(event[0])
                else:
                    run.waiting.append(event)
        self._runs = [run for run in self._runs if run.waiting]
        if texts:
            self._replies = [*self._replies[-NEAR_RECORDS:], (number, texts)]

    def add_agent_event(self, number: int, text: str) -> None:
        """An event with the words of the model."""
        for at, (near, texts) in enumerate(self._replies):
            if number - near <= NEAR_RECORDS and text in texts:
                _take_one(texts, text)
                self._replies[at] = number, texts
                return
        if not self._runs or number > self._runs[-1].end + 1 or self._runs[-1].size >= MAX_RUN_CHARS:
            self._runs.append(_EventRun())
        run = self._runs[-1]
        run.end, run.size = number, run.size + len(text)
        run.waiting.append((number, text))
        self.undecided.add(number)

    def expire(self, number: int) -> None:
        """Decide about the events that a record of this number is too far away from."""
        # Items nearby get as much time again to find an event with their own words.
        while self._user_events and number - self._user_events[0][0] > 2 * NEAR_RECORDS:
            event, _ = self._user_events.pop(0)
            self.undecided.discard(event)
            # An event with other words than any item belongs to an item nearby without an event: the item of a
            # prompt with pictures has more texts than the event.
            near = [prompt for prompt in self._prompts if abs(prompt[0] - event) <= NEAR_RECORDS]
            if near:
                self._prompts.remove(near[0])
            else:
                self.only_copies.add(event)
        while self._runs and number - self._runs[0].end > NEAR_RECORDS:
            events = [event for event, _ in self._runs.pop(0).waiting]
            self.undecided.difference_update(events)
            self.only_copies.update(events)


def _take_one(texts: Texts, text: str) -> None:
    left = texts.pop(text) - 1
    if left:
        texts[text] = left


class Entry(msgspec.Struct, gc=False):
    """One record of a rollout on its way through the decoder."""

    line: int
    """Counted from 1."""
    index: int
    """Of the record in its file, counted from 0."""
    record: AnyRecord | RawRecord | Problem
    """A typed record, a piece of a line that is none, or something wrong with the file."""
    kind: str | None = None
    """The kind of the item that it holds."""
    payload: UsagePayload | None = None
    is_only_copy: bool = False
    """True for an event whose text no item repeats."""


def mark_only_copies(entries: Iterable[Entry]) -> Iterator[Entry]:
    """Mark the events that no item repeats; an entry is held back until it is decided."""
    matcher = DuplicateMatcher()
    waiting: list[tuple[int, Entry]] = []
    undecided = matcher.undecided
    for number, entry in enumerate(entries, 1):
        if undecided:
            matcher.expire(number)
        if entry.payload is not None:
            _match(matcher, number, entry, entry.payload)
        if not undecided and not waiting:
            yield entry
            continue
        waiting.append((number, entry))
        if waiting[0][0] not in undecided:
            yield from _decided(waiting, matcher)
    matcher.expire(sys.maxsize)
    yield from _decided(waiting, matcher)


def _decided(waiting: list[tuple[int, Entry]], matcher: DuplicateMatcher) -> Iterator[Entry]:
    """The entries before the first that is not decided."""
    done = next((at for at, (number, _) in enumerate(waiting) if number in matcher.undecided), len(waiting))
    for number, entry in waiting[:done]:
        if number in matcher.only_copies:
            matcher.only_copies.discard(number)
            entry.is_only_copy = True
        yield entry
    del waiting[:done]


def _match(matcher: DuplicateMatcher, number: int, entry: Entry, payload: UsagePayload) -> None:
    """Show a record to the matcher, if it is a message or an event that may repeat one."""
    if entry.kind == "message" and payload.role in ("assistant", "user"):
        texts = texts_of(payload.content)
        if payload.role == "assistant":
            matcher.add_reply(number, dict(Counter(texts)) if len(texts) > 1 else dict.fromkeys(texts, 1))
        elif not is_injected_item(payload, texts):
            # An event makes one text of several.
            joined = ("".join(texts), "\n".join(texts)) if len(texts) > 1 else ()
            matcher.add_prompt(number, frozenset((*texts, *joined)))
    elif entry.kind != "message" and payload.message is not UNSET and _is_event(entry):
        # What is no text is never repeated by an item.
        text = payload.message if type(payload.message) is str else f"\0{payload.message!r}"
        if payload.type == "user_message":
            matcher.add_user_event(number, text)
        elif payload.type == "agent_message":
            matcher.add_agent_event(number, text)


def _is_event(entry: Entry) -> bool:
    return isinstance(entry.record, UsagePayload) and entry.record.type == EVENT_LINE
