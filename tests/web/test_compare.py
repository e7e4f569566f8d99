"""The comparison of two sessions or of two branches, over HTTP."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from clew.catalog import database
from clew.render.parts import Section
from clew.web.comparison import SECTIONS_PER_ROW, aligned_rows
from tests.render.hostile import HOSTILE
from tests.web.sessions_with_calls import answer, call, prompt, result, turns, write_session
from tests.web.shown import Shown, links, named, shown, words

FORKED, COPY, LONG = (f"0f6a1c52-0000-4000-8000-0000000000{end}" for end in ("c1", "c2", "c3"))
EDIT = {"file_path": "/home/ada/tidepool/tide.py", "old_string": "a", "new_string": "b"}


def forked(session: str) -> list[dict[str, Any]]:
    """A session of two turns that was taken back to the end of the first, and went on in another way."""
    return [
        *turns(session, 1),
        prompt(session, 5, "Take the mean."),
        answer(session, 6, "The mean is five."),
        prompt(session, 7, "Take the median.", parent=4),
        call(session, 8, "Edit", EDIT),
        result(session, 9, 8, "done"),
        answer(session, 10, "The median is six."),
    ]


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shown]:
    folder = tmp_path_factory.mktemp("compare")
    write_session(folder / "home", FORKED, forked(FORKED))
    write_session(folder / "home", COPY, [*turns(COPY, 1), prompt(COPY, 5, "Stop here.")])
    write_session(folder / "home", LONG, turns(LONG, 60))
    with shown(folder / "home", folder / "catalog") as running:
        yield running


def comparison(left: str, right: str, more: str = "") -> str:
    return f"/compare?left=claude-code:{left}&right=claude-code:{right}{more}"


def cells(page: Any) -> list[str]:
    return [words(one) for one in named(page, "section", "half")]


def test_two_branches_are_compared_behind_what_they_have_in_common(app: Shown) -> None:
    page = app.page(comparison(f"{FORKED}@5", f"{FORKED}@7"))
    assert "4 messages in common" in words(named(page, "summary"))
    left, right = cells(page)
    assert "Take the mean." in left and "The mean is five." in left and "median" not in left
    assert "Take the median." in right and "The median is six." in right and "mean is" not in right
    summary = words(named(page, "table", "versus"))
    assert "6 of 10 on this branch, 2 after the common beginning" in summary
    assert "8 of 10 on this branch, 4 after the common beginning" in summary
    assert "Bash 1" in summary and "Edit 1" in summary
    assert "tide.pyunchanged1 change, +1 −1" in words(named(page, "details", "files-compared"))


def test_the_usage_of_a_branch_is_that_of_its_messages(app: Shown) -> None:
    rows = named(named(app.page(comparison(f"{FORKED}@5", f"{FORKED}@7")), "table", "versus")[0], "tr")
    values = {words(named(row, "th")): [words(one) for one in named(row, "td")] for row in rows[1:]}
    assert values["Tokens, input + output"] == ["330", "440"] and values["Duration"] == ["5 s", "9 s"]
    assert values["Models"] == ["claude-sonnet-4-5"] * 2 and values["Files changed"] == ["0", "1"]


def test_a_session_without_a_branch_is_the_one_it_is_on(app: Shown) -> None:
    same = app.page(comparison(FORKED, f"{FORKED}@7"))
    assert "both are the same" in words(named(same, "p", "empty")) and "8 messages in common" in words(same)


def test_a_session_has_as_many_messages_as_its_page_says(demo: Shown) -> None:
    query = "SELECT agent || ':' || native_id, message_count FROM sessions WHERE parent_session_id = '' ORDER BY 2 DESC"
    with closing(sqlite3.connect(demo.context.folder / database.DATABASE)) as db:
        counts = dict(db.execute(query).fetchall())
    for one, other in pairwise(counts):
        rows = named(demo.page(f"/compare?left={one}&right={other}"), "tr")
        (row,) = [row for row in rows if words(row).startswith("Messages")]
        texts = [words(cell).partition(",")[0].removesuffix(" on this branch") for cell in named(row, "td")]
        assert [text.rpartition(" of ")[2] for text in texts] == [str(counts[one]), str(counts[other])], (one, other)


def test_two_sessions_with_the_same_beginning(app: Shown) -> None:
    page = app.page(comparison(COPY, FORKED))
    assert "4 messages in common" in words(named(page, "summary"))
    left, right = cells(page)
    assert "Stop here." in left and "Take the median." in right


def test_turns_with_equal_prompts_are_side_by_side_and_equal_ones_are_folded(app: Shown, tmp_path: Path) -> None:
    write_session(tmp_path / "home", FORKED, [prompt(FORKED, 1, "Begin."), *turns(FORKED, 3, first=2)])
    other = [prompt(COPY, 1, "Start."), *turns(COPY, 3, first=2)]
    other[-1] = answer(COPY, 13, "Another answer.")
    write_session(tmp_path / "home", COPY, other)
    with shown(tmp_path / "home", tmp_path / "catalog") as running:
        page = running.page(comparison(FORKED, COPY))
    assert "no message in common" in words(named(page, "main"))
    assert len(named(page, "p", "same")) == 2 and "4 messages" in words(named(page, "p", "same")[0])
    texts = cells(page)
    assert "Begin." in texts[0] and "Start." in texts[1]
    assert "Pool 3 is measured." in texts[2] and "Another answer." in texts[3]


def test_a_long_comparison_has_pages(app: Shown) -> None:
    first = app.page(comparison(LONG, COPY))
    assert len(cells(first)) == 24 and "Page 1 of 5" in words(first)
    last = app.page(comparison(LONG, COPY, "&page=99"))
    assert "Page 5 of 5" in words(last) and "Measure pool 60." in words(last)
    assert all(one.get("open") is None for one in named(last, "details", "c"))


def test_without_the_other_session_it_is_chosen(app: Shown) -> None:
    page = app.page(f"/compare?left=claude-code:{FORKED}")
    found = [path for path in links(page) if path.startswith("/compare?")]
    assert f"/compare?left=claude-code%3A{FORKED}&right=claude-code%3A{FORKED}%405" in found
    assert f"/compare?left=claude-code%3A{FORKED}&right=claude-code%3A{COPY}" in found
    for path in found:
        app.page(path)
    assert named(app.page("/compare"), "form")
    address = quote(f"http://127.0.0.1:1/session/claude-code/{COPY}?find=x#m3", safe="")
    assert "4 messages in common" in words(app.page(f"/compare?left=claude-code:{FORKED}&right={address}"))


@pytest.mark.parametrize("reference", ["nobody", "claude-code:nobody", f"claude-code:{FORKED}@6", "x:y@1", ":", "@"])
def test_what_is_not_there_is_not_found(app: Shown, reference: str) -> None:
    app.page(f"/compare?left=claude-code:{FORKED}&right={quote(reference)}", status=404)


def test_graph_outline_and_actions_lead_to_comparisons(app: Shown) -> None:
    url = f"/compare?left=claude-code%3A{FORKED}%405&right=claude-code%3A{FORKED}%407"
    session = f"/session/claude-code/{FORKED}"
    assert url in links(app.page(f"{session}/graph")) and url in links(app.part(f"{session}/outline"))
    assert f"/compare?left=claude-code%3A{FORKED}" in links(app.page(session))


def test_H01_hostile_text_is_compared_as_text(tmp_path: Path) -> None:
    for session in (FORKED, COPY):
        records = [prompt(session, 1, f"{HOSTILE[0]} {session}")]
        for text in HOSTILE:
            at = len(records) + 1
            edit = {"file_path": f"/srv/{text}", "old_string": text, "new_string": session}
            records += [call(session, at, text or "x", edit), result(session, at + 1, at, text)]
            records.append(prompt(session, at + 2, f"{text} {session}"))
        write_session(tmp_path / "home", session, records)
    with shown(tmp_path / "home", tmp_path / "catalog") as running:
        for number in (1, 2, 3, 4):
            assert "alert(1)" in words(running.page(comparison(FORKED, COPY, f"&page={number}")))
        running.page(f"/compare?left=claude-code:{FORKED}")
        for text in HOSTILE:
            assert running.get(f"/compare?left={quote(text, safe='')}&right=x").status in (400, 404)


def test_a_long_turn_that_is_the_same_is_one_row() -> None:
    count = 2 * SECTIONS_PER_ROW + 1
    turn = [[Section(index, "ada", None, speaker="prompt" if index == 1 else "reply")] for index in range(1, count)]
    other = [[Section(index, "eve", None, speaker="prompt" if index == 1 else "reply")] for index in range(1, count)]
    assert [row.is_same for row in aligned_rows(turn, turn)] == [True]
    assert [row.is_same for row in aligned_rows(turn, other)] == [False, False]


def test_sessions_of_a_project_are_those_of_no_other_project(tmp_path: Path) -> None:
    sessions = {}
    for number, folder in enumerate(("/srv/app", "/srv/my-app", "/srv/app/docs", "/srv/app"), 1):
        sessions[number] = f"0f6a1c52-0000-4000-8000-0000000000c{number}"
        records = [prompt(sessions[number], 1, f"Prompt {number}")]
        write_session(tmp_path / "home", sessions[number], [{**record, "cwd": folder} for record in records])
    with shown(tmp_path / "home", tmp_path / "catalog") as app:
        page = app.page(f"/compare?left=claude-code:{sessions[1]}")
        offered = [link for link in links(page) if "right=" in link]
        assert len(offered) == 1 and sessions[4] in offered[0]
        (trail,) = named(app.page(f"/session/claude-code/{sessions[1]}"), "p", "trail")
        (of_project,) = [link for link in links(trail) if "exact_project" in link]
        page = app.page(of_project)
        assert "2 sessions match the filters" in words(page) and "Only sessions of the project app." in words(page)
        (kept,) = [one for one in named(page, "input") if one.get("name") == "exact_project"]
        assert kept.get("value") == "app"


def test_the_beginning_of_an_id_names_a_session(tmp_path: Path) -> None:
    first, second = "0f6a1c52-0000-4000-8000-0000000000d1", "1f6a1c52-0000-4000-8000-0000000000d2"
    for session in (first, second, second.replace("1f6a", "1f6b")):
        write_session(tmp_path / "home", session, [prompt(session, 1, f"Prompt of {session}")])
    with shown(tmp_path / "home", tmp_path / "catalog") as app:
        found = links(app.page("/compare?left=0f6a1c52&right=claude-code:1f6a"))
        assert f"/session/claude-code/{first}" in found and f"/session/claude-code/{second}" in found
        assert "1f6" in words(app.page("/compare?left=0f6a1c52&right=1f6", 400))
        for unknown in ("zebra", "no-agent:0f6a", "0f6a1c52@7", "2f"):
            assert app.get(f"/compare?left=0f6a1c52&right={unknown}").status == 404, unknown
