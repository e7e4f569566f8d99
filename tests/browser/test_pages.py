"""Exported pages in a real Chromium: nothing is fetched, nothing is run, and everything works."""

from __future__ import annotations

from itertools import cycle
from pathlib import Path

import pytest

from clew.export.html import write_html
from clew.render.branching import Forks
from tests.browser.conftest import AXE, Opener
from tests.cli.running import FORKED
from tests.render.hostile import HOSTILE, poisoned
from tests.render.pages import page as page_html
from tests.render.pages import sessions

MEAN = "claude-code-71960fc3-4cec-4060-adfc-a6068f5d859b.html"
FORK = f"claude-code-{FORKED}.html"


def test_H04_no_page_asks_for_anything_but_itself(opener: Opener, site: Path) -> None:
    watched = opener()
    for path in sorted(site.iterdir()):
        watched.open(path)
    assert watched.foreign() == [] and watched.complaints == []
    assert len([url for url in watched.requests if url.startswith("file:")]) == 29


def test_H01_a_poisoned_session_runs_nothing(opener: Opener, site: Path, tmp_path: Path) -> None:
    watched, poison = opener(), cycle(HOSTILE)
    for session in sessions(site.parent / "home"):
        messages = [poisoned(unit.value, poison) for unit in session.units() if unit.is_message]
        target = tmp_path / "poisoned.html"
        target.write_text(page_html(messages, poisoned(session.session_object, poison)), encoding="utf-8")
        page = watched.open(target)
        page.locator("#fold").click() if page.locator("#fold").is_visible() else None
        assert page.evaluate("document.querySelectorAll('script:not([type])').length") == 1
        assert page.evaluate("typeof document.body.children") == "object"
    assert watched.foreign() == [] and watched.complaints == []


def test_the_search_finds_marks_and_opens(opener: Opener, site: Path) -> None:
    page = opener().open(site / MEAN)
    page.keyboard.press("/")
    page.keyboard.type("sum of the amplitudes")
    page.locator("#hits", has_text="found").wait_for()
    assert page.evaluate("document.querySelector('details.th').open") is False
    page.keyboard.press("Enter")
    assert page.locator("#hits").inner_text().startswith("1 of ")
    assert page.evaluate("document.querySelector('details.th').open") is True
    assert page.evaluate("CSS.highlights.get('now').size") == 1
    page.keyboard.press("Escape")
    assert page.locator("#hits").inner_text() == ""


@pytest.mark.parametrize("scripts", [True, False])
def test_the_detail_switch_hides_what_is_deeper(opener: Opener, site: Path, scripts: bool) -> None:
    page = opener(scripts=scripts).open(site / MEAN)
    prompts, calls = page.locator("main > article.prompt"), page.locator("main .c")
    assert calls.first.is_visible() and prompts.count() == 2
    page.locator("label[for=d0]").click()
    assert prompts.first.is_visible() and not calls.first.is_visible()
    assert not page.locator("main > article.reply").first.is_visible()
    page.locator("label[for=d2]").click()
    assert calls.first.is_visible() and not page.locator("details.r:not(.err)").first.is_visible()
    assert page.locator("details.r.err").first.is_visible()


def test_a_deep_link_leads_to_its_message_and_opens_what_hides_it(opener: Opener, site: Path) -> None:
    page = opener(height=300).open(site / MEAN, "#m14")
    box = page.locator("#m14").bounding_box()
    assert box is not None and -10 < box["y"] < 300
    page.evaluate("document.querySelector('#d0').click()")
    page.evaluate("location.hash = '#m4'")
    page.locator("#m4").wait_for(state="visible")


@pytest.mark.parametrize("scripts", [True, False])
def test_a_deep_link_arrives_in_a_long_page(opener: Opener, tmp_path: Path, scripts: bool) -> None:
    long = "\n".join(f"line {number}" for number in range(60))
    said = [
        {"index": index, "role": "user", "content": [{"type": "text", "text": f"Prompt {index}\n\n```\n{long}\n```"}]}
        for index in range(1, 401)
    ]
    with (tmp_path / "long.html").open("wb") as out:
        write_html({"id": "s"}, said, out)
    watched = opener(scripts=scripts)
    for index in (390, 200, 7):
        page = watched.open(tmp_path / "long.html", f"#m{index}")
        page.wait_for_timeout(500)
        box = page.locator(f"#m{index}").bounding_box()
        assert box is not None and -10 < box["y"] < 600, index
        page.goto("about:blank")


def test_the_contents_mark_the_prompt_that_is_read(opener: Opener, site: Path) -> None:
    page = opener(height=300).open(site / MEAN, "#m14")
    page.locator(".toc a.here[href='#m1']").wait_for()
    page.keyboard.press("End")
    page.locator(".toc a.here[href='#m19']").wait_for()
    page.keyboard.press("Home")
    page.locator(".toc a.here[href='#m1']").wait_for()
    assert page.locator(".toc a.here").count() == 1


def test_branches_are_switched(opener: Opener, site: Path) -> None:
    page = opener().open(site / FORK)
    left, right = (page.locator(f"article[data-b='{number}']").first for number in (3, 5))
    assert right.is_visible() and not left.is_visible()
    page.locator(".fork a[data-go='3']").click()
    assert left.is_visible() and not right.is_visible()
    assert page.locator(".fork a[data-go='3']").get_attribute("aria-current") == "true"
    assert page.locator(".fork a[data-go='3']").inner_text().endswith(": Write that as a function in Go.")
    page.locator(".tree a[data-go='5']").click()
    assert right.is_visible() and not left.is_visible()


def test_without_a_script_all_branches_can_be_read(opener: Opener, site: Path) -> None:
    page = opener(scripts=False).open(site / FORK)
    assert all(article.is_visible() for article in page.locator("main > article").all())


def test_changes_stand_side_by_side_on_demand(opener: Opener, site: Path) -> None:
    page = opener().open(site / MEAN)
    old, new = page.locator(".ch del").first, page.locator(".ch ins").first
    above, below = old.bounding_box(), new.bounding_box()
    assert above and below and below["y"] > above["y"] and below["x"] == above["x"]
    page.locator("label[for=v1]").click()
    left, right = old.bounding_box(), new.bounding_box()
    assert left and right and right["y"] == left["y"] and right["x"] > left["x"]


def test_code_gets_its_colours(opener: Opener, site: Path) -> None:
    page = opener(height=4000).open(site / MEAN)
    page.wait_for_selector("code.x-python .kw")
    assert page.locator("code.x-python .kw").first.inner_text() == "from"
    assert page.evaluate("document.querySelector('code.x-python').textContent").startswith(
        "from tidepool.predict import"
    )


def test_what_was_read_from_a_file_gets_its_colours_too(opener: Opener, site: Path) -> None:
    page = opener(height=4000).open(site / MEAN)
    read = page.locator("pre.o > code.x-py").first
    read.wait_for()
    assert read.locator(".kw").first.inner_text() == "from"
    assert [read.locator(".co").nth(at).inner_text().strip() for at in (0, 5)] == ["1→", "6→"]
    assert read.evaluate("(el) => el.textContent").startswith('     1→"""Predict')
    # What a command printed is no code.
    assert page.locator("pre.cmd + details pre.o code").count() == 0


def test_a_prompt_keeps_its_lines(opener: Opener, tmp_path: Path) -> None:
    target = tmp_path / "lines.html"
    for role, lines in (("user", 3), ("assistant", 1)):
        said = {"index": 1, "role": role, "content": [{"type": "text", "text": "one\ntwo\nthree"}]}
        target.write_text(page_html([said]), encoding="utf-8")
        shown = opener().open(target).locator("main .p").inner_text()
        assert len(shown.splitlines()) == lines


def test_dark_and_light(opener: Opener, site: Path) -> None:
    page = opener(dark=True).open(site / MEAN)
    shade = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(shade)
    page.locator("label[for=t1]").click()
    assert page.evaluate(shade) != dark
    page.locator("label[for=t2]").click()
    assert page.evaluate(shade) == dark


@pytest.mark.parametrize("width", [320, 390, 768, 1280])
def test_nothing_reaches_over_the_edge(opener: Opener, site: Path, width: int) -> None:
    watched = opener(width=width)
    for path in sorted(site.iterdir()):
        page = watched.open(path)
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, path.name


def test_in_print_all_is_open_paper_and_ink(opener: Opener, site: Path) -> None:
    page = opener(dark=True).open(site / MEAN)
    page.emulate_media(media="print", color_scheme="dark")
    assert not page.locator(".bar").is_visible() and page.locator("main").is_visible()
    assert page.evaluate("getComputedStyle(document.querySelector('main pre')).maxHeight") == "none"
    assert page.evaluate("getComputedStyle(document.querySelector('.m')).contentVisibility") == "visible"
    assert page.evaluate(
        "[...document.querySelectorAll('main details > :not(summary)')].every((el) => el.checkVisibility())"
    )
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("main details:not([open])").count() == 0
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator("main details:not([open])").count() > 0
    assert len(page.pdf()) > 10_000


def test_the_keyboard_is_enough(opener: Opener, site: Path) -> None:
    page = opener(height=500).open(site / MEAN)
    page.keyboard.press("j")
    page.keyboard.press("j")
    assert page.evaluate("document.activeElement.id") == "m2"
    page.keyboard.press("Shift+J")
    assert page.evaluate("document.activeElement.classList.contains('prompt')")
    page.keyboard.press("k")
    assert not page.evaluate("document.activeElement.classList.contains('prompt')")
    page.keyboard.press("1")
    assert page.evaluate("document.querySelector('#d0').checked")
    page.keyboard.press("?")
    assert page.locator("#keys").is_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("d")
    assert page.evaluate("document.querySelector('#v1').checked")


def test_the_index_is_filtered(opener: Opener, site: Path) -> None:
    page = opener().open(site / "index.html")
    every = page.locator(".list li").count()
    page.keyboard.press("/")
    page.keyboard.type("mean level")
    assert [one.is_visible() for one in page.locator(".list li").all()].count(True) == 1 < every
    page.locator(".list li:visible > a").click()
    assert "Add the missing mean level" in page.title()


def test_twenty_thousand_messages_open_and_scroll(opener: Opener, tmp_path: Path) -> None:
    messages = [
        {
            "index": n,
            "role": "user" if n % 10 == 1 else "assistant",
            "content": [{"type": "text", "text": f"Word {n}. " * 9}],
        }
        for n in range(1, 20_001)
    ]
    target = tmp_path / "long.html"
    target.write_text(page_html(messages, forks=Forks((), ())), encoding="utf-8")
    page = opener().open(target)
    # The first sight of it, from the beginning of the request on.
    shown = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0")
    assert shown < 10_000
    page.evaluate("document.querySelector('#m19991').scrollIntoView()")
    assert page.locator("#m19991").is_visible()


@pytest.mark.parametrize("dark", [False, True])
def test_an_accessibility_check_finds_nothing(opener: Opener, site: Path, dark: bool) -> None:
    if AXE is None:
        pytest.skip("axe-core is not here: `npm pack axe-core`, unpack it, and name its axe.min.js in CLEW_AXE")
    watched = opener(dark=dark, checked=True)
    for path in sorted(site.iterdir()):
        page = watched.open(path)
        page.add_script_tag(content=Path(AXE).read_text(encoding="utf-8"))
        found = page.evaluate("axe.run()")["violations"]
        assert [(one["id"], [node["html"][:90] for node in one["nodes"]]) for one in found] == [], path.name
