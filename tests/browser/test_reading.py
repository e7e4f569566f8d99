"""Reading a transcript in a real Chromium: folded tool calls, searched words, what is new, long titles."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.browser.conftest import Opener
from tests.browser.test_app import enter
from tests.browser.test_changing import settled
from tests.web.sessions_with_calls import answer, call, prompt, result, turns, write_session
from tests.web.shown import Shown, shown

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

LONG, SHORT = "0f6a1c52-0000-4000-8000-0000000000b1", "0f6a1c52-0000-4000-8000-0000000000b2"
ADDRESS = f"/session/claude-code/{LONG}"
LOOKS = [{}, {"dark": True}, {"width": 390, "height": 844}]
TURNS = 160


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shown]:
    folder = tmp_path_factory.mktemp("reading")
    write_session(folder / "home", LONG, turns(LONG, TURNS))
    write_session(folder / "home", SHORT, turns(SHORT, 3))
    with shown(folder / "home", folder / "catalog") as running:
        yield running


def open_calls(page: Page) -> int:
    return int(page.evaluate("document.querySelectorAll('main details.c[open]').length"))


@pytest.mark.parametrize("look", LOOKS, ids=["light", "dark", "phone"])
def test_calls_of_a_long_session_are_lines_that_open(app: Shown, opener: Opener, look: dict[str, int]) -> None:
    page, watched = enter(app, opener(**look), ADDRESS)
    settled(page)
    line = page.locator("#m2 details.c > summary")
    assert open_calls(page) == 0
    box = line.bounding_box()
    assert box is not None and box["height"] < 40
    assert page.evaluate("document.documentElement.scrollWidth") <= look.get("width", 1280)
    assert "gauge --pool 1" in line.inner_text() and "30 lines" in line.inner_text()
    line.click()
    page.locator("#m2 pre.cmd").wait_for(state="visible")
    assert open_calls(page) == 1 and watched.complaints == []


def test_an_address_leads_to_one_of_several_results_of_a_message(tmp_path: Path, opener: Opener) -> None:
    session = "0f6a1c52-0000-4000-8000-0000000000b3"
    calls = [call(session, 2, "Bash", {"command": f"gauge {number}"}) for number in range(3)]
    results = [result(session, 3, 2, "high water\n" * 60) for _ in calls]
    for records, key in ((calls, "id"), (results, "tool_use_id")):
        blocks = [record["message"]["content"][0] for record in records]
        records[0]["message"]["content"] = [{**block, key: f"t{number}"} for number, block in enumerate(blocks)]
    write_session(tmp_path / "home", session, [prompt(session, 1, "Read all"), calls[0], results[0]])
    with shown(tmp_path / "home", tmp_path / "catalog") as app:
        page, watched = enter(app, opener(), f"/session/claude-code/{session}#m3-3")
        settled(page)
        found = page.locator("#m3-3")
        assert found.evaluate("each => each.matches(':target') && each.open")
        box = found.bounding_box()
        assert box is not None and 0 <= box["y"] < 300
        assert page.locator("main details.r").count() == 3 and watched.complaints == []


def test_calls_of_a_short_session_are_open(app: Shown, opener: Opener) -> None:
    page, _ = enter(app, opener(), f"/session/claude-code/{SHORT}")
    settled(page)
    assert open_calls(page) == page.locator("main details.c").count() == 3


def top_of(page: Page, message: int) -> float:
    return float(page.evaluate(f"document.getElementById('m{message}').getBoundingClientRect().top"))


@pytest.mark.parametrize("scrolled", [40, 0, -60, -120])
def test_open_all_and_close_all_keep_the_place_and_hold_for_later_windows(
    app: Shown, opener: Opener, scrolled: int
) -> None:
    page, watched = enter(app, opener(), f"{ADDRESS}#m321")
    page.locator("#m321.here").wait_for()
    settled(page)
    page.mouse.wheel(0, scrolled)
    page.wait_for_timeout(200)
    before = top_of(page, 321)
    for label in ("Open all", "Close all", "Open all"):
        assert page.locator("#fold").inner_text() == label
        # Not by the mouse of the test, which scrolls before it clicks.
        page.evaluate("document.getElementById('fold').click()")
        page.wait_for_timeout(300)
        assert abs(top_of(page, 321) - before) < 6, label
    page.keyboard.press("End")
    settled(page)
    page.locator("#m638 details.c[open]").wait_for()
    assert watched.complaints == []


def test_the_level_full_opens_calls_and_the_level_actions_folds_them(app: Shown, opener: Opener) -> None:
    page, _ = enter(app, opener(), f"{ADDRESS}#m201")
    page.locator("#m201.here").wait_for()
    settled(page)
    page.keyboard.press("3")
    settled(page)
    assert open_calls(page) == 0
    page.keyboard.press("4")
    settled(page)
    assert open_calls(page) > 10
    assert -300 < top_of(page, 201) < 500
    page.keyboard.press("3")
    settled(page)
    assert open_calls(page) == 0 and -300 < top_of(page, 201) < 500


def test_what_was_opened_stays_open_when_its_window_is_loaded_again(opener: Opener, tmp_path: Path) -> None:
    path = write_session(tmp_path / "home", LONG, turns(LONG, 30))
    with shown(tmp_path / "home", tmp_path / "catalog") as app:
        page, watched = enter(app, opener(), f"{ADDRESS}#m114")
        page.locator("#m114.here").wait_for()
        settled(page)
        page.locator("#m114 details.c > summary").click()
        page.locator("#m114 details.r > summary").click()
        page.locator("#m114 details.r[open]").wait_for()
        # The conversation forks there, so the call is shown anew.
        with path.open("a") as out:
            out.write(json.dumps(answer(LONG, 121, "It goes on.", parent=114)) + "\n")
        page.locator("main p", has_text="It goes on.").wait_for()
        page.locator("#m114 .fork").wait_for()
        assert page.locator("#m114 details.c[open] details.r[open]").count() == 1
        assert page.locator("#m110 details.c[open]").count() == 0 and watched.complaints == []


def status(page: Page, text: str) -> None:
    page.locator("#find-status", has_text=text).wait_for()


MARKED = "[...CSS.highlights.get('hit')].map((range) => range.toString())"
NOW = "[...CSS.highlights.get('now')].map((range) => range.toString()).join()"
NOW_IS_SEEN = """() => [...CSS.highlights.get('now')].every((range) => {
    const box = range.getBoundingClientRect();
    return box.height && box.top > 60 && box.bottom < innerHeight - 60;
})"""


@pytest.mark.parametrize("look", LOOKS, ids=["light", "dark", "phone"])
def test_a_hit_of_a_search_shows_its_words_and_leads_on_to_the_others(
    app: Shown, opener: Opener, look: dict[str, int]
) -> None:
    page, watched = enter(app, opener(**look), "/search?q=%22reading+17+of+pool%22")
    hit = page.locator(f".hits a[href*='{LONG}']").first
    first = int((hit.get_attribute("href") or "").rpartition("#m")[2])
    hit.click()
    number = (first + 1) // 4
    status(page, f"{number} of 160 hits")
    page.wait_for_function(NOW_IS_SEEN)
    assert page.evaluate(NOW) == "Reading 17 of pool" and set(page.evaluate(MARKED)) == {"Reading 17 of pool"}
    # The next is in a call that is folded.
    page.keyboard.press("n")
    status(page, f"{number % 160 + 1} of 160 hits")
    settled(page)
    page.wait_for_function(NOW_IS_SEEN)
    page.keyboard.press("Shift+N")
    page.keyboard.press("Shift+N")
    page.wait_for_timeout(300)
    settled(page)
    page.wait_for_function(NOW_IS_SEEN)
    assert page.evaluate("document.documentElement.scrollWidth") <= look.get("width", 1280)
    assert watched.complaints == []


def test_search_inside_a_session_stays_on_the_page_and_reaches_windows_that_are_not_loaded(
    app: Shown, opener: Opener
) -> None:
    page, watched = enter(app, opener(), ADDRESS)
    settled(page)
    page.keyboard.press("/")
    page.keyboard.type("pool 150")
    status(page, "4 hits")
    page.keyboard.press("Enter")
    status(page, "1 of 4 hits")
    page.wait_for_function(NOW_IS_SEEN)
    assert page.locator("#m597").count() == 1 and page.evaluate("document.activeElement.type") == "search"
    assert "find=pool+150" in page.url and page.url.partition("?")[0].endswith(ADDRESS)
    page.keyboard.press("Shift+Enter")
    status(page, "4 of 4 hits")
    page.reload()
    status(page, "4 hits")
    page.get_by_role("button", name="Next").click()
    # From where the reader was, which the browser restores.
    status(page, " of 4 hits")
    page.wait_for_function(NOW_IS_SEEN)
    page.get_by_role("button", name="Clear", exact=True).click()
    assert page.locator("#find-strip").is_hidden() and page.evaluate(MARKED) == [] and "find=" not in page.url
    assert watched.complaints == []


def test_a_search_without_hits_and_one_that_is_wrong_are_told_of(app: Shown, opener: Opener) -> None:
    page, _ = enter(app, opener(), f"{ADDRESS}?find=zebra")
    status(page, "No hits")
    assert page.locator("#find-next").is_disabled()
    page.locator(".in-session input[type=search]").fill('"open')
    page.keyboard.press("Enter")
    status(page, "never closed")


@pytest.mark.parametrize("look", LOOKS, ids=["light", "dark", "phone"])
def test_messages_since_the_last_visit_are_marked(opener: Opener, tmp_path: Path, look: dict[str, int]) -> None:
    path = write_session(tmp_path / "home", LONG, turns(LONG, 40))
    with shown(tmp_path / "home", tmp_path / "catalog") as app:
        page, watched = enter(app, opener(**look), ADDRESS)
        settled(page)
        assert page.locator("#unseen").is_hidden() and page.locator(".first-unseen").count() == 0
        page.goto(f"http://{app.host}/sessions")
        with path.open("a") as out:
            out.writelines(json.dumps(each) + "\n" for each in turns(LONG, 2, first=161))
        page.goto(f"http://{app.host}{ADDRESS}")
        link = page.get_by_role("link", name="8 new since your last visit")
        link.click()
        page.locator("#m161.first-unseen.here").wait_for()
        settled(page)
        assert page.locator(".first-unseen").count() == 1
        line = "getComputedStyle(document.querySelector('.first-unseen'), '::before').content"
        assert "New since your last visit" in page.evaluate(line)
        page.reload()
        settled(page)
        assert page.locator("#unseen").is_hidden() and watched.complaints == []


@pytest.mark.parametrize("look", LOOKS, ids=["light", "dark", "phone"])
def test_the_end_and_the_start_are_one_key_or_click_away(app: Shown, opener: Opener, look: dict[str, int]) -> None:
    page, watched = enter(app, opener(**look), ADDRESS)
    settled(page)
    last, first = page.locator(f"#m{4 * TURNS}.here"), page.locator("#m1")
    page.keyboard.press("G")
    last.wait_for()
    settled(page)
    assert in_view(last, page) and not in_view(first, page)
    page.keyboard.press("Home")
    page.wait_for_function("() => scrollY === 0")
    settled(page)
    assert in_view(first, page) and not in_view(last, page)
    page.get_by_role("link", name="End", exact=True).click()
    settled(page)
    assert in_view(last, page)
    page.keyboard.press("k")
    page.locator(f"#m{4 * TURNS - 2}.here").wait_for()
    assert watched.complaints == []


def in_view(locator: Locator, page: Page) -> bool:
    box, size = locator.bounding_box(), page.viewport_size
    return box is not None and size is not None and box["y"] < size["height"] and box["y"] + box["height"] > 0


def test_the_end_is_a_link_without_a_script(app: Shown, opener: Opener) -> None:
    watched = opener(scripts=False)
    name, _, value = app.cookie().partition("=")
    watched.page.context.add_cookies([{"name": name, "value": value, "url": f"http://{app.host}"}])
    watched.page.goto(f"http://{app.host}{ADDRESS}")
    watched.page.get_by_role("link", name="End", exact=True).click()
    assert in_view(watched.page.locator(f"#m{4 * TURNS}"), watched.page)


def test_seen_messages_are_remembered_for_a_limited_number_of_sessions(app: Shown, opener: Opener) -> None:
    page, _ = enter(app, opener(), "/sessions")
    stored = json.dumps({f"/s{number}": number for number in range(900)})
    page.evaluate("(stored) => localStorage.setItem('clew-seen', stored)", stored)
    for path in (ADDRESS, "/sessions"):
        page.goto(f"http://{app.host}{path}")
    seen = page.evaluate("JSON.parse(localStorage.getItem('clew-seen'))")
    assert len(seen) == 500 and seen[ADDRESS] == 4 * TURNS and "/s899" in seen and "/s0" not in seen
    page.evaluate("localStorage.setItem('clew-seen', '[broken')")
    page.goto(f"http://{app.host}{ADDRESS}")
    settled(page)


@pytest.mark.parametrize("look", LOOKS, ids=["light", "dark", "phone"])
def test_long_titles_are_cut_and_shown_whole_on_demand(opener: Opener, tmp_path: Path, look: dict[str, int]) -> None:
    title = "Tide gauge " * 60 + "x" * 300
    path = write_session(tmp_path / "home", SHORT, turns(SHORT, 2))
    with path.open("a") as out:
        out.write(json.dumps({"type": "custom-title", "customTitle": title, "sessionId": SHORT}) + "\n")
    with shown(tmp_path / "home", tmp_path / "catalog") as app:
        page, _ = enter(app, opener(**look), "/sessions")
        row = page.locator("main .list > li > a")
        box = row.bounding_box()
        assert box is not None and box["height"] < 60 and (row.get_attribute("title") or "").startswith("Tide gauge")
        row.click()
        heading = page.locator("h1#title")
        cut = heading.bounding_box()
        page.get_by_role("button", name="Show the whole title").click()
        whole = heading.bounding_box()
        assert cut is not None and whole is not None and cut["height"] < 130 < whole["height"]
        assert page.evaluate("document.documentElement.scrollWidth") <= look.get("width", 1280)
        page.get_by_role("button", name="Show less").click()
        assert heading.bounding_box() == cut
