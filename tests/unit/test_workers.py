"""Work spread over processes: order, limits, failures, deaths, cleaning up."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from clew.io import workers
from clew.io.workers import run_in_workers

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
PARENT = os.getpid()


def slow_at_first(task: int) -> tuple[int, int]:
    time.sleep(0.05 if task < 2 else 0)
    return task, os.getpid()


@pytest.mark.parametrize("ahead", [None, 1, 3])
def test_results_come_in_the_order_of_the_tasks(ahead: int | None) -> None:
    results = list(run_in_workers(slow_at_first, range(20), workers=3, ahead=ahead))
    assert [task for task, _ in results] == list(range(20))
    assert PARENT not in {process for _, process in results}


@pytest.mark.parametrize("workers", [1, 5])
def test_one_worker_or_one_task_needs_no_process(workers: int) -> None:
    assert list(run_in_workers(slow_at_first, [7], workers=workers)) == [(7, PARENT)]


@pytest.mark.slow
def test_tasks_wait_until_results_are_taken(tmp_path: Path) -> None:
    results = run_in_workers(lambda task: (tmp_path / str(task)).touch(), range(40), workers=2, ahead=2)
    next(results)
    time.sleep(0.5)
    assert len(list(tmp_path.iterdir())) == 4
    results.close()


def die_at_three(task: int) -> str:
    if task == 3 and os.getpid() != PARENT:
        os.kill(os.getpid(), signal.SIGKILL)
    return f"made {task}"


@pytest.mark.slow
def test_what_a_dead_process_left_is_done_here() -> None:
    assert list(run_in_workers(die_at_three, range(9), workers=2)) == [f"made {task}" for task in range(9)]


def test_what_is_done_here_may_be_something_else() -> None:
    results = list(run_in_workers(die_at_three, range(9), workers=2, fallback=lambda task: f"left {task}"))
    assert results[3:] == [f"left {task}" for task in range(3, 9)]


def refuse(task: int) -> int:
    if task == 2:
        raise LookupError("two")
    return task


def test_a_failure_is_raised() -> None:
    with pytest.raises(LookupError, match="two"):
        list(run_in_workers(refuse, range(4), workers=2))


@pytest.mark.slow
def test_large_results_are_complete() -> None:
    results = run_in_workers(lambda task: bytes([task]) * 3_000_000, range(5), workers=2)
    assert [(set(result), len(result)) for result in results] == [({task}, 3_000_000) for task in range(5)]


def test_closing_terminates_workers_which_clean_up(tmp_path: Path) -> None:
    def work(task: int) -> None:
        if task:
            try:
                (tmp_path / f"{task}.begun").touch()
                time.sleep(600)
            finally:
                time.sleep(0.1)
                (tmp_path / f"{task}.clean").touch()

    results = run_in_workers(work, range(9), workers=2)
    next(results)
    while len(list(tmp_path.iterdir())) < 2:
        time.sleep(0.01)
    results.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["1.begun", "1.clean", "2.begun", "2.clean"]


def test_a_worker_that_does_not_end_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "TERMINATE_SECONDS", 0.2)

    def stubborn(task: int) -> int:
        while task:
            try:
                time.sleep(60)
            except SystemExit:
                continue
        return task

    results = run_in_workers(stubborn, [0, 1, 2], workers=2)
    assert next(results) == 0
    started = time.monotonic()
    results.close()
    assert time.monotonic() - started < 30


class SlowFinalizer:
    """Is being finalized when the worker is terminated."""

    def __init__(self, started: Path) -> None:
        self.started = started

    def __del__(self) -> None:
        self.started.touch()
        time.sleep(5)


def test_a_worker_that_is_terminated_within_a_finalizer_ends_too(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    def work(task: int) -> None:
        if task:
            try:
                SlowFinalizer(tmp_path / "started")
                time.sleep(60)
            finally:
                (tmp_path / "cleaned").touch()

    results = run_in_workers(work, range(2), workers=2)
    next(results)
    while not (tmp_path / "started").exists():
        time.sleep(0.01)
    begin = time.monotonic()
    results.close()
    assert time.monotonic() - begin < workers.TERMINATE_SECONDS / 2
    assert (tmp_path / "cleaned").exists()
    assert capfd.readouterr().err == ""


def test_two_at_once_end_only_their_own_workers() -> None:
    code = (
        "from clew.io.workers import run_in_workers as run;"
        "print(list(zip(run(str, range(2), workers=2), run(str, range(4), workers=2))))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=30, check=True)
    assert done.stdout.split() == b"[('0', '0'), ('1', '1')]".split()


@pytest.mark.slow
def test_workers_of_a_killed_process_leave() -> None:
    code = (
        "import time; from clew.io.workers import run_in_workers;"
        "results = run_in_workers(lambda task: task and time.sleep(600), range(9), workers=2);"
        "next(results); print(flush=True); time.sleep(600)"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, start_new_session=True)
    assert process.stdout is not None and process.stdout.read(1)
    process.kill()
    process.wait()
    process.stdout.close()
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        try:
            os.killpg(process.pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)
    pytest.fail("a worker is left")
