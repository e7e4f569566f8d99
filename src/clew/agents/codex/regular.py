"""Regular lines the quick way: read into structs, and made into structs of the model, many at a time.

A line is regular when it is one of a few kinds, has known keys only, in their usual order, and is spelled as we spell.
All other lines take the general way, by tables, and nothing in a document tells which way a line went.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from itertools import accumulate, compress, count
from typing import TYPE_CHECKING, Any

from msgspec import UNSET, Raw

from clew.agents.base import Unit
from clew.agents.codex import made
from clew.agents.codex.carried import Carried
from clew.agents.codex.fitting import FITS, SPOKEN, Fitted
from clew.agents.codex.known import PASSED, Line, Reader, Spoken, Window
from clew.agents.codex.made import Derived, Ours, Own, Rest
from clew.agents.codex.watch import HEARD, Watch
from clew.agents.orders import Order
from clew.io.codec import dumps
from clew.io.records import read_line

if TYPE_CHECKING:
    from clew.agents.codex.reading import CodexReading

_LINE: Order = ("timestamp", "ordinal", "type", "payload", "metadata")
_RESULT: Order = ("type", "id", "call_id", "output", PASSED, "metadata")
ORDERS: dict[str, list[Order]] = {
    "line": [_LINE],
    "line.function_call": [_LINE],
    "line.function_call_output": [_LINE],
    "line.custom_tool_call_output": [_LINE],
    "line.reasoning": [_LINE],
    "line.message": [_LINE],
    "line.custom_tool_call": [_LINE],
    "message": [("type", "id", "role", "content", "phase", PASSED, "metadata")],
    "text": [("type", "text")],
    "custom_tool_call": [("type", "id", "status", "call_id", "name", "input", PASSED, "metadata")],
    "function_call_output": [_RESULT],
    "custom_tool_call_output": [_RESULT],
    "reasoning": [("type", "id", "summary", "content", "encrypted_content", PASSED, "metadata")],
}
"""The usual order of keys."""
_ALONE = {UNSET}


class Regular(Carried):
    """Makes messages and records of the regular lines of one rollout."""

    def __init__(self, reading: CodexReading, between: bytes, watch: Watch | None = None) -> None:
        super().__init__(reading, between, watch)
        self.messages: list[Any] = []
        self._reader = Reader()
        self._thread, self._prefix = reading.thread, reading.thread.prefix

    def read(self, chunk: bytes, line: int) -> int:
        """Make what the lines of a chunk become; takes and gives the number of the last line before and in it."""
        for window in self._reader.windows(chunk):
            line = self._read(chunk, window, line) if window.lines else self._read_odd(chunk, window, line + 1)
        return line

    def _read(self, chunk: bytes, window: Window, line: int) -> int:
        """Lines that are regular by themselves; some do not fit."""
        begin, stop, lines = window
        texts: list[bytes] = []
        at = 0
        while at < len(lines):
            contents = [] if self._is_copying() else self._fit(lines, at, line)
            end = at + len(contents)
            if contents:
                self._make(lines[at:end], contents, line + at)
            if end < len(lines) and (self._is_copying() or not self._state(lines[end], line + end + 1)):
                texts = texts or list(io.BytesIO(chunk[begin:stop]))
                self._generally(texts[end], line + end + 1)
            at = end + 1
        return line + len(lines)

    def _fit(self, lines: list[Line], at: int, line: int) -> list[Fitted | None]:
        """What lines from `at` on become, None for a record, up to one that cannot be made together with them."""
        fitting = self._fitting
        contents: list[Fitted | None] = []
        for number in range(at, len(lines)):
            payload = lines[number].payload
            fit = FITS.get(type(payload))
            if fit is not None:
                fitted = fit(fitting, payload)
                if fitted is None:
                    break
                contents.append(fitted)
            elif self._goes_over(lines[number], payload, line + number + 1):
                contents.append(None)
            else:
                break
        return contents

    def _read_odd(self, chunk: bytes, window: Window, line: int) -> int:
        """A line of which not even the keys are usual."""
        text = chunk[window.begin : window.end]
        if self._is_copying() or not self._other(text, line):
            self._generally(text, line)
        return line

    def _is_copying(self) -> bool:
        return self._watch is not None and self._watch.copied.active

    def _generally(self, text: bytes, line: int) -> None:
        """A line that takes the general way."""
        self._turn = b""
        if self._watch is not None:
            self._watch.look(text, line)
        for record in read_line(text, line, 0):
            self.add(self._reading.unit(record))

    def read_piece(self, piece: bytes, line: int) -> int:
        """A piece of a line that is too long."""
        if self._watch is not None:
            self._watch.skip(piece)
        for record in read_line(piece, line + 1, 0, False):
            self.add(self._reading.unit(record))
        return line + piece.endswith(b"\n")

    def add(self, unit: Unit) -> None:
        """Add what came the general way."""
        out = self.messages if unit.is_message else self.records
        if unit.is_message and unit.value["role"] == "assistant" and self._watch is not None:
            self._watch.slot.open(self._reading.index, unit.value)
            out.append(unit.value)
        else:
            # A text of its own, as what is deep enough in itself may be too deep among others.
            out.append(Raw(dumps(unit.value)))

    def hand_over(self, messages: bytearray, records: bytearray, begin: int | None = None) -> None:
        """Hand over what was made, of the messages those before the one with the index `begin`."""
        keep = None if begin is None else self._place(begin)
        made.spell(self.messages[:keep], messages, self._between)
        made.spell(self.records, records, self._between)
        del self.messages[:keep]
        self.records.clear()

    def _place(self, index: int) -> int:
        """Where a message stands among those that wait."""
        return index - self._reading.index - 1 + len(self.messages)

    # Lines together

    def _make(self, lines: list[Line], contents: list[Any], line: int) -> None:
        """Make messages and records of lines, of which the first follows `line`."""
        are_items = [content is not None for content in contents]
        indexes = list(accumulate(are_items, initial=self._reading.index))
        at, made_here = len(self.messages), indexes[-1] - indexes[0]
        if made_here:
            self._reading.index = indexes[-1]
            numbers = list(compress(range(line + 1, line + 1 + len(lines)), are_items))
            self._add(list(compress(lines, are_items)), list(compress(contents, are_items)), numbers, indexes[0] + 1)
        self._follow(lines, contents, at, line)
        if made_here:
            self._thread.last, self._thread.in_context = self.messages[-1].uuid, False
        if made_here < len(lines):
            are_carried = [content is None for content in contents]
            self._carry(list(compress(lines, are_carried)), list(compress(indexes, are_carried)))

    def _add(self, lines: list[Line], fitted: list[Fitted], numbers: list[int], first: int) -> None:
        """Add messages, of which the first gets the index `first`."""
        roles, contents, kept, metadata, flags = zip(*fitted, strict=True)
        times = [line.timestamp for line in lines]
        uuids = [f"{self._prefix}{number}" for number in numbers]
        own = [line.payload.id for line in lines]
        has_own = own.count(UNSET) < len(own)
        if has_own:
            uuids = [uuid if name is UNSET else name for uuid, name in zip(uuids, own, strict=True)]
        parents = [self._thread.last, *uuids[:-1]]
        noted = self._noted(lines, kept, numbers)
        indexes = range(first, first + len(lines))
        if has_own:
            rows = zip(own, indexes, roles, times, contents, noted, uuids, parents, metadata, strict=True)
            self.messages += [made.message(*row) for row in rows]
        else:
            self.messages += map(Derived, indexes, roles, times, contents, noted, uuids, parents, metadata)
        if self._watch is not None:
            ids = [name for name in own if name is not UNSET] if has_own else []
            self._watch.nodes.add(uuids, parents, times, bytes(flags), ids)

    def _noted(self, lines: list[Line], kept: Sequence[Any], numbers: list[int]) -> list[Any]:
        """What the model has no place for, of each message."""
        if not self._outline.inherited and {line.ordinal for line in lines} == _ALONE:
            return [UNSET if each is UNSET else Ours(Own(Rest(UNSET, each))) for each in kept]
        rows = zip([line.ordinal for line in lines], kept, numbers, strict=True)
        return [made.noted(ordinal, each, number <= self._outline.inherited) for ordinal, each, number in rows]

    def _follow(self, lines: list[Line], contents: list[Any], at: int, line: int) -> None:
        """Go on from line to line, with the thread and with what was used; `at` is the place of the first message."""
        thread, watch, messages = self._thread, self._watch, self.messages
        for number, found, fitted in zip(count(line + 1), lines, contents, strict=False):
            if fitted is None:
                if watch is not None and type(found.payload) in HEARD:
                    watch.hear(number, found.payload)
                continue
            if fitted[0] == "assistant":
                if watch is None:
                    self._spend(messages[at])
                else:
                    watch.answer = messages[at]
                    if type(found.payload) is Spoken:
                        watch.spoke(number, found.payload.content[0].text)
            elif fitted[4] == SPOKEN:
                message = messages[at]
                # Only what stands right before a prompt can be its context.
                thread.in_context = thread.in_context and thread.last == message.parent_uuid
                thread.last = message.parent_uuid
                thread.follow(message.uuid, False, True)
                if watch is not None:
                    watch.asked(number, message)
            at += 1
        if watch is not None:
            watch.settle()

    def _spend(self, message: Any) -> None:
        usage = self._outline.spent.at(message.index)
        if usage:
            made.add_usage(message, usage)
