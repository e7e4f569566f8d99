"""Work spread over the cores: forked processes that send back plain values. Falls back to doing it here."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import msgspec

from clew.model.json import JSON

T = TypeVar("T")

_WIDTH = 2
"""Bytes of a ticket."""
TICKETS = 1024
"""At most so many: all of them must fit into a pipe at once."""


def spread(work: Callable[[T], JSON], tasks: Sequence[T], workers: int | None = None) -> list[JSON]:
    """The result of each task, in their order. Results must be JSON values or bytes.

    Whoever is free takes the next task, so those that take longest should come first.
    """
    workers = min(workers or os.cpu_count() or 1, len(tasks))
    if workers < 2 or not hasattr(os, "fork"):
        return [work(task) for task in tasks]
    size = min(len(tasks), TICKETS)
    shares = [tasks[number::size] for number in range(size)]
    tickets = _printed(size)
    done: dict[int, list[JSON]] = {}
    pipes = [_start(work, shares, tickets) for _ in range(workers - 1)]
    try:
        # Our own part is done while the others work.
        for number in _drawn(tickets):
            done[number] = [work(task) for task in shares[number]]
    finally:
        # Where something went wrong here, nobody need go on.
        os.read(tickets, _WIDTH * size)
        os.close(tickets)
        for pid, pipe in pipes:
            done.update(_collected(pid, pipe))
    results: list[JSON] = [None] * len(tasks)
    for number, share in enumerate(shares):
        # What a process took with it when it died is done here.
        results[number::size] = done[number] if number in done else [work(task) for task in share]
    return results


def _printed(size: int) -> int:
    """A pipe with a ticket for each share, which every process draws from."""
    reader, writer = os.pipe()
    os.write(writer, b"".join(number.to_bytes(_WIDTH, "big") for number in range(size)))
    os.close(writer)
    return reader


def _drawn(tickets: int) -> Iterator[int]:
    while ticket := os.read(tickets, _WIDTH):
        yield int.from_bytes(ticket, "big")


def _start(work: Callable[[T], JSON], shares: Sequence[Sequence[T]], tickets: int) -> tuple[int, int]:
    reader, writer = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writer)
        return pid, reader
    # The child leaves without running anything of its parent's: no clean-up, no output twice.
    code = 1
    try:
        os.close(reader)
        found = [(number, [work(task) for task in shares[number]]) for number in _drawn(tickets)]
        with open(writer, "wb") as out:
            out.write(msgspec.msgpack.encode(found))
        code = 0
    finally:
        os._exit(code)


def _collected(pid: int, pipe: int) -> list[tuple[int, list[JSON]]]:
    """What a process found; nothing where it died."""
    with open(pipe, "rb") as stream:
        sent = stream.read()
    _, status = os.waitpid(pid, 0)
    found: list[tuple[int, list[JSON]]] = msgspec.msgpack.decode(sent) if not status else []
    return found
