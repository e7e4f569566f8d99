"""Many sessions written by several processes, with the same result as if one process had written them in order.

After an error, sessions behind the failed one may be written already.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from itertools import repeat
from typing import TypeVar

from clew.errors import WorkerDied
from clew.io.batches import batches_by_size
from clew.io.workers import available_workers, run_in_workers

R = TypeVar("R")

MIN_PARALLEL_BYTES = 8 << 20
"""Below this total, one process is faster."""
BATCH_BYTES = 1 << 20
"""Upper limit of a batch of small sessions."""
BATCHES_PER_WORKER = 8
"""A batch is smaller than that where workers would get fewer batches than this."""
BATCHES_AHEAD = 4
"""How many batches per worker may be running, or written and not yet taken."""


def write_in_workers(write: Callable[[int], R], sizes: Sequence[int]) -> Generator[R | None]:
    """What `write` returned for each session, given by its number.

    None means that the caller must write the session itself: there is little to do, or `write` failed in the worker, so
    that the error is raised where it can be reported. Raises WorkerDied at the first session without a result; some
    sessions behind it may be written.
    """
    batches = split_into_batches(sizes)
    if not batches:
        yield from repeat(None, len(sizes))
        return

    def write_batch(batch: Sequence[int]) -> list[R | None]:
        return [_try(write, number) for number in batch]

    def fail(batch: Sequence[int]) -> list[R | None]:
        raise WorkerDied("a worker process died")

    with closing(run_in_workers(write_batch, batches, ahead=BATCHES_AHEAD, fallback=fail)) as results:
        for result in results:
            yield from result


def split_into_batches(sizes: Sequence[int]) -> list[Sequence[int]]:
    """Sessions of these sizes in batches, in their order; no batch where one process is enough."""
    workers = available_workers(len(sizes))
    if sum(sizes) < MIN_PARALLEL_BYTES or workers < 2:
        return []
    limit = min(BATCH_BYTES, sum(sizes) // (BATCHES_PER_WORKER * workers))
    return [*batches_by_size(range(len(sizes)), sizes.__getitem__, limit)]


def _try(write: Callable[[int], R], number: int) -> R | None:
    try:
        return write(number)
    except Exception:
        return None
