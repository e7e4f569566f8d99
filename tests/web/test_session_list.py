"""The list of sessions beside a transcript, over HTTP."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

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
    return [words(name) for name in named(app.part(f"/sidebar{query}"), "span", "name")]


def test_the_latest_sessions_come_first_and_more_on_request(many: Shown) -> None:
    found = titles(many)
    assert found == [f"Task number {number:03}" for number in range(149, 89, -1)]
    assert titles(many, "?from=60&rows=60")[0] == "Task number 089"
    more = named(many.part("/sidebar?from=60"), "a", "more")
    edges = [(link.get("data-edge"), link.get("data-from")) for link in more]
    assert edges == [("start", "60"), ("end", "120")]
    assert titles(many, "?from=120") == [f"Task number {number:03}" for number in range(29, -1, -1)]


def test_the_list_begins_near_the_session_that_is_shown(many: Shown) -> None:
    (key,) = many.catalog_row(KEY.format(session_id(10)))
    part = many.part(f"/sidebar?current={key}")
    (current,) = [link for link in named(part, "a") if link.get("aria-current")]
    assert current.get("href", "").endswith(session_id(10)) and "Task number 010" in words(current)


def test_days_and_projects_are_groups(many: Shown) -> None:
    days = [words(heading) for heading in named(many.part("/sidebar"), "h3")]
    assert days[0] == "Wed 10 Jun 2026" and len(days) == 60
    part = many.part("/sidebar?group=project&rows=150")
    assert [words(heading) for heading in named(part, "h3")] == ["project2", "project1", "project0"]
    assert words(named(part, "time")[0]) == "2026-06-10"


@pytest.mark.parametrize(
    ("text", "count"),
    [("number 010", 1), ("PROJECT1 topic1", 10), ("claude-code", 60), ("nowhere", 0), ("project0 project1", 0)],
)
def test_the_filter_looks_for_every_word(many: Shown, text: str, count: int) -> None:
    assert len(titles(many, f"?q={quote(text)}")) == count


def test_the_beginning_of_an_id_is_found(many: Shown) -> None:
    assert titles(many, f"?q={session_id(77)[:12]}") == ["Task number 077"]


def test_nothing_is_sent_while_nothing_has_changed(many: Shown) -> None:
    answer = many.get("/sidebar", X_Clew="1")
    state = answer.headers["x-clew-state"]
    assert many.get(f"/sidebar?state={state}", X_Clew="1").status == 204
    assert many.get("/sidebar?state=another", X_Clew="1").status == 200


def test_sub_agents_are_below_their_session_and_named_by_their_task(demo: Shown) -> None:
    part = demo.part("/sidebar?rows=600")
    nested = [words(name) for details in named(part, "details") for name in named(details, "span", "name")]
    assert any(name.startswith("Compare stations.toml with docs/constants.txt") for name in nested)
    assert not any(name.startswith("Sub-agent") for name in nested)
    child, parent = demo.catalog_row(
        "SELECT session_id, parent_session_id FROM session WHERE is_agent_session = 1 AND title = '' LIMIT 1"
    )
    folds = named(demo.part(f"/sidebar?current={child}"), "details")
    opened = [details for details in folds if "open" in details.attrib]
    assert len(opened) == 1
    assert [link.get("aria-current") for link in named(opened[0], "a")].count("page") == 1
    (title,) = demo.catalog_row(f"SELECT title FROM session WHERE session_id = '{parent}'")
    assert title in titles(demo, f"?q={quote(title)}")


def test_a_page_of_a_sub_agent_has_its_task_as_title(demo: Shown) -> None:
    (identity,) = demo.catalog_row(
        "SELECT native_id FROM session WHERE is_agent_session = 1 AND title = '' AND agent = 'claude-code' LIMIT 1"
    )
    heading = words(named(demo.page(f"/session/claude-code/{identity}"), "h1"))
    assert not heading.startswith("Session")


def test_running_sessions_say_so(tmp_path: Path) -> None:
    write_small_demo(tmp_path / "home")
    with shown(tmp_path / "home", tmp_path / "catalog") as app:
        assert named(app.part("/sidebar"), "b", "running") == []
        now = app.context.now()
        stamp = now.isoformat().replace("+00:00", "Z")
        path = claude(tmp_path / "home", prompt("Still at work", timestamp=stamp))
        os.utime(path, (now.timestamp(), now.timestamp()))
        with shown(tmp_path / "home", tmp_path / "catalog") as later:
            (row,) = [each for each in named(later.part("/sidebar"), "a") if named(each, "b", "running")]
            assert "Still at work" in words(row) and "running" in words(row)


def test_H01_hostile_titles_are_text(tmp_path: Path) -> None:
    write_small_demo(tmp_path / "home")
    poison_home(tmp_path / "home")
    with shown(tmp_path / "home", tmp_path / "catalog") as app:
        for query in ("", "&group=project", f"&q={quote('<script>')}", f"&q={quote(chr(34) + '>')}"):
            html = app.get(f"/sidebar?rows=600{query}", X_Clew="1").body.decode()
            assert faults(html) == [], query
        assert links(app.part("/sidebar?rows=600"))


def test_the_task_of_a_sub_agent_is_masked(tmp_path: Path) -> None:
    secret = Planter("task").github()
    place = {"agentId": "a1", "isSidechain": True}
    claude(tmp_path / "home", prompt("Start another"), reply("m1", 1, 2))
    task = prompt(f"Use {secret} to log in", uuid="task", **place)
    claude(tmp_path / "home", task, session="agent-a1", under=f"{SESSION}/subagents/")
    with shown(tmp_path / "home", tmp_path / "catalog", "secrets") as app:
        body = app.get("/sidebar", X_Clew="1").body
        assert secret.encode() not in body and b"to log in" in body


def test_stars_and_labels_are_shown_and_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLEW_DATA_DIR", str(tmp_path / "data"))
    write_sessions(tmp_path / "home", 5)
    with shown(tmp_path / "home", tmp_path / "catalog") as app:
        state = app.get("/sidebar", X_Clew="1").headers["x-clew-state"]
        (key,) = app.catalog_row(KEY.format(session_id(3)))
        change = {"session": key, "starred": True, "add_labels": ["Read <b>again</b>"]}
        assert app.post("/annotations", change).status == 200
        assert app.get(f"/sidebar?state={state}", X_Clew="1").status == 200
        for query in ("read+again", "AGAIN+project0"):
            (row,) = named(app.part(f"/sidebar?q={query}"), "a")
            assert "Task number 003" in words(row) and "Read <b>again</b>" in words(row)
            assert named(row, "span", "star")
