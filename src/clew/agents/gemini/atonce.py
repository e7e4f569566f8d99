"""One pass for small sessions that only go forward: a message may grow while it is the last, and nothing is taken back.

As soon as something else is met, the facts say that the session must be read in two passes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from clew.agents.base import SourceFile, open_main
from clew.agents.folding import Message, note
from clew.agents.gemini import tables
from clew.agents.gemini.locate import is_log, saved_tag, session_id
from clew.agents.gemini.quick import Dealt, Quick, deal, version
from clew.agents.gemini.reading import GeminiReading
from clew.agents.gemini.replay import Replay
from clew.agents.gemini.scan import MAX_HINTS, Scanner
from clew.agents.gemini.steps import HEAD, Does, Joined, Step, is_document, of_document, of_line
from clew.agents.jsonl import BATCH
from clew.derive.facts import Facts
from clew.graph.links import MESSAGE, RESULT, SAID, SIGNIFICANT
from clew.io.codec import dumps
from clew.io.compress import damage
from clew.io.records import read_lines
from clew.model.time import parse_time

_ID = b'{"id":"'
_HEAD = 400


class _Waiting(NamedTuple):
    """A line whose place is not decided: the message before it may still be written anew."""

    name: str | None
    """Of a message."""
    text: bytes
    line: int
    start: int
    step: Step | None = None
    """Where it had to be taken apart already."""

    def steps(self) -> Iterator[Step]:
        """The line taken apart."""
        return iter([self.step]) if self.step is not None else of_line(self.text, self.line, self.start, True, 0)


class AtOnce(GeminiReading):
    """Messages, records and facts of one session in one pass."""

    def __init__(self, source: SourceFile, *, counts: bool = False) -> None:
        super().__init__(source, Replay())
        self._scanner = Scanner(session_id(source), counts)
        self._is_read = False
        """False where only the facts are wanted."""
        self._quick = Quick(self.context)
        self._is_right = not source.parts and saved_tag(source.path) is None and not is_log(source.path)
        self._names: set[str] = set()
        self._waiting: list[_Waiting] = []
        self._parent: str | None = None
        self._last: str | None = None
        self._messages = self._records = bytearray()
        self._between = b""

    def encode(self, messages: bytearray, records: bytearray, between: bytes) -> Iterator[None]:
        """Append the JSON of each unit and `between`."""
        self._messages, self._records, self._between = messages, records, between
        self._is_read = True
        yield from self._walk()

    def scan(self) -> Facts | None:
        """The facts alone; None where it takes more than one pass."""
        for _ in self._walk():
            pass
        facts, is_right = self.facts()
        return facts if is_right else None

    def _walk(self) -> Iterator[None]:
        if not self._is_right:
            return
        with open_main(self.source) as stream:
            head = stream.read(HEAD)
            if is_document(head, self._steps.is_json(0)):
                walked = self._document(head + stream.read())
            else:
                walked = self._lines(Joined(head, stream))
            for _ in walked:
                if self._must_stop():
                    return
                if len(self._messages) + len(self._records) > BATCH:
                    yield
            self._decide()
            self.damage = damage(stream)
        yield

    def _must_stop(self) -> bool:
        return not self._is_right

    def facts(self) -> tuple[Facts, bool]:
        facts = self._scanner.finish()
        facts.leaf_uuid = self._parent or ""
        return facts, self._is_right

    def _document(self, raw: bytes) -> Iterator[None]:
        for step in of_document(raw, 0, self._element):
            if step.id in self._names or _is_response(step.record.text):
                self._is_right = False
            if step.id is not None:
                self._names.add(step.id)
            self._general(step)
            yield

    def _lines(self, stream: Joined) -> Iterator[None]:
        for text, line, start, whole in read_lines(stream):  # type: ignore[arg-type]
            name = _name_of(text)
            if name is not None:
                self._see(_Waiting(name, text, line, start))
            elif self._quick.patch(text) is not None:
                self._waiting.append(_Waiting(None, text, line, start))
            else:
                self._odd_line(text, line, start, whole)
            yield

    def _odd_line(self, text: bytes, line: int, start: int, whole: bool) -> None:
        """A line that must be taken apart before it is known what it is."""
        steps = list(of_line(text, line, start, whole, 0))
        if any(step.does > Does.MESSAGE for step in steps):
            self._is_right = False
        for step in steps:
            waiting = _Waiting(step.id if step.does is Does.MESSAGE else None, text, line, start, step)
            if waiting.name is not None:
                self._see(waiting)
            else:
                self._waiting.append(waiting)

    def _see(self, message: _Waiting) -> None:
        """The next message, or the next version of the last one."""
        assert message.name is not None
        if _is_response(message.text):
            # It may answer a call whose result was given with the call.
            self._is_right = False
        if message.name not in self._names:
            self._decide()
            self._names.add(message.name)
        elif message.name != self._last:
            self._is_right = False
        self._last = message.name
        self._waiting.append(message)

    def _decide(self) -> None:
        """Nothing before this can change any more."""
        waiting, self._waiting = self._waiting, []
        last = max((at for at, each in enumerate(waiting) if each.name is not None), default=-1)
        for at, each in enumerate(waiting):
            if each.name is None:
                self._other(each)
            else:
                self._message_of(each, is_last=at == last)

    def _other(self, waiting: _Waiting) -> None:
        time = self._quick.patch(waiting.text) if waiting.step is None else None
        if time is None:
            for step in waiting.steps():
                self._general(step)
            return
        self._scanner.facts.records += 1
        self._scanner.state["lastUpdated"] = time.decode()
        if self._is_read:
            self._records += b'{"after":%d,"kind":"state","timestamp":"%b"}' % (self.index, time) + self._between

    def _message_of(self, waiting: _Waiting, is_last: bool) -> None:
        line = self._quick.decode(waiting.text) if waiting.step is None else None
        if line is not None and not is_last:
            self._scanner.facts.records += 1
            if self._is_read:
                self._records += dumps(version(line, self.index)) + self._between
            return
        dealt = deal(line, self.index + 1, self._parent) if line is not None else None
        if dealt is not None:
            self._put(dealt)
            return
        for step in waiting.steps():
            self._general(step, is_last)

    def _element(self, line: bytes) -> bool:
        """An element of a document, on one line; False where the general way is needed."""
        name = _name_of(line)
        if name is None or name in self._names or _is_response(line):
            return False
        struct = self._quick.decode(line)
        dealt = deal(struct, self.index + 1, self._parent) if struct is not None else None
        if dealt is None:
            return False
        self._names.add(name)
        self._number += 1
        self._put(dealt)
        return True

    def _general(self, step: Step, is_last: bool = True) -> None:
        """A step that takes the general way."""
        if step.does is Does.MESSAGE and step.record.value is not None:
            units = self._shown(step) if is_last else iter([self._made(step, tables.VERSION)])
        else:
            units = iter([self._state(step)])
        for unit in units:
            self._scanner.see(unit)
            if self._is_read:
                out = self._messages if unit.is_message else self._records
                out += dumps(unit.value) + self._between
            if unit.is_message:
                self._parent = unit.value["uuid"]

    def _note_results(self, number: int) -> None:
        """What follows hangs on what was written last."""

    def _put(self, dealt: Dealt) -> None:
        """Write a message that was taken the quick way, and note its facts."""
        message, results = dealt.message, dealt.results
        facts = self._scanner.facts
        if self._is_read:
            self._messages += dumps(message) + self._between
        self.index = message["index"]
        stamp = parse_time(message["timestamp"])
        is_meta = message["role"] == "user" and "metadata" in message
        flags = MESSAGE | SAID | (0 if is_meta else SIGNIFICANT)
        self._note(message, flags, stamp.timestamp() if stamp is not None and not is_meta else 0.0)
        if message["role"] == "user":
            self._scanner.said(message, dealt.prompt)
        else:
            tools = [block["tool_name"] for block in results["content"]] if results is not None else ()
            self._scanner.replied(message, dealt.has_thinking, tools)
        if dealt.hints and len(self._scanner.hints) < MAX_HINTS:
            self._scanner.called(dealt.hints)
        if results is not None:
            if self._is_read:
                self._messages += dumps(results) + self._between
            self.index = results["index"]
            self._note(results, MESSAGE | SAID | RESULT, 0.0)
            facts.user_messages += 1

    def _note(self, message: Message, flags: int, time: float) -> None:
        facts = self._scanner.facts
        facts.records += 1
        facts.messages += 1
        facts.saw_time(message["timestamp"])
        facts.links.add(message["uuid"], message.get("parent_uuid"), flags, facts.messages, time)
        self._parent = message["uuid"]

    def _identify(self, message: Message, number: int) -> None:
        if "uuid" not in message:
            message["uuid"] = Replay.unnamed(0, number)
            note(message, "gemini", derived=["uuid"])
        if self._parent is not None:
            message["parent_uuid"] = self._parent


def _is_response(text: bytes) -> bool:
    return text.find(b'"type":"user"', 0, _HEAD) > 0 and b'"functionResponse":' in text


def _name_of(text: bytes) -> str | None:
    """The id that a message begins with, as the client writes them."""
    end = text.find(b'"', len(_ID)) if text.startswith(_ID) else -1
    name = text[len(_ID) : end] if end > 0 else b"\\"
    is_said = b"\\" not in name and name.isascii() and text.find(b'"type":', end, end + _HEAD) > 0
    return name.decode("ascii") if is_said else None
