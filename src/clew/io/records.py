"""JSONL as it really is on disk: a stream of records with spans, whatever happened to the bytes.

Only LF ends a line. Every byte of the source is in exactly one `RawRecord`, as its `raw` bytes
or as the line end behind it, so joining them all gives the source back.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterator
from functools import partial
from typing import BinaryIO, NamedTuple

import msgspec

from clew.io.codec import COMPACT, NOT_JSON, CarefulReader, Decoded, TooDeep, decode, decode_text, dumps, loads
from clew.model.json import JSON

CHUNK = 1 << 20
"""How many bytes are read at a time where lines are not looked at one by one."""
_GIVEN = os.environ.get("CLEW_MAX_LINE", "")
MAX_RECORD_BYTES = max(int(_GIVEN), CHUNK) if _GIVEN.isdecimal() and int(_GIVEN) > 0 else 64 << 20
"""Longest line, or session that is one JSON document, that is read; a longer one is kept as it is and not decoded."""
PIECE = 4 << 20
"""A longer line is kept in fragments of this many bytes."""
TOO_LONG = "line-too-long"
"""The finding on each of these fragments."""
MAX_RESYNCS = 10_000
"""How many places of a damaged line are tried as the start of a record."""
MAX_REREADS = 4
"""How often a damaged line is read in all while such a place is looked for."""

_UNUSUAL = (*NOT_JSON, UnicodeEncodeError)
_PREFIX = re.compile(rb"(?:\xef\xbb\xbf|\x00)+")
_START = re.compile(r'\{\s*"')
_KEPT = "surrogateescape"
"""Makes one letter of each byte that is no text, and that byte again of the letter."""


class RawRecord(msgspec.Struct, gc=False):
    """One record or fragment. `value` None: a fragment, no record could be read from it."""

    line: int
    start: int
    text: bytes
    """The record's own bytes with the line end behind them."""
    end: bytes
    value: dict[str, JSON] | None
    dialect: str | None
    """How `value` is spelled; None: only `raw` gives the bytes back."""
    findings: tuple[str, ...] = ()

    @property
    def raw(self) -> bytes:
        """The record's own bytes."""
        return self.text[: len(self.text) - len(self.end)]

    @property
    def stop(self) -> int:
        """Offset behind the record's own bytes."""
        return self.start + len(self.text) - len(self.end)


def read_records(stream: BinaryIO, line: int = 1, start: int = 0) -> Iterator[RawRecord]:
    """All records from the stream's position on; `line` and `start` say where that is."""
    for text, number, offset, whole in read_lines(stream, line, start):
        yield from read_line(text, number, offset, whole)


def read_lines(stream: BinaryIO, line: int = 1, start: int = 0) -> Iterator[tuple[bytes, int, int, bool]]:
    """Lines with their line ends, numbers and offsets; one that is too long comes in pieces that are not whole."""
    for text in iter(partial(stream.readline, MAX_RECORD_BYTES), b""):
        if is_whole(text):
            yield text, line, start, True
            start += len(text)
        else:
            for piece in pieces_of(text, stream):
                yield piece, line, start, False
                start += len(piece)
        line += 1


def is_whole(text: bytes) -> bool:
    """False for the beginning of a line that is too long: as much of it as one read gives."""
    return len(text) < MAX_RECORD_BYTES or text.endswith(b"\n")


def pieces_of(begun: bytes, stream: BinaryIO) -> Iterator[bytes]:
    """A line that is too long, of which the beginning was read, in pieces; the last one may end in a line feed."""
    for at in range(0, len(begun), PIECE):
        yield begun[at : at + PIECE]
    last = begun[-1:]
    del begun
    while last != b"\n" and (piece := stream.readline(PIECE)):
        yield piece
        last = piece[-1:]


def read_chunks(stream: BinaryIO, size: int = CHUNK) -> Iterator[tuple[bytes, bool]]:
    """Many lines at a time; False for a piece of a line that is too long."""
    if isinstance(stream, io.BytesIO) and stream.getbuffer().nbytes < MAX_RECORD_BYTES:
        # All of it is there, and need not be copied.
        if text := stream.read():
            yield text, True
        return
    while chunk := stream.read(size):
        begin = chunk.rfind(b"\n") + 1
        tail = stream.readline(MAX_RECORD_BYTES - len(chunk) + begin) if begin < len(chunk) else b""
        if begin == len(chunk) or len(chunk) - begin + len(tail) < MAX_RECORD_BYTES or tail.endswith(b"\n"):
            yield chunk + tail if tail else chunk, True
            continue
        if begin:
            yield chunk[:begin], True
        begun = chunk[begin:] + tail
        del chunk, tail
        for piece in pieces_of(begun, stream):
            yield piece, False


def read_line(text: bytes, line: int, start: int, whole: bool = True) -> Iterator[RawRecord]:
    """The records of one line; nearly always it is one compact record and a line feed."""
    if not whole:
        yield RawRecord(line, start, text, b"\n" if text.endswith(b"\n") else b"", None, None, (TOO_LONG,))
        return
    try:
        value = loads(text)
        spelled = dumps(value)
        if type(value) is dict and len(spelled) + 1 == len(text) and text.startswith(spelled) and text.endswith(b"\n"):
            yield RawRecord(line, start, text, b"\n", value, COMPACT)
            return
    except _UNUSUAL:
        pass
    yield from _split_damaged_line(text, line, start)


def _split_damaged_line(text: bytes, line: int, start: int) -> Iterator[RawRecord]:
    """The records and fragments of a line that is not plainly one compact record."""
    end = b"\r\n" if text.endswith(b"\r\n") else b"\n" if text.endswith(b"\n") else b""
    pieces = list(_pieces(text[: len(text) - len(end)], torn=not end))
    for number, (piece, found) in enumerate(pieces):
        tail = end if number == len(pieces) - 1 else b""
        value = found.value if isinstance(found.value, dict) else None
        # A long line is not copied where it is one record.
        own = text if len(pieces) == 1 else piece + tail
        yield RawRecord(line, start, own, tail, value, found.dialect, found.findings)
        start += len(piece)


def _pieces(raw: bytes, torn: bool) -> Iterator[tuple[bytes, Decoded]]:
    if not raw.strip():
        yield raw, _fragment("blank-line")
        return
    prefix = _PREFIX.match(raw)
    if prefix:
        mark = prefix.group()
        yield mark, _fragment("nul-run" if b"\0" in mark else "byte-order-mark")
        raw = raw[len(mark) :]
    if raw:
        yield from _values(raw, torn)


def _values(raw: bytes, torn: bool) -> Iterator[tuple[bytes, Decoded]]:
    text = raw.decode(errors=_KEPT)
    whole = _read_all(text, 0)
    if isinstance(whole, list) and len(whole) == 1:
        yield raw, _found(whole[0], raw, None)
    elif isinstance(whole, list):
        yield from _spell(whole, text)
    elif whole.code == "too-deep":
        yield raw, _fragment("too-deep", *decode_text(raw)[1])
    else:
        yield from _recover_records(text, torn)


_Value = tuple[JSON, int, int, CarefulReader]


class _Damage(NamedTuple):
    """What is wrong, and how far the reader came."""

    code: str
    at: int


def _read_all(text: str, at: int) -> list[_Value] | _Damage:
    """Every value from `at` to the end of the text, or what is wrong with them."""
    values: list[_Value] = []
    while True:
        begin = at
        while at < len(text) and text[at] in " \t\r":
            at += 1
        if at == len(text) and values:
            value, first, _, reader = values[-1]
            values[-1] = (value, first, at, reader)
            return values
        reader = CarefulReader()
        try:
            value, at = reader.read(text, at)
        except TooDeep:
            return _Damage("malformed-json" if values else "too-deep", at)
        except ValueError as error:
            return _Damage("malformed-json", getattr(error, "pos", at))
        if values and not isinstance(value, dict):
            return _Damage("malformed-json", at)
        values.append((value, begin, at, reader))


def _spell(values: list[_Value], text: str) -> Iterator[tuple[bytes, Decoded]]:
    """Records that share a line with something else."""
    for value in values:
        piece = text[value[1] : value[2]].encode(errors=_KEPT)
        yield piece, _found(value, piece, "glued-records")


def _found(one: _Value, piece: bytes, extra: str | None) -> Decoded:
    value, _, _, reader = one
    if not isinstance(value, dict):
        return _fragment("not-an-object")
    if decode_text(piece)[1]:
        found = decode(piece)
        return found._replace(findings=(*found.findings, extra)) if extra else found
    found = reader.finish(value, piece, (extra,) if extra else ())
    if extra and not reader.findings:
        found = reader.finish(value, piece)._replace(findings=(extra,))
    return found


def _recover_records(text: str, torn: bool) -> Iterator[tuple[bytes, Decoded]]:
    """Leading whole records, then the damage, then whole records up to the end of the line."""
    head, at = _leading(text)
    yield from _spell(head, text)
    resumed, tail = _resume(text, at)
    code = "fragment" if tail or head else "torn-tail" if torn else "malformed-json"
    piece = text[at:resumed].encode(errors=_KEPT)
    yield piece, _fragment("torn-tail" if torn and not tail else code, *decode_text(piece)[1])
    yield from _spell(tail, text)


def _leading(text: str) -> tuple[list[_Value], int]:
    values: list[_Value] = []
    at = 0
    while True:
        reader = CarefulReader()
        try:
            value, stop = reader.read(text, at)
        except ValueError:
            return values, at
        if not isinstance(value, dict):
            return values, at
        values.append((value, at, stop, reader))
        at = stop


def _resume(text: str, at: int) -> tuple[int, list[_Value]]:
    """The first place behind `at` from where everything up to the end of the line is whole records."""
    effort = MAX_REREADS * len(text)
    for tries, match in enumerate(_START.finditer(text, at + 1)):
        if tries >= MAX_RESYNCS or effort < 0:
            break
        values = _read_all(text, match.start())
        if isinstance(values, list):
            return match.start(), values
        effort -= values.at - match.start()
    return len(text), []


def _fragment(*codes: str) -> Decoded:
    return Decoded(None, None, codes)
