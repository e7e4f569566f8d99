"""Records sorted into columns before they are packed: what is alike lies together, and packs into less.

A line is split at its quotation marks. Lines whose text between strings is the same but for digits are of one shape;
the first pieces of all lines of a shape stand together, then the second ones, and so on. Pieces of text stand with
others that look alike: code, listings, prose. Ids that are written as hex, and images and signatures that are written
as base64, are kept as the bytes they stand for. Nothing here knows what a record means, and what is no JSON comes
back as well.
"""

from __future__ import annotations

import binascii
import re
import sys
from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

import msgspec

_ESCAPED, _STANDS = b'\\"', b"\x01"
"""A quotation mark inside a string ends no piece."""
_DIGITS = b"0123456789."
_FEW = 3
"""Lines of a shape that is rarer stay as they are."""
_SHAPES = 1 << 16
_LONG = 64
"""Pieces that are longer, on the average, are text."""
_UUID = rb"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_UUIDS = re.compile(rb"(?:%s)+" % _UUID)
_UUID_SIZE, _UUID_BYTES = 36, 16
_LEAST_BASE64 = 100
SAME, SHORT, TEXT, UUID, BASE64, AGAIN = range(6)
"""What is in a column: one piece for all lines, short pieces, text, ids, bytes; or what another of text has."""
_COMPARED = 16
"""With so many columns of text before it, a column is compared."""
_LOOKED_AT = 256
_LOOK = tuple(enumerate(((b"_", 2), (b"=", 1), (b"/", 2), (b":", 3), (b"-", 3), (b"(", 2), (b"  ", 2))))
"""What tells how a text looks: whether it has more of these than so many at its beginning."""
_NO_LOOK = 255
_LETTERS = b"abcdefghijklmnopqrstuvwxyz"


class _Shape:
    """Lines that are alike: their pieces one behind the other."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.pieces: list[bytes] = []


class Streams(NamedTuple):
    """What is packed, each for itself."""

    plan: bytes
    """The shapes: how many pieces, what is in their columns; and which line is of which."""
    short: bytes
    text: bytes
    ids: bytes
    binary: bytes


class _Plan(msgspec.Struct, array_like=True):
    shapes: list[tuple[int, bytes]]
    """Pieces of a line, and for each the kind of its column; no kinds where lines stay as they are."""
    lines: bytes
    sizes: list[int]
    """Of pieces that were base64, as bytes."""
    looks: bytes
    """How each piece of text looks."""
    again: list[int]
    """Of columns that are there once more: which column has them."""


class _Spread:
    """The streams while they are made."""

    def __init__(self) -> None:
        self.short: list[bytes] = []
        self.text: list[bytes] = []
        self.ids: list[bytes] = []
        self.binary: list[bytes] = []
        self.again: list[int] = []
        self._columns: dict[int, Sequence[bytes]] = {}

    def shape(self, shape: _Shape) -> bytes:
        """Put the lines of a shape into columns; returns their kinds, none where they stay as they are."""
        pieces, width = shape.pieces, shape.width
        if len(pieces) < _FEW * width:
            self.text += pieces
            return b""
        self._columns = {}
        return bytes([self.column(at, pieces[at::width]) for at in range(width)])

    def column(self, at: int, column: Sequence[bytes]) -> int:
        """Put a column where it belongs; returns its kind."""
        first = column[0]
        if column.count(first) == len(column):
            self.short.append(first)
            return SAME
        if len(first) == _UUID_SIZE and (ids := _hex_bytes(column)):
            self.ids.append(ids)
            return UUID
        if len(first) >= _LEAST_BASE64 and (decoded := _decoded(column)):
            self.binary += decoded
            return BASE64
        joined = b'"'.join(column)
        if len(joined) <= _LONG * len(column):
            self.short.append(joined)
            return SHORT
        for other, known in self._columns.items():
            if known == column:
                self.again.append(other)
                return AGAIN
        self._columns[at] = column
        if len(self._columns) > _COMPARED:
            del self._columns[next(iter(self._columns))]
        self.text += column
        return TEXT


def spread(body: bytes) -> Streams | None:
    """The streams of some records; None where they cannot be made."""
    if _STANDS in body:
        return None
    shapes, lines = _shapes(body)
    if len(shapes) > _SHAPES:
        return None
    out = _Spread()
    kinds = [(shape.width, out.shape(shape)) for shape in shapes]
    looks = bytes([_look(piece) if len(piece) >= _LONG else _NO_LOOK for piece in out.text])
    text = [out.text[at] for at in sorted(range(len(looks)), key=looks.__getitem__)]
    plan = _Plan(kinds, _spell(lines), list(map(len, out.binary)), looks, out.again)
    return Streams(
        msgspec.msgpack.encode(plan),
        b'"'.join(out.short),
        b'"'.join(text),
        b"".join(out.ids),
        b"".join(out.binary),
    )


def _look(piece: bytes) -> int:
    begin, look = piece[:_LOOKED_AT].translate(None, _LETTERS), 0
    for bit, (sign, few) in _LOOK:
        if begin.count(sign) > few:
            look |= 1 << bit
    return look


def _shapes(body: bytes) -> tuple[list[_Shape], list[int]]:
    """The lines of each shape, and the shapes in the order of the lines."""
    names: dict[tuple[int, bytes], int] = {}
    shapes: list[_Shape] = []
    order: list[int] = []
    for line in body.split(b"\n"):
        # Split and join is one search for what `replace` would look for twice.
        pieces = _STANDS.join(line.split(_ESCAPED)).split(b'"')
        name = len(pieces), b'"'.join(pieces[::2]).translate(None, _DIGITS)
        number = names.get(name)
        if number is None:
            number = names[name] = len(shapes)
            shapes.append(_Shape(len(pieces)))
        shapes[number].pieces += pieces
        order.append(number)
    return shapes, order


def _spell(order: list[int]) -> bytes:
    numbers = array("H", order)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tobytes()


def _hex_bytes(column: Sequence[bytes]) -> bytes:
    """What ids stand for; empty where some are none."""
    joined = b"".join(column)
    if len(joined) != _UUID_SIZE * len(column) or set(map(len, column)) != {_UUID_SIZE}:
        return b""
    return bytes.fromhex(joined.replace(b"-", b"").decode()) if _UUIDS.fullmatch(joined) else b""


def _decoded(column: Sequence[bytes]) -> list[bytes]:
    """What base64 stands for; empty where some is none, or is spelled otherwise."""
    found = []
    for piece in column:
        if b" " in piece[:_LEAST_BASE64]:
            return []
        try:
            decoded = binascii.a2b_base64(piece, strict_mode=True)
        except binascii.Error:
            return []
        if binascii.b2a_base64(decoded, newline=False) != piece:
            return []
        found.append(decoded)
    return found


class _Gathered:
    """The streams while they are read back."""

    def __init__(self, streams: Streams, plan: _Plan, limit: int) -> None:
        self._left = limit
        self.short, self.text = iter(streams.short.split(b'"')), _as_it_was(streams.text, plan.looks)
        self._ids, self._binary = streams.ids, streams.binary
        self._sizes, self._again = iter(plan.sizes), iter(plan.again)
        self._id = self._byte = 0

    def shape(self, width: int, kinds: bytes, count: int) -> Iterator[bytes]:
        """The lines of a shape."""
        if not kinds:
            rows: Iterable[Sequence[bytes]] = ([next(self.text) for _ in range(width)] for _ in range(count))
        else:
            columns: list[list[bytes]] = []
            for kind in kinds:
                columns.append(columns[next(self._again)] if kind == AGAIN else self._column(kind, count))
                self._spend(sum(map(len, columns[-1])) if kind == AGAIN else count)
            rows = zip(*columns, strict=True)
        return iter([b'"'.join(row) for row in rows])

    def _column(self, kind: int, count: int) -> list[bytes]:
        if kind == SAME:
            piece = next(self.short)
            self._spend(len(piece) * count)
            return [piece] * count
        if kind == UUID:
            return list(self._uuids(count))
        if kind == BASE64:
            return [self._base64(next(self._sizes)) for _ in range(count)]
        return list(islice(self.text if kind == TEXT else self.short, count))

    def _spend(self, size: int) -> None:
        """Few bytes can stand for very many; no honest block does that."""
        self._left -= size
        if self._left < 0:
            raise ValueError("more than any block has")

    def _uuids(self, count: int) -> Iterator[bytes]:
        end = self._id + count * _UUID_BYTES
        text = self._ids[self._id : end].hex().encode()
        self._id = end
        for at in range(0, 2 * _UUID_BYTES * count, 2 * _UUID_BYTES):
            parts = text[at : at + 8], text[at + 8 : at + 12], text[at + 12 : at + 16], text[at + 16 : at + 20]
            yield b"-".join((*parts, text[at + 20 : at + 32]))

    def _base64(self, size: int) -> bytes:
        self._byte += size
        return binascii.b2a_base64(self._binary[self._byte - size : self._byte], newline=False)


def gather(streams: Streams, limit: int) -> bytes:
    """The records again; raises ValueError where the streams were made otherwise, or stand for more than `limit`."""
    try:
        plan = msgspec.msgpack.decode(streams.plan, type=_Plan)
        order = array("H", plan.lines)
        if sys.byteorder == "big":
            order.byteswap()
        return _lines(_Gathered(streams, plan, limit), plan, order)
    except (msgspec.MsgspecError, StopIteration, RuntimeError, IndexError) as error:
        raise ValueError(f"columns that do not fit: {error}") from error


def _as_it_was(text: bytes, looks: bytes) -> Iterator[bytes]:
    """Pieces of text in the order that they had."""
    pieces, at = text.split(b'"'), 0
    alike = {}
    for look in sorted(set(looks)):
        count = looks.count(look)
        alike[look] = iter(pieces[at : at + count])
        at += count
    return map(next, map(alike.__getitem__, looks))


def _lines(gathered: _Gathered, plan: _Plan, order: array[int]) -> bytes:
    counts = [0] * len(plan.shapes)
    for number in order:
        counts[number] += 1
    shapes = [gathered.shape(*shape, count) for shape, count in zip(plan.shapes, counts, strict=True)]
    return b"\n".join([next(shapes[number]) for number in order]).replace(_STANDS, _ESCAPED)
