"""What the buttons of a session do in a real Chromium: actions of messages, and the menu of the session."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.browser.conftest import Opener, Watched
from tests.browser.test_app import MIDDLING, MIDDLING_COUNT, enter, long_line
from tests.demo_home import write_small_demo
from tests.web.shown import Shown, shown

if TYPE_CHECKING:
    from playwright.sync_api import Page

MEAN = "/session/claude-code/71960fc3-4cec-4060-adfc-a6068f5d859b"
LONG = f"/session/claude-code/{MIDDLING}"
TOOLBAR = ".message-actions"


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shown]:
    folder = tmp_path_factory.mktemp("buttons")
    write_small_demo(folder / "home")
    project = folder / "home" / ".claude" / "projects" / "-home-ada-long"
    project.mkdir()
    lines = [long_line(number, session=MIDDLING) for number in range(1, MIDDLING_COUNT + 1)]
    (project / f"{MIDDLING}.jsonl").write_text("".join(lines))
    with shown(folder / "home", folder / "catalog") as running:
        yield running


def visit(app: Shown, opener: Opener, path: str, **options: int | bool) -> tuple[Page, Watched]:
    """Open a page in a browser that lets pages use the clipboard."""
    watched = opener(**options)
    watched.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    return enter(app, watched, path)


def clipboard(page: Page) -> str:
    return str(page.evaluate("navigator.clipboard.readText()"))


@pytest.mark.parametrize("dark", [False, True])
def test_a_message_is_copied_as_a_link_and_as_markdown(app: Shown, opener: Opener, dark: bool) -> None:
    page, watched = visit(app, opener, MEAN, dark=dark)
    message = page.locator("#m1")
    assert page.locator(TOOLBAR).count() == 0
    message.hover()
    message.get_by_role("button", name="Copy link").click()
    page.get_by_text("Link copied").wait_for()
    assert clipboard(page) == f"http://{app.host}{MEAN}#m1"
    message.get_by_role("button", name="Copy as Markdown").click()
    page.get_by_text("Markdown copied").wait_for()
    assert clipboard(page) == app.get(f"{MEAN}/message/1.md").body.decode()
    page.mouse.move(0, 0)
    assert watched.complaints == []


def test_keys_reach_the_actions_of_the_selected_message(app: Shown, opener: Opener) -> None:
    page, _ = visit(app, opener, MEAN)
    page.keyboard.press("j")
    page.keyboard.press("j")
    selected = page.locator("article.here")
    number = selected.locator("header .n").inner_text()
    page.keyboard.press("c")
    page.get_by_text("Link copied").wait_for()
    assert clipboard(page).endswith(f"#m{number}")
    assert selected.locator(TOOLBAR).is_visible()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Copy link"
    page.keyboard.press("Enter")
    assert clipboard(page).endswith(f"#m{number}")


def test_the_number_of_a_message_can_still_be_clicked(app: Shown, opener: Opener) -> None:
    page, _ = visit(app, opener, MEAN)
    page.locator("#m1").hover()
    page.locator("#m1 header .n").click()
    assert page.url.endswith("#m1")


def test_actions_work_in_windows_that_come_and_go(app: Shown, opener: Opener) -> None:
    page, _ = visit(app, opener, f"{LONG}#m700")
    message = page.locator("#m700")
    message.wait_for()
    message.hover()
    message.get_by_role("button", name="Copy as Markdown").click()
    page.get_by_text("Markdown copied").wait_for()
    assert clipboard(page) == app.get(f"{LONG}/message/700.md").body.decode()
    assert "Word 700." in clipboard(page) and "Word 701." not in clipboard(page)
    page.evaluate("document.querySelector('#m700').closest('.w').replaceChildren()")
    page.goto(f"http://{app.host}{LONG}#m40")
    page.locator("#m40").hover()
    page.locator("#m40").get_by_role("button", name="Copy link").click()
    page.wait_for_function("navigator.clipboard.readText().then((text) => text.endsWith('#m40'))")


def test_a_tapped_message_shows_its_actions_on_a_phone(app: Shown, opener: Opener) -> None:
    page, _ = visit(app, opener, MEAN, width=390, height=844)
    page.locator("#m1 .p").first.click()
    box = page.locator(f"#m1 {TOOLBAR}").bounding_box()
    assert box is not None and box["x"] >= 0 and box["x"] + box["width"] <= 390
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
