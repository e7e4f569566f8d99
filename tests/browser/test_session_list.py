"""The list of sessions beside the transcript, in a real Chromium."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from clew.catalog.sync import sync
from clew.host import Host
from tests.browser.conftest import AXE, Opener
from tests.browser.test_app import enter
from tests.counting.homes import claude, lines, prompt, reply
from tests.demo_home import write_small_demo
from tests.web.many_sessions import address, session_id, write_sessions
from tests.web.poison import poison_home
from tests.web.shown import Shown, shown

if TYPE_CHECKING:
    from playwright.sync_api import Page, Route

SESSIONS = 150
WIDE = {"width": 1440, "height": 900}
POLLS = re.compile(r"/session-list\?.*state=")
CURRENT = ".list-rows a[aria-current=page]"
NOT_CUT = "[...document.querySelectorAll('.list-rows .about')].every((each) => each.scrollWidth <= each.clientWidth)"
FITS = "document.documentElement.scrollWidth - innerWidth <= 0"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("list") / "home"
    write_small_demo(folder)
    write_sessions(folder, SESSIONS)
    return folder


@pytest.fixture(scope="module")
def app(home: Path) -> Iterator[Shown]:
    with shown(home, home.parent / "catalog") as running:
        yield running


def names(page: Page) -> list[str]:
    """The sessions of the list, as they are shown."""
    return page.locator(".list-rows section > ul > li > a .name").all_inner_texts()


@pytest.mark.parametrize("dark", [False, True])
def test_the_list_is_beside_the_transcript_and_keeps_its_place(app: Shown, opener: Opener, dark: bool) -> None:
    page, watched = enter(app, opener(**WIDE, dark=dark), address(100))
    page.locator(CURRENT).wait_for()
    assert page.locator(CURRENT).inner_text().startswith("Task number 100")
    assert page.evaluate(NOT_CUT)
    page.evaluate("document.querySelector('.list-rows').scrollTop += 900")
    page.wait_for_timeout(200)
    target = page.locator(f".list-rows a[href='{address(90)}']")
    before, place = target.bounding_box(), page.evaluate("document.querySelector('.list-rows').scrollTop")
    assert before is not None and 0 < before["y"] < 900
    target.click()
    page.wait_for_url(f"**{address(90)}")
    page.locator(CURRENT, has_text="Task number 090").wait_for()
    assert page.evaluate("document.querySelector('.list-rows').scrollTop") == place
    assert watched.complaints == [] and page.evaluate(FITS)


def test_the_list_is_there_before_the_next_page_is_painted(app: Shown, opener: Opener) -> None:
    page, _ = enter(app, opener(**WIDE), address(100))
    page.locator(CURRENT).wait_for()
    page.route("**/session-list**", lambda route: route.abort())
    page.locator(f".list-rows a[href='{address(98)}']").click()
    page.locator(CURRENT, has_text="Task number 098").wait_for()
    assert len(names(page)) >= 60


def test_rows_are_loaded_while_the_list_is_scrolled(app: Shown, opener: Opener) -> None:
    page, _ = enter(app, opener(**WIDE), address(20))
    page.locator(CURRENT, has_text="Task number 020").wait_for()
    for edge in ("-1", "1"):
        for _ in range(12):
            page.evaluate(f"document.querySelector('.list-rows').scrollTop += {edge} * 4000")
            page.wait_for_timeout(100)
    found = [name for name in names(page) if name.startswith("Task")]
    assert found == [f"Task number {number:03}" for number in range(SESSIONS - 1, -1, -1)]
    headings = page.locator(".list-rows h3").all_inner_texts()
    assert len(headings) == len(set(headings))


def test_typing_filters_and_the_filter_stays(app: Shown, opener: Opener) -> None:
    page, watched = enter(app, opener(**WIDE), address(100))
    page.locator(CURRENT).wait_for()
    page.locator(".list-filter input[type=search]").fill("project1 topic1")
    page.wait_for_function("() => document.querySelectorAll('.list-rows section li').length === 10")
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.closest('.list-rows') !== null")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**{address(121)}")
    page.locator(CURRENT, has_text="Task number 121").wait_for()
    assert page.locator(".list-filter input[type=search]").input_value() == "project1 topic1" and len(names(page)) == 10
    # The keys go through what the list shows.
    page.keyboard.press("]")
    page.wait_for_url(f"**{address(106)}")
    page.locator(CURRENT, has_text="Task number 106").wait_for()
    page.keyboard.press("[")
    page.wait_for_url(f"**{address(121)}")
    page.locator(".list-filter input[type=search]").fill("nowhere")
    page.locator(".list-rows", has_text="No session has these words").wait_for()
    assert watched.complaints == []


def test_rows_of_another_run_are_never_shown(app: Shown, opener: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    # On the same port, another run may show another home.
    page, _ = enter(app, opener(**WIDE), address(100))
    page.locator(CURRENT).wait_for()
    monkeypatch.setattr(app.context, "run_id", "another")
    page.route("**/session-list**", lambda route: route.abort())
    page.goto(f"http://{app.host}{address(98)}")
    page.locator(".list-rows", has_text="does not answer").wait_for()
    assert names(page) == []


def test_sessions_that_grew_since_the_last_visit_are_marked(opener: Opener, tmp_path: Path) -> None:
    write_sessions(tmp_path / "home", 3)
    with shown(tmp_path / "home", tmp_path / "catalog") as app:
        page, watched = enter(app, opener(**WIDE), address(2))
        page.locator(CURRENT).wait_for()
        page.goto(f"http://{app.host}{address(1)}")
        page.locator(CURRENT, has_text="Task number 001").wait_for()
        mark = page.locator(".list-rows a .new:visible")
        assert mark.count() == 0
        more = [reply(f"more{number}", 1, 2, sessionId=session_id(2)) for number in range(3)]
        for path in (tmp_path / "home").rglob(f"{session_id(2)}.jsonl"):
            path.write_text(path.read_text(encoding="utf-8") + lines(*more), encoding="utf-8")
        sync([Host.at(tmp_path / "home")], tmp_path / "catalog")
        mark.wait_for(timeout=20_000)
        assert mark.inner_text() == "3 new"
        page.locator(".list-rows a", has_text="Task number 002").click()
        page.locator(CURRENT, has_text="Task number 002").wait_for()
        mark.wait_for(state="detached")
        page.locator(".list-rows a", has_text="Task number 001").click()
        page.locator(CURRENT, has_text="Task number 001").wait_for()
        assert mark.count() == 0 and watched.complaints == []


def test_groups_are_remembered(app: Shown, opener: Opener) -> None:
    page, _ = enter(app, opener(**WIDE), address(100))
    page.locator(CURRENT).wait_for()
    page.get_by_text("project", exact=True).click()
    page.locator(".list-rows h3", has_text="project1").wait_for()
    page.goto(f"http://{app.host}{address(3)}")
    page.locator(CURRENT, has_text="Task number 003").wait_for()
    assert page.locator("#group-project").is_checked()
    assert page.locator("section:has(a[aria-current=page]) h3").inner_text() == "project0"
    page.get_by_text("agent", exact=True).click()
    page.locator(".list-rows h3", has_text="claude-code").wait_for()
    page.reload()
    assert page.locator("#group-agent").is_checked()
    assert page.locator("section:has(a[aria-current=page]) h3").inner_text() == "claude-code"


def test_the_list_is_hidden_and_shown_and_this_is_remembered(app: Shown, opener: Opener) -> None:
    page, _ = enter(app, opener(**WIDE), address(100))
    page.locator(CURRENT).wait_for()
    page.keyboard.press("b")
    page.locator("#session-list").wait_for(state="hidden")
    page.reload()
    page.locator(".outline").wait_for()
    toggle = page.locator("#list-toggle")
    assert not page.locator("#session-list").is_visible() and toggle.get_attribute("aria-expanded") == "false"
    toggle.click()
    page.locator(CURRENT).wait_for()
    page.get_by_role("button", name="Hide the list").click()
    assert page.evaluate("document.activeElement.id") == "list-toggle"


def test_sub_agents_are_folded_below_their_session(app: Shown, opener: Opener) -> None:
    (child,) = app.catalog_row("SELECT native_id FROM session WHERE is_agent_session = 1 AND agent = 'claude-code'")
    page, _ = enter(app, opener(**WIDE), f"/session/claude-code/{child}")
    page.locator(".list-rows details[open] a[aria-current=page]").wait_for()
    page.locator(".list-rows li:has(> details a[aria-current=page]) > a").click()
    page.locator(".list-rows li:has(> details) > a[aria-current=page]").wait_for()


@pytest.mark.parametrize("width", [390, 1024])
@pytest.mark.parametrize("dark", [False, True])
def test_without_room_the_list_is_a_drawer(app: Shown, opener: Opener, width: int, dark: bool) -> None:
    page, watched = enter(app, opener(width=width, height=844, dark=dark), address(100))
    assert not page.locator("#session-list").is_visible()
    assert not [url for url in watched.requests if "/session-list" in url]
    page.locator("#list-toggle").click()
    page.locator(CURRENT).wait_for()
    page.wait_for_function("() => document.activeElement.getAttribute('aria-current') === 'page'")
    page.keyboard.press("Escape")
    page.locator("#list-drawer").wait_for(state="hidden")
    assert page.evaluate("document.activeElement.id") == "list-toggle"
    page.keyboard.press("b")
    page.locator(".list-filter input[type=search]").fill("number 002")
    page.locator(".list-rows a", has_text="Task number 002").click()
    page.wait_for_url(f"**{address(2)}")
    assert not page.locator("#list-drawer").is_visible() and page.evaluate(FITS)
    assert watched.complaints == []


def add_session(home: Path, title: str) -> None:
    """Add the latest session of a home to its catalog."""
    place = {"timestamp": "2026-11-17T10:00:00.000Z", "sessionId": session_id(999)}
    claude(home, prompt(title, uuid="new", **place), session=session_id(999))
    sync([Host.at(home)], home.parent / "catalog")


def test_a_new_session_appears_and_the_place_stays(opener: Opener, tmp_path: Path) -> None:
    write_sessions(tmp_path / "home", 80)
    with shown(tmp_path / "home", tmp_path / "catalog") as app:
        page, _ = enter(app, opener(**WIDE), address(79))
        page.locator(CURRENT).wait_for()
        add_session(tmp_path / "home", "A new task")
        page.locator(".list-rows a", has_text="A new task").wait_for(timeout=15_000)
        assert page.locator(CURRENT).inner_text().startswith("Task number 079")


def test_a_poll_answered_late_does_not_bring_back_another_grouping(opener: Opener, tmp_path: Path) -> None:
    write_sessions(tmp_path / "home", 80)
    with shown(tmp_path / "home", tmp_path / "catalog") as app:
        page, _ = enter(app, opener(**WIDE), address(79))
        page.locator(CURRENT).wait_for()
        held: list[Route] = []
        page.route(POLLS, lambda route: held.append(route))
        add_session(tmp_path / "home", "A new task")
        with page.expect_request(POLLS, timeout=15_000):
            pass
        page.get_by_text("project", exact=True).click()
        page.locator(".list-rows h3", has_text="project1").wait_for()
        page.unroute(POLLS)
        for route in held:
            with contextlib.suppress(Exception):
                route.continue_()
        page.wait_for_timeout(1000)
        assert set(page.locator(".list-rows h3").all_inner_texts()) <= {"app", "project0", "project1", "project2"}


def test_a_long_list_stays_where_it_was_scrolled_to(opener: Opener, tmp_path: Path) -> None:
    write_sessions(tmp_path / "home", 700, first_year=2024)
    with shown(tmp_path / "home", tmp_path / "catalog") as app:
        page, _ = enter(app, opener(**WIDE), address(699))
        page.locator(CURRENT).wait_for()
        last = page.locator(".list-rows a", has_text="Task number 000")
        for _ in range(100):
            page.evaluate("document.querySelector('.list-rows').scrollTop += 100000")
            page.wait_for_timeout(100)
            if last.count():
                break
        page.evaluate("document.querySelector('.list-rows').scrollTop += 100000")
        before = last.bounding_box()
        add_session(tmp_path / "home", "A new task")
        with page.expect_response(lambda answer: "state=" in answer.url and answer.status == 200, timeout=15_000):
            pass
        page.wait_for_timeout(500)
        after = last.bounding_box()
        assert before and after and before["y"] < WIDE["height"] and abs(after["y"] - before["y"]) < 1
        for _ in range(100):
            page.evaluate("document.querySelector('.list-rows').scrollTop = 0")
            page.wait_for_timeout(100)
            if page.locator(".list-rows a", has_text="A new task").count():
                break
        found = names(page)
        assert found[0] == "A new task" and len(found) == len(set(found))


def test_without_a_script_there_is_a_link_to_all_sessions(app: Shown, opener: Opener) -> None:
    watched = opener(scripts=False, **WIDE)
    name, _, value = app.cookie().partition("=")
    watched.page.context.add_cookies([{"name": name, "value": value, "url": f"http://{app.host}"}])
    watched.page.goto(f"http://{app.host}{address(100)}")
    assert not watched.page.locator("#session-list").is_visible()
    assert not watched.page.locator("#list-toggle").is_visible()
    watched.page.locator(".trail a", has_text="Sessions").click()
    watched.page.wait_for_url("**/sessions")


def test_H01_hostile_titles_run_nothing(opener: Opener, tmp_path: Path) -> None:
    write_small_demo(tmp_path / "home")
    poison_home(tmp_path / "home")
    with shown(tmp_path / "home", tmp_path / "catalog") as app:
        page, watched = enter(app, opener(**WIDE), "/sessions")
        first = page.locator("main .list > li > a").first.get_attribute("href") or ""
        page.goto(f"http://{app.host}{first}")
        page.locator(CURRENT).wait_for()
        page.reload()
        page.locator(CURRENT).wait_for()
        page.wait_for_load_state("networkidle")
        assert watched.complaints == [] and page.evaluate("document.scripts.length") == 4


@pytest.mark.parametrize(("width", "dark"), [(1440, False), (1440, True), (390, False), (390, True)])
def test_an_accessibility_check_finds_nothing(app: Shown, opener: Opener, width: int, dark: bool) -> None:
    if AXE is None:
        pytest.skip("axe-core is not here: `make axe` fetches it, or name its axe.min.js in CLEW_AXE")
    page, _ = enter(app, opener(dark=dark, checked=True, width=width), address(100))
    if width < 1000:
        page.locator("#list-toggle").click()
    page.locator(CURRENT).wait_for()
    page.add_script_tag(content=Path(AXE).read_text(encoding="utf-8"))
    found = page.evaluate("axe.run()")["violations"]
    assert [(one["id"], [node["html"][:120] for node in one["nodes"]][:3]) for one in found] == []
