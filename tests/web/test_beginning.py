"""A long session, of which the first page holds the beginning alone, and what a server does before it is asked."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from clew.host import Host
from clew.stored_session import StoredSession
from clew.web import templates, transcript
from clew.web.context import AppContext
from clew.web.server import warm_up
from clew.web.transcript import WINDOW_MESSAGES as WINDOW
from tests.demo_home import write_small_demo
from tests.unit.samples import claude_line
from tests.web.shown import Shown, named, shown

SESSION, OTHER = "0f6a1c52-0000-4000-8000-0000000000ab", "0f6a1c52-0000-4000-8000-0000000000ac"
ADDRESS = f"/session/claude-code/{SESSION}"
COUNT = 1_500
"""Enough that what is read for the first window is less than half of it."""


def line(number: int, session: str, parent: int | None = None, text: str = "") -> str:
    """A message of the session; every other one is a prompt."""
    who = "user" if number % 2 else "assistant"
    words = text or f"Word {number}. " * 80
    numbers = number, number - 1 if parent is None else parent
    name, before = (f"0f6a1c52-2222-4000-8000-{each:012}" for each in numbers)
    content = words if who == "user" else [{"type": "text", "text": words}]
    above = before if number > 1 else None
    value = claude_line(who, name, above, content, sessionId=session, cwd="/home/ada/long")
    return json.dumps(value) + "\n"


def long_session(home: Path, session: str = SESSION, more: str = "") -> Path:
    path = home / ".claude" / "projects" / "-home-ada-long" / f"{session}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(line(number, session) for number in range(1, COUNT + 1)) + more)
    return path


def fork(session: str = SESSION) -> str:
    """Another prompt in the place of the third message, which the conversation went on with."""
    return line(COUNT + 1, session, 2, "Not so.") + line(COUNT + 2, session, None, "Then so.")


def is_begun(app: Shown, address: str = ADDRESS) -> bool:
    (main,) = named(app.page(address), "main")
    return main.get("data-partial") == "1"


@pytest.mark.slow
def test_the_first_window_of_a_long_session_is_the_one_that_it_has_when_it_is_read_whole(tmp_path: Path) -> None:
    long_session(tmp_path / "home")
    with shown(tmp_path / "home", tmp_path / "catalog") as app:
        page = app.get(ADDRESS).body.decode()
        assert 'data-partial="1"' in page and f'data-messages="{COUNT}"' in page
        assert len(named(app.page(ADDRESS), "div", "w")) == -(-COUNT // WINDOW)
        window = app.get(f"{ADDRESS}/window/0").body.decode()
        assert window.count("<article") == WINDOW and window in page
        # What has been read is used from then on.
        assert not is_begun(app) and window in app.get(ADDRESS).body.decode()


def test_no_more_is_read_for_the_first_window_than_it_takes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def whole(_: StoredSession) -> None:
        pytest.fail("the session was read whole")

    monkeypatch.setattr(transcript, "full_transcript", whole)
    long_session(tmp_path / "home")
    with shown(tmp_path / "home", tmp_path / "catalog") as app:
        assert is_begun(app)


@pytest.mark.slow
def test_a_session_whose_first_messages_are_long_begins_with_more_of_it(tmp_path: Path) -> None:
    path = long_session(tmp_path / "home")
    lines = path.read_text().splitlines(keepends=True)
    large = [line(number, SESSION, None, "Word. " * 2_000) for number in range(1, 101)]
    path.write_text("".join([*large, *lines[100:], *(line(n, SESSION) for n in range(COUNT + 1, 3 * COUNT))]))
    with shown(tmp_path / "home", tmp_path / "catalog") as app:
        page = app.get(ADDRESS).body.decode()
        assert 'data-partial="1"' in page and app.get(f"{ADDRESS}/window/0").body.decode() in page


@pytest.mark.slow
def test_what_comes_of_the_first_messages_later_is_in_their_window(tmp_path: Path) -> None:
    long_session(tmp_path / "home", more=fork())
    with shown(tmp_path / "home", tmp_path / "catalog") as app:
        assert is_begun(app) and "The conversation forks here" not in app.get(ADDRESS).body.decode()
        assert "The conversation forks here" in app.get(f"{ADDRESS}/window/0").body.decode()
        assert "The conversation forks here" in app.get(ADDRESS).body.decode()


@pytest.mark.slow
def test_a_session_that_is_not_long_or_not_in_lines_or_masked_is_read_whole(tmp_path: Path) -> None:
    write_small_demo(tmp_path / "home")
    long_session(tmp_path / "home")
    with shown(tmp_path / "home", tmp_path / "catalog") as app:
        rows = [app.catalog_row("SELECT json_group_array('/session/' || agent || '/' || native_id) FROM sessions")[0]]
        addresses = [address for address in json.loads(rows[0]) if address != ADDRESS]
        assert not any(is_begun(app, address) for address in addresses)
        assert is_begun(app) and not is_begun(app, f"{ADDRESS}?window=1")
        assert not is_begun(app, f"{ADDRESS}?window=2")
    with shown(tmp_path / "home", tmp_path / "masked", profile="secrets") as app:
        assert not is_begun(app)


@pytest.mark.slow
def test_a_title_that_was_given_at_the_end_is_the_title_of_the_beginning(tmp_path: Path) -> None:
    title = json.dumps({"type": "custom-title", "customTitle": "Told at the end", "sessionId": SESSION}) + "\n"
    long_session(tmp_path / "home", more=title)
    with shown(tmp_path / "home", tmp_path / "catalog") as app:
        assert is_begun(app) and '<h1 id="title">Told at the end</h1>' in app.get(ADDRESS).body.decode()


@pytest.mark.slow
def test_a_session_that_has_become_shorter_is_shown_as_it_is(tmp_path: Path) -> None:
    path = long_session(tmp_path / "home")
    with shown(tmp_path / "home", tmp_path / "catalog") as app:
        path.write_text("".join(path.read_text().splitlines(keepends=True)[: COUNT - 100]))
        app.get(f"{ADDRESS}/outline")
        assert f'data-messages="{COUNT - 100}"' in app.get(ADDRESS).body.decode()


@pytest.mark.slow
def test_several_who_ask_for_a_session_wait_for_one_reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    long_session(tmp_path / "home")
    reads, real = list[int](), transcript.full_transcript
    together = threading.Barrier(3)

    def counted(session: StoredSession) -> transcript.Transcript:
        reads.append(1)
        return real(session)

    monkeypatch.setattr(transcript, "full_transcript", counted)
    with shown(tmp_path / "home", tmp_path / "catalog") as app, ThreadPoolExecutor(3) as threads:

        def asked(_: int) -> str:
            together.wait()
            return app.get(f"{ADDRESS}/window/3").body.decode()

        app.get("/")
        assert len(set(threads.map(asked, range(3)))) == 1 and len(reads) == 1


@pytest.mark.slow
def test_before_anybody_asks_the_templates_are_compiled_and_sessions_were_shown_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    templates._environment.cache_clear()
    empty = AppContext([Host.at(tmp_path / "nothing")], tmp_path / "nowhere")
    warm_up(empty)
    empty.close()
    made = templates._environment("none")
    assert made.cache is not None and len(made.cache) == len(made.list_templates())
    write_small_demo(tmp_path / "home")
    windows = list[str]()
    monkeypatch.setattr(transcript.Transcript, "window", lambda *_: windows.append(""))
    with shown(tmp_path / "home", tmp_path / "catalog") as app:
        warm_up(app.context)
        agents = app.catalog_row("SELECT count(DISTINCT agent) FROM sessions WHERE message_count > 3")[0]
    assert len(windows) == agents > 2


@pytest.mark.slow
def test_a_long_session_that_cannot_be_read_any_more_is_told_of(tmp_path: Path) -> None:
    path = long_session(tmp_path / "home")
    with shown(tmp_path / "home", tmp_path / "catalog") as app:
        path.unlink()
        assert app.get(ADDRESS).status == 503
