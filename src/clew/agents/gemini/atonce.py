"""One pass for small sessions that only go forward: a message may grow while it is the last, and nothing is taken back.

As soon as something else is met, the facts say that the session must be read in two passes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

from msgspec import UNSET, UnsetType

from clew.agents.base import SourceFile, open_main
from clew.agents.folding import Message, note
from clew.agents.gemini import tables
from clew.agents.gemini.deal import Dealer, is_response, is_time
from clew.agents.gemini.locate import is_log, saved_tag, session_id
from clew.agents.gemini.quick import Quick, one_line
from clew.agents.gemini.reading import GeminiReading
from clew.agents.gemini.replay import Replay
from clew.agents.gemini.scan import Scanner
from clew.agents.gemini.steps import Does, Step, of_document, of_element, of_line, usual_header
from clew.agents.gemini.terms import HEAD, Joined, is_document
from clew.agents.jsondoc import begin_document
from clew.agents.jsonl import BATCH
from clew.derive.facts import Facts
from clew.io.codec import dumps
from clew.io.compress import damage
from clew.io.records import MAX_RECORD_BYTES, is_whole, read_chunks, read_line

_HEAD = 400
_WHOLE = 1 << 18
"""A document up to this size is taken whole, if it can be."""
_NOTHING = Replay()
"""Where no call is answered by a message of its own."""


class _Odd(NamedTuple):
    """A record that had to be taken apart."""

    id: str | UnsetType
    """Of a message."""
    step: Step


class AtOnce(GeminiReading):
    """Messages, records and facts of one session in one pass."""

    def __init__(self, source: SourceFile, *, counts: bool = False) -> None:
        session = self._session = session_id(source)
        super().__init__(source, _NOTHING, session=session)
        self._scanner = Scanner(session, counts)
        self._is_read = False
        """False where only the facts are wanted."""
        self._quick = Quick(self.context)
        self._dealer = Dealer(self._quick, self._scanner)
        self._is_right = not source.parts and saved_tag(source.path) is None and not is_log(source.path)
        self._names: set[str] = set()
        self._waiting: list[Any] = []
        """Structs of lines and odd ones whose place is not decided: the last message may still be written anew."""
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
            for _ in self._opened(stream):
                if self._must_stop():
                    return
                if len(self._messages) + len(self._records) > BATCH:
                    yield
            self._decide()
            self._put()
            self.damage = damage(stream)
        yield

    def _opened(self, stream: BinaryIO) -> Iterator[None]:
        """The steps of the walk; a document is nearly always read with its head, and must not be held behind them."""
        is_json = self._steps.is_json(0)
        head = stream.read(min(max(HEAD, self.source.size), MAX_RECORD_BYTES) if is_json else HEAD)
        if is_document(head, is_json):
            raw, self._is_right = begin_document(stream, head)
            return self._document(raw) if self._is_right else iter(())
        return self._lines(Joined(head, stream))

    def _must_stop(self) -> bool:
        return not self._is_right

    def facts(self) -> tuple[Facts, bool]:
        self._dealer.note()
        facts = self._scanner.finish()
        facts.extra["session"] = self._session
        facts.leaf_uuid = self._parent or ""
        facts.links.is_derived = True
        return facts, self._is_right

    def _document(self, raw: bytes) -> Iterator[None]:
        chat = self._quick.chat(raw) if self._is_right and len(raw) <= _WHOLE else None
        if chat is not None:
            self._general(usual_header(chat[0]))
            self._take(chat[1])
            yield
            return
        for step in of_document(raw, 0, self._elements):
            self._element(step)
            yield
        self._put()

    def _elements(self, piece: bytes) -> bool:
        """Take elements of a document; False where the general way must take them apart."""
        found = self._quick.elements(piece) if self._is_right else []
        self._take(found or [])
        return found is not None

    def _take(self, lines: list[Any]) -> None:
        names, take = self._names, self._dealer.take
        for line in lines:
            name = line.id
            is_new = name is not UNSET and name not in names
            place = take(line, self.index + 1, self._parent) if is_new else None
            if place is None:
                record = next(iter(read_line(one_line(line), 0, 0)))
                self._element(of_element(record, 0))
            else:
                self._parent, self.index = place
                self._number += 1
                names.add(name)
        self._put()

    def _element(self, step: Step) -> None:
        if step.id in self._names or _is_response(step.record.text):
            self._is_right = False
        if step.id is not None:
            self._names.add(step.id)
        self._general(step)

    def _lines(self, stream: Joined) -> Iterator[None]:
        first = stream.readline(MAX_RECORD_BYTES)
        self._take_lines(first, is_whole(first))
        for text, whole in read_chunks(stream):  # type: ignore[arg-type]
            self._take_lines(text, whole)
            yield

    def _take_lines(self, text: bytes, whole: bool) -> None:
        """Take lines, together where they are all usual; else in halves."""
        waiting = [text] if text else []
        self._is_right = self._is_right and whole
        while waiting and self._is_right:
            text = waiting.pop()
            found = self._quick.lines(text)
            if found is not None:
                self._see_all(found)
                continue
            cut = _middle(text)
            if 0 < cut < len(text):
                waiting += [text[cut:], text[:cut]]
            else:
                self._odd_line(text)
        self._put()

    def _see_all(self, lines: list[Any]) -> None:
        for line in lines:
            if line.id is not UNSET:
                if line.type == "user" and is_response(line):
                    self._is_right = False
                self._see(line)
            elif line.patch is not UNSET and is_time(line.patch.lastUpdated) and self._quick.patches():
                self._waiting.append(line)
            else:
                self._odd_line(one_line(line))

    def _odd_line(self, text: bytes) -> None:
        """A line that must be taken apart before it is known what it is."""
        for step in of_line(text, 0, 0, True, 0):
            if step.does is Does.MESSAGE and step.id is not None:
                self._is_right = self._is_right and not _is_response(step.record.text)
                self._see(_Odd(step.id, step))
            else:
                self._is_right = self._is_right and step.does is Does.NOTHING
                self._waiting.append(_Odd(UNSET, step))

    def _see(self, message: Any) -> None:
        """The next message, or the next version of the last one."""
        if message.id not in self._names:
            self._decide()
            self._names.add(message.id)
        elif message.id != self._last:
            self._is_right = False
        self._last = message.id
        self._waiting.append(message)

    def _decide(self) -> None:
        """Nothing before this can change any more."""
        waiting, self._waiting = self._waiting, []
        last = len(waiting) - 1
        while last >= 0 and waiting[last].id is UNSET:
            last -= 1
        for at, each in enumerate(waiting):
            if each.id is UNSET:
                self._other(each)
            else:
                self._message_of(each, is_last=at == last)

    def _other(self, each: Any) -> None:
        if type(each) is _Odd:
            self._general(each.step)
        else:
            self._dealer.patch(each.patch.lastUpdated, self.index)

    def _message_of(self, each: Any, is_last: bool) -> None:
        if type(each) is _Odd:
            self._general(each.step, is_last)
        elif not (self._shows(each) if is_last else self._dealer.keep(each, self.index)):
            for step in of_line(one_line(each), 0, 0, True, 0):
                self._general(step, is_last)

    def _shows(self, line: Any) -> bool:
        """Take a message the quick way, if it goes that way."""
        place = self._dealer.take(line, self.index + 1, self._parent)
        if place is None:
            return False
        self._parent, self.index = place
        return True

    def _put(self) -> None:
        try:
            if self._is_read:
                self._dealer.put(self._messages, self._records, self._between)
        except RecursionError:
            # What could be read just so is a little deeper in a document.
            self._is_right = False
        self._dealer.drop()

    def _general(self, step: Step, is_last: bool = True) -> None:
        """A step that takes the general way."""
        self._put()
        self._dealer.note()
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

    def _identify(self, message: Message, number: int) -> None:
        if "uuid" not in message:
            message["uuid"] = Replay.unnamed(0, number)
            note(message, "gemini", derived=["uuid"])
        if self._parent is not None:
            message["parent_uuid"] = self._parent


def _is_response(text: bytes) -> bool:
    return text.find(b'"type":"user"', 0, _HEAD) > 0 and b'"functionResponse":' in text


def _middle(text: bytes) -> int:
    """Where a line begins, as near to the middle as is easily found."""
    half = len(text) // 2
    cut = text.find(b"\n", half, len(text) - 1) + 1
    return cut or text.rfind(b"\n", 0, half) + 1
