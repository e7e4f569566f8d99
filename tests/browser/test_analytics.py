"""The usage page in a real Chromium: what can be read and clicked, in both colour schemes and on a phone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import combinations
from math import dist
from pathlib import Path

import pytest

from clew.web.charts import COLOURS
from tests.browser.conftest import AXE, Opener
from tests.browser.test_app import enter
from tests.browser.test_phone import TEXT_SIZES
from tests.demo_home import write_small_demo
from tests.web.shown import Shown, shown

PATHS = ("/", "/usage", "/usage?by=day", "/usage?by=project", "/usage?by=tool", "/usage?range=30d")
LAYOUTS = [(1280, False), (1280, True), (390, False), (390, True)]
MIN_COLOUR_DISTANCE = 12.0
"""In the colour space Lab, where one is about the smallest difference that an eye sees."""
MIN_CONTRAST = 3.0
VISION = {
    "normal": ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)),
    "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "tritanopia": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}
"""What eyes see of linear red, green and blue (Machado, Oliveira and Fernandes, 2009)."""


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shown]:
    folder = tmp_path_factory.mktemp("analytics")
    write_small_demo(folder / "home")
    with shown(folder / "home", folder / "catalog") as running:
        yield running


@pytest.mark.parametrize(("width", "dark"), LAYOUTS)
def test_charts_can_be_read_and_nothing_scrolls_sideways(app: Shown, opener: Opener, width: int, dark: bool) -> None:
    page, watched = enter(app, opener(width=width, height=844, dark=dark), "/usage")
    for path in PATHS:
        page.goto(f"http://{app.host}{path}")
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, path
        sizes = page.evaluate(TEXT_SIZES)
        assert all(10 <= size < 16 for size in sizes), (path, sizes)
        overflowing = page.evaluate(
            "[...document.querySelectorAll('.ranked li, .legend li, figcaption, .presets a')]"
            ".filter((each) => each.getBoundingClientRect().right > innerWidth).length"
        )
        assert overflowing == 0, path
    assert watched.complaints == []


@pytest.mark.parametrize("width", [1280, 390])
def test_bars_of_a_ranking_have_one_scale(app: Shown, opener: Opener, width: int) -> None:
    page, _ = enter(app, opener(width=width), "/usage")
    for figure in page.locator("ol.ranked").all():
        widths = figure.evaluate("(list) => [...list.querySelectorAll('svg')].map((one) => one.clientWidth)")
        assert max(widths) - min(widths) <= 1, widths


def test_a_bar_a_cell_and_a_row_lead_to_their_sessions(app: Shown, opener: Opener) -> None:
    page, _ = enter(app, opener(), "/usage?by=day")
    bar = page.locator("svg.bars a").first
    day = bar.locator("title").text_content() or ""
    bar.locator(".hit").click()
    page.wait_for_url("**/sessions?*used.day=*")
    assert f"day {day[:10]}" in page.locator("main .note").first.inner_text()
    assert page.locator("ul.list li").count() >= 1
    page.goto(f"http://{app.host}/usage")
    cell = page.locator("svg.hours a").first
    cell.scroll_into_view_if_needed()
    cell.click()
    page.wait_for_url("**used.weekday=*used.hour=*")
    page.goto(f"http://{app.host}/usage")
    page.locator("#chart-project ~ .exact summary").click()
    row = page.locator("#chart-project ~ .exact tbody tr").first
    sessions = int(row.locator("td").first.inner_text())
    row.locator("a").click()
    page.wait_for_url("**used.project=*")
    count = page.locator(".count").inner_text()
    assert sum(map(int, re.findall(r"(\d+) (?:session|sub-agent)", count))) == sessions


def test_a_preset_is_chosen_and_kept_by_the_filters(app: Shown, opener: Opener) -> None:
    page, _ = enter(app, opener(), "/usage")
    page.get_by_role("link", name="This year").click()
    page.wait_for_url("**range=year*")
    assert page.locator(".presets [aria-current]").inner_text() == "This year"
    page.locator("select[name=agent]").select_option("codex")
    page.get_by_role("button", name="Filter").click()
    page.wait_for_url("**agent=codex**")
    assert "range=year" in page.url and page.locator(".presets [aria-current]").inner_text() == "This year"


def test_charts_can_be_read_without_script(app: Shown, opener: Opener) -> None:
    page, _ = enter(app, opener(), "/usage")
    cookies = page.context.cookies()
    watched = opener(scripts=False)
    watched.page.context.add_cookies(cookies)  # type: ignore[arg-type]
    watched.page.goto(f"http://{app.host}/usage")
    assert watched.page.locator("svg.bars").first.is_visible() and watched.page.locator("ol.ranked").first.is_visible()
    watched.page.locator("#chart-time ~ .exact summary").click()
    watched.page.locator("#chart-time ~ .exact a").click()
    assert watched.page.locator("main table").is_visible()


@pytest.mark.parametrize(("width", "dark"), LAYOUTS[:3])
def test_an_accessibility_check_finds_nothing(app: Shown, opener: Opener, width: int, dark: bool) -> None:
    if AXE is None:
        pytest.skip("axe-core is not here: `make axe` fetches it, or name its axe.min.js in CLEW_AXE")
    page, _ = enter(app, opener(width=width, dark=dark, checked=True), "/usage")
    for path in ("/usage", "/usage?by=tool", "/sessions?used.weekday=Monday&used.hour=09"):
        page.goto(f"http://{app.host}{path}")
        page.evaluate("document.querySelectorAll('details.exact').forEach((each) => { each.open = true; })")
        page.wait_for_function("!document.querySelector('details.exact:not(:has(table))')")
        page.add_script_tag(content=Path(AXE).read_text(encoding="utf-8"))
        found = page.evaluate("axe.run()")["violations"]
        assert [(one["id"], [node["html"][:120] for node in one["nodes"]][:3]) for one in found] == [], path


@pytest.mark.parametrize("dark", [False, True])
def test_the_colours_of_models_differ_for_all_eyes(app: Shown, opener: Opener, dark: bool) -> None:
    page, _ = enter(app, opener(dark=dark), "/usage")
    colours = page.evaluate(
        """(count) => [...Array(count + 1).keys()].map((number) => {
            const dot = document.createElement('span');
            dot.className = `dot s${number}`;
            document.body.append(dot);
            return getComputedStyle(dot).backgroundColor.match(/\\d+/g).slice(0, 3).map(Number);
        })""",
        COLOURS,
    )
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).slice(0, 3).map(Number)")
    for one, other in combinations(colours, 2):
        for eyes in VISION:
            assert dist(lab(one, eyes), lab(other, eyes)) >= MIN_COLOUR_DISTANCE, (one, other, eyes)
    for colour in colours:
        light, deep = sorted((luminance(colour), luminance(paper)), reverse=True)
        assert (light + 0.05) / (deep + 0.05) >= MIN_CONTRAST, colour


def linear(colour: list[int]) -> list[float]:
    return [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in (c / 255 for c in colour)]


def luminance(colour: list[int]) -> float:
    red, green, blue = linear(colour)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def lab(colour: list[int], eyes: str) -> tuple[float, float, float]:
    """A colour in Lab, as eyes see it."""
    plain = linear(colour)
    red, green, blue = (min(1.0, max(0.0, sum(a * b for a, b in zip(row, plain, strict=True)))) for row in VISION[eyes])
    x = (0.4124 * red + 0.3576 * green + 0.1805 * blue) / 0.95047
    y = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    z = (0.0193 * red + 0.1192 * green + 0.9505 * blue) / 1.08883
    x, y, z = (part ** (1 / 3) if part > 0.008856 else 7.787 * part + 16 / 116 for part in (x, y, z))
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)
