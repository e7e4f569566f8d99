"""Nothing waits for ever: not a signal handler for its own thread, not a fork for a thread that stayed behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from clew.errors import Busy
from clew.io.filesystem import System
from clew.store import Session, Store
from clew.store.layout import Durability
from tests import children
from tests.store.support import Quick, lines, log_of, said

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals and forks are those of POSIX")

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
            assert "this thread is already appending" in str(error), error
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


@pytest.mark.slow
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


def test_a_signal_handler_in_the_middle_of_a_write_is_refused(tmp_path: Path) -> None:
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
    for text in ("one", "interrupted", "on"):
        session.user(text)
    assert len(caught) == 1 and "can set a flag" in caught[0]
    assert said(log_of(tmp_path)) == ["one", "interrupted", "on"]
    session.close()


def test_a_fork_while_another_thread_is_about_to_open_the_log(tmp_path: Path) -> None:
    held, free = threading.Event(), threading.Event()

    class Slow(System):
        @staticmethod
        def mkdir(*words: Any) -> None:
            held.set()
            free.wait(60)
            System.mkdir(*words)

    session = Store(tmp_path, system=Quick()).session("s")
    slow = Session(session.folder, Store(tmp_path, system=Slow())._config)
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
assert threading.active_count() == 1, "the store has started a thread"
assert handlers() == before, "the store has taken a signal for itself"
"""


@pytest.mark.slow
def test_no_process_is_kept_alive_by_an_open_session_and_signals_stay_the_programs(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", OPEN, str(tmp_path)], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert len(said(log_of(tmp_path))) == 30
