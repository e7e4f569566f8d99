"""Nothing waits for ever: not a signal handler for its own thread, not a fork for a thread that stayed behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from clew.errors import Busy, SourceUnreadable
from clew.io.filesystem import System
from clew.store import Session, Store, burst
from clew.store.burst import Burst
from clew.store.keeping import CAN_KEEP
from clew.store.layout import Durability
from tests import children
from tests.store.support import Quick, lines, log_of, said

pytestmark = pytest.mark.skipif(not CAN_KEEP, reason="signals and forks are those of POSIX")

HANDLER = """
import json, signal, sys
from clew.errors import Busy
from clew.store import Store
session = Store(sys.argv[1], durability=sys.argv[2]).session("s")
told = {"user": 0, "describe": 0, "close": 0, "busy": 0}
def handle(*_):
    for name, words in (("user", ["from the handler"]), ("describe", []), ("close", [])):
        try:
            getattr(session, name)(*words)
            told[name] += 1
        except Busy as error:
            assert "this very thread" in str(error), error
            told["busy"] += 1
signal.signal(signal.SIGALRM, handle)
signal.setitimer(signal.ITIMER_REAL, 0.003, 0.003)
count = 0
while told["busy"] < 3 or count < 100:
    session.user("from the program")
    count += 1
signal.setitimer(signal.ITIMER_REAL, 0)
signal.raise_signal(signal.SIGALRM)  # nothing is being appended, so this time it is written
session.user("the last")
session.close()
print(json.dumps({**told, "count": count}))
"""


@pytest.mark.parametrize("level", ["disk", "system"])
def test_a_signal_handler_that_appends_is_told_and_never_waits_for_itself(tmp_path: Path, level: Durability) -> None:
    command = [sys.executable, "-X", "faulthandler", "-c", HANDLER, str(tmp_path), level]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    told, words = json.loads(done.stdout), said(log_of(tmp_path))
    assert words.count("from the program") == told["count"] >= 100
    assert words.count("from the handler") == told["user"] >= 1
    assert min(told["describe"], told["close"]) >= 1 and told["busy"] >= 3
    assert words[-2:] == ["from the handler", "the last"]
    assert [record["metadata"]["clew"]["seq"] for record in lines(log_of(tmp_path))] == list(range(1, len(words) + 1))


def test_a_handler_in_the_usual_way_and_in_the_quick_one(tmp_path: Path) -> None:
    """Both at a place of our choosing: in the middle of a write."""
    caught: list[str] = []

    class Interrupted(Quick):
        @staticmethod
        def write(descriptor: int, content: bytes) -> int:
            if b"interrupted" in content:
                try:
                    session.user("from the handler")
                except Busy as error:
                    caught.append(str(error))
            return os.write(descriptor, content)

    session = Store(tmp_path, system=Interrupted()).session("s")
    session.user("one")
    session.user("interrupted", todos=[])  # which goes the usual way
    for number in range(20):
        session.user(f"{number}")
    assert session._writer.log.is_kept
    session.user("interrupted, quickly")
    session.user("on")
    assert len(caught) == 2 and all("set" in words and "flag" in words for words in caught)
    assert said(log_of(tmp_path))[-2:] == ["interrupted, quickly", "on"]
    session.close()


def test_a_thread_that_never_ends_its_append_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(burst, "_PATIENCE", 0.2)
    monkeypatch.setattr(Burst, "ease", lambda _: False)  # so that the lock is still kept when the thread appends
    stuck, free = threading.Event(), threading.Event()

    class Stuck(Quick):
        @staticmethod
        def write(descriptor: int, content: bytes) -> int:
            if b"stuck" in content:
                stuck.set()
                free.wait(60)
            return os.write(descriptor, content)

    session = Store(tmp_path, system=Stuck()).session("s")
    for number in range(20):
        session.user(f"{number}")
    assert session._writer.log.is_kept
    thread = threading.Thread(target=lambda: session.user("stuck"), daemon=True)
    thread.start()
    assert stuck.wait(60)
    with pytest.raises(Busy, match="another thread has been appending"):
        session.describe()
    free.set()
    thread.join(60)
    session.user("on")
    session.close()
    assert said(log_of(tmp_path))[-2:] == ["stuck", "on"]


def in_burst(place: Path) -> Session:
    session = Store(place, system=Quick()).session("s")
    for number in range(20):
        session.user(f"{number}")
    assert session._writer.log.is_kept
    return session


def _append_until(is_told: threading.Event, session: Session) -> None:
    """Without a pause, so that the lock is kept, and then with one, so that it is due."""
    latest = time.monotonic() + 60
    while not is_told.is_set():
        assert time.monotonic() < latest, "the lock was never due"
        for _ in range(20):
            session.user("more")
        is_told.wait(0.1)


def test_the_thread_that_lets_go_outlives_an_error_and_the_next_append_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ease, fail = Burst.ease, Burst.fail
    is_due, is_told = threading.Event(), threading.Event()

    def failing(self: Burst) -> bool:
        if is_due.is_set() and not is_told.is_set() and self.log.path.is_relative_to(tmp_path / "a"):
            raise RuntimeError("out of the blue")
        return ease(self)

    def telling(self: Burst, error: Exception) -> None:
        fail(self, error)
        is_told.set()

    monkeypatch.setattr(Burst, "ease", failing)
    monkeypatch.setattr(Burst, "fail", telling)
    session = in_burst(tmp_path / "a")
    is_due.set()
    with pytest.raises(SourceUnreadable, match=r"could not be let go when it was due.*out of the blue"):
        _append_until(is_told, session)
        session.user("is told")
    words = said(log_of(tmp_path / "a"))
    assert "is told" not in words and session.user("goes on").seq == len(words) + 1
    other = in_burst(tmp_path / "b")
    deadline = time.monotonic() + 30
    while other._writer.log.is_kept or session._writer.log.is_kept:
        assert time.monotonic() < deadline, "nobody lets go of locks any more"
        time.sleep(0.005)
    for handle in (session, other):
        handle.close()


def test_a_fork_while_another_thread_is_about_to_open_the_log(tmp_path: Path) -> None:
    held, free = threading.Event(), threading.Event()

    class Slow(System):
        @staticmethod
        def mkdir(*words: Any) -> None:
            held.set()
            free.wait(60)
            System.mkdir(*words)

    session = Store(tmp_path, system=Quick()).session("s")
    slow = Session(session.folder, Store(tmp_path, system=Slow())._world)
    thread = threading.Thread(target=lambda: slow.user("from the thread"), daemon=True)
    thread.start()
    assert held.wait(60)

    def child() -> None:
        free.set()
        slow.user("from the child")

    code = children.done(child)
    free.set()
    thread.join(60)
    assert code == 0
    assert sorted(said(log_of(tmp_path))) == ["from the child", "from the thread"]


OPEN = """
import signal, sys, threading
from clew.store import Store
def handlers():
    return {number: signal.getsignal(number) for number in signal.valid_signals()}
before = handlers()
session = Store(sys.argv[1], durability="system").session("s")
for _ in range(30):
    session.user("x")
assert "clew-store-locks" in [thread.name for thread in threading.enumerate()], "nothing could keep it alive"
assert handlers() == before, "the store has taken a signal for itself"
"""


def test_no_process_is_kept_alive_by_an_open_session_and_signals_stay_the_programs(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", OPEN, str(tmp_path)], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert len(said(log_of(tmp_path))) == 30
