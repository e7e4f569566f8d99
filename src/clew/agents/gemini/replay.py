"""The list of messages that the client would show, and for each message where its last version stands.

Replayed once before anything is read, with a few dozen bytes for each message and no content.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator

from clew.agents.derived import derived_id
from clew.agents.gemini.steps import Does, Step, Steps
from clew.agents.gemini.tables import PATCH
from clew.model.json import JSON

NONE = -1
SHOWN, EARLIER, FETCHED, PLACE = range(4)
"""What becomes of a version: the message is shown with it; it is kept as an earlier one; it is kept, and the message is
shown here with a version from further on; that version stands here."""


class Names:
    """Ids and their numbers: a hash table over one run of bytes, as dictionaries of texts are five times as large."""

    def __init__(self) -> None:
        self._bytes = bytearray()
        self._ends = array("Q", [0])
        self._table = array("i", [NONE]) * 64

    def __len__(self) -> int:
        return len(self._ends) - 1

    def __getitem__(self, number: int) -> str:
        return self._bytes[self._ends[number] : self._ends[number + 1]].decode("utf-8", "surrogatepass")

    def find(self, name: str) -> int:
        """The number of a name, NONE where it is not there."""
        return self._table[self._slot(name)]

    def add(self, name: str) -> int:
        """The number of a name that is new."""
        number = len(self)
        self._bytes += name.encode("utf-8", "surrogatepass")
        self._ends.append(len(self._bytes))
        self._table[self._slot(name)] = number
        if 3 * len(self) > 2 * len(self._table):
            self._grow()
        return number

    def _slot(self, name: str) -> int:
        mask = len(self._table) - 1
        at = hash(name) & mask
        while (number := self._table[at]) != NONE and self[number] != name:
            at = (at + 1) & mask
        return at

    def _grow(self) -> None:
        self._table = array("i", [NONE]) * (2 * len(self._table))
        for number in range(len(self)):
            self._table[self._slot(self[number])] = number

    def settle(self) -> None:
        """No more names will be looked for."""
        self._table = array("i", [NONE])


class Replay:
    """What the steps of a session come to."""

    def __init__(self) -> None:
        self.names = Names()
        self.parents = array("i")
        """For each message the one before it, when it was last put on the list."""
        self.active = array("i")
        self.answers = bytearray()
        """For each message 1 where results follow it; known once it was read."""
        self.causes: dict[int, str] = {}
        """Why the list goes on with a message elsewhere than where it stood."""
        self.brought: set[int] = set()
        """New messages that replaced others."""
        self.fetched: dict[int, tuple[int, int, int]] = {}
        """For a version that is FETCHED where the last one stands: part, start of its line, number in there."""
        self.unknown_rewinds: list[tuple[int, int, int, str]] = []
        self.codes = bytearray()
        self._at = array("i")
        self._rank = array("i")
        self._inside = bytearray()
        self._part = 0
        self._lists: list[tuple[str, array[int]]] = []
        self._updated = ""
        self._bases, self._ordinals, self._parts = array("q"), array("i"), array("h")
        self._cause: str | None = None
        self._is_replacing = False
        self._answered = array("q")

    def add(self, step: Step, base: int, ordinal: int) -> None:
        """Take the next step."""
        if step.part != self._part:
            self._close_file()
            self._part = step.part
        self._note_update(step)
        if step.does is Does.MESSAGE:
            self._message(step, base, ordinal)
        elif step.does is Does.REWIND:
            self._rewind(step)
        elif step.does is Does.CLEAR:
            self._is_replacing = bool(self.active)
            self._cut(0, "compaction")
        if step.element is None and step.does is not Does.CLEAR:
            self._is_replacing = False

    def _note_update(self, step: Step) -> None:
        value = step.record.value if step.does in (Does.NOTHING, Does.CLEAR) else None
        state = value.get(PATCH, value) if value is not None else None
        time = state.get("lastUpdated") if isinstance(state, dict) else None
        self._updated = max(self._updated, time) if isinstance(time, str) else self._updated

    def _close_file(self) -> None:
        """Each file is replayed by itself: the client reads one of them."""
        if self.active:
            self._lists.append((self._updated, self.active[:]))
        for number in self.active:
            self._at[number] = NONE
        self.active, self._updated, self._cause = array("i"), "", None

    def _choose_file(self) -> None:
        """What the client shows is the list of the file that was changed last."""
        self._close_file()
        if self._lists:
            latest = max(range(len(self._lists)), key=lambda at: (self._lists[at][0], at))
            self.active = self._lists[latest][1]
        before = NONE
        for number in self.active:
            self.parents[number], before = before, number
        self._lists = []

    def _message(self, step: Step, base: int, ordinal: int) -> None:
        name = step.id if step.id is not None else self.unnamed(step.part, len(self._rank))
        number = self.names.find(name)
        responses = _responses(step)
        if number == NONE and step.element is not None and responses and len(self.names):
            # Told for the model only: the results stand with their calls, or were recorded when they came.
            self._version(NONE, step, base, ordinal)
            return
        if number == NONE:
            number = self.names.add(name)
            self.parents.append(NONE)
            self._at.append(NONE)
            if self._is_replacing and step.element is not None:
                self.brought.add(number)
        if self._at[number] == NONE:
            self._append(number)
        self._version(number, step, base, ordinal)
        if step.element is None:
            self._answered.extend(hash(response) for response in responses)

    def _version(self, number: int, step: Step, base: int, ordinal: int) -> None:
        self._rank.append(number)
        self._inside.append(step.element is not None)
        self._bases.append(base)
        self._ordinals.append(ordinal)
        self._parts.append(step.part)

    @staticmethod
    def unnamed(part: int, slot: int) -> str:
        """The id of a message that has none, from its place."""
        return derived_id("gemini", part, slot)

    def _append(self, number: int) -> None:
        self.parents[number] = self.active[-1] if self.active else NONE
        self._at[number] = len(self.active)
        self.active.append(number)
        if self._cause is not None:
            self.causes[number] = self._cause
            self._cause = None

    def _rewind(self, step: Step) -> None:
        number = self.names.find(step.id or "")
        at = self._at[number] if number != NONE else NONE
        if at == NONE:
            record = step.record
            self.unknown_rewinds.append((step.part, record.line, record.start, step.id or ""))
        self._cut(max(at, 0), "rewind")

    def _cut(self, at: int, cause: str) -> None:
        if at < len(self.active):
            self._cause = cause
        for number in self.active[at:]:
            self._at[number] = NONE
        del self.active[at:]

    def finish(self) -> Replay:
        """Decide what becomes of each version, and let go of what only that needed."""
        self._choose_file()
        last = array("i", [NONE]) * len(self.names)
        for slot, number in enumerate(self._rank):
            # Messages that are kept when the list is replaced are told in fewer words there.
            if number != NONE and (not self._inside[slot] or last[number] == NONE or self._inside[last[number]]):
                last[number] = slot
        self.codes = bytearray([EARLIER]) * len(self._rank)
        for number, (first, following) in enumerate(self._turns()):
            if last[number] < following:
                self.codes[last[number]] = SHOWN
            else:
                slot = last[number]
                self.codes[first], self.codes[slot] = FETCHED, PLACE
                self.fetched[first] = (self._parts[slot], self._bases[slot], self._ordinals[slot])
        self.answers = bytearray(len(self.names))
        self._answered = array("q", sorted(self._answered))
        self._rank, self._bases, self._ordinals, self._parts = array("i"), array("q"), array("i"), array("h")
        self._at, self._inside = array("i"), bytearray()
        self.names.settle()
        return self

    def _turns(self) -> Iterator[tuple[int, int]]:
        """For each message its first version, and the first one of the next message."""
        first, next_number = NONE, 0
        for slot, number in enumerate(self._rank):
            if number == next_number:
                if first != NONE:
                    yield first, slot
                first, next_number = slot, next_number + 1
        if first != NONE:
            yield first, len(self._rank)

    def is_answered(self, call: JSON) -> bool:
        """True for a call that a message of its own answers."""
        wanted = hash(call) if isinstance(call, str) else 0
        at = bisect_left(self._answered, wanted)
        return at < len(self._answered) and self._answered[at] == wanted

    def name(self, number: int) -> str | None:
        """The id of a message; None for NONE."""
        return self.names[number] if number != NONE else None


def _responses(step: Step) -> list[str]:
    """The calls that a message answers which is made of responses, and what they show, and nothing else."""
    value = step.record.value
    content = value.get("content") if value is not None and value.get("type") == "user" else None
    found: list[str] = []
    for part in content if isinstance(content, list) else [content]:
        response = part.get("functionResponse") if isinstance(part, dict) else None
        if isinstance(response, dict):
            found += [response["id"]] if isinstance(response.get("id"), str) else []
        elif not isinstance(part, dict) or not ("inlineData" in part or "fileData" in part):
            return []
    return found


def replay(source: Steps) -> Replay:
    """The replay of all steps."""
    found = Replay()
    for step in source:
        found.add(step, source.base, source.ordinal)
    return found.finish()
