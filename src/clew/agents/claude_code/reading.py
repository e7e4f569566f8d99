"""The second pass over a transcript, with a quick way for the lines that are nearly all of it."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from msgspec import Raw

from clew.agents.base import SourceFile, open_main
from clew.agents.claude_code import tables
from clew.agents.claude_code.orders import GENERATIONS, ORDERS
from clew.agents.jsonl import JsonlReading
from clew.agents.mapping import Values
from clew.agents.quick import Quick
from clew.io.codec import dumps, loads
from clew.io.compress import damage
from clew.io.records import read_line, read_lines
from clew.model.json import JSON

AGENT = "claude-code"
_object = msgspec.json.Decoder(dict[str, Raw]).decode
_objects = msgspec.json.Decoder(list[dict[str, Raw]]).decode


class ClaudeReading(JsonlReading):
    """Messages and records of one transcript."""

    def __init__(self, source: SourceFile, shared: Values) -> None:
        super().__init__(AGENT, source, tables.choose, shared, {"shared": shared}, hints=ORDERS)

    def encoded(self) -> Iterator[tuple[bool, bytes]]:
        """For each unit whether it is a message, and its JSON."""
        quick = Quick(self.context, tables.MESSAGES, tables.BLOCKS, GENERATIONS, self.calls)
        with open_main(self.source) as stream:
            for text, line, start, whole in read_lines(stream):
                # A wrong guess costs time, never truth.
                role = "assistant" if text.find(b'"role":"a', 0, _HEAD) >= 0 else "user"
                message = quick.take(role, text, self.index + 1)
                if message is not None:
                    self.index += 1
                    yield True, message
                    continue
                for record in read_line(text, line, start, whole):
                    unit = self.unit(record)
                    yield unit.is_message, dumps(unit.value)
                    if unit.is_message and self.form is not None and self.form in _QUICK:
                        quick.learn(unit.value["role"], self.form.table, self.context.own)
            self.damage = damage(stream)


_HEAD = 1000
"""A reply says its role before its content, near the start of the line."""
_QUICK = (tables.MESSAGES["user"], tables.MESSAGES["assistant"])


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
        if key in ("input", "value"):
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
