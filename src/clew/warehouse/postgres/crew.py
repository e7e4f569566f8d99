"""Portions of work done by several processes: each takes the next when it is done with one, and tells what came of it.

What one of them cannot go on with ends the work of all; what was done is done. Where the process that started them
dies, they finish their portion and leave.
"""

from __future__ import annotations

import gc
import json
import os
import select
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from typing import Any, TypeVar

from clew import errors
from clew.errors import ClewError

T = TypeVar("T")
Start = Callable[[], AbstractContextManager[Callable[[T], Any]]]
"""Makes what a process needs for its portions, and gives what does one; its answer is a JSON value."""

_WIDTH = 4
_MOST = 16_000
"""So many numbers fit into a pipe at once."""


def crew(start: Start[T], portions: Sequence[T], count: int) -> Iterator[Any]:
    """The answers, as they come."""
    if min(count, len(portions)) < 2 or not hasattr(os, "fork"):
        with start() as work:
            for portion in portions:
                yield work(portion)
        return
    for first in range(0, len(portions), _MOST):
        yield from _forked(start, portions[first : first + _MOST], count)


def _forked(start: Start[T], portions: Sequence[T], count: int) -> Iterator[Any]:
    queue, fill = os.pipe()
    os.write(fill, b"".join(number.to_bytes(_WIDTH, "little") for number in range(len(portions))))
    os.close(fill)
    pipes: dict[int, int] = {}
    try:
        for _ in range(min(count, len(portions))):
            reader, writer = os.pipe()
            try:
                pid = os.fork()
            except OSError:
                os.close(reader)
                os.close(writer)
                raise
            if not pid:
                os.close(reader)
                _live(start, portions, queue, writer)
            os.close(writer)
            pipes[reader] = pid
        yield from _heard(pipes, queue)
    finally:
        # Where something went wrong, nobody need begin anything more.
        _emptied(queue)
        os.close(queue)
        for reader, pid in pipes.items():
            os.close(reader)
            with suppress(ChildProcessError):
                os.waitpid(pid, 0)


def _emptied(queue: int) -> None:
    ready = select.poll()
    ready.register(queue, select.POLLIN)
    while ready.poll(0) and os.read(queue, 65536):
        pass


def _live(start: Start[T], portions: Sequence[T], queue: int, out: int) -> None:
    """A process's life; it leaves without running anything of its parent's."""
    parent, code = os.getppid(), 1
    # What is read makes no circles, and there is much of it.
    gc.disable()
    try:
        with start() as work:
            while (number := os.read(queue, _WIDTH)) and os.getppid() == parent:
                _say(out, {"done": work(portions[int.from_bytes(number, "little")])})
        code = 0
    except ClewError as error:
        _say(out, {"failed": str(error), "as": type(error).__name__})
    except BaseException as error:
        # What it says itself may be somebody's words.
        _say(out, {"failed": f"a process that pushes stopped: {type(error).__name__}", "as": "TargetRefused"})
    finally:
        os._exit(code)


def _say(out: int, value: dict[str, Any]) -> None:
    text = json.dumps(value).encode() + b"\n"
    while text:
        text = text[os.write(out, text) :]


def _heard(pipes: dict[int, int], queue: int) -> Iterator[Any]:
    """What the processes say, until all are done; the first failure is raised when they are."""
    waiting, rest = dict.fromkeys(pipes, b""), dict(pipes)
    failure: ClewError | None = None
    ready = select.poll()
    for reader in waiting:
        ready.register(reader, select.POLLIN)
    while waiting:
        for reader, _ in ready.poll():
            said = os.read(reader, 65536)
            *lines, waiting[reader] = (waiting[reader] + said).split(b"\n")
            for line in map(json.loads, lines):
                if "done" in line:
                    yield line["done"]
                else:
                    failure = failure or _error(line)
                    _emptied(queue)
            if not said:
                ready.unregister(reader)
                del waiting[reader]
                if os.waitpid(rest[reader], 0)[1] and failure is None:
                    failure = errors.TargetRefused("a process that pushes was stopped; the next push goes on")
                    _emptied(queue)
    if failure is not None:
        raise failure


def _error(line: dict[str, str]) -> ClewError:
    kind = getattr(errors, line["as"], None)
    return kind(line["failed"]) if isinstance(kind, type) and issubclass(kind, ClewError) else ClewError(line["failed"])
