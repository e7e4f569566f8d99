"""The comparison of two branches in a real Chromium: side by side, on a phone one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.browser.conftest import AXE, Opener
from tests.browser.test_app import enter
from tests.web.sessions_with_calls import turns, write_session
from tests.web.shown import Shown, shown
from tests.web.test_compare import COPY, FORKED, comparison, forked

if TYPE_CHECKING:
    from playwright.sync_api import Page

LOOKS = [{}, {"dark": True}, {"width": 390, "height": 844}]
BRANCHES = comparison(f"{FORKED}@5", f"{FORKED}@7")


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shown]:
    folder = tmp_path_factory.mktemp("compare")
    write_session(folder / "home", FORKED, forked(FORKED))
    write_session(folder / "home", COPY, turns(COPY, 3))
    with shown(folder / "home", folder / "catalog") as running:
        yield running


def boxes(page: Page) -> list[dict[str, float]]:
    return [box for half in page.locator(".half").all() if (box := half.bounding_box()) is not None]  # type: ignore[misc]


@pytest.mark.parametrize("look", LOOKS, ids=["light", "dark", "phone"])
def test_branches_are_side_by_side_and_on_a_phone_one_after_the_other(
    app: Shown, opener: Opener, look: dict[str, int]
) -> None:
    page, watched = enter(app, opener(**look), BRANCHES)
    left, right = boxes(page)
    if "width" in look:
        assert right["y"] >= left["y"] + left["height"] and left["x"] == right["x"]
    else:
        assert left["y"] == right["y"] and right["x"] >= left["x"] + left["width"]
    assert page.evaluate("document.documentElement.scrollWidth") <= look.get("width", 1280)
    page.get_by_text("4 messages in common").click()
    page.get_by_text("Pool 1 is measured.").wait_for()
    page.locator(".half details.c > summary").click()
    page.locator(".half .d").wait_for()
    page.keyboard.press("1")
    assert page.locator(".half", has_text="Take the median.").is_visible()
    assert page.get_by_text("The median is six.").is_hidden() and watched.complaints == []


def test_a_session_is_compared_from_its_actions(app: Shown, opener: Opener) -> None:
    page, watched = enter(app, opener(), f"/session/claude-code/{FORKED}")
    page.locator("#actions > summary").click()
    page.get_by_role("link", name="Compare with…").click()
    page.get_by_label("Compare with").fill(f"claude-code:{COPY}")
    page.get_by_role("button", name="Compare").click()
    page.get_by_text("4 messages in common").wait_for()
    page.keyboard.press("g")
    page.wait_for_url(f"**/session/claude-code/{FORKED}")
    assert watched.complaints == []


def test_it_works_without_a_script(app: Shown, opener: Opener) -> None:
    watched = opener(scripts=False)
    name, _, value = app.cookie().partition("=")
    watched.page.context.add_cookies([{"name": name, "value": value, "url": f"http://{app.host}"}])
    page = watched.page
    page.goto(f"http://{app.host}/session/claude-code/{FORKED}/graph")
    page.get_by_role("link", name="Messages from 5 with those from 7").click()
    page.get_by_text("4 messages in common").click()
    page.get_by_text("Pool 1 is measured.").wait_for()


@pytest.mark.skipif(AXE is None, reason="`make axe` fetches what checks accessibility")
@pytest.mark.parametrize("look", LOOKS, ids=["light", "dark", "phone"])
def test_axe_finds_nothing(app: Shown, opener: Opener, look: dict[str, int]) -> None:
    page, _ = enter(app, opener(checked=True, **look), BRANCHES)
    for path in (BRANCHES, f"/compare?left=claude-code:{FORKED}", f"/session/claude-code/{COPY}?find=pool#m2"):
        page.goto(f"http://{app.host}{path}")
        page.wait_for_timeout(500)
        page.add_script_tag(path=AXE)
        found = page.evaluate("axe.run()")["violations"]
        serious = [(one["id"], one["nodes"][0]["html"]) for one in found if one["impact"] in ("serious", "critical")]
        assert serious == [], path
