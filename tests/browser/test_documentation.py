"""The documentation site works from a folder: pages ask no server for anything, and search finds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.docs.site_build import build_site

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def documentation(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_site(tmp_path_factory.mktemp("documentation"))


def test_search_works_from_a_folder_without_a_network(browser: Browser, documentation: Path) -> None:
    page = browser.new_page()
    requests: list[str] = []
    errors: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto((documentation / "index.html").as_uri())
    page.keyboard.press("/")
    page.keyboard.type("archive prune")
    page.locator("a[href*='keep.html?h=']").first.wait_for()
    page.close()
    assert errors == []
    assert [url for url in requests if not url.startswith(("file:", "blob:", "data:"))] == []


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("How much did I spend on a project in October?", "guides/cost.html"),
        ("send this session to a colleague without secrets", "guides/share.html"),
        ("continue this Codex session in Claude Code", "guides/another-agent.html"),
        ("resume --to", "guides/another-agent.html"),
    ],
)
def test_search_answers_questions(browser: Browser, documentation: Path, question: str, answer: str) -> None:
    page = browser.new_page()
    page.goto((documentation / "index.html").as_uri())
    page.keyboard.press("/")
    page.keyboard.type(question)
    page.locator(f"a[href*='{answer}?h=']").first.wait_for()
    page.close()


def test_the_copy_button_copies_commands_without_prompts_and_output(browser: Browser, documentation: Path) -> None:
    page = browser.new_page()
    page.goto((documentation / "guides" / "share.html").as_uri())
    page.evaluate("document.addEventListener('copy', () => { window.copied = getSelection().toString() })")
    block = page.locator("div.highlight", has_text="nothing found").first
    block.hover()
    block.get_by_role("button").click()
    page.wait_for_function("window.copied !== undefined")
    assert page.evaluate("window.copied") == "clew redact scan f005\nclew export f005 -o new-moon.html"
    page.close()
