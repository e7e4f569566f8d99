"""Work spread over forked processes, with the results in the order of the tasks."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Generator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess

T = TypeVar("T")
R = TypeVar("R")

TERMINATE_SECONDS = 30.0
"""How long a terminated worker may clean up before it is killed."""
_RETRY_SECONDS = 0.01

_work: Callable[[Any], Any]
"""In a worker: what it does with each task."""
_is_working = False
"""In a worker: a task is running, which may have to clean up when the worker is terminated."""


def run_in_workers(
    work: Callable[[T], R],
    tasks: Sequence[T],
    *,
    workers: int | None = None,
    ahead: int | None = None,
    fallback: Callable[[T], R] | None = None,
) -> Generator[R]:
    """The result of each task, in the order of the tasks. An exception of `work` is raised here.

    `ahead` limits how many tasks per process may be running or finished before their results are taken.

    Processes are forked, so `work` may be a closure; tasks and results are pickled. Where a process dies (killed, out
    of memory), this process does the first task without a result and all tasks after it, with `fallback` (else `work`);
    some of them may have been done before. Closing the generator terminates the processes; `work` sees that as
    SystemExit.
    """
    count = available_workers(len(tasks), workers)
    if count < 2:
        yield from map(work, tasks)
        return
    # Imported here: many commands need no process, and all of them would wait for these modules.
    from concurrent.futures import Future, ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool
    from multiprocessing import active_children, get_context

    window = count * ahead if ahead else len(tasks)
    others = set(active_children())
    own: set[BaseProcess] = set()
    executor = ProcessPoolExecutor(count, get_context("fork"), _prepare_worker, (work,))
    results: deque[Future[R]] = deque()
    done = 0
    try:
        while done < len(tasks):
            for task in tasks[done + len(results) : done + window]:
                results.append(executor.submit(_run_task, task))
                # The first task starts all processes. Later ones may be those of another generator.
                own = own or set(active_children()) - others
            yield results[0].result()
            results.popleft()
            done += 1
    except BrokenProcessPool:
        pass
    finally:
        if results:
            _terminate(own)
        # Waits for the executor's thread, too: if Python ended before, it would print a traceback.
        executor.shutdown(cancel_futures=True)
    yield from map(fallback or work, tasks[done:])


def available_workers(task_count: int, wanted: int | None = None) -> int:
    """How many processes can share the tasks: as many as wanted, else one per processor; 1 where none can be forked."""
    return min(wanted or os.cpu_count() or 1, task_count) if hasattr(os, "fork") else 1


def _terminate(workers: Collection[BaseProcess]) -> None:
    for worker in workers:
        worker.terminate()
    deadline = time.monotonic() + TERMINATE_SECONDS
    for worker in workers:
        worker.join(max(0.0, deadline - time.monotonic()))
        if worker.is_alive():
            worker.kill()


def _prepare_worker(work: Callable[[Any], Any]) -> None:
    global _work
    _work = work
    # Ctrl-C and the end of a terminal reach every process of it. The parent alone answers, and terminates the workers.
    for name in ("SIGINT", "SIGHUP"):
        signal.signal(getattr(signal, name), signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _on_terminate)
    threading.Thread(target=_exit_with_parent, daemon=True).start()


def _on_terminate(_number: int, _frame: object) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a second signal must not interrupt cleaning up
    if not _is_working:
        os._exit(1)  # the executor would catch SystemExit, and wait for the next task
    # Python discards an exception that is raised within a finalizer: then it is raised again a moment later.
    signal.signal(signal.SIGALRM, lambda _number, _frame: sys.exit(1))
    sys.unraisablehook = lambda _exception: signal.setitimer(signal.ITIMER_REAL, _RETRY_SECONDS)
    sys.exit(1)


def _run_task(task: Any) -> Any:
    global _is_working
    try:
        _is_working = True
        return _work(task)
    except SystemExit:
        pass
    finally:
        _is_working = False
    # Here, the exception is gone, and the generators of its frames have cleaned up. The executor would go on with the
    # next task.
    os._exit(1)


def _exit_with_parent() -> None:
    """A worker of a killed parent would wait for tasks forever."""
    from multiprocessing import parent_process

    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
