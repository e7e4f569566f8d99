"""Work spread over processes: order, room, failures, deaths."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from clew.io.pool import Pool

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
HERE = os.getpid()


@contextmanager
def closed(pool: Pool) -> Iterator[Pool]:
    try:
        yield pool
    finally:
        pool.close()


def slower_at_first(task: int) -> tuple[int, int]:
    time.sleep(0.05 if task < 2 else 0)
    return task, os.getpid()


@pytest.mark.parametrize("queue", [1, 2, 5])
def test_results_come_in_the_order_of_the_tasks(queue: int) -> None:
    with closed(Pool(slower_at_first, 3, queue=queue)) as pool:
        results = list(pool.run(range(20)))
    assert [task for task, _ in results] == list(range(20))
    assert os.getpid() not in {pid for _, pid in results}


def test_no_task_begins_before_there_is_room() -> None:
    asked: list[tuple[int, int]] = []

    def room(taken: int, number: int) -> bool:
        asked.append((taken, number))
        return number - taken < 2

    with closed(Pool(slower_at_first, 3, queue=2)) as pool:
        seen = 0
        for seen, _ in enumerate(pool.run(range(12), room), 1):
            assert max((number for taken, number in asked if number - taken < 2), default=0) <= seen + 1
    assert seen == 12


def die_at_three(task: int) -> str:
    if task == 3 and os.getpid() != HERE:
        os.kill(os.getpid(), signal.SIGKILL)
    return f"made {task}"


@pytest.mark.parametrize("queue", [1, 3])
def test_the_task_of_a_process_that_dies_is_done_here_and_named(queue: int) -> None:
    named: list[int] = []
    with closed(Pool(die_at_three, 2, queue=queue, died=named.append)) as pool:
        assert list(pool.run(range(9))) == [f"made {task}" for task in range(9)]
    assert named == [3]


def die(task: int) -> str:
    if os.getpid() != HERE:
        os._exit(7)
    return f"made {task}"


@pytest.mark.parametrize("queue", [1, 2])
def test_everything_is_done_here_when_all_have_died(queue: int) -> None:
    with closed(Pool(die, 2, queue=queue)) as pool:
        assert list(pool.run(range(9))) == [f"made {task}" for task in range(9)]


def test_what_is_done_here_may_be_something_else() -> None:
    with closed(Pool(die, 2, here=lambda task: f"here {task}")) as pool:
        assert list(pool.run(range(4))) == [f"here {task}" for task in range(4)]
    with closed(Pool(die, 1, here=lambda task: f"here {task}")) as pool:
        assert list(pool.run(range(4))) == [f"here {task}" for task in range(4)]


@pytest.mark.parametrize("workers", [2, 3])
def test_a_process_that_helps_does_what_is_due_and_others_the_rest(workers: int) -> None:
    with closed(Pool(slower_at_first, workers, queue=2, helps=True)) as pool:
        assert len(pool._pids) == workers - 1
        results = list(pool.run(range(20)))
    assert [task for task, _ in results] == list(range(20))
    by_whom = {pid for _, pid in results}
    assert results[0][1] == HERE
    assert len(by_whom) == workers


def test_a_process_that_is_slow_to_take_results_leaves_its_own_tasks_to_others() -> None:
    with closed(Pool(slower_at_first, 2, queue=2, helps=True)) as pool:
        results = []
        for result in pool.run(range(12), lambda _taken, _number: True):
            results.append(result)
            time.sleep(0.2)
    assert sum(pid == HERE for _, pid in results) < 6


def long_elsewhere(task: int) -> tuple[int, int]:
    if os.getpid() != HERE:
        time.sleep(0.5)
    return task, os.getpid()


def test_a_process_that_helps_works_ahead_while_another_is_at_what_is_due() -> None:
    with closed(Pool(long_elsewhere, 2, queue=2, helps=True)) as pool:
        results = list(pool.run(range(12), lambda _taken, _number: True))
    assert [task for task, _ in results] == list(range(12))
    # What it was given at first, and on a busy machine little more.
    assert 1 <= sum(pid != HERE for _, pid in results) <= 4


def test_a_process_that_helps_goes_on_alone() -> None:
    named: list[int] = []
    with closed(Pool(die, 2, queue=2, helps=True, died=named.append)) as pool:
        assert list(pool.run(range(9))) == [f"made {task}" for task in range(9)]
    assert named == [1]


def test_there_must_be_room_where_this_process_helps() -> None:
    taken: list[int] = []

    def room(done: int, number: int) -> bool:
        assert done <= len(taken) <= done + 1
        return number - done < 2

    with closed(Pool(slower_at_first, 3, queue=2, helps=True)) as pool:
        for number, _ in pool.run(range(12), room):
            taken.append(number)
    assert taken == list(range(12))


def refuse(task: int) -> int:
    if task == 2:
        raise LookupError("two")
    return task


def test_a_failure_is_raised() -> None:
    with closed(Pool(refuse, 2)) as pool, pytest.raises(LookupError, match="two"):
        list(pool.run(range(4)))


def large(task: int) -> bytes:
    return bytes([task]) * 3_000_000


def test_large_results_come_whole() -> None:
    with closed(Pool(large, 2)) as pool:
        assert [len(set(result)) for result in pool.run(range(5))] == [1] * 5


def test_closing_does_not_wait_for_tasks() -> None:
    begin = time.monotonic()
    pool = Pool(lambda _: time.sleep(60), 2, queue=2)
    results = pool.run(range(5), lambda _taken, number: number < 4)
    pool._give(0, 0)
    pool._give(1, 1)
    pool.close()
    results.close()  # type: ignore[attr-defined]
    assert time.monotonic() - begin < 30


def cleans_up(task: str) -> None:
    Path(f"{task}.begun").touch()
    try:
        time.sleep(60)
    finally:
        time.sleep(0.1)  # and is told to leave several times meanwhile
        Path(task).touch()


def test_who_is_told_to_leave_cleans_up_first(tmp_path: Path) -> None:
    pool = Pool(cleans_up, 2)
    pool._give(0, str(tmp_path / "clean"))
    while not (tmp_path / "clean.begun").exists():
        time.sleep(0.01)
    pool.close()
    assert (tmp_path / "clean").exists()


def deaf(task: str) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    Path(task).touch()
    time.sleep(600)


def test_who_does_not_hear_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clew.io.pool.GRACE", 0.05)
    pool = Pool(deaf, 2)
    pool._give(0, str(tmp_path / "begun"))
    while not (tmp_path / "begun").exists():
        time.sleep(0.01)
    pids = pool._pids
    pool.close()
    for pid in pids:
        with pytest.raises(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)
