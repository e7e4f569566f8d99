"""Reading a transcript over HTTP: folded tool calls, searched words, clamped titles."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.etree.ElementTree import Element

import pytest

from tests.render.hostile import HOSTILE
from tests.web.sessions_with_calls import call, prompt, result, turns, write_session
from tests.web.shown import Shown, links, named, shown, words

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
    assert edit == "Edit /srv/tide.py ok · +2 −1 · 1.2 min"
    assert command == "Bash Fail false exit 1 · 5 s"
    assert task == "Task Look around no result"


def hits(app: Shown, session: str, query: str, status: int = 200) -> Any:
    answer = app.get(f"/session/claude-code/{session}/hits?q={quote(query)}", X_Clew="1")
    assert answer.status == status
    return json.loads(answer.body)


def test_the_messages_of_a_session_with_a_word_are_known_with_their_spellings(app: Shown) -> None:
    assert hits(app, SHORT, "cafe") == {"messages": [1], "spellings": ["Café", "CAFÉ", "cafe"]}
    found = hits(app, LONG, '"pool 7"')
    assert found == {"messages": [25, 26, 27, 28], "spellings": ["pool 7", "Pool 7"]}
    assert hits(app, LONG, "gaug*")["spellings"] == ["gauge"]
    assert hits(app, LONG, "zebra") == {"messages": [], "spellings": []}
    assert len(hits(app, LONG, '"measure"')["messages"]) == 40
    assert len(hits(app, LONG, "measure")["messages"]) == 80, "the last word may be unfinished"


def test_a_query_that_cannot_be_parsed_is_explained(app: Shown) -> None:
    assert "problem" in hits(app, LONG, '"open', 400)
    assert app.get(f"/session/claude-code/{LONG}/hits?q=").status == 400


def test_hits_of_a_search_lead_to_the_message_with_the_words(app: Shown) -> None:
    found = [path for path in links(app.page("/search?q=%22pool+7%22")) if path.startswith("/session/") and "#" in path]
    assert f"/session/claude-code/{LONG}?find=%22pool+7%22#m25" in found
    page = app.page(found[0].partition("#")[0])
    strip = next(element for element in named(page, "div", "find-strip"))
    assert strip.get("data-find") == '"pool 7"' and strip.get("hidden") is not None
    typed = [path for path in links(app.part("/search?q=gaug")) if "#" in path]
    assert all("find=gaug#m" in path for path in typed) and typed


@pytest.mark.parametrize("text", HOSTILE)
def test_H01_what_is_looked_for_is_shown_as_text(app: Shown, text: str) -> None:
    app.page(f"/session/claude-code/{SHORT}?find={quote(text, safe='')}")
    answer = app.get(f"/session/claude-code/{SHORT}/hits?q={quote(text, safe='')}")
    assert answer.status in (200, 400) and answer.headers["content-type"].startswith(("application/json", "text/html"))


def test_very_long_texts_are_not_read_for_their_spellings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clew.catalog.search.MAX_SPELLED_CHARS", 200)
    texts = ["Pool " + "x " * 100, "pool", "POOL " + "x " * 80, "PoOl"]
    write_session(tmp_path / "home", SHORT, [prompt(SHORT, number, text) for number, text in enumerate(texts, 1)])
    with shown(tmp_path / "home", tmp_path / "catalog") as app:
        assert hits(app, SHORT, "pool") == {"messages": [1, 2, 3, 4], "spellings": ["pool", "POOL", "PoOl"]}
