"""The app in a real Chromium: pages, keys, growth, filters, branches, search, print, and no request elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest

from tests.browser.conftest import AXE, Opener, Watched
from tests.browser.long_sessions import MIDDLING, MIDDLING_COUNT, write_long_session
from tests.demo_home import write_small_demo
from tests.web.live_session import ADDRESS, line, session_file
from tests.web.poison import poison_home
from tests.web.shown import Shown, shown

if TYPE_CHECKING:
    from playwright.sync_api import Page, Route

MEAN = "/session/claude-code/71960fc3-4cec-4060-adfc-a6068f5d859b"
FORKED = "/session/claude-code/f005c7db-1dcc-4692-bc16-77f2521cfb4b"
PREDICT = quote("/home/ada/src/tidepool/tidepool/predict.py", safe="")
LONG, COUNT = "0f6a1c52-0000-4000-8000-0000000000dd", 20_000
HUGE = 7
"""A session of some windows, with one message that is cut."""
PAGES = [
    "/",
    "/sessions",
    MEAN,
    f"{MEAN}/panel/usage",
    f"{MEAN}/print",
    f"/session/claude-code/{MIDDLING}/more/{HUGE}/0?from=200000",
    f"{FORKED}/graph",
    "/search?q=tide",
    "/usage",
    "/files",
    f"/files/history?path={PREDICT}",
    f"/files/blame?path={PREDICT}",
    "/secrets",
    "/sources",
    "/nowhere",
]
OPEN_PANELS = "document.querySelectorAll('.panel').forEach((panel) => { panel.open = true; })"

Visit = Callable[..., tuple["Page", Watched]]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("app") / "home"
    write_small_demo(folder)
    session_file(folder)
    write_long_session(folder, LONG, COUNT)
    huge = "\n".join(f"Line {n}." for n in range(1, 40_001))
    write_long_session(folder, MIDDLING, MIDDLING_COUNT, {HUGE: huge})
    return folder


@pytest.fixture(scope="module")
def app(home: Path) -> Iterator[Shown]:
    with shown(home, home.parent / "catalog") as running:
        yield running


@pytest.fixture
def visit(app: Shown, opener: Opener) -> Visit:
    """Opens a page of the app in a browser that was let in."""

    def go(path: str, **options: int | bool) -> tuple[Page, Watched]:
        return enter(app, opener(**options), path)

    return go


def enter(app: Shown, watched: Watched, path: str) -> tuple[Page, Watched]:
    """Let a browser in by the link, and open a page."""
    page = watched.page
    page.goto(f"http://{app.host}/enter#token={app.tokens.link_token}")
    page.wait_for_url(f"http://{app.host}/")
    page.goto(f"http://{app.host}{path}")
    return page, watched


def foreign(app: Shown, watched: Watched) -> list[str]:
    """Requests to anywhere but the app."""
    return [url for url in watched.requests if not url.startswith((f"http://{app.host}/", "data:image/"))]


def test_the_link_lets_in_and_leaves_the_address(app: Shown, visit: Visit) -> None:
    page, watched = visit("/")
    assert page.title() == "Home · clew" and "token" not in page.url
    page.goto(f"http://{app.host}/enter#token=used")
    page.get_by_text("This link was used already").wait_for()
    assert not [url for url in watched.requests if "token" in url]


def test_the_link_lets_in_the_tab_that_asks_for_it(app: Shown, opener: Opener) -> None:
    page = opener().page
    page.goto(f"http://{app.host}/sessions")
    page.get_by_text("Open the link that").wait_for()
    page.goto(f"http://{app.host}/enter#token=wrong")
    page.get_by_text("This link was used already").wait_for()
    page.goto(f"http://{app.host}/enter#token={app.tokens.link_token}")
    page.wait_for_url(f"http://{app.host}/")
    assert page.title() == "Home · clew"


def test_two_apps_let_in_the_same_browser(app: Shown, opener: Opener, tmp_path: Path) -> None:
    write_small_demo(tmp_path / "home")
    with shown(tmp_path / "home", tmp_path / "catalog") as other:
        watched = opener()
        for running in (app, other):
            enter(running, watched, "/")
        for running in (app, other, app):
            watched.page.goto(f"http://{running.host}/sessions")
            assert watched.page.title() == "Sessions · clew"


def test_every_page_opens_and_asks_nobody_else(app: Shown, visit: Visit) -> None:
    page, watched = visit("/")
    for path in PAGES[:-1]:
        page.goto(f"http://{app.host}{path}")
        page.locator("main h1, .top h1").first.wait_for()
    assert foreign(app, watched) == [] and watched.complaints == []


def test_H01_a_poisoned_home_runs_nothing(opener: Opener, tmp_path: Path) -> None:
    write_small_demo(tmp_path / "home")
    poison_home(tmp_path / "home")
    with shown(tmp_path / "home", tmp_path / "catalog") as poisoned:
        page, watched = enter(poisoned, opener(), "/sessions")
        addresses = page.evaluate("[...document.querySelectorAll('main .list a')].map((a) => a.pathname)")
        assert len(addresses) > 15
        for path in ("/", "/search?q=alert", "/usage?by=model", "/files", *addresses):
            page.goto(f"http://{poisoned.host}{path}")
            page.locator("main").wait_for()
            if path in addresses:
                page.locator(".outline").wait_for()
                page.locator("#fold").click()
                page.evaluate(OPEN_PANELS)
                page.wait_for_load_state("networkidle")
            assert page.evaluate("document.scripts.length") == (4 if path in addresses else 3)
        assert foreign(poisoned, watched) == [] and watched.complaints == []


def test_the_keyboard_is_enough(visit: Visit) -> None:
    page, _ = visit(MEAN, height=500)
    page.locator(".outline").wait_for()
    page.keyboard.press("j")
    page.keyboard.press("j")
    assert page.evaluate("document.activeElement.id") == "m2"
    page.keyboard.press("Shift+J")
    assert page.evaluate("document.activeElement.id") == "m19"
    page.keyboard.press("k")
    assert page.evaluate("document.activeElement.id") != "m19"
    page.keyboard.press("Shift+K")
    assert page.evaluate("document.activeElement.id") == "m1"
    page.keyboard.press("?")
    assert page.locator("#keys").is_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("1")
    assert page.locator("#d0").is_checked() and not page.locator("main .c").first.is_visible()
    page.keyboard.press("t")
    assert page.locator("#t1").is_checked()
    page.keyboard.press("f")
    assert page.locator("#follow").get_attribute("aria-pressed") == "true"
    page.keyboard.press("g")
    page.wait_for_url(f"**{MEAN}/graph")
    page.keyboard.press("g")
    page.wait_for_url(f"**{MEAN}")
    page.keyboard.press("]")
    page.wait_for_url(lambda url: "71960fc3" not in url)
    page.keyboard.press("[")
    page.wait_for_url(f"**{MEAN}")
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "Search this session"
    page.keyboard.type("amplitudes")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**{MEAN}?find=amplitudes")
    page.locator("#find-status", has_text="1 of").wait_for()


def test_rows_of_a_list_are_gone_through(visit: Visit) -> None:
    page, _ = visit("/sessions")
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("k")
    first = page.locator("main .list > li > a").first
    assert page.evaluate("document.activeElement.href") == first.evaluate("(a) => a.href")
    page.keyboard.press("Enter")
    page.wait_for_url("**/session/**")


@pytest.mark.parametrize("width", [1280, 1500])
def test_prompts_and_panels_stay_beside_what_is_read(visit: Visit, width: int) -> None:
    page, _ = visit(MEAN, width=width, height=600)
    page.locator(".outline").wait_for()
    page.evaluate("document.querySelector('#m19').scrollIntoView()")
    page.wait_for_timeout(200)
    for place in (page.locator(".outline"), page.locator("#panel-timeline summary")):
        box = place.bounding_box()
        assert box is not None and 0 < box["y"] < 600


def test_on_a_phone_the_first_words_are_not_far(visit: Visit) -> None:
    page, _ = visit(MEAN, width=390, height=844)
    page.locator(".outline").wait_for(state="attached")
    box = page.locator("#m1").bounding_box()
    assert box is not None and box["y"] < 844
    page.goto(page.url.partition("/session/")[0] + "/")
    heat = page.locator(".scroll:has(> .heat)")
    assert heat.evaluate("(el) => el.scrollLeft + el.clientWidth >= el.scrollWidth - 2")


def test_a_session_grows_before_the_eyes(home: Path, visit: Visit) -> None:
    page, _ = visit(ADDRESS)
    page.locator(".outline").wait_for()
    page.evaluate("document.querySelector('#m1').dataset.mine = 'kept'")
    before = page.locator("main article").count()
    path = next(home.rglob(ADDRESS.rpartition("/")[2] + ".jsonl"))
    with path.open("a") as out:
        out.write(line(before + 1, f"This came later, as number {before + 1}."))
    page.get_by_text(f"This came later, as number {before + 1}.").first.wait_for(timeout=5_000)
    assert page.locator("#messages").inner_text() == str(before + 1)
    assert page.locator("#news").inner_text() == "1 new message"
    assert page.evaluate("document.querySelector('#m1').dataset.mine") == "kept"


def test_filters_answer_as_they_change(visit: Visit) -> None:
    page, _ = visit("/sessions")
    every = page.locator("#found .list > li").count()
    page.locator("#filters select[name=agent]").select_option("codex")
    page.get_by_text("match the filters").wait_for()
    assert 0 < page.locator("#found .list > li").count() < every
    assert page.url.endswith("/sessions?agent=codex")
    page.reload()
    assert page.locator("#filters select[name=agent]").input_value() == "codex"
    page.locator("#filters input[name=text]").fill("xyzzyxyzzy")
    page.keyboard.press("Tab")
    page.get_by_text("No session matches").wait_for()


@pytest.mark.parametrize("index", [0, 999_999])
def test_a_link_to_a_message_that_does_not_exist_says_so(visit: Visit, index: int) -> None:
    page, watched = visit(f"/session/claude-code/{MIDDLING}#m{index}")
    page.get_by_text(f"There is no message {index:,}; the last is 950.").wait_for()
    assert watched.complaints == []


def test_branches_are_switched(visit: Visit) -> None:
    page, _ = visit(FORKED)
    left, right = (page.locator(f"article[data-b='{number}']").first for number in (3, 5))
    page.locator(".tree").wait_for()
    assert right.is_visible() and not left.is_visible()
    page.locator("main .fork a[data-go='3']").click()
    assert left.is_visible() and not right.is_visible()
    assert page.locator("main .fork a[data-go='3']").get_attribute("aria-current") == "true"
    assert page.locator("main .fork a[data-go='3']").inner_text().endswith(": Write that as a function in Go.")
    page.locator(".tree a[data-go='5']").click()
    assert right.is_visible() and not left.is_visible()
    page.goto(page.url.partition("#")[0] + "#m3")
    page.locator("#m3").wait_for(state="visible")


def test_search_answers_as_one_types(visit: Visit) -> None:
    page, _ = visit("/search")
    page.locator("#query").press_sequentially("amplit")
    page.locator("#hits mark").first.wait_for()
    page.wait_for_url("**/search?q=amplit")
    page.locator("#hits a[href*='71960fc3'][href*='#m']").first.click()
    page.wait_for_url(f"**{MEAN}?find=amplit#m*")
    index = page.url.rpartition("#")[2]
    page.locator(f"#{index}").wait_for(state="visible")
    page.goto(page.url.partition("/session/")[0] + "/search?q=tide")
    page.locator(".facets a", has_text="gemini").first.click()
    page.wait_for_url("**agent=gemini**")
    assert page.locator(".facets a.now").count() == 1


def test_panels_load_when_they_are_opened(visit: Visit) -> None:
    page, watched = visit(MEAN, width=1500)
    page.locator("#panel-files .inside", has_text="predict.py").wait_for()
    loaded = {url.rpartition("/panel/")[2] for url in watched.requests if "/panel/" in url}
    assert loaded == {"timeline", "files"}
    for name, words in (("todos", "mean level"), ("usage", "Total"), ("problems", "No prob")):
        page.locator(f"#panel-{name} summary").first.click()
        page.locator(f"#panel-{name} .inside", has_text=words).wait_for()
    page.locator("#panel-record summary").first.click()
    page.keyboard.press("j")
    page.locator("#panel-record pre", has_text='"uuid"').wait_for()


def test_a_late_answer_does_not_replace_the_record_of_a_message(visit: Visit) -> None:
    page, _ = visit(MEAN, width=1500)
    held: list[Route] = []
    page.route("**/panel/record", lambda route: held.append(route))
    page.locator("#panel-record summary").first.click()
    page.keyboard.press("j")
    page.locator("#panel-record pre", has_text='"uuid"').wait_for()
    for route in held:
        route.continue_()
    page.wait_for_timeout(300)
    assert held and page.locator("#panel-record pre", has_text='"uuid"').count() == 1


def test_only_what_went_wrong_is_red(visit: Visit) -> None:
    page, _ = visit(MEAN)
    colour = "(el) => getComputedStyle(el).color"
    command, text = page.locator(".c.bad .cmd code").first, page.locator("main .prompt .p").first
    assert command.evaluate(colour) == text.evaluate(colour)
    assert page.locator(".c.bad .r.err > summary").first.evaluate(colour) != text.evaluate(colour)


def test_rare_filters_wait_behind_the_usual_ones(visit: Visit) -> None:
    page, _ = visit("/sessions")
    assert page.locator("#filters input[name=text]").is_visible()
    assert not page.locator("#filters input[name=tool]").is_visible()
    page.get_by_text("More filters").click()
    page.locator("#filters input[name=tool]").fill("Edit")
    page.get_by_text("match the filters").wait_for()
    page.reload()
    assert page.locator("#filters input[name=tool]").input_value() == "Edit"
    assert page.locator("#filters input[name=tool]").is_visible()


def test_the_first_changes_of_a_file_are_open(visit: Visit) -> None:
    page, _ = visit(f"/files/history?path={PREDICT}")
    page.locator("details.lazy .d ins").first.wait_for()


def test_code_gets_its_colours(visit: Visit) -> None:
    page, _ = visit(MEAN, height=4000)
    page.wait_for_selector("code.x-python .kw")


def test_dark_and_light_are_kept(visit: Visit) -> None:
    page, _ = visit("/", dark=True)
    shade = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(shade)
    page.locator("#colours summary").click()
    page.locator("label[for=t1]").click()
    light = page.evaluate(shade)
    assert light != dark
    page.goto(page.url + "sessions")
    assert page.evaluate(shade) == light
    page.keyboard.press("t")
    assert page.evaluate(shade) == dark


def test_secrets_are_hidden_by_a_switch(visit: Visit) -> None:
    page, _ = visit("/")
    page.get_by_role("button", name="Hide secrets").click()
    page.get_by_role("button", name="Show secrets").wait_for()
    assert "Masked: secrets" in page.locator("footer").inner_text()
    page.get_by_role("button", name="Show secrets").click()
    page.get_by_role("button", name="Hide secrets").wait_for()


@pytest.mark.parametrize("width", [320, 390, 768, 1280, 1600])
def test_nothing_reaches_over_the_edge(visit: Visit, width: int) -> None:
    page, _ = visit("/", width=width)
    for path in PAGES:
        page.goto(page.url.partition("/")[0] + f"//{page.url.split('/')[2]}{path}")
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, path


def test_in_print_there_is_paper_and_ink(visit: Visit) -> None:
    page, _ = visit(MEAN, dark=True)
    page.emulate_media(media="print", color_scheme="dark")
    for hidden in (".site", ".bar", ".side", ".toc"):
        assert not page.locator(hidden).first.is_visible()
    assert page.locator("main article").first.is_visible()
    assert len(page.pdf()) > 10_000


def test_printing_prints_all_of_a_long_session(visit: Visit) -> None:
    page, _ = visit(f"/session/claude-code/{MIDDLING}")
    assert page.locator("main article").count() < MIDDLING_COUNT
    # It is the browser that tells the page of it, before it prints.
    assert page.pdf().startswith(b"%PDF")
    assert page.locator("main .w > .more").count() == 0
    page.reload()
    page.evaluate(
        "addEventListener('beforeprint', () => { window.articles = document.querySelectorAll('main article').length; })"
    )
    page.pdf()
    assert page.evaluate("window.articles") == MIDDLING_COUNT
    assert page.locator("main article").count() == MIDDLING_COUNT
    page.locator("#actions > summary").click()
    page.get_by_role("link", name="Print").click()
    page.wait_for_url("**/print")
    assert page.locator("main article").count() == MIDDLING_COUNT
    page.emulate_media(media="print")
    assert not page.locator(".screen").is_visible() and page.locator(f"#m{MIDDLING_COUNT}").is_visible()


def test_what_is_cut_is_shown_by_the_keyboard(visit: Visit) -> None:
    page, watched = visit(f"/session/claude-code/{MIDDLING}#m{HUGE}")
    more = page.locator(f"article:has(#m{HUGE}) a[data-more], #m{HUGE} a[data-more]").first
    more.wait_for()
    assert "Line 40000." not in page.locator("main").inner_text()
    for _ in range(5):
        if not more.count():
            break
        more.focus()
        before = page.evaluate("document.querySelectorAll('.rest').length")
        page.keyboard.press("Enter")
        page.wait_for_function("before => document.querySelectorAll('.rest').length > before", arg=before)
        assert page.evaluate("document.activeElement.className") == "rest"
    text = page.locator(f"#m{HUGE}").evaluate("el => el.closest('article').textContent")
    assert not more.count() and [f"Line {n}." in text for n in (1, 20_000, 40_000)] == [True] * 3
    assert watched.complaints == []


def test_without_a_script_everything_can_be_read(app: Shown, visit: Visit, opener: Opener) -> None:
    visit("/")
    watched = opener(scripts=False)
    name, _, value = app.cookie().partition("=")
    watched.page.context.add_cookies([{"name": name, "value": value, "url": f"http://{app.host}"}])
    page = watched.page
    page.goto(f"http://{app.host}/session/claude-code/{LONG}")
    # By keyboard: what lies above is measured while the page scrolls, and a pointer may miss.
    page.get_by_role("link", name="Messages 51 to 100").press("Enter")
    page.locator("#m51").wait_for(timeout=20_000)
    page.goto(f"http://{app.host}{MEAN}")
    page.locator("#panel-files summary").first.click()
    page.get_by_role("link", name="Files").nth(1).click()
    page.locator("main").get_by_text("predict.py").first.wait_for(timeout=20_000)


# A message is in the page before the page has gone to it: what counts is that it comes into sight.
_IN_SIGHT = """id => {
    const found = document.getElementById(id);
    const top = found ? found.getBoundingClientRect().top : Infinity;
    return -50 < top && top < 900;
}"""


def test_twenty_thousand_messages_open_and_scroll(visit: Visit) -> None:
    page, _ = visit(f"/session/claude-code/{LONG}")
    assert page.locator("main article").count() <= 300
    page.evaluate("location.hash = '#m15001'")
    page.wait_for_function(_IN_SIGHT, arg="m15001", timeout=20_000)
    for _ in range(60):
        page.mouse.wheel(0, 4_000)
        page.wait_for_timeout(30)
    page.wait_for_timeout(500)
    assert page.locator("main article").count() < 6_000
    page.keyboard.press("j")
    assert int(page.evaluate("document.activeElement.id").removeprefix("m")) > 15_001
    page.goto(page.url.partition("#")[0] + "#m19999")
    page.reload()
    page.locator("#m19999").wait_for(state="visible", timeout=20_000)


@pytest.mark.parametrize(("dark", "width"), [(False, 1500), (True, 1500), (False, 390)])
def test_an_accessibility_check_finds_nothing(app: Shown, opener: Opener, dark: bool, width: int) -> None:
    if AXE is None:
        pytest.skip("axe-core is not here: `make axe` fetches it, or name its axe.min.js in CLEW_AXE")
    page, _ = enter(app, opener(dark=dark, checked=True, width=width), "/")
    for path in PAGES:
        page.goto(f"http://{app.host}{path}")
        page.locator("main").wait_for()
        if path == MEAN:
            page.locator(".outline").wait_for(state="attached")
            page.evaluate(OPEN_PANELS)
            page.wait_for_timeout(800)
        page.add_script_tag(content=Path(AXE).read_text(encoding="utf-8"))
        found = page.evaluate("axe.run()")["violations"]
        said = [(one["id"], one["impact"], [node["html"][:120] for node in one["nodes"]][:3]) for one in found]
        assert said == [], path
