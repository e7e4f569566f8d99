"""Records and lines in lots that are worth one search."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from io import BytesIO
from itertools import accumulate, islice
from typing import TypeVar

_T = TypeVar("_T")
STRETCH = 1 << 18
_FEW, _MANY = 8, 256


def batches(records: Iterable[_T], size_of: Callable[[_T], int]) -> Iterator[list[_T]]:
    """Records in lists that are worth one search."""
    rest = iter(records)
    while some := list(islice(rest, _FEW)):
        size = sum(map(size_of, some))
        # Short ones are taken many at a time.
        while size <= STRETCH:
            more = list(islice(rest, min(_MANY, len(some) * (STRETCH - size) // (size + 1) + 1)))
            if not more:
                break
            some += more
            size += sum(map(size_of, more))
        yield some


def stretches(chunks: Iterable[tuple[bytes, bool]]) -> Iterator[bytes]:
    """Many lines at a time, and pieces of a line that is too long for itself."""
    for chunk, is_whole in chunks:
        start, length = 0, len(chunk)
        while start < length:
            stop = chunk.find(b"\n", start + STRETCH - 1) + 1 if is_whole else 0
            stop = stop or length
            yield chunk if stop - start == length else chunk[start:stop]
            start = stop


def line_around(text: bytes, place: int) -> tuple[int, int]:
    """Where the line begins that a place is in, and where the next one does."""
    return text.rfind(b"\n", 0, place) + 1, text.find(b"\n", place) + 1 or len(text)


def all_lines(text: bytes) -> list[tuple[int, int]]:
    """Where every line begins, and where the next one does."""
    ends = list(accumulate(map(len, BytesIO(text))))
    return list(zip([0, *ends], ends, strict=False))
