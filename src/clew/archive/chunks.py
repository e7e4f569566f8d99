"""Bytes cut into chunks: a record each, so that a record that lies in several files is kept once.

Records that are short go together, because each chunk costs some bytes of its own. A long record is cut where a long
piece of text begins and ends: an image that is shown in many records is the same chunk in all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

SHORT = 1400
"""Records are joined until they have this size."""
LONG = 32 << 10
"""A record of this size is cut at its long strings ..."""
STRING = 8 << 10
"""... which are those."""
LARGEST = 1 << 20
WINDOW = 8 << 20


def cut(stream: BinaryIO, size: int) -> Iterator[list[bytes]]:
    """The chunks of the next `size` bytes, some at a time. Joined they are what was read."""
    left, rest = size, b""
    while left and (piece := stream.read(min(WINDOW, left))):
        left -= len(piece)
        window = rest + piece
        end = window.rfind(b"\n") + 1 or (len(window) if len(window) > WINDOW else 0)
        yield chunks(window[:end])
        rest = window[end:]
    yield chunks(rest)


def chunks(window: bytes) -> list[bytes]:
    """The chunks of some whole records."""
    found: list[bytes] = []
    begin, size = 0, len(window)
    while begin < size:
        end = window.find(b"\n", begin) + 1 or size
        if end - begin < SHORT:
            end = _joined(window, begin, end)
        if end - begin >= LONG:
            found += _cut_long(window[begin:end])
        else:
            found.append(window[begin:end])
        begin = end
    return found


def _joined(window: bytes, begin: int, end: int) -> int:
    """Where a chunk of short records ends: behind the one that makes it large enough, or before a longer one."""
    size = len(window)
    while end < size and end - begin < SHORT:
        following = window.find(b"\n", end) + 1 or size
        if following - end >= SHORT:
            break
        end = following
    return end


def _cut_long(line: bytes) -> list[bytes]:
    found, begin, at, before = [], 0, 0, 0
    sizes = list(map(len, line.split(b'"')))
    for place in [place for place, size in enumerate(sizes) if size >= STRING]:
        at += sum(sizes[before:place]) + place - before
        before = place
        found += _pieces(line[begin:at])
        begin = at + sizes[place]
        found += _pieces(line[at:begin])
    return found + _pieces(line[begin:])


def _pieces(text: bytes) -> list[bytes]:
    return [text[at : at + LARGEST] for at in range(0, len(text), LARGEST)]
