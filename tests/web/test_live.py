"""A session that grows, and the command that starts the app."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from clew.catalog.queries import Entry
from clew.web import live
from tests.demo_home import write_small_demo
from tests.web.live_session import ADDRESS, line, session_file
from tests.web.shown import Shown, shown


@contextmanager
def stream(app: Shown) -> Iterator[http.client.HTTPResponse]:
    """The stream of the session."""
    connection = http.client.HTTPConnection("127.0.0.1", app.port, timeout=15)
    cookie = app._cookie or app.cookie()
    app._cookie = cookie
    connection.request("GET", f"{ADDRESS}/live", headers={"Host": app.host, "Cookie": cookie})
    answer = connection.getresponse()
    try:
        yield answer
    finally:
        answer.close()
        connection.close()


def event(answer: http.client.HTTPResponse) -> dict[str, Any]:
    """The next thing that is told."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        words = answer.readline().decode()
        assert words, "the stream ended"
        if words.startswith("data: "):
            told: dict[str, Any] = json.loads(words.removeprefix("data: "))
            return told
    pytest.fail("nothing is told")


@pytest.mark.slow
def test_what_is_written_is_told_within_a_second(tmp_path: Path) -> None:
    path = session_file(tmp_path / "home")
    with shown(tmp_path / "home", tmp_path / "catalog") as app, stream(app) as told:
        assert told.status == 200 and told.getheader("content-type", "").startswith("text/event-stream")
        first = event(told)
        assert first["messages"] == 1 and len(first["windows"]) == 1
        for number in (2, 3):
            with path.open("a") as out:
                out.write(line(number, f"Number {number}."))
            began = time.monotonic()
            assert event(told)["messages"] == number
            # A second, and room for a machine that is busy with other tests.
            assert time.monotonic() - began < 5
            assert f"Number {number}." in app.get(f"{ADDRESS}/window/0").body.decode()


@pytest.mark.slow
def test_of_each_window_it_is_told_whether_it_shows_something_else(tmp_path: Path) -> None:
    path = session_file(tmp_path / "home")
    with path.open("a") as out:
        out.writelines(line(number, f"Number {number}.") for number in range(2, 121))
    with shown(tmp_path / "home", tmp_path / "catalog") as app, stream(app) as told:
        first = event(told)["windows"]
        assert len(set(first)) == 3
        assert [app.get(f"{ADDRESS}/window/{n}").headers["x-clew-etag"] for n in range(3)] == first
        assert f'data-etag="{first[1]}"' in app.get(f"{ADDRESS}?window=2").body.decode()
        with path.open("a") as out:
            out.write(line(121, "It grows."))
        grown = event(told)["windows"]
        assert grown[:2] == first[:2] and grown[2] != first[2]
        other = path.with_suffix(".other")
        other.write_text(path.read_text().replace("Number 7.", "Number Z."))
        other.replace(path)
        changed = event(told)
        assert changed["messages"] == 121 and changed["windows"][0] != grown[0] and changed["windows"][1:] == grown[1:]


@pytest.mark.slow
def test_a_line_that_is_still_being_written_does_no_harm(tmp_path: Path) -> None:
    path = session_file(tmp_path / "home")
    with shown(tmp_path / "home", tmp_path / "catalog") as app, stream(app) as told:
        assert event(told)["messages"] == 1
        whole = line(2, "Second.")
        with path.open("a") as out:
            out.write(whole[:60])
        time.sleep(2 * live.POLL_SECONDS)
        with path.open("a") as out:
            out.write(whole[60:])
        while event(told)["messages"] != 2:
            pass
        assert "Second." in app.get(ADDRESS).body.decode()


@pytest.mark.slow
def test_W07_streams_are_limited_and_let_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "MAX_STREAMS", 2)
    session_file(tmp_path / "home")
    with shown(tmp_path / "home", tmp_path / "catalog") as app:
        with stream(app) as one, stream(app) as two:
            assert event(one) and event(two)
            with stream(app) as three:
                assert three.status == 503
        end = time.monotonic() + 20
        while time.monotonic() < end:
            with stream(app) as again:
                if again.status == 200:
                    return
            time.sleep(0.1)
        pytest.fail("streams that nobody reads are not let go")


@pytest.mark.slow
def test_W07_streams_that_are_asked_for_at_once_are_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "MAX_STREAMS", 2)
    session_file(tmp_path / "home")
    with shown(tmp_path / "home", tmp_path / "catalog") as app:
        find = app.context.entry

        def slow(agent: str, identity: str) -> Entry:
            time.sleep(0.3)
            return find(agent, identity)

        monkeypatch.setattr(app.context, "entry", slow)
        app.get("/sources")
        with ThreadPoolExecutor(6) as pool, ExitStack() as stack:
            answers = list(pool.map(lambda _: stack.enter_context(stream(app)), range(6)))
            assert sorted(answer.status for answer in answers) == [200, 200, 503, 503, 503, 503]


@pytest.mark.slow
def test_W07_a_stream_of_no_session_takes_no_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "MAX_STREAMS", 1)
    session_file(tmp_path / "home")
    with shown(tmp_path / "home", tmp_path / "catalog") as app:
        for _ in range(3):
            assert app.get("/session/claude-code/nowhere/live").status == 404
        with stream(app) as one:
            assert one.status == 200


def started(home: Path, *options: str) -> subprocess.Popen[str]:
    """The app as a person starts it."""
    env = {**os.environ, "CLEW_DATA_DIR": str(home.parent / "own"), "HOME": str(home)}
    command = [sys.executable, "-c", "from clew.cli.main import run; run()", "web", "--port", "0", *options]
    return subprocess.Popen(
        [*command, "--home", str(home)], env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


@pytest.mark.slow
def test_the_command_prints_a_link_and_ends_quietly(tmp_path: Path) -> None:
    write_small_demo(tmp_path / "home")
    running = started(tmp_path / "home")
    assert running.stdout is not None and running.stderr is not None
    try:
        link = running.stdout.readline().strip()
        found = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/enter#token=([\w-]{43})", link)
        assert found is not None, link
        port, token = int(found[1]), found[2]
        cookie = enter(port, token)
        fresh = running.stderr.readline()
        assert "a new link: http://127.0.0.1:" in fresh and token not in fresh
        end = time.monotonic() + 60
        while b"Remove the jump at midnight" not in ask(port, "/sessions", cookie):
            assert time.monotonic() < end, "the catalog does not come"
            time.sleep(0.2)
        session_file(tmp_path / "home")
        while b"First." not in ask(port, "/sessions", cookie):
            assert time.monotonic() < end, "a new session does not come"
            time.sleep(0.2)
        running.send_signal(signal.SIGINT)
        assert running.wait(20) == 0
        assert running.stderr.read() == "" and running.stdout.read() == ""
    finally:
        running.kill()
        running.wait()
        running.stdout.close()
        running.stderr.close()


def enter(port: int, token: str) -> str:
    """A cookie for a token."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    headers = {"Content-Type": "application/json", "X-Clew": "1"}
    connection.request("POST", "/enter", json.dumps({"token": token}), headers)
    answer = connection.getresponse()
    answer.read()
    cookie = answer.getheader("set-cookie", "").partition(";")[0]
    connection.close()
    return cookie


def ask(port: int, path: str, cookie: str) -> bytes:
    """A page."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("GET", path, headers={"Cookie": cookie})
    body = connection.getresponse().read()
    connection.close()
    return body


@pytest.mark.slow
def test_W04_another_address_must_be_allowed(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    running = started(tmp_path / "home", "--host", "0.0.0.0")
    out, said = running.communicate(timeout=30)
    assert running.returncode == 2 and "--allow-remote" in said and out == ""


@pytest.mark.slow
def test_a_server_on_all_addresses_answers_to_its_link_and_to_each_address(tmp_path: Path) -> None:
    write_small_demo(tmp_path / "home")
    running = started(tmp_path / "home", "--host", "0.0.0.0", "--allow-remote")
    assert running.stdout is not None and running.stderr is not None
    try:
        found = re.fullmatch(r"http://([\d.]+):(\d+)/enter#token=([\w-]{43})", running.stdout.readline().strip())
        assert found is not None
        address, port, token = found[1], int(found[2]), found[3]
        assert status(address, f"{address}:{port}", port) == 200
        assert enter(port, token)
        # Another address of this machine, as one of its network would be.
        assert status("127.0.0.2", f"127.0.0.2:{port}", port) == 200
        for name in ("evil.example", "127.0.0.3", "0.0.0.0", ""):
            assert status("127.0.0.2", f"{name}:{port}", port) == 421
    finally:
        running.send_signal(signal.SIGINT)
        running.communicate(timeout=20)


def status(address: str, name: str, port: int) -> int:
    """What the way in answers at an address, to a browser that calls it by a name."""
    end = time.monotonic() + 20
    while True:
        connection = http.client.HTTPConnection(address, port, timeout=10)
        try:
            connection.request("GET", "/enter", headers={"Host": name})
            return connection.getresponse().status
        except ConnectionError:
            assert time.monotonic() < end
            time.sleep(0.1)
        finally:
            connection.close()
