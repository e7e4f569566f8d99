"""The app in a Chromium as wide as a phone: nothing scrolls sideways, and everything can be read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.conftest import AXE, Opener
from tests.browser.test_app import enter
from tests.counting.homes import claude, prompt, reply
from tests.demo_home import write_small_demo
from tests.web.shown import Shown, shown

HASH = "4b825dc642cb6eb9a060e54bf8d69288fbee4904e5a1d2f0c3b7a6958473625f"
TEXT_SIZES = """[...document.querySelectorAll('.chart text')].map((each) => {
    const matrix = each.getScreenCTM();
    return parseFloat(getComputedStyle(each).fontSize) * matrix.a;
})"""


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shown]:
    folder = tmp_path_factory.mktemp("phone")
    write_small_demo(folder / "home")
    project: dict[str, Any] = {"cwd": f"/srv/{HASH}", "gitBranch": HASH}
    claude(folder / "home", prompt("The tide turns", **project), reply("m1", 10, 20, model=HASH, **project))
    with shown(folder / "home", folder / "catalog") as running:
        yield running


@pytest.mark.parametrize("width", [320, 390])
def test_a_long_word_does_not_widen_a_page(app: Shown, opener: Opener, width: int) -> None:
    page, _ = enter(app, opener(width=width, height=844), f"/search?q=tide&project={HASH}")
    assert HASH in page.locator(".groups").inner_text()
    for path in ("/search?q=tide", f"/search?q=tide&project={HASH}", "/", "/sessions", "/usage?by=project", "/files"):
        page.goto(f"http://{app.host}{path}")
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, path


def test_the_first_hit_is_on_the_first_screen(app: Shown, opener: Opener) -> None:
    page, _ = enter(app, opener(width=390, height=844), "/search?q=tide")
    box = page.locator(".hits li").first.bounding_box()
    assert box is not None and box["y"] < 500
    page.get_by_text("Narrow the search").click()
    page.locator(".facets a", has_text="gemini").first.click()
    page.wait_for_url("**agent=gemini**")
    assert page.locator(".facets a.now").is_visible()


def test_facets_are_not_folded_where_there_is_room(app: Shown, opener: Opener) -> None:
    page, _ = enter(app, opener(), "/search?q=tide")
    assert page.locator(".facets a").first.is_visible() and not page.locator(".facets summary").is_visible()


@pytest.mark.parametrize("width", [320, 390, 768, 1280])
def test_the_text_of_charts_can_be_read(app: Shown, opener: Opener, width: int) -> None:
    page, _ = enter(app, opener(width=width, height=844), "/")
    for path in ("/", "/usage", "/usage?by=week"):
        page.goto(f"http://{app.host}{path}")
        sizes = page.evaluate(TEXT_SIZES)
        assert sizes and min(sizes) >= 11 and max(sizes) < 16, (path, min(sizes), max(sizes))


@pytest.mark.parametrize("dark", [False, True])
def test_an_accessibility_check_finds_nothing(app: Shown, opener: Opener, dark: bool) -> None:
    if AXE is None:
        pytest.skip("axe-core is not here: `make axe` fetches it, or name its axe.min.js in CLEW_AXE")
    page, _ = enter(app, opener(dark=dark, checked=True, width=390), "/")
    for path in ("/", "/search?q=tide", "/usage"):
        page.goto(f"http://{app.host}{path}")
        page.add_script_tag(content=Path(AXE).read_text(encoding="utf-8"))
        found = page.evaluate("axe.run()")["violations"]
        assert [(one["id"], [node["html"][:120] for node in one["nodes"]][:3]) for one in found] == [], path
