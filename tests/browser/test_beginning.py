"""A long session in a real Chromium: its beginning is seen first, and becomes what it is when all of it was read."""

from __future__ import annotations

from pathlib import Path

from tests.browser.conftest import Opener
from tests.browser.test_app import enter
from tests.web.shown import shown
from tests.web.test_beginning import ADDRESS, COUNT, SESSION, fork, line, long_session


def test_what_became_of_the_first_messages_is_shown_without_being_asked_for(opener: Opener, tmp_path: Path) -> None:
    long_session(tmp_path / "home", more=fork())
    with shown(tmp_path / "home", tmp_path / "catalog") as app:
        page, watched = enter(app, opener(), ADDRESS)
        page.locator(".fork").wait_for()
        assert page.locator("#m2 + .fork, #m2 .fork").count() == 1
        # The branch that was left is not shown, and that it was is said where somebody looks at it.
        assert page.locator("#m3").is_hidden() and "left" in (page.locator("#m3").get_attribute("class") or "")
        assert page.locator("main").get_attribute("data-partial") is None
        page.goto(f"http://{app.host}{ADDRESS}#m{COUNT}")
        page.locator(f"#m{COUNT}.here").wait_for()
        assert watched.complaints == []


def test_a_long_session_grows_while_it_is_read_and_from_what_the_catalog_knew(opener: Opener, tmp_path: Path) -> None:
    path = long_session(tmp_path / "home")
    with shown(tmp_path / "home", tmp_path / "catalog") as app:
        with path.open("a") as out:
            out.write(line(COUNT + 1, SESSION, None, "Said before the page was opened."))
        page, watched = enter(app, opener(), ADDRESS)
        page.get_by_text("1 new message", exact=True).wait_for()
        assert page.locator("#messages").text_content() == f"{COUNT + 1:,}"
        with path.open("a") as out:
            out.write(line(COUNT + 2, SESSION, None, "Said while it is open."))
        page.locator("#messages", has_text=f"{COUNT + 2:,}").wait_for()
        page.locator("#follow").click()
        page.locator("main p", has_text="Said while it is open.").wait_for()
        page.locator("main p", has_text="Said before the page was opened.").wait_for()
        assert watched.complaints == []


def test_a_long_session_that_was_cut_short_is_shown_as_it_is_now(opener: Opener, tmp_path: Path) -> None:
    path = long_session(tmp_path / "home")
    with shown(tmp_path / "home", tmp_path / "catalog") as app:
        path.write_text("".join(path.read_text().splitlines(keepends=True)[: COUNT - 100]))
        page, watched = enter(app, opener(), ADDRESS)
        page.locator("#messages", has_text=f"{COUNT - 100:,}").wait_for()
        page.locator(".outline").wait_for(state="attached")
        assert page.locator("main").get_attribute("data-partial") is None
        asked = [url for url in watched.requests if url.endswith(ADDRESS)]
        assert len(asked) == 2 and watched.complaints == []
