"""Reading a transcript over HTTP: folded tool calls, searched words, clamped titles."""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree.ElementTree import Element

import pytest

from tests.web.sessions_with_calls import call, prompt, result, turns, write_session
from tests.web.shown import Shown, named, shown, words

LONG, SHORT = "0f6a1c52-0000-4000-8000-0000000000a1", "0f6a1c52-0000-4000-8000-0000000000a2"


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shown]:
    folder = tmp_path_factory.mktemp("reading")
    write_session(folder / "home", LONG, turns(LONG, 40))
    write_session(
        folder / "home",
        SHORT,
        [
            prompt(SHORT, 1, "Café CAFÉ cafe."),
            call(SHORT, 2, "Edit", {"file_path": "/srv/tide.py", "old_string": "a\nb", "new_string": "a\nc\nd"}),
            result(SHORT, 3, 2, "done", second=75),
            call(SHORT, 4, "Bash", {"command": "false", "description": "Fail"}, second=80),
            result(SHORT, 5, 4, "Exit code 1", is_error=True, second=85),
            call(SHORT, 6, "Task", {"description": "Look around", "prompt": "Look.\nAround."}, second=90),
        ],
    )
    with shown(folder / "home", folder / "catalog") as running:
        yield running


def calls(tree: Element) -> list[Element]:
    return named(tree, "details", "c")


def test_tool_calls_are_one_line_each_in_a_long_session(app: Shown) -> None:
    page = app.page(f"/session/claude-code/{LONG}")
    assert calls(page) and all(one.get("open") is None for one in calls(page))
    assert named(page, "main")[0].get("data-folded") == "1"
    later = app.part(f"/session/claude-code/{LONG}/window/2")
    assert calls(later) and all(one.get("open") is None for one in calls(later))


def test_tool_calls_of_a_short_session_are_open(app: Shown) -> None:
    page = app.page(f"/session/claude-code/{SHORT}")
    assert len(calls(page)) == 3 and all(one.get("open") is not None for one in calls(page))
    assert named(page, "main")[0].get("data-folded") is None


def test_the_line_of_a_call_names_tool_target_state_size_and_duration(app: Shown) -> None:
    page = app.page(f"/session/claude-code/{SHORT}")
    edit, command, task = (words(named(one, "summary")[0]) for one in calls(page))
    assert edit == "Edit /srv/tide.py ok · +2 −1 · 1 min"
    assert command == "Bash Fail false exit 1 · 5 s"
    assert task == "Task Look around no result"
