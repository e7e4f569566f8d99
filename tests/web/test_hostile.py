"""A home with hostile text in every field of every agent: no page runs, loads or hides anything."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.demo_home import write_small_demo
from tests.render.hostile import HOSTILE
from tests.web.live_session import SESSION, session_file
from tests.web.poison import poison_home
from tests.web.shown import Shown, links, named, shown

PANELS = ("timeline", "files", "todos", "usage", "record?message=2", "problems")


@pytest.fixture(scope="module")
def poisoned(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shown]:
    folder = tmp_path_factory.mktemp("hostile")
    write_small_demo(folder / "home")
    poison_home(folder / "home")
    with shown(folder / "home", folder / "catalog") as app:
        yield app


@pytest.fixture(scope="module")
def sessions(poisoned: Shown) -> list[str]:
    return [path for path in links(poisoned.page("/sessions")) if path.startswith("/session/")]


def test_the_home_is_poisoned_and_still_read(poisoned: Shown, sessions: list[str]) -> None:
    assert len(sessions) > 15
    (titles,) = poisoned.catalog_row("SELECT count(*) FROM sessions WHERE title LIKE '%alert(1)%'")
    assert titles > 3
    body = poisoned.get("/sessions").body.decode()
    assert "&lt;script&gt;alert(1)" in body


@pytest.mark.parametrize(
    "path", ["/", "/sessions", "/usage", "/usage?by=model", "/usage?by=project", "/files", "/sources"]
)
def test_H01_no_list_holds_what_is_not_ours(poisoned: Shown, path: str) -> None:
    poisoned.page(path)


@pytest.mark.slow
def test_H01_no_session_holds_what_is_not_ours(poisoned: Shown, sessions: list[str]) -> None:
    for session in sessions:
        poisoned.page(session)
        poisoned.page(f"{session}/graph")
        poisoned.page(f"{session}/outline")
        poisoned.page(f"{session}/continue")
        disposition = poisoned.get(f"{session}/export/markdown").headers.get("content-disposition", "")
        assert disposition.isascii() and disposition.isprintable()
        for panel in PANELS:
            answer = poisoned.get(f"{session}/panel/{panel}")
            assert answer.status in (200, 404)
            if answer.status == 200:
                poisoned.page(f"{session}/panel/{panel}")


def test_H01_a_command_to_copy_runs_nothing_else(tmp_path: Path) -> None:
    name = "a; touch owned; $(id) `id` 'b"
    path = session_file(tmp_path / "home")
    path.write_text(path.read_text().replace(SESSION, name))
    path.rename(path.with_name(f"{name}.jsonl"))
    with shown(tmp_path / "home", tmp_path / "catalog") as app:
        (session,) = {path for path in links(app.page("/sessions")) if path.startswith("/session/")}
        commands = named(app.page(session), "dl", "commands")[0]
        told = [shlex.split("".join(one.itertext()))[:3] for one in named(commands, "code")]
        copied = [one.get("data-copy", "") for one in named(app.page(session), "button") if one.get("data-copy")]
        resumed = app.get(f"{session}/resume").body.decode()
    reference, folder, source = map(shlex.split, copied)
    assert reference == [f"claude-code:{name}"]
    assert len(folder) == 1
    assert source == [str(path.with_name(f"{name}.jsonl"))]
    assert shlex.split(resumed)[-3:] == ["claude", "--resume", name]
    ends = {"resume": "", "export": "", "restore": "#12"}
    assert told == [["clew", word, f"claude-code:{name}{end}"] for word, end in ends.items()]


@pytest.mark.slow
def test_H01_no_hit_holds_what_is_not_ours(poisoned: Shown) -> None:
    for query in ("alert", "script", "evil", "javascript", "onerror"):
        poisoned.page(f"/search?q={query}")


@pytest.mark.slow
@pytest.mark.parametrize("text", HOSTILE)
def test_H01_what_is_asked_for_is_shown_as_text(poisoned: Shown, text: str) -> None:
    asked = quote(text, safe="")
    for path in (f"/search?q={asked}", f"/sessions?project={asked}&text={asked}", f"/files?text={asked}"):
        poisoned.page(path)
    for path in (f"/sessions?since={asked}", f"/usage?since={asked}"):
        poisoned.page(path, status=400)
    assert poisoned.get(f"/session/{asked}/{asked}").status in (400, 404)
    assert poisoned.get(f"/files/history?path={asked}").status in (200, 404)
