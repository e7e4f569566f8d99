"""Work spread over processes that send back what they made, in the order of the tasks.

The processes are forked before anything here has threads. Where one dies, its task is done here; where this one dies,
they notice and leave.
"""

from __future__ import annotations

import gc
import os
import pickle
import signal
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import takewhile
from multiprocessing.connection import Connection, Pipe, wait
from typing import Any, TypeVar, cast

T = TypeVar("T")
R = TypeVar("R")

AHEAD = 3
"""For each process so many results may wait for one that takes longer."""
GRACE = 5.0
"""Seconds that a process has to clean up; one that waits for what never comes hears nothing."""
_PAUSE = 0.002
_COUNT = 4
"""Bytes before an answer that say how many buffers follow it."""

Room = Callable[[int, int], bool]
"""Whether a task may begin: how many results have been taken, and the number of the task."""


class Pool:
    """Processes that wait for tasks.

    `work` is done by them. What falls to this process, because there are no others or one of them died, is done by
    `here`, which is else the same; `died` is told whose task it was. So that nobody waits for this process to give out
    the next task, each may have several in its `queue`; such tasks must be small, as answers may be on their way.
    Where this process `helps`, it is one of the workers: it does `here` what is due and given to nobody, and `work` of
    what comes later while another is at what is due.
    """

    def __init__(
        self,
        work: Callable[[T], R],
        workers: int,
        *,
        queue: int = 1,
        here: Callable[[T], R] | None = None,
        died: Callable[[T], object] | None = None,
        helps: bool = False,
    ) -> None:
        self._work: Callable[[Any], Any] = work
        self._here: Callable[[Any], Any] = here or work
        self._died: Callable[[Any], object] | None = died
        self._queue, self._helps = queue, helps
        self._given: dict[Connection, deque[int]] = {}
        self._pids: list[int] = []
        for _ in range(workers - helps if workers > 1 and hasattr(os, "fork") else 0):
            self._start()

    def _start(self) -> None:
        ours, theirs = Pipe()
        if pid := os.fork():
            theirs.close()
            self._given[ours] = deque()
            self._pids.append(pid)
            return
        code = 1
        try:
            _obey()
            for end in (ours, *self._given):
                end.close()
            gc.disable()  # what is read makes no circles, and there is much of it
            _serve(self._work, theirs)
            code = 0
        finally:
            os._exit(code)

    def run(self, tasks: Sequence[T], room: Room | None = None) -> Iterator[Any]:
        """The result of each task, in their order. No task begins before there is room for its result."""
        if not self._given or len(tasks) < 2:
            yield from map(self._here, tasks)
            return
        limit = AHEAD * len(self._given)
        has_room = room or (lambda taken, number: number < taken + limit)
        waiting: dict[int, Any] = {}
        given: set[int] = set()
        for taken in range(len(tasks)):
            if self._helps:
                waiting.update(self._heard_of(tasks, 0))
            self._give_out(tasks, taken, given, has_room)
            while taken in given and taken not in waiting:
                ahead = self._ahead(tasks, taken, given, has_room)
                if ahead is not None:
                    waiting[ahead] = self._work(tasks[ahead])
                waiting.update(self._heard_of(tasks, None if ahead is None else 0))
                self._give_out(tasks, taken, given, has_room)
            given.add(taken)
            # What was given to nobody is ours, or nobody is left to do it.
            yield waiting.pop(taken) if taken in waiting else self._here(tasks[taken])

    def _give_out(self, tasks: Sequence[Any], taken: int, given: set[int], has_room: Room) -> None:
        for number in self._next(range(taken + self._helps, len(tasks)), given, lambda number: has_room(taken, number)):
            if not self._give(number, tasks[number]):
                return
            given.add(number)

    def _ahead(self, tasks: Sequence[Any], taken: int, given: set[int], has_room: Room) -> int | None:
        """A task for this process, while another is at the one that is due."""
        if not self._helps:
            return None
        numbers = range(taken + 1, len(tasks))
        number = next(self._next(numbers, given, lambda number: has_room(taken, number)), None)
        if number is not None:
            given.add(number)
        return number

    def _next(self, numbers: range, given: set[int], has_room: Callable[[int], bool]) -> Iterator[int]:
        """The tasks to be given out. Where this process helps, each nth is left for it while there are others."""
        ours: list[int] = []
        for number in takewhile(has_room, numbers):
            if number in given:
                continue
            if self._helps and number % (len(self._given) + 1) == 0:
                ours.append(number)
            else:
                yield number
        yield from reversed(ours)

    def _heard_of(self, tasks: Sequence[Any], timeout: float | None) -> dict[int, Any]:
        """What came of tasks meanwhile."""
        busy = [end for end, numbers in self._given.items() if numbers]
        found: dict[int, Any] = {}
        for end in wait(busy, timeout):
            found.update(self._heard(cast(Connection, end), tasks))
        return found

    def _give(self, number: int, task: Any) -> bool:
        """Give a task to whoever has the least to do; False where all have enough."""
        end = min(self._given, key=lambda one: len(self._given[one]), default=None)
        if end is None or len(self._given[end]) == self._queue:
            return False
        with suppress(OSError):  # whoever is dead says so later
            end.send(task)
        self._given[end].append(number)
        return True

    def _heard(self, end: Connection, tasks: Sequence[Any]) -> dict[int, Any]:
        """What a process made of its first task; of all of them, where it died."""
        try:
            head = end.recv_bytes()
            buffers = [end.recv_bytes() for _ in range(int.from_bytes(head[:_COUNT], "big"))]
        except (EOFError, OSError):
            end.close()
            numbers = self._given.pop(end)
            if self._died is not None:
                self._died(tasks[numbers[0]])
            return {number: self._here(tasks[number]) for number in numbers}
        failure, result = pickle.loads(memoryview(head)[_COUNT:], buffers=buffers)
        if failure is not None:
            raise failure
        return {self._given[end].popleft(): result}

    def close(self) -> None:
        """Let the processes go, in the middle of their tasks if need be."""
        for end in self._given:
            end.close()
        _end(self._pids)
        self._given, self._pids = {}, []


def _end(pids: list[int]) -> None:
    """Tell processes to leave, and wait for it. Who does not hear, however often it is said, is stopped."""
    latest = time.monotonic() + GRACE
    while pids:
        _signal(pids, signal.SIGTERM if time.monotonic() < latest else signal.SIGKILL)
        pids = [pid for pid in pids if not _has_left(pid)]
        time.sleep(_PAUSE if pids else 0)


def _signal(pids: list[int], number: int) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def _has_left(pid: int) -> bool:
    try:
        return os.waitpid(pid, os.WNOHANG)[0] != 0
    except ChildProcessError:
        return True


def _obey() -> None:
    """Leave when told to, and clean up on the way. What a person interrupts is whoever tells."""
    signal.signal(signal.SIGTERM, _leave)
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _leave(_number: int, _frame: object) -> None:
    """Said once is enough: cleaning up is not interrupted."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise KeyboardInterrupt


def _serve(work: Callable[[Any], Any], end: Connection) -> None:
    with suppress(EOFError, OSError):
        while True:
            task = end.recv()
            try:
                answer: tuple[Any, Any] = None, work(task)
            except Exception as error:
                answer = error, None
            buffers: list[pickle.PickleBuffer] = []
            head = pickle.dumps(answer, protocol=5, buffer_callback=buffers.append)
            end.send_bytes(len(buffers).to_bytes(_COUNT, "big") + head)
            for buffer in buffers:
                end.send_bytes(buffer.raw())
