"""The list of sessions beside a transcript, over HTTP."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import quote

import pytest

from clew.catalog.sync import sync
from clew.host import Host
from clew.model.json import JSON
from tests.counting.homes import SESSION, claude, prompt, reply
from tests.demo_home import write_small_demo
from tests.redact.planted import Planter
from tests.web.many_sessions import session_id, write_sessions
from tests.web.poison import poison_home
from tests.web.shown import Shown, faults, links, named, shown, words

SESSIONS = 150
KEY = "SELECT session_id FROM session WHERE native_id = '{}'"


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shown]:
    """Sessions of some projects, one on each day."""
    folder = tmp_path_factory.mktemp("many")
    write_sessions(folder / "home", SESSIONS)
    with shown(folder / "home", folder / "catalog") as app:
        yield app


def titles(app: Shown, query: str = "") -> list[str]:
    """The names of the sessions in the order of the list."""
    return [words(name) for name in named(app.part(f"/session-list{query}"), "span", "name")]


def test_the_latest_sessions_come_first_and_more_on_request(many: Shown) -> None:
    found = titles(many)
    assert found == [f"Task number {number:03}" for number in range(149, 89, -1)]
    assert titles(many, "?from=60&rows=60")[0] == "Task number 089"
    more = named(many.part("/session-list?from=60"), "a", "more")
    edges = [(link.get("data-edge"), link.get("data-from")) for link in more]
    assert edges == [("start", "60"), ("end", "120")]
    assert titles(many, "?from=120") == [f"Task number {number:03}" for number in range(29, -1, -1)]


def test_the_list_begins_near_the_session_that_is_shown(many: Shown) -> None:
    (key,) = many.catalog_row(KEY.format(session_id(10)))
    part = many.part(f"/session-list?current={key}")
    (current,) = [link for link in named(part, "a") if link.get("aria-current")]
    assert current.get("href", "").endswith(session_id(10)) and "Task number 010" in words(current)


def test_rows_after_the_last_are_the_last(many: Shown) -> None:
    assert titles(many, "?from=9999") == ["Task number 000"]


def test_days_projects_and_agents_are_groups(many: Shown) -> None:
    days = [words(heading) for heading in named(many.part("/session-list"), "h3")]
    assert days[0] == "Wed 10 Jun 2026" and len(days) == 60
    part = many.part("/session-list?group=project&rows=150")
    assert [words(heading) for heading in named(part, "h3")] == ["project2", "project1", "project0"]
    assert words(named(part, "time")[0]) == "2026-06-10"
    assert words(named(part, "span", "about")[0]) == "2026-06-10 · 1 prompt · claude-code"


def test_agents_are_groups(demo: Shown) -> None:
    part = demo.part("/session-list?group=agent&rows=600")
    (count,) = demo.catalog_row("SELECT count(DISTINCT agent) FROM sessions WHERE is_agent_session = 0")
    agents = [words(heading) for heading in named(part, "h3")]
    assert len(set(agents)) == len(agents) == count
    assert all(agent not in words(about) for agent in agents for about in named(part, "span", "about"))


@pytest.mark.parametrize(
    ("text", "count"),
    [("number 010", 1), ("PROJECT1 topic1", 10), ("claude-code", 60), ("nowhere", 0), ("project0 project1", 0)],
)
def test_the_filter_looks_for_every_word(many: Shown, text: str, count: int) -> None:
    assert len(titles(many, f"?q={quote(text)}")) == count


def test_the_beginning_of_an_id_is_found(many: Shown) -> None:
    assert titles(many, f"?q={session_id(77)[:12]}") == ["Task number 077"]


def test_nothing_is_sent_while_nothing_has_changed(many: Shown) -> None:
    # The app may still sync in the background: then the list is sent once more.
    deadline = time.monotonic() + 20
    answer = many.get("/session-list?state=another", X_Clew="1")
    assert answer.status == 200
    while answer.status == 200:
        assert time.monotonic() < deadline
        state = answer.headers["x-clew-state"]
        answer = many.get(f"/session-list?state={state}", X_Clew="1")
    assert answer.status == 204


def test_a_poll_gets_the_old_list_with_its_old_state_or_the_new_one(tmp_path: Path) -> None:
    write_sessions(tmp_path / "home", 2)
    with shown(tmp_path / "home", tmp_path / "catalog") as app:
        state = app.get("/session-list", X_Clew="1").headers["x-clew-state"]
        claude(tmp_path / "home", prompt("A new task", uuid="new"))
        sync([Host.at(tmp_path / "home")], tmp_path / "catalog")
        deadline = time.monotonic() + 20
        while (answer := app.get(f"/session-list?state={state}", X_Clew="1")).status == 204:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert "A new task" in answer.body.decode()


def test_a_session_that_was_just_opened_is_in_its_list(tmp_path: Path) -> None:
    write_sessions(tmp_path / "home", 2)
    with shown(tmp_path / "home", tmp_path / "catalog") as app:
        app.part("/session-list")
        claude(tmp_path / "home", prompt("A new task", uuid="new"))
        sync([Host.at(tmp_path / "home")], tmp_path / "catalog")
        (key,) = app.catalog_row(KEY.format(SESSION))
        assert "A new task" in titles(app, f"?current={key}")


def test_sub_agents_are_below_their_session_and_named_by_their_task(demo: Shown) -> None:
    part = demo.part("/session-list?rows=600")
    nested = [words(name) for details in named(part, "details") for name in named(details, "span", "name")]
    assert any(name.startswith("Compare stations.toml with docs/constants.txt") for name in nested)
    assert not any(name.startswith("Sub-agent") for name in nested)
    child, parent = demo.catalog_row(
        "SELECT session_id, parent_session_id FROM session WHERE is_agent_session AND parent_session_id <> '' LIMIT 1"
    )
    folds = named(demo.part(f"/session-list?current={child}"), "details")
    opened = [details for details in folds if "open" in details.attrib]
    assert len(opened) == 1
    assert [link.get("aria-current") for link in named(opened[0], "a")].count("page") == 1
    (title,) = demo.catalog_row(f"SELECT title FROM session WHERE session_id = '{parent}'")
    assert title in titles(demo, f"?q={quote(title)}")


def test_a_page_of_a_sub_agent_has_its_task_as_title(demo: Shown) -> None:
    (identity,) = demo.catalog_row(
        "SELECT native_id FROM session WHERE is_agent_session = 1 AND agent = 'claude-code' LIMIT 1"
    )
    heading = words(named(demo.page(f"/session/claude-code/{identity}"), "h1"))
    assert not heading.startswith("Session")


def test_running_sessions_say_so(tmp_path: Path) -> None:
    write_small_demo(tmp_path / "home")
    with shown(tmp_path / "home", tmp_path / "catalog") as app:
        assert named(app.part("/session-list"), "b", "running") == []
        now = app.context.now()
        stamp = now.isoformat().replace("+00:00", "Z")
        path = claude(tmp_path / "home", prompt("Still at work", timestamp=stamp))
        os.utime(path, (now.timestamp(), now.timestamp()))
        with shown(tmp_path / "home", tmp_path / "catalog") as later:
            (row,) = [each for each in named(later.part("/session-list"), "a") if named(each, "b", "running")]
            assert "Still at work" in words(row) and "running" in words(row)


@pytest.mark.parametrize(
    ("last", "seconds", "expected"),
    [
        ([{"type": "text", "text": "Done."}], 60, ["waiting for you"]),
        ([{"type": "text", "text": "Let me look."}], 0, ["running"]),
        ([{"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "make"}}], 60, ["running"]),
        ([{"type": "text", "text": "Done."}], 3600, []),
    ],
)
def test_a_session_waits_after_an_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, last: list[JSON], seconds: int, expected: list[str]
) -> None:
    write_sessions(tmp_path / "home", 1)
    now = datetime.now(UTC)
    stamp = now.isoformat().replace("+00:00", "Z")
    answer = reply("m1", 1, 2, timestamp=stamp)
    answer["message"]["content"] = last
    claude(tmp_path / "home", prompt("Make it", timestamp=stamp), answer)
    with shown(tmp_path / "home", tmp_path / "catalog") as app:
        monkeypatch.setattr(app.context, "now", lambda: now + timedelta(seconds=seconds))
        assert [words(mark) for mark in named(app.part("/session-list"), "b", "running")] == expected


@pytest.mark.parametrize(("answers", "is_running"), [(False, True), (True, False)])
def test_a_sub_agent_runs_in_the_list_and_in_the_transcript_until_it_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answers: bool, is_running: bool
) -> None:
    now = datetime.now(UTC)
    # Some agents record only when a turn began.
    place: dict[str, JSON] = {"timestamp": (now - timedelta(minutes=20)).isoformat().replace("+00:00", "Z")}
    call = reply("m1", 1, 2, **place)
    call["message"]["content"] = [{"type": "tool_use", "id": "t1", "name": "Task", "input": {"prompt": "Count"}}]
    task = prompt("Count", uuid="task", agentId="a1", isSidechain=True, **place)
    done = [reply("m2", 1, 2, agentId="a1", isSidechain=True, **place)] if answers else []
    result = prompt("", uuid="result", toolUseResult={"agentId": "a1"}, **place)
    result["message"]["content"] = [{"type": "tool_result", "tool_use_id": "t1", "content": "started"}]
    claude(tmp_path / "home", prompt("Start another", **place), call, result)
    claude(tmp_path / "home", task, *done, session="agent-a1", under=f"{SESSION}/subagents/")
    with shown(tmp_path / "home", tmp_path / "catalog") as app:
        monkeypatch.setattr(app.context, "now", lambda: now + timedelta(minutes=1))
        (nested,) = named(app.part("/session-list"), "details")
        assert bool(named(nested, "b", "running")) == is_running
        (link,) = named(app.page(f"/session/claude-code/{SESSION}"), "p", "sub")
        assert ("still running" in words(link)) == is_running


def test_H01_hostile_titles_are_text(tmp_path: Path) -> None:
    write_small_demo(tmp_path / "home")
    poison_home(tmp_path / "home")
    with shown(tmp_path / "home", tmp_path / "catalog") as app:
        for query in ("", "&group=project", f"&q={quote('<script>')}", f"&q={quote(chr(34) + '>')}"):
            html = app.get(f"/session-list?rows=600{query}", X_Clew="1").body.decode()
            assert faults(html) == [], query
        assert links(app.part("/session-list?rows=600"))


def test_the_task_of_a_sub_agent_is_masked(tmp_path: Path) -> None:
    secret = Planter("task").github()
    place = {"agentId": "a1", "isSidechain": True}
    claude(tmp_path / "home", prompt("Start another"), reply("m1", 1, 2))
    task = prompt(f"Use {secret} to log in", uuid="task", **place)
    claude(tmp_path / "home", task, session="agent-a1", under=f"{SESSION}/subagents/")
    with shown(tmp_path / "home", tmp_path / "catalog", "secrets") as app:
        body = app.get("/session-list", X_Clew="1").body
        assert secret.encode() not in body and b"to log in" in body


def test_stars_and_labels_are_shown_and_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLEW_DATA_DIR", str(tmp_path / "data"))
    write_sessions(tmp_path / "home", 5)
    with shown(tmp_path / "home", tmp_path / "catalog") as app:
        state = app.get("/session-list", X_Clew="1").headers["x-clew-state"]
        (key,) = app.catalog_row(KEY.format(session_id(3)))
        change = {"session": key, "starred": True, "add_labels": ["Read <b>again</b>"]}
        assert app.post("/annotations", change).status == 200
        assert app.get(f"/session-list?state={state}", X_Clew="1").status == 200
        for query in ("read+again", "AGAIN+project0"):
            (row,) = named(app.part(f"/session-list?q={query}"), "a")
            assert "Task number 003" in words(row) and "Read <b>again</b>" in words(row)
            assert named(row, "span", "star")
