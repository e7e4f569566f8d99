"""Cuts files into chunks, so that a record that lies in several files is stored once.

A chunk is a group of whole records. Where a group ends depends on the records in it alone, so two files that share a
run of records share most of its chunks, wherever the run lies. A long record is cut at its long strings: an image that
is shown in many records is the same chunk in all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO
from zlib import crc32

MIN_GROUP_BYTES = 4 << 10
MAX_GROUP_BYTES = 32 << 10
BOUNDARY_DIVISOR = 4
"""A group of at least the minimum ends with a record whose CRC-32 this number divides: with one in four."""
LONG_RECORD_BYTES = 32 << 10
"""A record of this size is cut at its long strings ..."""
LONG_STRING_BYTES = 8 << 10
"""... which are those of this size."""
MAX_CHUNK_BYTES = 1 << 20
WINDOW_BYTES = 8 << 20


def cut(stream: BinaryIO, size: int) -> Iterator[list[bytes]]:
    """Yield the chunks of the next `size` bytes, a window at a time. Joined they are the bytes that were read."""
    left, rest = size, b""
    while left and (piece := stream.read(min(WINDOW_BYTES, left))):
        left -= len(piece)
        window = rest + piece
        end = window.rfind(b"\n") + 1 or (len(window) if len(window) > WINDOW_BYTES else 0)
        yield split(window[:end])
        rest = window[end:]
    yield split(rest)


def split(window: bytes) -> list[bytes]:
    """Return the chunks of some whole records."""
    chunks: list[bytes] = []
    begin, at, size = 0, 0, len(window)
    while at < size:
        end = window.find(b"\n", at) + 1 or size
        if end - at >= LONG_RECORD_BYTES:
            if at > begin:
                chunks.append(window[begin:at])
            chunks += _split_long_record(window[at:end])
            begin = end
        elif end - begin >= MIN_GROUP_BYTES and (
            end - begin >= MAX_GROUP_BYTES or crc32(window[at:end]) % BOUNDARY_DIVISOR == 0
        ):
            chunks.append(window[begin:end])
            begin = end
        at = end
    if begin < size:
        chunks.append(window[begin:])
    return chunks


def _split_long_record(record: bytes) -> list[bytes]:
    """Cut a record before and after each of its long strings."""
    chunks: list[bytes] = []
    begin = at = 0
    for text in record.split(b'"'):
        end = at + len(text)
        if len(text) >= LONG_STRING_BYTES:
            chunks += _split_evenly(record[begin:at])
            chunks += _split_evenly(record[at:end])
            begin = end
        at = end + 1
    return chunks + _split_evenly(record[begin:])


def _split_evenly(text: bytes) -> list[bytes]:
    return [text[at : at + MAX_CHUNK_BYTES] for at in range(0, len(text), MAX_CHUNK_BYTES)]
