"""A session in a real Chromium while its agent writes: the facts at the top of its page follow."""

from __future__ import annotations

import json
from pathlib import Path

from clew.catalog.sync import sync
from clew.host import Host
from tests.browser.conftest import Opener
from tests.browser.test_app import enter
from tests.counting.homes import SESSION, claude, prompt, reply
from tests.web.shown import shown

FACTS = """Object.fromEntries(
    [...document.querySelectorAll('#facts > div')].map((each) => [...each.children].map((part) => part.textContent))
)"""


def test_tokens_cost_and_end_follow_a_session_that_grows(opener: Opener, tmp_path: Path) -> None:
    home, folder = tmp_path / "home", tmp_path / "catalog"
    path = claude(home, prompt("Sail"), reply("m1", 1000, 2000))
    with shown(home, folder) as app:
        page, watched = enter(app, opener(), f"/session/claude-code/{SESSION}")
        page.locator(".outline").wait_for(state="attached")
        before = page.evaluate(FACTS)
        with path.open("a") as out:
            out.write(json.dumps(reply("m2", 4000, 5000, number=2, timestamp="2026-11-01T12:34:00.000Z")) + "\n")
        page.locator("#messages", has_text="3").wait_for()
        sync([Host.at(home)], folder)
        page.locator("#facts").get_by_text("12,000", exact=True).wait_for(timeout=5_000)
        after = page.evaluate(FACTS)
        assert {name for name in after if after[name] != before[name]} == {
            "Time",
            "Messages",
            "Tokens, input + output",
            "Cost",
        }
        assert watched.complaints == []
