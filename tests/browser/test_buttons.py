"""What the buttons of a session do in a real Chromium: actions of messages, and the menu of the session."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.browser.conftest import AXE, Opener, Watched
from tests.browser.long_sessions import MIDDLING
from tests.browser.test_app import enter
from tests.web.sessions_with_calls import call, prompt, result, turns, write_session
from tests.web.shown import Shown, shown

if TYPE_CHECKING:
    from playwright.sync_api import Page

MEAN = "/session/claude-code/71960fc3-4cec-4060-adfc-a6068f5d859b"
LONG = f"/session/claude-code/{MIDDLING}"
TOOLBAR = ".message-actions"


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


def test_the_actions_of_a_message_are_not_cut_off(app: Shown, opener: Opener) -> None:
    """Messages paint nothing outside of themselves, because those out of sight are not rendered."""
    page, _ = visit(app, opener, MEAN)
    for message in page.locator("main .m:has(> header)").all()[:4]:
        message.hover()
        outer, inner = message.bounding_box(), message.locator(TOOLBAR).bounding_box()
        assert outer and inner and inner["y"] >= outer["y"] + 1


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


@pytest.mark.parametrize("width", [390, 1024])
def test_a_tap_on_the_text_of_a_message_does_nothing_but_show_its_actions(
    app: Shown, opener: Opener, width: int
) -> None:
    page, _ = visit(app, opener, MEAN, width=width, height=844, touch=True)
    for number, message in enumerate(page.locator("main .m:has(> header + .p)").all()[:4]):
        message.scroll_into_view_if_needed()
        # The first line of the text is below the header; on a wide page the actions are at the right of the header.
        part, share = (
            (message.locator("> .p").first, 0.3 + 0.2 * number) if number else (message.locator("> header"), 0.8)
        )
        before = part.bounding_box()
        assert before is not None
        page.touchscreen.tap(before["x"] + before["width"] * share, before["y"] + 10)
        message.locator(TOOLBAR).wait_for()
        assert part.bounding_box() == before
        page.wait_for_timeout(100)
        assert page.locator(".copy-status").all_inner_texts() in ([], [""])
        assert not page.locator("#annotation-dialog").is_visible()
        assert page.locator("[data-starred]").count() == 0


def test_the_actions_of_a_message_are_closed_on_a_phone(app: Shown, opener: Opener) -> None:
    page, _ = visit(app, opener, MEAN, width=390, height=844, touch=True)
    page.locator("#m1 .p").first.tap()
    toolbar = page.locator(TOOLBAR).filter(visible=True)
    toolbar.get_by_role("button", name="Copy link").tap()
    page.get_by_text("Link copied").wait_for()
    toolbar.get_by_role("button", name="Close").tap()
    assert toolbar.count() == 0 and page.locator("article.here").count() == 0


def open_menu(page: Page) -> None:
    page.locator("#actions > summary").click()


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (1024, True), (390, False)])
def test_the_menu_exports_copies_and_continues(app: Shown, opener: Opener, width: int, dark: bool) -> None:
    page, watched = visit(app, opener, MEAN, width=width, dark=dark)
    open_menu(page)
    box = page.locator("#actions .items").bounding_box()
    assert box is not None and box["x"] >= 0 and box["x"] + box["width"] <= width
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    with page.expect_download() as download:
        page.get_by_role("group", name="Export, not masked").get_by_role("link", name="Markdown").click()
    assert (
        download.value.suggested_filename
        == "Add the missing mean level to tide heights (claude-code 71960fc3) (NOT masked).md"
    )
    assert Path(download.value.path()).read_bytes() == app.get(f"{MEAN}/export/markdown?redact=none").body
    assert not page.locator("#actions .items").is_visible()
    open_menu(page)
    page.get_by_role("button", name="Copy reference").click()
    page.get_by_text("Reference copied").wait_for()
    assert clipboard(page) == "claude-code:71960fc3-4cec-4060-adfc-a6068f5d859b"
    open_menu(page)
    page.get_by_role("button", name="Copy resume command").click()
    page.get_by_text("Command copied").wait_for()
    assert clipboard(page) == app.get(f"{MEAN}/resume").body.decode()
    assert watched.complaints == []


def test_the_menu_works_by_keyboard(app: Shown, opener: Opener) -> None:
    page, _ = visit(app, opener, MEAN)
    page.locator("#actions > summary").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.textContent") == "HTML"
    for _ in range(6):
        page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.id") == "print"
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.textContent") == "Actions"
    assert not page.locator("#print").is_visible()
    open_menu(page)
    page.locator("#title").click()
    assert not page.locator("#print").is_visible()
    page.keyboard.press("g")
    page.wait_for_url("**/graph")


@pytest.mark.parametrize(
    ("target", "width", "dark"), [("codex", 1280, False), ("gemini", 1280, True), ("pi", 390, False)]
)
def test_a_session_is_written_for_another_agent(
    app: Shown, opener: Opener, target: str, width: int, dark: bool
) -> None:
    page, watched = visit(app, opener, MEAN, width=width, dark=dark)
    open_menu(page)
    page.get_by_role("link", name="Continue in another agent").click()
    page.locator(f".targets a[href$='to={target}']").click()
    page.get_by_text("to be written").wait_for()
    page.locator("#write").click()
    page.get_by_text("Continue with").wait_for()
    written = page.locator(".written code").first.inner_text()
    assert Path(written).is_file()
    page.get_by_role("button", name="Copy").click()
    page.get_by_text("Command copied").wait_for()
    command = clipboard(page)
    assert command == page.locator("pre.command").inner_text() and command.startswith("cd -- /home/ada/src/tidepool")
    page.reload()
    assert page.locator(".written code").first.inner_text() == written and page.locator("#write").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    assert watched.complaints == []


def test_without_script_there_are_no_dead_buttons(app: Shown, opener: Opener) -> None:
    page = opener(scripts=False).page
    name, _, value = app.cookie().partition("=")
    page.context.add_cookies([{"name": name, "value": value, "url": f"http://{app.host}"}])
    page.goto(f"http://{app.host}{MEAN}")
    page.locator("#actions summary").click()
    assert page.locator("#actions #print").is_visible(), "links work without a script"
    buttons = page.locator("main button, .top button, .bar button")
    assert buttons.count() >= 4
    assert not any(button.is_visible() for button in buttons.all())


@pytest.mark.parametrize("dark", [False, True])
def test_an_accessibility_check_finds_nothing(app: Shown, opener: Opener, dark: bool) -> None:
    if AXE is None:
        pytest.skip("axe-core is not here: `make axe` fetches it, or name its axe.min.js in CLEW_AXE")
    page, _ = enter(app, opener(dark=dark, checked=True), MEAN)
    page.locator("#m1").hover()
    page.locator("#m1 .p").first.click()
    open_menu(page)
    for path in ("", "/continue", "/continue?to=kimi-code"):
        if path:
            page.goto(f"http://{app.host}{MEAN}{path}")
        page.add_script_tag(content=Path(AXE).read_text(encoding="utf-8"))
        found = page.evaluate("axe.run()")["violations"]
        assert [(one["id"], [node["html"][:120] for node in one["nodes"]][:3]) for one in found] == [], path


@pytest.mark.parametrize(("dark", "width"), [(False, 1280), (True, 1280), (False, 390)])
def test_code_and_output_are_copied(app: Shown, opener: Opener, dark: bool, width: int) -> None:
    page, watched = visit(app, opener, MEAN, dark=dark, width=width)
    command = page.locator("main pre.cmd").first
    output = page.locator("main pre.o").first
    text, output_text = command.locator("code").text_content(), output.text_content() or ""
    size = "(block) => [block.offsetWidth, block.offsetHeight, block.scrollHeight]"
    before = command.evaluate(size)
    command.hover()
    button = command.get_by_role("button", name="Copy command")
    assert command.evaluate(size) == before
    button.click()
    page.get_by_text("Command copied").wait_for()
    assert clipboard(page) == text
    output.hover()
    output.get_by_role("button", name="Copy output").click()
    page.get_by_text("Output copied").wait_for()
    assert clipboard(page).rstrip("\n") == output_text.rstrip("\n")
    page.emulate_media(media="print")
    assert not button.is_visible()
    assert watched.complaints == []


def test_keys_reach_the_copy_buttons_also_in_windows_that_are_loaded_later(tmp_path: Path, opener: Opener) -> None:
    session = "0f6a1c52-0000-4000-8000-0000000000b1"
    records = list(turns(session, 40))
    last = len(records)
    write_session(tmp_path / "home", session, records)
    with shown(tmp_path / "home", tmp_path / "catalog") as app:
        page, _ = visit(app, opener, f"/session/claude-code/{session}")
        page.goto(f"http://{app.host}/session/claude-code/{session}#m{last}")
        article = page.locator("article:has(pre)").last
        article.wait_for()
        article.locator("header .n").focus()
        page.keyboard.press("3")
        page.keyboard.press("4")
        for _ in range(30):
            page.keyboard.press("Tab")
            if page.evaluate("document.activeElement.closest('.copy-block') !== null"):
                break
        page.keyboard.press("Enter")
        page.locator(".copy-status", has_text="copied").wait_for()
        assert clipboard(page)


def test_a_long_output_is_copied_whole(tmp_path: Path, opener: Opener) -> None:
    session, text = "0f6a1c52-0000-4000-8000-0000000000b2", "\n".join(f"line {number}" for number in range(20_000))
    records = [prompt(session, 1, "Run it"), call(session, 2, "Bash", {"command": "seq"}), result(session, 3, 2, text)]
    write_session(tmp_path / "home", session, records)
    with shown(tmp_path / "home", tmp_path / "catalog") as app:
        page, _ = visit(app, opener, f"/session/claude-code/{session}")
        page.get_by_role("button", name="Open all").click()
        output = page.locator("main pre:has(a[data-more])")
        output.hover()
        output.get_by_role("button", name="Copy output").click()
        page.get_by_text("Output copied").wait_for()
        assert clipboard(page) == text
