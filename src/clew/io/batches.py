"""Groups items by size, for work that is done in one go but must not take too much memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")


def batches_by_size(
    items: Iterable[T], size_of: Callable[[T], int], max_size: int, max_items: int | None = None
) -> Iterator[list[T]]:
    """Yield items in batches of at most `max_size` in all, or of one larger item, and of at most `max_items`."""
    batch: list[T] = []
    batch_size = 0
    for item in items:
        size = size_of(item)
        if batch and (batch_size + size > max_size or len(batch) == max_items):
            yield batch
            batch, batch_size = [], 0
        batch.append(item)
        batch_size += size
    if batch:
        yield batch
