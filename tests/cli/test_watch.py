"""clew watch: what runs now, and what it costs."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from clew.cli.main import run
from tests.cli.running import COMMAND, clew


def write_session(
    home: Path, number: int, project: str, *, ended: timedelta, answered: bool, tokens: int = 1000
) -> Path:
    """A session of Claude Code whose last message is some time ago; the file was written then."""
    now = datetime.now(UTC)
    identity = f"{number:08}-2222-4333-8444-555555555555"
    log = home / f".claude/projects/-src-{project}/{identity}.jsonl"
    log.parent.mkdir(parents=True, exist_ok=True)
    common = {"sessionId": identity, "cwd": f"/src/{project}", "version": "2.0.0", "isSidechain": False}
    prompt: dict[str, Any] = {"type": "user", "uuid": f"u{number}", "parentUuid": None, **common}
    prompt |= {"timestamp": _stamp(now - ended - timedelta(seconds=5))}
    prompt["message"] = {"role": "user", "content": f"Question {number}"}
    block = {"type": "text", "text": "Done."} if answered else _call(number)
    answer: dict[str, Any] = {"type": "assistant", "uuid": f"a{number}", "parentUuid": f"u{number}", **common}
    answer |= {"timestamp": _stamp(now - ended), "requestId": f"r{number}"}
    usage = {"input_tokens": tokens, "output_tokens": 10}
    answer["message"] = {"id": f"m{number}", "role": "assistant", "model": "claude-sonnet-4-5", "usage": usage}
    answer["message"]["content"] = [block]
    log.write_text(json.dumps(prompt) + "\n" + json.dumps(answer) + "\n")
    stamp = (now - ended).timestamp()
    os.utime(log, (stamp, stamp))
    return log


def _stamp(at: datetime) -> str:
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _call(number: int) -> dict[str, object]:
    return {"type": "tool_use", "id": f"t{number}", "name": "Bash", "input": {"command": "make"}}


@pytest.fixture
def busy_home(tmp_path: Path) -> Path:
    """A home with a session that runs, and a project with another."""
    home = tmp_path / "home"
    write_session(home, 1, "tide", ended=timedelta(seconds=3), answered=False)
    write_session(home, 2, "moon", ended=timedelta(seconds=1), answered=False)
    return home


def test_what_runs(busy_home: Path) -> None:
    state = clew("--home", busy_home, "watch", "--once", "--json").json
    assert [(one["agent"], one["project"], one["state"]) for one in state["sessions"]] == [
        ("claude-code", "moon", "running"),
        ("claude-code", "tide", "running"),
    ]
    assert state["today"]["sessions"] in (1, 2)  # an answer may be from before midnight
    assert all(one["cost"] > 0 for one in state["sessions"])
    printed = clew("--home", busy_home, "watch", "--once").out
    assert "2 running, 0 waiting for you" in printed
    assert "Question 1" in printed


def test_filters_choose_what_is_shown(busy_home: Path) -> None:
    state = clew("--home", busy_home, "watch", "--once", "--json", "--project", "tide").json
    assert [one["project"] for one in state["sessions"]] == ["tide"]
    one = state["today"]
    assert one["sessions"] <= 1


def test_nothing_runs(synced_demo: Path) -> None:
    done = clew("--home", synced_demo, "watch", "--once", "--until", "2020-01-01")
    assert done.code == 0
    assert "nothing runs" in done.out


def test_a_pipe_gets_the_state_once(busy_home: Path) -> None:
    done = clew("--home", busy_home, "watch")
    assert (done.code, done.out.count("running, ")) == (0, 1)


def test_titles_are_masked(tmp_path: Path) -> None:
    secret = "AKIA" + "Q3EGRJ2X5LMN7OPT"
    log = write_session(tmp_path, 1, "tide", ended=timedelta(seconds=1), answered=False)
    log.write_text(log.read_text().replace("Question 1", f"use {secret}"))
    assert secret not in clew("--home", tmp_path, "watch", "--once").out
    assert secret not in clew("--home", tmp_path, "watch", "--once", "--json", "--redact", "secrets").out


def read_until(terminal: int, text: bytes, seconds: float = 60) -> bytes:
    """What is written to a terminal until a text comes."""
    shown, end = b"", time.monotonic() + seconds
    while text not in shown and time.monotonic() < end:
        if select.select([terminal], [], [], 0.2)[0]:
            try:
                shown += os.read(terminal, 65536)
            except OSError:
                break
    assert text in shown, shown
    return shown


def test_a_secret_counts_once_in_many_updates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = write_session(tmp_path, 1, "tide", ended=timedelta(seconds=1), answered=False)
    log.write_text(log.read_text().replace("Question 1", "AKIA" + "Q3EGRIT5QPZ7XW2M"))
    sleeps = iter([None, None])

    def sleep(_seconds: float) -> None:
        try:
            next(sleeps)
        except StopIteration:
            raise KeyboardInterrupt from None

    monkeypatch.setattr("time.sleep", sleep)
    watched = clew("--home", tmp_path, "watch", "--json", "--redact", "secrets")
    assert watched.code == 130
    assert len(watched.out.splitlines()) == 3
    assert "masked 1 aws_access_key" in watched.err


@pytest.mark.parametrize("seconds", ["nan", "inf", "1e300", "0.1"])
def test_an_interval_that_is_none_is_refused(busy_home: Path, seconds: str) -> None:
    assert clew("--home", busy_home, "watch", "--once", "--every", seconds).code == 2


def test_a_system_without_sighup(busy_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(_seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.delattr(signal, "SIGHUP")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setattr("time.sleep", interrupt)
    monkeypatch.setattr("sys.argv", ["clew", "--home", str(busy_home), "watch"])
    with pytest.raises(SystemExit) as ended:
        run()
    assert ended.value.code == 130


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_leaves_the_terminal_as_it_was(busy_home: Path, number: signal.Signals) -> None:
    parent, child = pty.openpty()
    env = {**os.environ, "COLUMNS": "50", "LINES": "12", "TERM": "xterm-256color"}
    process = subprocess.Popen(
        [*COMMAND, "--home", str(busy_home), "watch"], stdin=child, stdout=child, stderr=child, env=env
    )
    os.close(child)
    try:
        read_until(parent, b"2 running")
        process.send_signal(number)
        read_until(parent, b"\x1b[?1049l")
        assert process.wait(60) == 128 + number
    finally:
        process.kill()
        process.wait()
        os.close(parent)


@pytest.mark.slow
@pytest.mark.parametrize("no_color", [False, True])
def test_live_in_a_terminal(busy_home: Path, no_color: bool) -> None:
    parent, child = pty.openpty()
    env = {**os.environ, "COLUMNS": "50", "LINES": "12", "TERM": "xterm-256color"} | (
        {"NO_COLOR": "1"} if no_color else {}
    )
    words = [*COMMAND, "--home", str(busy_home), "watch", "--every", "0.5"]
    process = subprocess.Popen(words, stdin=child, stdout=child, stderr=child, env=env)
    os.close(child)
    try:
        shown = read_until(parent, b"2 running")
        write_session(busy_home, 3, "star", ended=timedelta(seconds=1), answered=False)
        shown += read_until(parent, b"3 running")
        process.send_signal(signal.SIGINT)
        shown += read_until(parent, b"\x1b[?1049l")
        assert process.wait(20) == 130
    finally:
        process.kill()
        process.wait()
        os.close(parent)
    assert b"Traceback" not in shown
    assert (b"\x1b[1m" in shown) is not no_color
    assert b"\x1b[?25h" in shown, "the cursor is shown again"


@pytest.mark.slow
def test_json_is_a_line_for_each_look(busy_home: Path) -> None:
    words = [*COMMAND, "--home", str(busy_home), "watch", "--json", "--every", "0.5"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    lines = [json.loads(process.stdout.readline()) for _ in range(3)]
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=20)
    assert process.returncode == 130
    assert errors == b""
    assert [len(line["sessions"]) for line in lines] == [2, 2, 2]
