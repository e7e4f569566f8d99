"""The second pass over a transcript, with a quick way for the lines that are nearly all of it."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import BinaryIO

import msgspec
from msgspec import Raw

from clew.agents.base import SourceFile, open_main
from clew.agents.claude_code import tables
from clew.agents.claude_code.header import shared_values
from clew.agents.claude_code.lines import LACKING, WANTED, Told
from clew.agents.claude_code.orders import ORDERS
from clew.agents.claude_code.scan import UNREAD, Scanner
from clew.agents.jsonl import BATCH, JsonlReading
from clew.agents.mapping import Values
from clew.agents.quick import Quick, Shapes
from clew.derive.facts import Facts
from clew.io.codec import COMPACT, dumps, loads
from clew.io.compress import damage
from clew.io.records import read_line, read_texts
from clew.model.json import JSON

AGENT = "claude-code"
_object = msgspec.json.Decoder(dict[str, Raw]).decode
_objects = msgspec.json.Decoder(list[dict[str, Raw]]).decode


class ClaudeReading(JsonlReading):
    """Messages and records of one transcript."""

    _enough = BATCH

    def __init__(self, source: SourceFile, shared: Values) -> None:
        self.shared = shared
        super().__init__(AGENT, source, tables.choose, shared, {"shared": shared}, hints=ORDERS)

    def encode(self, messages: bytearray, records: bytearray, between: bytes) -> Iterator[None]:
        """Append the JSON of each unit and `between`; stops now and then, so that what is there can be taken away."""
        return self._encode(messages, records, between, None)

    def _open(self) -> BinaryIO:
        return open_main(self.source)

    def _encode(self, messages: bytearray, records: bytearray, between: bytes, watch: _Watch | None) -> Iterator[None]:
        quick = Quick(_SHAPES, self.context, self.calls, between, watch=watch)
        take = quick.take
        full = BATCH
        with self._open() as stream:
            for text, whole in read_texts(stream):
                at = text.find(_TYPE, 0, _HEAD) + 8
                # The first type in a line, and whether a prompt is text: a wrong guess costs time, never truth.
                sort = text[at : at + 12] if text[at : at + 5] != _USER else text[at : at + 42]
                taken = take(sort, text, self.index, messages, records) if whole else None
                if not whole and watch is not None:
                    watch.see_text(UNREAD)
                if taken:
                    self.index += 1
                elif taken is None:
                    for record in read_line(text, 0, 0, whole):
                        unit = self.unit(record)
                        (messages if unit.is_message else records).extend(dumps(unit.value) + between)
                        if record.value is not None and self.form is not None and record.dialect == COMPACT:
                            quick.learn(sort, self.form, record.value)
                if len(messages) + len(records) > full:
                    self.calls.forget()
                    if watch is not None:
                        watch.look()
                    if len(messages) + len(records) > self._enough:
                        yield
                    full = len(messages) + len(records) + BATCH
            self.damage = damage(stream)
        if watch is not None:
            watch.look()


class _Again(Exception):
    """What most records repeat turned out to be something else than what was guessed."""


class ClaudeReadingAtOnce(ClaudeReading):
    """A reading that collects the facts of the first pass on its way.

    What most records repeat is taken from the first that say it. Where one says more before anything was handed over,
    the reading begins again; whether the guess was right is known at the end.
    """

    _enough = 1 << 19

    def __init__(self, source: SourceFile) -> None:
        self._scanner = Scanner(Facts(), source.path, tree=True, counts=False)
        self._seen = 0
        with open_main(source) as stream:
            # A small file is at hand by now, and need not be opened again.
            self._text = stream.getvalue() if isinstance(stream, io.BytesIO) else None
            # The first line nearly always says all that there is to guess.
            for text, whole in read_texts(stream):
                self._scanner.see_text(text if whole else UNREAD)
                self._seen += 1
                if self._scanner.of_first is not None or self._seen == _PEEK:
                    break
        super().__init__(source, self._scanner.shared())

    def _open(self) -> BinaryIO:
        return io.BytesIO(self._text) if self._text is not None else open_main(self.source)

    def encode(self, messages: bytearray, records: bytearray, between: bytes) -> Iterator[None]:
        watch = _Watch(self._scanner, self._seen)
        while True:
            try:
                for _ in self._encode(messages, records, between, watch):
                    watch.may_begin_again = False
                    yield
                return
            except _Again:
                messages.clear()
                records.clear()
                watch = _Watch(self._scanner, watch.seen)
                super().__init__(self.source, self._scanner.shared())

    def facts(self) -> tuple[Facts, bool]:
        """The facts, once all was read, and whether they agree with what was guessed."""
        facts = self._scanner.finish()
        return facts, shared_values(facts) == self.shared


class _Watch:
    """Sees the lines of a source once, however often they are read."""

    def __init__(self, scanner: Scanner, seen: int) -> None:
        self._scanner, self._learned = scanner, scanner.learned
        self.seen, self._lines = seen, 0
        self.may_begin_again = True
        self._waiting: list[Told | bytes] = []
        self.see = self.see_text = self._waiting.append

    def look(self) -> None:
        """Take in what was seen since the last look: many lines together are taken in more quickly."""
        waiting = self._waiting
        fresh = waiting[max(0, self.seen - self._lines) :]
        self._lines += len(waiting)
        self.seen = max(self.seen, self._lines)
        waiting.clear()
        self._scanner.see_mixed(fresh)
        if self._scanner.learned != self._learned and self.may_begin_again:
            raise _Again


_SHAPES = Shapes(ORDERS, opaque=True, defaults=LACKING, wanted=WANTED)
_HEAD = 1000
_PEEK = 8
_TYPE = b'"type":"'
_USER = b'user"'


def read_message(text: bytes) -> dict[str, JSON]:
    """A message of a document, its opaque values as the document spells them."""
    message: dict[str, JSON] = {}
    for key, value in _object(text).items():
        if key == "content":
            message[key] = [_block(block) for block in _objects(value)]
        elif key == "extensions":
            message[key] = {agent: _own(own) for agent, own in _object(value).items()}
        else:
            message[key] = loads(value)
    # Only the compact spelling can take up text that was not looked into.
    return loads(text) if "dialect" in message.get("extensions", {}).get(AGENT, ()) else message


def _block(block: dict[str, Raw]) -> dict[str, JSON]:
    result: dict[str, JSON] = {}
    for key, value in block.items():
        if key in ("input", "value") or (key == "output" and bytes(value)[:1] == b'"'):
            result[key] = value
        elif key == "output" and bytes(value)[:1] == b"[":
            result[key] = [_block(nested) for nested in _objects(value)]
        elif key == "extensions":
            result[key] = {agent: _own(own) for agent, own in _object(value).items()}
        else:
            result[key] = loads(value)
    return result


def _own(own: Raw) -> dict[str, JSON]:
    return {key: _rest(value) if key == "rest" else loads(value) for key, value in _object(own).items()}


def _rest(rest: Raw) -> dict[str, JSON]:
    opened: dict[str, JSON] = dict(_object(rest))
    # The native type chooses the table, so this one is looked into.
    if "type" in opened:
        opened["type"] = loads(opened["type"])
    return opened
