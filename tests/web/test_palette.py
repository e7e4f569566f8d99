"""What the command palette finds, over HTTP."""

from __future__ import annotations

from pathlib import Path
from time import monotonic, sleep
from urllib.parse import quote
from xml.etree.ElementTree import Element

import pytest

from clew.catalog.ids import session_key
from clew.catalog.sync import sync
from clew.host import Host
from tests.counting.homes import claude, prompt
from tests.demo_home import write_small_demo
from tests.web.many_sessions import address, session_id, write_sessions
from tests.web.poison import poison_home
from tests.web.shown import Shown, faults, named, shown, words

MEAN = "/session/claude-code/71960fc3-4cec-4060-adfc-a6068f5d859b"
DEADLINE_SECONDS = 20


def groups(app: Shown, text: str = "") -> dict[str, list[Element]]:
    """The options of each group."""
    part = app.part(f"/palette?q={quote(text)}" if text else "/palette")
    found = [each for each in named(part, "div") if each.get("role") == "group"]
    return {str(each.get("aria-label")): named(each, "a") for each in found}


def addresses(app: Shown, text: str, group: str) -> list[str]:
    return [str(option.get("href")) for option in groups(app, text).get(group, [])]


def test_without_a_text_the_latest_sessions_are_shown(demo: Shown) -> None:
    found = groups(demo)
    assert list(found) == ["Latest sessions"]
    (latest,) = demo.catalog_row(
        "SELECT title FROM session WHERE is_visible = 1 AND is_agent_session = 0 ORDER BY ended_us DESC, id DESC"
    )
    assert latest in words(found["Latest sessions"][0])


@pytest.mark.parametrize("text", ["missing mean level", "MEAN tidepool", "71960fc3", "claude-code mean-level"])
def test_a_session_is_found_by_title_project_agent_branch_and_id(demo: Shown, text: str) -> None:
    assert addresses(demo, text, "Sessions")[0] == MEAN


def test_a_session_is_found_by_an_id_with_capitals(tmp_path: Path) -> None:
    claude(tmp_path / "home", prompt("Ring the bell", sessionId="Ses_6ABCdef"), session="Ses_6ABCdef")
    with shown(tmp_path / "home", tmp_path / "catalog") as app:
        for text in ("Ses_6ABC", "ses_6abc"):
            assert addresses(app, text, "Sessions") == ["/session/claude-code/Ses_6ABCdef"]


def test_projects_and_files_are_found(demo: Shown) -> None:
    assert "/sessions?exact_project=tidepool" in addresses(demo, "tidep", "Projects")
    assert addresses(demo, "predict.py", "Files")[0].startswith("/files/history?path=")
    # A file whose own name has the words comes before one whose folder has them.
    first = [words(option) for option in groups(demo, "predict")["Files"]]
    assert all("predict" in path.rpartition("/")[2] for path in first[:2])


def test_every_address_opens(demo: Shown) -> None:
    for text in ("tide", "predict", "a"):
        for options in groups(demo, text).values():
            for option in options:
                assert demo.get(str(option.get("href"))).status == 200


def test_the_text_is_searched_as_it_is(demo: Shown) -> None:
    text = 'say "<b>&" & 100%'
    assert addresses(demo, text, "Search") == [f"/search?q={quote(text, safe='').replace('%20', '+')}"]
    assert list(groups(demo, "no such thing anywhere")) == ["Search"]


def test_a_new_session_is_found_soon(tmp_path: Path) -> None:
    write_sessions(tmp_path / "home", 3)
    with shown(tmp_path / "home", tmp_path / "catalog") as app:
        assert addresses(app, "number 001", "Sessions") == [address(1)]
        new = prompt("A harbour", uuid="new", sessionId=session_id(9))
        claude(tmp_path / "home", new, session=session_id(9))
        sync([Host.at(tmp_path / "home")], tmp_path / "catalog")
        # The first answers may come from before.
        deadline = monotonic() + DEADLINE_SECONDS
        while not (found := addresses(app, "a harbour", "Sessions")) and monotonic() < deadline:
            sleep(0.02)
        assert found == [address(9)]


def test_H01_hostile_names_are_text(tmp_path: Path) -> None:
    write_small_demo(tmp_path / "home")
    poison_home(tmp_path / "home")
    with shown(tmp_path / "home", tmp_path / "catalog") as app:
        for text in ("", "alert", "<script>", '">', "javascript:", "\u202e", "%00", "../", "🦊" * 400):
            html = app.get(f"/palette?q={quote(text)}", X_Clew="1").body.decode()
            assert faults(html) == [], text


def test_labels_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLEW_DATA_DIR", str(tmp_path / "data"))
    write_sessions(tmp_path / "home", 3)
    with shown(tmp_path / "home", tmp_path / "catalog") as app:
        key = session_key("claude-code", session_id(1))
        assert app.post("/annotations", {"session": key, "add_labels": ["To read"]}).status == 200
        assert addresses(app, "to re", "Labels") == ["/sessions?label=To+read"]
        assert addresses(app, "to re", "Sessions") == [address(1)]
