"""The app in a real Chromium while the first sync runs: what pages say, and that they correct themselves."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from clew.catalog.sync import sync
from clew.catalog.sync_process import Outcome, Progress
from clew.host import Host
from clew.web.background import CatalogUpdater
from clew.web.context import AppContext
from tests.browser.conftest import AXE, Opener
from tests.browser.test_app import enter
from tests.counting.homes import OTHER, claude, prompt, reply
from tests.web.shown import Shown, shown_context

PAGES = ["/", "/sessions", "/search?q=sail", "/usage", "/files", "/sources"]


class HeldSync:
    """A first sync that has read sessions without usage, and goes on when the test says so."""

    def __init__(self, home: Path, folder: Path) -> None:
        self._home, self._folder = home, folder
        self.progress: Progress | None = Progress("sessions", 42)
        self.may_finish = threading.Event()

    def run(self) -> Outcome:
        self.may_finish.wait(60)
        sync([Host.at(self._home)], self._folder)
        self.progress = None
        return "fresh"

    def cancel(self) -> None:
        self.may_finish.set()


@contextmanager
def syncing(tmp_path: Path) -> Iterator[tuple[Shown, HeldSync]]:
    """The app in the middle of its first sync."""
    home, folder = tmp_path / "home", tmp_path / "catalog"
    claude(home, prompt("Sail"))
    sync([Host.at(home)], folder)
    claude(home, prompt("Sail again", sessionId=OTHER), reply("m1", 1000, 2000, sessionId=OTHER), session=OTHER)
    held = HeldSync(home, folder)
    updater = CatalogUpdater(held)
    updater.start()
    try:
        with shown_context(AppContext([Host.at(home)], folder, updater=updater)) as app:
            yield app, held
    finally:
        updater.stop()


def test_pages_show_how_far_the_first_sync_is_and_correct_themselves(opener: Opener, tmp_path: Path) -> None:
    with syncing(tmp_path) as (app, held):
        watched = opener()
        pages = [enter(app, watched, "/")[0]]
        for path in PAGES[1:]:
            pages.append(watched.page.context.new_page())
            pages[-1].goto(f"http://{app.host}{path}")
        for page in pages:
            page.get_by_text("The first sync is still running").wait_for()
            assert page.locator("#sync progress").get_attribute("value") == "42"
        home, sessions, _, usage, _, sources = pages
        assert "not read yet" in home.locator(".totals").inner_text() and "$0" not in home.locator("main").inner_text()
        assert "not read yet" in usage.locator("main").inner_text()
        assert "being updated" in sources.locator("main").inner_text()
        held.progress = Progress("messages", 77)
        home.locator("#sync progress[value='77']").wait_for()
        held.may_finish.set()
        for page in pages:
            page.get_by_text("The first sync is still running").wait_for(state="detached")
        assert "3,000" in home.locator(".totals").inner_text()
        assert sessions.locator("#found .list > li").count() == 2
        assert "2,000" in usage.locator("main").inner_text()
        assert "up to date" in sources.locator("main").inner_text()
        asked = len(watched.requests)
        home.wait_for_timeout(3_000)
        assert not [url for url in watched.requests[asked:] if not url.endswith("/running")]
        assert watched.complaints == []


def test_without_a_script_the_home_page_reloads_until_the_sync_has_finished(opener: Opener, tmp_path: Path) -> None:
    with syncing(tmp_path) as (app, held):
        page = opener(scripts=False).page
        name, _, value = app.cookie().partition("=")
        page.context.add_cookies([{"name": name, "value": value, "url": f"http://{app.host}"}])
        page.goto(f"http://{app.host}/")
        assert page.get_by_role("link", name="Reload").is_visible()
        held.may_finish.set()
        page.get_by_text("3,000").first.wait_for(timeout=20_000)
        assert page.get_by_text("The first sync is still running").count() == 0


@pytest.mark.parametrize(("dark", "width"), [(False, 1280), (True, 390)])
def test_an_accessibility_check_finds_nothing(opener: Opener, tmp_path: Path, dark: bool, width: int) -> None:
    if AXE is None:
        pytest.skip("axe-core is not here: `make axe` fetches it, or name its axe.min.js in CLEW_AXE")
    with syncing(tmp_path) as (app, _):
        page, _watched = enter(app, opener(dark=dark, checked=True, width=width), "/")
        for path in PAGES:
            page.goto(f"http://{app.host}{path}")
            page.add_script_tag(content=Path(AXE).read_text(encoding="utf-8"))
            found = page.evaluate("axe.run()")["violations"]
            assert [(one["id"], [node["html"][:120] for node in one["nodes"]][:3]) for one in found] == [], path
