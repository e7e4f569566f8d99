"""The command palette in a real Chromium: every page, by keyboard and pointer, on a desktop and on a phone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.browser.conftest import AXE, Opener
from tests.browser.test_app import MEAN, enter
from tests.demo_home import write_small_demo
from tests.web.poison import poison_home
from tests.web.shown import Shown, shown

if TYPE_CHECKING:
    from playwright.sync_api import Page, Route

ACTIVE = "#palette-results [role=option][aria-selected=true]"
SIZES = [(1440, False), (1440, True), (390, False), (390, True)]


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shown]:
    folder = tmp_path_factory.mktemp("palette")
    write_small_demo(folder / "home")
    with shown(folder / "home", folder / "catalog") as running:
        yield running


def ask(page: Page, text: str) -> None:
    """Open the palette, type, and wait for the answer."""
    page.keyboard.press("Control+k")
    page.locator("#palette[open]").wait_for()
    page.keyboard.type(text)
    page.locator("#palette-results [aria-label=Search]", has_text=f"“{text}”").wait_for()


@pytest.mark.parametrize(("width", "dark"), SIZES)
def test_it_goes_to_a_session(app: Shown, opener: Opener, width: int, dark: bool) -> None:
    page, watched = enter(app, opener(width=width, height=844, dark=dark), "/usage")
    page.locator("#palette-open").click()
    page.locator("[aria-label='Latest sessions'] [role=option]").first.wait_for()
    assert page.evaluate("document.activeElement.id") == "palette-query"
    page.keyboard.type("missing mean")
    page.locator(ACTIVE, has_text="Add the missing mean level").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    page.keyboard.press("Enter")
    page.wait_for_url(f"**{MEAN}")
    assert watched.complaints == []


def test_the_arrow_keys_choose_and_the_field_says_what(app: Shown, opener: Opener) -> None:
    page, _ = enter(app, opener(), "/")
    ask(page, "tide")
    options = page.locator("#palette-results [role=option]")
    assert options.first.get_attribute("aria-selected") == "true"
    page.keyboard.press("ArrowDown")
    chosen = page.locator("#palette-query").get_attribute("aria-activedescendant")
    assert chosen == options.nth(1).get_attribute("id") and page.locator(ACTIVE).count() == 1
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")
    assert page.locator(ACTIVE).get_attribute("id") == options.last.get_attribute("id")
    assert "results" in page.locator("#palette-status").inner_text()
    page.keyboard.press("Enter")
    page.wait_for_url("**/search?q=tide")


def test_it_opens_anywhere_and_closes_again(app: Shown, opener: Opener) -> None:
    page, watched = enter(app, opener(), "/")
    for path in ("/", "/sessions", MEAN, "/search?q=tide", "/files", "/settings", "/nowhere"):
        page.goto(f"http://{app.host}{path}")
        page.locator("#palette-open:not([hidden])").wait_for()
        page.keyboard.press("Control+k")
        page.locator("#palette[open] [role=option]").first.wait_for()
        page.keyboard.press("Escape")
        page.locator("#palette").wait_for(state="hidden")
    # Also from a field, with the other key of a Mac; the same keys close it.
    page.goto(f"http://{app.host}/sessions")
    page.locator("#quick").focus()
    page.keyboard.press("Meta+k")
    page.locator("#palette[open]").wait_for()
    page.keyboard.press("Control+k")
    page.locator("#palette").wait_for(state="hidden")
    assert page.evaluate("document.activeElement.id") == "quick"
    assert [each for each in watched.complaints if "404" not in each] == []


def test_it_runs_what_the_page_can_do(app: Shown, opener: Opener) -> None:
    page, _ = enter(app, opener(width=1440), MEAN)
    page.locator(".outline").wait_for()
    ask(page, "list of sessions")
    page.locator(ACTIVE, has_text="Show or hide the list of sessions").wait_for()
    page.keyboard.press("Enter")
    page.locator("#session-list").wait_for(state="hidden")
    ask(page, "dark")
    page.locator("#palette-results [role=option]", has_text="dark").first.click()
    assert page.locator("#t2").is_checked()
    ask(page, "prompts")
    page.locator("#palette-results [role=option]", has_text="prompts").first.click()
    assert page.locator("#d0").is_checked()
    ask(page, "graph of")
    page.keyboard.press("Enter")
    page.wait_for_url("**/graph")
    ask(page, "usage")
    page.locator("#palette-results [role=option]", has_text="Usage").first.click()
    page.wait_for_url("**/usage")


def test_a_file_and_a_project_are_gone_to(app: Shown, opener: Opener) -> None:
    page, _ = enter(app, opener(), "/")
    ask(page, "predict.py")
    page.locator("[aria-label=Files] [role=option]").first.click()
    page.wait_for_url("**/files/history?path=**predict.py")
    ask(page, "tidepool")
    page.locator("[aria-label=Projects] [role=option]").first.click()
    page.wait_for_url("**/sessions?exact_project=tidepool")


def test_an_early_answer_never_replaces_a_later_one(app: Shown, opener: Opener) -> None:
    page, _ = enter(app, opener(), "/")
    page.keyboard.press("Control+k")
    page.locator("#palette[open] [role=option]").first.wait_for()

    def answer_late(route: Route) -> None:
        """The first word is answered after both."""
        if route.request.url.endswith("q=harbour"):
            page.wait_for_timeout(200)
        route.continue_()

    page.route("**/palette?*", answer_late)
    page.keyboard.type("harbour", delay=5)
    page.wait_for_timeout(50)
    page.keyboard.type(" tide", delay=5)
    page.locator("#palette-results [aria-label=Search]", has_text="“harbour tide”").wait_for()
    page.wait_for_timeout(300)
    assert page.locator("#palette-results [aria-label=Search]").inner_text().count("harbour tide") == 1


def test_without_a_script_there_is_no_button(app: Shown, opener: Opener) -> None:
    watched = opener(scripts=False)
    name, _, value = app.cookie().partition("=")
    watched.page.context.add_cookies([{"name": name, "value": value, "url": f"http://{app.host}"}])
    watched.page.goto(f"http://{app.host}/")
    assert not watched.page.locator("#palette-open").is_visible() and not watched.page.locator("#palette").is_visible()


def test_H01_hostile_names_run_nothing(opener: Opener, tmp_path: Path) -> None:
    write_small_demo(tmp_path / "home")
    poison_home(tmp_path / "home")
    with shown(tmp_path / "home", tmp_path / "catalog") as poisoned:
        page, watched = enter(poisoned, opener(), "/")
        for text in ("alert", "<script>", "<img src=x onerror=alert(1)>"):
            ask(page, text)
            page.wait_for_load_state("networkidle")
            assert page.evaluate("document.scripts.length") == 3
            page.keyboard.press("Escape")
        assert watched.complaints == []


@pytest.mark.parametrize(("width", "dark"), SIZES)
def test_an_accessibility_check_finds_nothing(app: Shown, opener: Opener, width: int, dark: bool) -> None:
    if AXE is None:
        pytest.skip("axe-core is not here: `make axe` fetches it, or name its axe.min.js in CLEW_AXE")
    page, _ = enter(app, opener(dark=dark, checked=True, width=width), MEAN)
    ask(page, "tide")
    page.add_script_tag(content=Path(AXE).read_text(encoding="utf-8"))
    found = page.evaluate("axe.run()")["violations"]
    assert [(one["id"], [node["html"][:120] for node in one["nodes"]][:3]) for one in found] == []
