"""The Sources page in a Chromium: a sync is started there, and its progress and end are shown."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from clew.catalog.sync import sync
from clew.catalog.sync_process import Progress
from clew.host import Host
from clew.web.background import CatalogUpdater
from clew.web.context import AppContext
from tests.browser.conftest import Opener
from tests.browser.test_app import enter
from tests.demo_home import write_small_demo
from tests.web.shown import Shown, shown_context
from tests.web.test_sources_sync import HeldUpdate, wait_until_fresh

CONTRAST = """element => {
  const luminance = (color) => {
    const [red, green, blue] = color.match(/[\\d.]+/g).map((part) => {
      const value = part / 255;
      return value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const colors = [getComputedStyle(element).color, getComputedStyle(document.body).backgroundColor];
  const [low, high] = colors.map(luminance).sort((one, other) => one - other);
  return (high + 0.05) / (low + 0.05);
}"""


@pytest.fixture
def held() -> HeldUpdate:
    update = HeldUpdate()
    update.may_finish.set()
    return update


@pytest.fixture
def app(tmp_path: Path, held: HeldUpdate) -> Iterator[Shown]:
    host, folder = Host.at(tmp_path / "home"), tmp_path / "catalog"
    write_small_demo(host.home)
    sync([host], folder)
    updater = CatalogUpdater(held)
    updater.start()
    with shown_context(AppContext([host], folder, updater=updater)) as running:
        wait_until_fresh(running)
        yield running
        updater.stop()


@pytest.mark.parametrize(("dark", "width"), [(False, 1440), (True, 390)])
def test_a_sync_is_started_and_its_progress_is_shown(
    app: Shown, held: HeldUpdate, opener: Opener, dark: bool, width: int
) -> None:
    watched = opener(dark=dark, width=width)
    page, _ = enter(app, watched, "/sources")
    before = page.locator("#catalog-state").inner_text()
    held.may_finish.clear()
    button = page.locator("#sync-now")
    button.press("Enter")
    page.get_by_text("Looking for changes").wait_for()
    assert button.inner_text() == "Syncing …"
    held.progress = Progress("messages", 77)
    page.locator("#sync progress[value='77']").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    held.progress = None
    held.may_finish.set()
    page.get_by_role("button", name="Sync now").wait_for()
    state = page.locator("#catalog-state").inner_text()
    assert state.startswith("The catalog is up to date as of ") and state != before
    assert page.locator("#sync-status").text_content() == state
    assert page.locator("#sync progress").count() == 0
    assert page.evaluate("document.activeElement.id") == "sync-now"
    assert watched.complaints == []


@pytest.mark.parametrize("dark", [False, True])
def test_more_contrast_where_the_system_asks_for_it(app: Shown, opener: Opener, dark: bool) -> None:
    page, _ = enter(app, opener(dark=dark), "/sources")
    soft = page.locator(".roots dt, .note, footer").first
    usual = soft.evaluate(CONTRAST)
    page.emulate_media(contrast="more")
    assert soft.evaluate(CONTRAST) > max(usual, 9)
    assert page.locator("body").evaluate(CONTRAST) > 20
