"""Many sessions written on all cores, as if by one process: in their order, with the same bytes, words and counts.

Other processes only try. What one of them cannot write, for whatever reason, is left to this one, which writes it in
its turn and meets the same obstacle as if it were alone. This one is no idler either: what is due and was given to
nobody it writes itself, straight to where it belongs, and while others are at what is due, it tries what comes later.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, closing
from io import SEEK_END, FileIO
from itertools import accumulate, repeat
from typing import IO, Any, NamedTuple

from clew.model.json import JSON

WORTH_SPREADING = 8 << 20
"""From this many bytes on, several processes are quicker than one."""
SHARE = 1 << 20
"""Small sessions go to a process together, up to so many bytes ..."""
SHARES = 8
"""... or fewer, so that there are so many shares for each process."""
LARGE = 64 << 20
"""A session of this size is streamed by this process, so that its document waits nowhere."""
SLOTS = 64
"""The documents of so many shares may wait for their turn, on disk ..."""
WAITING = 4 * LARGE
"""... made of so many bytes."""
_PIECE = 1 << 20

Told = dict[str, JSON]
"""What a process has to say of a session that it wrote."""
Share = Sequence[int]
"""The numbers of sessions that a process writes one after the other."""
Died = Callable[[Share], object]
"""Is told the share that a process was at when it died."""


class Waiting(NamedTuple):
    """A document that another process wrote."""

    told: Told
    slot: FileIO
    begin: int
    end: int

    def copy_to(self, out: IO[bytes]) -> None:
        """Write it."""
        at = self.slot.seek(self.begin)
        while at < self.end:
            piece = self.slot.read(min(_PIECE, self.end - at))
            out.write(piece)
            at += len(piece)


def written_apart(
    write: Callable[[int], Told], sizes: Sequence[int], died: Died | None = None
) -> Generator[Told | None]:
    """What is told of each session once `write` has put it in its own place; None where that is left to the caller."""
    shares = shares_of(sizes)
    if not shares:
        yield from repeat(None, len(sizes))
        return

    def work(share: int) -> list[Told | None]:
        return [_tried(write, number) for number in shares[share]]

    with closing(_spread(work, shares, died, lambda _taken, _share: True)) as spread:
        for told in spread:
            yield from told


def written_together(
    write: Callable[[int, IO[bytes]], Told], sizes: Sequence[int], died: Died | None = None
) -> Generator[Waiting | None]:
    """Each document, to be copied before the next is asked for; None where writing it is left to the caller."""
    shares = shares_of(sizes)
    ends = [0, *accumulate(sum(sizes[number] for number in share if sizes[number] < LARGE) for share in shares)]

    def work(share: int) -> list[tuple[Told, int, int] | None]:
        slot = slots[share % SLOTS]
        return [_tried(_put, slot, write, number) if sizes[number] < LARGE else None for number in shares[share]]

    def has_room(taken: int, share: int) -> bool:
        return share - taken < SLOTS and ends[share + 1] - ends[taken] <= WAITING

    with ExitStack() as stack:
        # Files without a name, which all processes have: whatever ends these, nothing is left behind.
        slots = [stack.enter_context(tempfile.TemporaryFile(buffering=0)) for _ in shares[:SLOTS]]
        if not slots:
            yield from repeat(None, len(sizes))
            return
        spread = stack.enter_context(closing(_spread(work, shares, died, has_room)))
        for share, parts in enumerate(spread):
            slot = slots[share % SLOTS]
            for part in parts:
                yield Waiting(part[0], slot, *part[1:]) if part is not None else None
            slot.truncate(0)


def shares_of(sizes: Sequence[int]) -> list[Share]:
    """Sessions of these sizes dealt out in their order; nothing where one process is enough."""
    count = _processes(sizes)
    if count < 2:
        return []
    limit = min(SHARE, sum(sizes) // (SHARES * count))
    shares: list[list[int]] = []
    held = 0
    for number, size in enumerate(sizes):
        if not shares or held + size > limit:
            shares.append([])
            held = 0
        shares[-1].append(number)
        held += size
    return [*shares]


def _processes(sizes: Sequence[int]) -> int:
    if sum(sizes) < WORTH_SPREADING or not hasattr(os, "fork"):
        return 1
    return min(os.cpu_count() or 1, len(sizes), SLOTS // 2)


def _put(slot: FileIO, write: Callable[[int, IO[bytes]], Told], number: int) -> tuple[Told, int, int]:
    """Write a document behind those that are there; says where it stands."""
    begin = slot.seek(0, SEEK_END)
    with open(slot.fileno(), "wb", closefd=False) as out:
        told = write(number, out)
    return told, begin, slot.tell()


def _tried(work: Callable[..., Any], *what: Any) -> Any:
    try:
        return work(*what)
    except Exception:  # whatever it is, it comes again where it can be said
        return None


def _spread(
    work: Callable[[int], list[Any]], shares: Sequence[Share], died: Died | None, room: Callable[[int, int], bool]
) -> Generator[list[Any]]:
    """What came of each share, in their order."""
    from clew.io.pool import Pool

    count = min(os.cpu_count() or 1, SLOTS // 2, len(shares))
    pool = Pool(
        work,
        count,
        queue=2,
        here=lambda share: [None] * len(shares[share]),
        died=died and (lambda share: died(shares[share])),
        helps=True,
    )
    try:
        yield from pool.run(range(len(shares)), room)
    finally:
        pool.close()
