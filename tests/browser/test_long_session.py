"""A long session in a real Chromium: its levels of detail, and the outline beside it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.browser.conftest import Opener
from tests.browser.long_sessions import write_long_session
from tests.browser.test_app import enter
from tests.browser.test_changing import settled
from tests.web.shown import Shown, shown

if TYPE_CHECKING:
    from playwright.sync_api import Page

SESSION, COUNT = "0f6a1c52-0000-4000-8000-0000000000dd", 4_500
FEW_PROMPTS = "0f6a1c52-0000-4000-8000-0000000000ef"
ADDRESS = f"/session/claude-code/{SESSION}"
SHOWN_PROMPTS = """() => [...document.querySelectorAll('main article.prompt')].filter((each) => {
    const box = each.getBoundingClientRect();
    return box.height && box.bottom > 70 && box.top < innerHeight;
}).length"""
HEIGHT = "document.documentElement.scrollHeight"
HERE = "[...document.querySelectorAll('.toc a.here')].map((each) => each.hash).join()"
IS_IN_SIGHT = """() => {
    const box = document.querySelector('.toc a.here').getBoundingClientRect();
    const found = document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2);
    return Boolean(found && found.closest('.toc a.here'));
}"""


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shown]:
    folder = tmp_path_factory.mktemp("long")
    write_long_session(folder / "home", SESSION, COUNT)
    write_long_session(folder / "home", FEW_PROMPTS, COUNT, prompt_every=400)
    with shown(folder / "home", folder / "catalog") as running:
        yield running


def test_no_part_of_the_level_prompts_is_blank_and_the_page_keeps_its_height(app: Shown, opener: Opener) -> None:
    page, watched = enter(app, opener(), ADDRESS)
    settled(page)
    page.locator("label[for=d0]").click()
    settled(page)
    heights = []
    for share in (0, 0.1, 0.25, 0.4, 0.55, 0.7, 0.85, 1):
        page.evaluate(f"scrollTo(0, {share} * {HEIGHT})")
        settled(page)
        heights.append(page.evaluate(HEIGHT))
        # Prompts are about as high as three lines: a screen of them is full.
        assert page.evaluate(SHOWN_PROMPTS) >= 4, (share, heights)
    # The first prompts have one line, and the others two.
    assert max(heights) < 1.2 * min(heights), heights
    assert watched.complaints == []


def test_windows_without_prompts_are_not_loaded_at_the_level_prompts(app: Shown, opener: Opener) -> None:
    page, watched = enter(app, opener(), f"/session/claude-code/{FEW_PROMPTS}")
    settled(page)
    page.keyboard.press("1")
    settled(page)
    page.keyboard.press("End")
    page.wait_for_function(f"() => {HERE} === '#m4401'")
    assert page.evaluate("document.querySelectorAll('main article.prompt').length") == 12
    assert page.evaluate("document.querySelectorAll('main .w[data-loaded=\"1\"]').length") < 20
    page.goto(f"{page.url.partition('#')[0]}#m3003")
    page.locator("#m3003.here").wait_for(state="visible")
    settled(page)
    assert page.evaluate(HERE) == "#m2801" and watched.complaints == []


def test_another_level_shows_the_same_place(app: Shown, opener: Opener) -> None:
    page, watched = enter(app, opener(), f"{ADDRESS}#m2205")
    page.locator("#m2205.here").wait_for()
    settled(page)
    for level in (0, 3, 1):
        page.keyboard.press(str(level + 1))
        settled(page)
        assert page.evaluate(HERE) == "#m2201", level
    assert watched.complaints == []


@pytest.mark.parametrize("width", [1280, 1500])
def test_the_outline_keeps_its_place(app: Shown, opener: Opener, width: int) -> None:
    page, watched = enter(app, opener(width=width, height=700), f"{ADDRESS}#m4406")
    page.locator("#m4406.here").wait_for()
    settled(page)
    assert page.evaluate(HERE) == "#m4401" and page.evaluate(IS_IN_SIGHT)
    for _ in range(2):
        page.keyboard.press("End")
        settled(page)
    page.wait_for_function(f"() => {HERE} === '#m4491'")
    assert page.evaluate(IS_IN_SIGHT)
    page.keyboard.press("Home")
    page.wait_for_function(f"() => {HERE} === '#m1'")
    assert page.evaluate(IS_IN_SIGHT) and watched.complaints == []


def test_on_a_phone_the_outline_does_not_pull_the_reader_back(app: Shown, opener: Opener) -> None:
    page, _ = enter(app, opener(width=390, height=844), ADDRESS)
    settled(page)
    page.locator("#panel-prompts summary").click()
    for _ in range(12):
        page.mouse.wheel(0, 900)
        page.wait_for_timeout(100)
    settled(page)
    assert page.evaluate("scrollY") > 8_000 and _top_message(page) > 10


def _top_message(page: Page) -> int:
    """The number of the first message on the screen."""
    script = "[...document.querySelectorAll('main article')].find((each) => each.getBoundingClientRect().bottom > 0).id"
    return int(page.evaluate(script).removeprefix("m"))
