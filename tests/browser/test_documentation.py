"""The documentation site works from a folder: pages ask no server for anything, and search finds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.docs.site_build import build_site

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.slow


def test_search_works_from_a_folder_without_a_network(browser: Browser, tmp_path: Path) -> None:
    site = build_site(tmp_path)
    page = browser.new_page()
    requests: list[str] = []
    errors: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto((site / "index.html").as_uri())
    page.keyboard.press("/")
    page.keyboard.type("archive prune")
    page.locator("a[href*='keep.html?h=']").first.wait_for()
    page.close()
    assert errors == []
    assert [url for url in requests if not url.startswith(("file:", "blob:", "data:"))] == []
