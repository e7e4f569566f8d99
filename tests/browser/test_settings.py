"""The settings page in a Chromium: changes hold at once and everywhere, on wide and narrow screens, light and dark."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from playwright.sync_api import TimeoutError

from clew import project_names
from clew.host import data_dir
from clew.io.paths import encode_claude
from clew.web import user_settings
from tests.browser.conftest import AXE, Opener
from tests.browser.test_app import enter
from tests.demo_home import write_small_demo
from tests.unit.samples import claude_line
from tests.web.shown import Shown, shown

WORKTREES = "/home/ada/tide/.claude/worktrees"
COVERED_ROWS = """rows => rows.filter(row => {
  row.scrollIntoView({block: "end"});
  const box = row.getBoundingClientRect();
  return !row.contains(document.elementFromPoint(box.left + 4, box.top + box.height / 2));
}).length"""
BACKGROUND = "getComputedStyle(document.body).backgroundColor"
RELOADS = 6


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shown]:
    folder = tmp_path_factory.mktemp("settings")
    write_small_demo(folder / "home")
    for name in ("calm-otter", "bold-heron"):
        path = folder / "home" / ".claude" / "projects" / encode_claude(f"{WORKTREES}/{name}") / f"{name}.jsonl"
        path.parent.mkdir(parents=True)
        line = claude_line("user", f"u-{name}", None, "When is high water", cwd=f"{WORKTREES}/{name}")
        path.write_text(json.dumps({**line, "sessionId": name}) + "\n")
    with shown(folder / "home", folder / "catalog") as running:
        yield running


def session_path(app: Shown) -> str:
    agent, native = app.catalog_row("SELECT agent, native_id FROM session ORDER BY message_count DESC LIMIT 1")
    return f"/session/{agent}/{native}"


def test_a_theme_holds_at_once_and_wins_over_the_choice_of_the_browser(app: Shown, opener: Opener) -> None:
    page, _ = enter(app, opener(), "/settings")
    light = page.evaluate(BACKGROUND)
    page.locator("#colours summary").click()
    page.locator(".site .pick label", has_text="light").click()
    page.locator("#setting-theme").select_option("dark")
    page.locator("#settings .settings-status", has_text="Saved.").wait_for()
    assert page.evaluate(BACKGROUND) != light
    page.goto(f"http://{app.host}/sessions")
    assert page.evaluate(BACKGROUND) != light
    page.locator("#colours summary").click()
    page.locator(".site .pick label", has_text="light").click()
    page.reload()
    assert page.evaluate(BACKGROUND) == light
    assert user_settings.load().theme == "dark"


def test_compact_pages_show_more(app: Shown, opener: Opener) -> None:
    page, _ = enter(app, opener(), session_path(app))
    heights = {}
    for density in ("comfortable", "compact"):
        user_settings.save({"density": density})
        for path in ("/sessions", session_path(app)):
            page.goto(f"http://{app.host}{path}")
            heights[density, path] = page.evaluate("document.querySelector('.list, .w').offsetHeight")
    for path in ("/sessions", session_path(app)):
        assert heights["compact", path] < 0.92 * heights["comfortable", path], path


def test_a_level_holds_where_a_session_opens(app: Shown, opener: Opener) -> None:
    page, _ = enter(app, opener(), "/settings")
    page.locator("#setting-detail").select_option("conversation")
    page.locator("#settings .settings-status", has_text="Saved.").wait_for()
    page.goto(f"http://{app.host}{session_path(app)}")
    assert page.locator("#d1").is_checked()


def test_zone_and_masking_reload_the_page(app: Shown, opener: Opener) -> None:
    page, _ = enter(app, opener(), "/settings")
    page.locator("#setting-timezone").fill("Berlin")
    page.locator("#setting-timezone").press("Tab")
    page.locator("#settings .settings-status", has_text="did you mean Europe/Berlin?").wait_for()
    assert page.locator("#setting-timezone").get_attribute("aria-invalid") == "true"
    page.locator("#setting-timezone").fill("Asia/Kathmandu")
    page.locator("#setting-timezone").press("Tab")
    page.locator("footer", has_text="Times are in UTC+05:45").wait_for()
    page.locator("#setting-masking").select_option("secrets")
    page.locator("footer", has_text="Masked: secrets.").wait_for()
    page.locator("#mask").click()
    page.locator("footer", has_text="Read from this machine").wait_for()
    page.wait_for_function("!document.querySelector('footer').textContent.includes('Masked')")
    page.locator("#setting-masking").select_option("all")
    page.locator("footer", has_text="Masked: all.").wait_for()


@pytest.mark.parametrize(("dark", "width"), [(False, 1440), (True, 1440), (False, 390), (True, 390)])
def test_worktrees_are_merged_and_a_project_is_named(app: Shown, opener: Opener, dark: bool, width: int) -> None:
    watched = opener(dark=dark, width=width)
    page, _ = enter(app, watched, "/settings")
    page.get_by_role("button", name="Merge as tide").click()
    page.locator("#names-status", has_text="Saved.").wait_for()
    assert project_names.load() == {f"{WORKTREES}/*": "tide"}
    form = page.locator("#name-project")
    form.get_by_label("Project").fill(f"{WORKTREES}/calm-otter")
    form.get_by_label("Name").fill("<b>Otter</b>")
    form.get_by_role("button", name="Name it").click()
    page.get_by_role("button", name="Remove the name <b>Otter</b>").wait_for()
    page.locator("#names-status", has_text="Saved.").wait_for()
    assert page.locator("#project-names li").evaluate_all(COVERED_ROWS) == 0
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    for _ in range(RELOADS):
        page.goto(f"http://{app.host}/sessions?project=otter")
        if page.locator(".list").count():
            break
    assert "<b>Otter</b>" in page.locator(".list").inner_text()
    page.goto(f"http://{app.host}/settings")
    for name in ("<b>Otter</b>", "tide"):
        button = page.get_by_role("button", name=f"Remove the name {name}")
        button.click()
        button.wait_for(state="detached")
    assert project_names.load() == {}
    suggestion = page.get_by_role("button", name="Merge as tide")
    for _ in range(RELOADS):
        # A running update of the catalog may apply the change later.
        page.goto(f"http://{app.host}/settings")
        with suppress(TimeoutError):
            suggestion.wait_for(timeout=5_000)
            break
    assert suggestion.is_visible()
    assert watched.complaints == []


def test_a_broken_file_is_explained(app: Shown, opener: Opener) -> None:
    user_settings.save({"theme": "dark"})
    (data_dir() / "settings.json").write_text("{")
    page, _ = enter(app, opener(), "/settings")
    page.locator(".settings-problem", has_text="correct or delete the file").wait_for()
    page.locator("#setting-density").select_option("compact")
    page.locator("#settings .settings-status", has_text="correct or delete the file").wait_for()


@pytest.mark.parametrize(("dark", "width"), [(False, 1440), (True, 1440), (False, 390)])
def test_an_accessibility_check_finds_nothing(app: Shown, opener: Opener, dark: bool, width: int) -> None:
    if AXE is None:
        pytest.skip("axe-core is not here: `make axe` fetches it, or name its axe.min.js in CLEW_AXE")
    project_names.add({"/home/ada/moon": "Month"})
    for density in ("comfortable", "compact"):
        user_settings.save({"density": density})
        page, _ = enter(app, opener(dark=dark, checked=True, width=width), "/settings")
        page.get_by_role("button", name="Merge as tide").wait_for()
        page.add_script_tag(content=Path(AXE).read_text(encoding="utf-8"))
        found = page.evaluate("axe.run()")["violations"]
        assert [(one["id"], [node["html"][:120] for node in one["nodes"]][:3]) for one in found] == []


def test_without_a_script_settings_can_be_read(app: Shown, opener: Opener) -> None:
    page, _ = enter(app, opener(), "/")
    plain = opener(scripts=False).page
    plain.context.add_cookies(page.context.cookies())  # type: ignore[arg-type]
    plain.goto(f"http://{app.host}/settings")
    assert plain.locator("#setting-theme").is_disabled()
    assert "this page needs JavaScript" in plain.locator("main").inner_text()
    assert not plain.get_by_role("button", name="Merge as tide").is_visible()
    assert not plain.get_by_role("button", name="Name it").is_visible()
