"""The title of a session: the same one wherever sessions are named."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import pytest

from clew.annotations import Annotations, Target
from clew.catalog.sync import sync
from clew.host import Host
from tests.cli.running import clew
from tests.counting.homes import SESSION, claude, prompt, reply
from tests.redact.planted import Planter
from tests.web.shown import Shown, faults, named, shown, words

TASK = "Compare the weather stations"
KEY = "SELECT session_id FROM session WHERE native_id = 'agent-a1'"
PARENT, AGENT = f"/session/claude-code/{SESSION}", "/session/claude-code/agent-a1"


def write_home(home: Path) -> None:
    """A session, and a sub-agent of it that its agent gives no title."""
    place: dict[str, Any] = {"agentId": "a1", "isSidechain": True}
    claude(home, prompt("Start another"), reply("m1", 1, 2))
    task = [prompt(TASK, uuid="task", **place), reply("m2", 1, 2, **place)]
    claude(home, *task, session="agent-a1", under=f"{SESSION}/subagents/")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CLEW_DATA_DIR", str(tmp_path / "data"))
    write_home(tmp_path / "home")
    return tmp_path / "home"


@pytest.fixture
def app(home: Path, tmp_path: Path) -> Iterator[Shown]:
    with shown(home, tmp_path / "catalog") as found:
        yield found


def test_pages_name_a_sub_agent_by_its_task(app: Shown) -> None:
    assert words(named(app.page(AGENT), "h1")[0]) == TASK
    assert words(named(app.page(f"{AGENT}/print"), "h1")[0]) == TASK
    compared = app.page(f"/compare?left=claude-code:{SESSION}&right=claude-code:agent-a1")
    assert [words(cell) for cell in named(compared, "th")[:2]] == ["left Start another", f"right {TASK}"]
    app.post("/annotations", {"session": app.catalog_row(KEY)[0], "starred": True})
    assert TASK in words(named(app.page("/annotations"), "h2")[0])


@pytest.mark.parametrize("place", ["/session-list", "/palette"])
def test_a_sub_agent_is_found_by_its_name(app: Shown, place: str) -> None:
    found = app.part(f"{place}?q={quote('weather STATIONS')}")
    assert AGENT in {link.get("href") for link in named(found, "a")}


def test_commands_name_a_sub_agent_by_its_task(home: Path) -> None:
    titles = {row["id"]: row["title"] for row in clew("--home", home, "list", "--json").json}
    assert titles == {SESSION: "Start another", "agent-a1": TASK}
    assert TASK in clew("--home", home, "show", "agent-a1").out.splitlines()[0]
    assert TASK in clew("--home", home, "stats", "--by", "session", "--json").out
    assert clew("--home", home, "search", "weather").out.startswith(TASK)


NEW, HOSTILE = "Weather, first try", '<script>alert(1)</script> & "quotes"'


@pytest.mark.parametrize("title", [NEW, HOSTILE])
def test_a_new_title_is_shown_everywhere_at_once(app: Shown, title: str) -> None:
    (key,) = app.catalog_row(KEY)
    assert app.post("/annotations", {"session": key, "title": title}).status == 200
    page = app.page(AGENT)
    assert words(named(page, "h1")[0]) == title
    assert title in words(named(page, "title")[0])
    assert words(named(app.page(f"{AGENT}/print"), "h1")[0]) == title
    assert title in words(named(app.page("/annotations"), "h2")[0])
    compared = f"/compare?left=claude-code:{SESSION}&right=claude-code:agent-a1"
    for address in ("/sessions", "/search?q=weather", compared):
        assert title in words(app.page(address)), address
    for place in ("/session-list", "/palette"):
        html = app.get(f"{place}?q={quote(title)}", X_Clew="1").body.decode()
        assert faults(html) == []
        assert AGENT in {link.get("href") for link in named(app.part(f"{place}?q={quote(title)}"), "a")}
    form = app.part(f"/annotations/form?session={key}")
    (field,) = [each for each in named(form, "input") if each.get("name") == "title"]
    assert field.get("value") == title
    app.post("/annotations", {"session": key, "title": ""})
    assert words(named(app.page(AGENT), "h1")[0]) == TASK


def test_the_title_from_the_agent_is_still_told(app: Shown, home: Path) -> None:
    (key,) = app.catalog_row(KEY.replace("agent-a1", SESSION))
    app.post("/annotations", {"session": key, "title": NEW})
    assert named(app.page(PARENT), "h1")[0].get("title") == "Title from the agent: Start another"
    shown_text = clew("--home", home, "show", SESSION).out
    assert NEW in shown_text.splitlines()[0] and "title from the agent: Start another" in shown_text


def test_a_title_is_masked_and_then_not_changed_in_the_form(home: Path, tmp_path: Path) -> None:
    secret = Planter("title").github()
    Annotations().change(Target("claude-code", SESSION), title=f"Key {secret} tried")
    with shown(home, tmp_path / "catalog", "secrets") as app:
        (key,) = app.catalog_row(KEY.replace("agent-a1", SESSION))
        pages = (PARENT, f"{PARENT}/print", "/sessions", "/annotations", "/", "/annotations.json", "/search?q=another")
        for address in (*pages, "/session-list", "/palette", f"/annotations/form?session={key}"):
            body = app.get(address, X_Clew="1").body
            assert secret[:12].encode() not in body, address
        (field,) = [
            each for each in named(app.part(f"/annotations/form?session={key}"), "input") if each.get("name") == "title"
        ]
        assert "readonly" in field.attrib
    for command in (("list",), ("show", SESSION), ("annotate", "show", SESSION), ("annotate", "list")):
        ran = clew("--home", home, *command)
        assert secret[:12] not in ran.out and "tried" in ran.out, command


def without_tags(text: str) -> str:
    """A text without the tags of masked values, which differ in each run."""
    return re.sub(r"\[REDACTED[^\]]*\]", "", text)


@pytest.mark.parametrize("form", ["html", "markdown"])
def test_exports_have_the_title_of_the_user(home: Path, app: Shown, form: str) -> None:
    secret = Planter("title").github()
    Annotations().change(Target("claude-code", SESSION), title=f"Key {secret} tried")
    for profile in ("secrets", "none"):
        answer = app.get(f"{PARENT}/export/{form}?redact={profile}")
        name, text = unquote(answer.headers["content-disposition"]), answer.body.decode()
        heading = re.search(r"<h1>(.*?)</h1>|^# (.*)$", text, re.MULTILINE)
        assert heading is not None and "tried" in heading[0] and "Key" in name and "tried" in name
        assert (secret in text) == (secret in name) == (profile == "none")
        exported = clew("--home", home, "export", SESSION, "--format", form, "--redact", profile).out
        assert without_tags(exported) == without_tags(text)
    assert "tried" in unquote(app.get(f"{PARENT}/export/json").headers["content-disposition"])


def test_commands_give_and_remove_a_title(home: Path) -> None:
    def title() -> str:
        rows = clew("--home", home, "list", "--json").json
        return str(next(row["title"] for row in rows if row["id"] == SESSION))

    assert title() == "Start another"
    assert f"title: {NEW}" in clew("--home", home, "annotate", "set", SESSION, "--title", NEW).out
    assert title() == NEW
    assert clew("--home", home, "show", NEW).code == 0
    assert clew("--home", home, "annotate", "set", SESSION, "--no-title").code == 0
    assert title() == "Start another"
    assert clew("--home", home, "annotate", "set", SESSION, "--title", "a", "--no-title").code == 2
    assert clew("--home", home, "annotate", "set", f"{SESSION}#1", "--title", "a").code == 2


def test_a_title_stays_when_the_session_grows_and_the_catalog_is_built_again(home: Path, tmp_path: Path) -> None:
    Annotations().change(Target("claude-code", SESSION), title=NEW)
    with shown(home, tmp_path / "catalog") as app:
        path = next((home / ".claude").rglob(f"{SESSION}.jsonl"))
        claude(home, prompt("Start another"), reply("m1", 1, 2), prompt("And again", uuid="again"))
        assert path.exists()
        for is_full in (False, True):
            sync([Host.at(home)], tmp_path / "catalog", full=is_full)
            assert app.catalog_row(KEY.replace("session_id", "title").replace("agent-a1", SESSION)) == (NEW,)
