"""A session in a real Chromium that becomes another while it is read: what is shown, and where the reader stays."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.browser.conftest import Opener
from tests.browser.test_app import enter
from tests.web.shown import shown
from tests.web.test_beginning import ADDRESS, COUNT, SESSION, fork, line, long_session

if TYPE_CHECKING:
    from playwright.sync_api import Page, Route

_HERE = "(document.querySelector('article.here') || {}).id"
_TOP = "Math.round(document.querySelector('article.here').getBoundingClientRect().top)"

_ALL_NEAR = """() => [...document.querySelectorAll('.w:not(.blank)')].every((el) => {
    const box = el.getBoundingClientRect();
    return el.dataset.loaded === '1' || box.bottom < -1200 || box.top > innerHeight + 1200;
})"""


def settled(page: Page) -> None:
    """Until what is near has come."""
    page.locator(".outline").wait_for(state="attached")
    for _ in range(3):
        page.wait_for_timeout(150)
        page.wait_for_function(_ALL_NEAR)


@pytest.mark.parametrize("index", [51, 52, 101, 1001])
def test_a_link_leads_to_the_first_message_of_a_window_and_stays_there(
    opener: Opener, tmp_path: Path, index: int
) -> None:
    long_session(tmp_path / "home")
    with shown(tmp_path / "home", tmp_path / "catalog") as app:
        page, watched = enter(app, opener(), f"{ADDRESS}#m{index}")
        page.locator(f"#m{index}.here").wait_for()
        settled(page)
        assert 0 <= page.evaluate(_TOP) < 200
        page.mouse.wheel(0, 700)
        page.wait_for_function(f"() => {_TOP} < -300")
        settled(page)
        # Who has gone on is not brought back.
        assert page.evaluate(_TOP) < -300
        assert watched.complaints == []


def test_the_window_that_an_address_names_is_the_one_that_is_seen(opener: Opener, tmp_path: Path) -> None:
    long_session(tmp_path / "home")
    with shown(tmp_path / "home", tmp_path / "catalog") as app:
        page, _ = enter(app, opener(), f"{ADDRESS}?window=3")
        page.locator("#m101.here").wait_for()
        settled(page)
        assert 0 <= page.evaluate(_TOP) < 200


def test_the_selected_message_stays_so_when_its_window_is_taken_anew(opener: Opener, tmp_path: Path) -> None:
    long_session(tmp_path / "home", more=fork())
    with shown(tmp_path / "home", tmp_path / "catalog") as app:
        watched = opener()
        held: list[Route] = []
        for late in ("**/outline", "**/live"):
            watched.page.route(late, lambda route: held.append(route))
        page, _ = enter(app, watched, ADDRESS)
        for _ in range(2):
            page.keyboard.press("j")
        page.wait_for_function(f"() => {_HERE} === 'm2'")
        page.wait_for_timeout(1_200)
        for route in held:
            route.continue_()
        page.locator(".fork").wait_for()
        assert page.evaluate(_HERE) == "m2" == page.evaluate("document.activeElement.id")
        page.keyboard.press("j")
        page.wait_for_function(f"() => {_HERE} === 'm{COUNT + 1}'")
        page.keyboard.press("k")
        page.wait_for_function(f"() => {_HERE} === 'm2'")
        page.keyboard.press("Shift+K")
        page.wait_for_function(f"() => {_HERE} === 'm1'")
        assert watched.complaints == []


def test_the_last_message_stays_selected_when_more_comes_of_it(opener: Opener, tmp_path: Path) -> None:
    path = long_session(tmp_path / "home")
    with shown(tmp_path / "home", tmp_path / "catalog") as app:
        page, watched = enter(app, opener(), f"{ADDRESS}#m{COUNT}")
        page.locator(f"#m{COUNT}.here").wait_for()
        with path.open("a") as out:
            # It forks there, so that the message itself is shown anew.
            out.write(line(COUNT + 1, SESSION, COUNT, "One way.") + line(COUNT + 3, SESSION, COUNT, "Another way."))
        page.locator("main p", has_text="Another way.").wait_for()
        assert page.evaluate(_HERE) == f"m{COUNT}" == page.evaluate("document.activeElement.id")
        page.keyboard.press("j")
        page.wait_for_function(f"() => {_HERE} === 'm{COUNT + 2}'")
        assert watched.complaints == []


def test_a_fork_in_earlier_messages_is_shown_there_when_it_comes(opener: Opener, tmp_path: Path) -> None:
    path = long_session(tmp_path / "home")
    with shown(tmp_path / "home", tmp_path / "catalog") as app:
        page, watched = enter(app, opener(), ADDRESS)
        settled(page)
        page.keyboard.press("f")
        page.locator(f"#m{COUNT}").wait_for()
        settled(page)
        asked = len(watched.requests)
        with path.open("a") as out:
            out.write(line(COUNT + 1, SESSION, None, "It goes on."))
        page.locator("main p", has_text="It goes on.").wait_for()
        # What did not change is not asked for again.
        assert not [url for url in watched.requests[asked:] if url.endswith(("/window/0", "/window/28"))]
        with path.open("a") as out:
            out.write(line(COUNT + 3, SESSION, 2, "Not so."))
        page.locator(".tree").wait_for()
        page.evaluate("scrollTo(0, 0)")
        page.locator("#m2 + .fork, #m2 .fork").wait_for()
        assert page.locator("#m3").is_hidden()
        assert watched.complaints == []


def test_what_changes_while_the_messages_stay_as_many_is_shown(opener: Opener, tmp_path: Path) -> None:
    path = long_session(tmp_path / "home")
    with shown(tmp_path / "home", tmp_path / "catalog") as app:
        page, watched = enter(app, opener(), ADDRESS)
        settled(page)
        page.evaluate(
            "document.querySelector('#m1').dataset.mine = document.querySelector('#m9').dataset.mine = 'kept'"
        )
        other = path.with_suffix(".other")
        other.write_text(path.read_text().replace("Word 3. ", "Replaced 3. "))
        other.replace(path)
        page.locator("#m3", has_text="Replaced 3.").wait_for()
        assert page.evaluate("['m1', 'm9'].map((id) => document.getElementById(id).dataset.mine)") == ["kept", "kept"]
        assert page.locator("#news").inner_text() == "" and watched.complaints == []


def test_a_session_whose_file_has_gone_is_told_of_in_words(opener: Opener, tmp_path: Path) -> None:
    path = long_session(tmp_path / "home")
    with shown(tmp_path / "home", tmp_path / "catalog") as app:
        page, _ = enter(app, opener(), ADDRESS)
        settled(page)
        path.unlink()
        page.evaluate("scrollTo(0, 40000)")
        page.locator("#news", has_text="The source of this session cannot be read.").wait_for()


def test_without_a_script_the_beginning_leads_to_what_became_of_it(opener: Opener, tmp_path: Path) -> None:
    long_session(tmp_path / "home", more=fork())
    with shown(tmp_path / "home", tmp_path / "catalog") as app:
        watched = opener(scripts=False)
        name, _, value = app.cookie().partition("=")
        watched.page.context.add_cookies([{"name": name, "value": value, "url": f"http://{app.host}"}])
        page = watched.page
        page.goto(f"http://{app.host}{ADDRESS}")
        assert page.locator(".fork").count() == 0
        page.get_by_role("link", name="Show the current state").click()
        page.locator(".fork").wait_for()
        assert page.get_by_role("link", name="Show the current state").count() == 0


def test_the_way_that_a_reader_chose_stays_until_the_conversation_takes_another(opener: Opener, tmp_path: Path) -> None:
    path = long_session(tmp_path / "home")
    with path.open("w") as out:
        out.writelines(line(number, SESSION) for number in (1, 2, 3))
        out.write(line(5, SESSION, 2, "Second way."))
    with shown(tmp_path / "home", tmp_path / "catalog") as app:
        page, watched = enter(app, opener(), ADDRESS)
        settled(page)
        page.locator(".tree a[data-go='3']").click()
        assert page.locator("#m3").is_visible() and page.locator("#m4").is_hidden()
        with path.open("a") as out:
            out.write(line(6, SESSION, None, "It goes on."))
        page.locator("#m5").wait_for(state="attached")
        page.wait_for_timeout(500)
        assert page.locator("#m3").is_visible() and page.locator("#m4").is_hidden()
        with path.open("a") as out:
            out.write(line(7, SESSION, 2, "Third way."))
        page.locator("#m6").wait_for()
        page.wait_for_timeout(500)
        shown_now = [number for number in range(1, 7) if page.locator(f"#m{number}").is_visible()]
        assert shown_now == [1, 2, 6] and watched.complaints == []
