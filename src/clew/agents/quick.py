"""The quick way for regular records: values move inside typed structs, and so in C.

A struct is made for each shape of record that occurs often, and with it a function that deals its values out. A line
takes the quick way only if decoding it into that struct and encoding it again gives the same bytes: then nothing in it
is unknown, of an unexpected type, out of order or oddly spelled. Every other line takes the general way; both give the
same. Values without a place in the model may be left unread: their text goes over as it is, and is taken back as it is
from a document that nobody has spelled anew.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Protocol

import msgspec
from msgspec import Raw

from clew.agents.blocks import Hints, QuickBlocks
from clew.agents.jsonl import Form
from clew.agents.mapping import Blocks, Context
from clew.agents.shapes import TYPE, Deal, Defaults, Outline, Shape, Unfit, Wanted, outline
from clew.model.json import JSON

MAX_SHAPES = 256
"""How many shapes are kept for an agent; keys come from the sources, so there is no end to them."""
MAX_SORTS = 128
"""How many sorts of line are told apart."""
MAX_TRIED = 5
"""How many shapes are tried for a line."""
WORTH = 3
"""A shape is made when so many records would have had it."""

_encoder = msgspec.json.Encoder()
_encode_into = _encoder.encode_into
_ERRORS = (msgspec.DecodeError, UnicodeError, RecursionError)

Give = Callable[[Any, int], tuple[Any, ...] | None]
"""From a line, as its struct, and the index of its message to the values of the slots that its form calls given."""


class Watch(Protocol):
    """Who wants to see every line once before it is taken."""

    def see(self, told: tuple[Any, ...], /) -> None:
        """See the wanted values of a line; its struct has defaults for all that it may lack."""
        ...

    def see_text(self, text: bytes) -> None:
        """See any other line."""
        ...


class Shapes:
    """The shapes of an agent's records, for all of its sources.

    `hints` are orders of keys that are known to occur: blocks take the quick way in the first of their kind. With
    `opaque`, values of messages that have no place in the model are left unread; then the agent must bring
    `read_message`. `defaults` are values, by table and key, that the struct of a record has where the record lacks
    them, so that a `Watch` can look at it as well; `wanted` are paths to what it wants of every record.
    """

    def __init__(
        self, hints: Hints, *, opaque: bool = False, defaults: Defaults | None = None, wanted: Wanted = ()
    ) -> None:
        self._hints, self._opaque = hints, Raw if opaque else Any
        self._defaults, self._wanted = defaults or {}, wanted
        self.by_sort: dict[bytes, list[Shape]] = {}
        """The shapes used last for each sort of line."""
        self._of = lru_cache(MAX_SHAPES)(self._make)
        self._seen: dict[Outline, int] = {}
        self._blocks: dict[int, QuickBlocks] = {}

    def _make(self, form: Form, kind: str | None, lines: Outline) -> Shape | None:
        opaque = self._opaque if form.role is not None else Any
        try:
            return Shape(form, kind, lines, self._quick_blocks, opaque, self._defaults, self._wanted)
        except Unfit:
            return None

    def _quick_blocks(self, field: Blocks) -> QuickBlocks:
        known = self._blocks.get(id(field.kinds))
        if known is None:
            known = self._blocks[id(field.kinds)] = QuickBlocks(field.kinds, self._hints, self._opaque)
        return known

    def learn(self, form: Form, value: dict[str, JSON]) -> Shape | None:
        """The shape of a record, once so many of it were met that making one is worth its while."""
        lines, kind = outline(form.table, value), value.get(TYPE)
        if lines is None or not (kind is None or type(kind) is str):
            return None
        times = self._seen[lines] = self._seen.pop(lines, 0) + 1
        if len(self._seen) > MAX_SHAPES:
            del self._seen[next(iter(self._seen))]
        return self._of(form, kind, lines) if times >= WORTH else None

    def note(self, sort: bytes, shape: Shape) -> None:
        """A shape was used for a line of this sort: the next source tries it too."""
        if sort not in self.by_sort and len(self.by_sort) >= MAX_SORTS:
            del self.by_sort[next(iter(self.by_sort))]
        shapes = self.by_sort.setdefault(sort, [])
        if shape in shapes:
            shapes.remove(shape)
        shapes.insert(0, shape)
        del shapes[MAX_TRIED:]


class Quick:
    """Takes lines of one source the quick way."""

    def __init__(
        self,
        shapes: Shapes,
        context: Context,
        calls: dict[str, str],
        between: bytes,
        *,
        give: Give | None = None,
        watch: Watch | None = None,
    ) -> None:
        self._shapes, self._context, self._calls, self._between = shapes, context, calls, between
        self._give, self._watch = give, watch
        self._tried: dict[bytes, list[Shape]] = {}
        self._bound: dict[Shape, Deal | None] = {}
        self._spelled = bytearray()

    def take(self, sort: bytes, text: bytes, index: int, messages: bytearray, records: bytearray) -> bool | None:
        """Append the JSON of a line to the messages (True) or the records (False); None: it needs the general way.

        `sort` is anything cheap that tells lines of different shapes apart; `index` is that of the message before.
        """
        tried = self._tried.get(sort)
        if tried is None:
            tried = self._tried[sort] = self._shapes.by_sort.get(sort, [])[:]
        line = None
        # What ends in anything but a line feed, as a line that was cut may, does not come back by itself.
        if tried and text[-1:] == b"\n" and (text.isascii() or _is_utf8(text)):
            spelled, size = self._spelled, len(text) - 1
            for shape in tried:
                try:
                    line = shape.decode(text)
                    _encode_into(line, spelled)
                except _ERRORS:
                    continue
                if len(spelled) == size and text.startswith(spelled):
                    break
            else:
                line = None
        if self._watch is not None:
            if line is not None and shape.tell is not None:
                self._watch.see(shape.tell(line))
            else:
                self._watch.see_text(text)
        if line is None:
            return None
        if shape is not tried[0]:
            tried.remove(shape)
            tried.insert(0, shape)
        deal = self._bound[shape] if shape in self._bound else self._bind(sort, shape)
        is_message = shape.is_message
        value = deal(line, index + is_message) if deal is not None else None
        if value is None:
            return None
        out = messages if is_message else records
        size = len(out)
        try:
            _encode_into(value, out, -1)
        except _ERRORS:
            del out[size:]
            return None
        out += self._between
        return is_message

    def _bind(self, sort: bytes, shape: Shape) -> Deal | None:
        deal = self._bound[shape] = shape.bind(self._context, self._calls, self._give)
        self._shapes.note(sort, shape)
        return deal

    def learn(self, sort: bytes, form: Form, value: dict[str, JSON]) -> None:
        """A record took the general way; where that happens often, its likes will go the quick way."""
        shape = self._shapes.learn(form, value)
        if shape is not None:
            tried = self._tried.setdefault(sort, [])
            tried.insert(0, shape)
            del tried[MAX_TRIED:]


def _is_utf8(text: bytes) -> bool:
    """Text that is not looked into must still be text."""
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True
