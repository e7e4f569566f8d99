"""Work spread over the cores: forked processes that send back plain values. Falls back to doing it here."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TypeVar

import msgspec

from clew.model.json import JSON

T = TypeVar("T")


def spread(work: Callable[[T], JSON], tasks: Sequence[T], workers: int | None = None) -> list[JSON]:
    """The result of each task, in their order. Results must be JSON values or bytes."""
    workers = min(workers or os.cpu_count() or 1, len(tasks))
    if workers < 2 or not hasattr(os, "fork"):
        return [work(task) for task in tasks]
    pipes = [_start(work, tasks[number::workers]) for number in range(1, workers)]
    try:
        # Our own share is done while the others work.
        shares = [[work(task) for task in tasks[::workers]]]
    except BaseException:
        for pid, pipe in pipes:
            os.close(pipe)
            os.waitpid(pid, 0)
        raise
    shares += [_collect(pid, pipe, work, tasks[number::workers]) for number, (pid, pipe) in enumerate(pipes, 1)]
    results: list[JSON] = [None] * len(tasks)
    for number, share in enumerate(shares):
        results[number::workers] = share
    return results


def _start(work: Callable[[T], JSON], tasks: Sequence[T]) -> tuple[int, int]:
    reader, writer = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writer)
        return pid, reader
    # The child leaves without running anything of its parent's: no clean-up, no output twice.
    code = 1
    try:
        os.close(reader)
        with open(writer, "wb") as out:
            out.write(msgspec.msgpack.encode([work(task) for task in tasks]))
        code = 0
    finally:
        os._exit(code)


def _collect(pid: int, pipe: int, work: Callable[[T], JSON], tasks: Sequence[T]) -> list[JSON]:
    with open(pipe, "rb") as stream:
        sent = stream.read()
    _, status = os.waitpid(pid, 0)
    if status:
        return [work(task) for task in tasks]
    share: list[JSON] = msgspec.msgpack.decode(sent)
    return share
