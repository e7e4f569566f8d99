"""Stars, labels and notes in a Chromium: by mouse and by keys, light, dark and on a phone, and with hostile text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from clew.annotations import Annotations, Target
from tests.browser.conftest import AXE, Opener
from tests.browser.long_sessions import MIDDLING
from tests.browser.test_app import enter, foreign
from tests.cli.running import FORKED
from tests.render.hostile import HOSTILE
from tests.web.shown import Shown

if TYPE_CHECKING:
    from playwright.sync_api import Page, Route

MEAN = "71960fc3-4cec-4060-adfc-a6068f5d859b"
PAGE = f"/session/claude-code/{MEAN}"
SESSION = Target("claude-code", MEAN)
LOOKS = [{"width": 1440}, {"width": 1024, "dark": True}, {"width": 390, "height": 844}, {"width": 390, "dark": True}]
ASKS_BEFORE_LEAVING = "!dispatchEvent(new Event('beforeunload', {cancelable: true}))"
PLAIN = [text for text in HOSTILE if text.isprintable()]


def is_starred(page: Page) -> bool:
    return page.locator("#star").get_attribute("aria-pressed") == "true"


def widths(page: Page) -> int:
    wider: int = page.evaluate("document.documentElement.scrollWidth - innerWidth")
    return wider


@pytest.mark.parametrize("look", LOOKS, ids=str)
def test_a_session_is_starred_and_found_again(app: Shown, opener: Opener, look: dict[str, int | bool]) -> None:
    page, watched = enter(app, opener(**look), PAGE)
    page.locator("#star").click()
    page.locator("#star[aria-pressed=true]").wait_for()
    assert page.locator("#news").inner_text() == "Session starred"
    assert Annotations().get(SESSION).starred
    page.reload()
    assert is_starred(page) and widths(page) <= 0
    page.goto(f"http://{app.host}/sessions")
    page.locator("input[name=starred]").check()
    page.locator("#found .count", has_text="1 session match").wait_for()
    assert "starred=1" in page.url and page.locator("#found .list > li > a .star").count() == 1
    page.locator("#found .list a").first.click()
    page.locator("#star[aria-pressed=true]").click()
    page.locator("#star[aria-pressed=false]").wait_for()
    assert Annotations().all() == [] and watched.complaints == [] and foreign(app, watched) == []


def test_the_key_stars_the_session_or_the_selected_message(app: Shown, opener: Opener) -> None:
    page, watched = enter(app, opener(width=1440), PAGE)
    page.locator("#star").wait_for()
    page.keyboard.press("s")
    page.locator("#star[aria-pressed=true]").wait_for()
    page.locator("#session-list a[aria-current] .star").wait_for()
    page.keyboard.press("j")
    page.keyboard.press("s")
    page.locator("article.here .mark.placed .star").wait_for()
    (session, message) = Annotations().of_session("claude-code", MEAN)
    assert session.starred and message.starred and message.message == 1 and message.message_id
    page.keyboard.press("s")
    page.locator(".mark.placed").wait_for(state="detached")
    assert [found.message for found in Annotations().all()] == [None]
    page.keyboard.press("?")
    assert "star the message or session" in page.locator("#keys").inner_text()
    assert watched.complaints == []


def test_a_typed_note_is_not_lost_by_escape_or_a_reload(app: Shown, opener: Opener) -> None:
    page, watched = enter(app, opener(), PAGE)
    edit = page.get_by_role("button", name="Title, labels and note")
    dialog = page.get_by_role("dialog", name="Session")
    edit.click()
    dialog.wait_for()
    page.keyboard.press("Escape")
    dialog.wait_for(state="hidden")
    edit.click()
    dialog.get_by_label("Note").fill("Low water")
    page.keyboard.press("Escape")
    dialog.get_by_role("alert").filter(has_text="Not saved yet.").wait_for()
    assert dialog.get_by_label("Note").input_value() == "Low water"
    assert page.evaluate(ASKS_BEFORE_LEAVING)
    dialog.get_by_label("Note").fill("Low water at noon")
    assert dialog.get_by_role("alert").count() == 0
    page.keyboard.press("Escape")
    dialog.get_by_role("alert").filter(has_text="Not saved yet.").wait_for()
    dialog.get_by_role("button", name="Cancel").click()
    dialog.wait_for(state="hidden")
    assert not page.evaluate(ASKS_BEFORE_LEAVING)
    assert Annotations().all() == [] and watched.complaints == []


@pytest.mark.parametrize("look", LOOKS, ids=str)
def test_labels_and_notes_are_written(app: Shown, opener: Opener, look: dict[str, int | bool]) -> None:
    page, watched = enter(app, opener(**look), PAGE)
    page.get_by_role("button", name="Title, labels and note").click()
    dialog = page.get_by_role("dialog", name="Session")
    dialog.get_by_label("New label").fill("good prompt")
    dialog.get_by_label("Note").fill("First line\nsecond line")
    dialog.get_by_role("button", name="Save").click()
    page.locator("#annotations .label", has_text="good prompt").wait_for()
    assert page.locator("#annotations p.own-note").inner_text() == "First line\nsecond line"
    page.locator(".w > article").nth(1).click(position={"x": 3, "y": 3})
    page.locator(".w > article").nth(1).get_by_role("button", name="Edit labels and note").click()
    message = page.get_by_role("dialog", name="Message")
    message.get_by_label("good prompt").check()
    message.get_by_label("Note").fill("of a message")
    page.keyboard.press("Control+Enter")
    mark = page.locator(".w > article").nth(1).locator(".mark.placed")
    mark.wait_for()
    assert "good prompt" in mark.inner_text() and "of a message" in mark.inner_text()
    assert widths(page) <= 0
    found = Annotations().of_session("claude-code", MEAN)
    assert [(one.message is None, one.labels) for one in found] == [(True, ("good prompt",)), (False, ("good prompt",))]
    assert watched.complaints == []


def test_a_page_that_a_restart_has_signed_out_says_so_and_keeps_what_was_typed(app: Shown, opener: Opener) -> None:
    page, _ = enter(app, opener(), PAGE)
    page.get_by_role("button", name="Title, labels and note").click()
    dialog = page.get_by_role("dialog", name="Session")
    dialog.get_by_label("Note").fill("typed before")
    cookies = page.context.cookies()
    page.context.clear_cookies()
    dialog.get_by_role("button", name="Save").click()
    dialog.get_by_text("clew was restarted. Open its new link").wait_for()
    assert dialog.get_by_label("Note").input_value() == "typed before"
    page.context.add_cookies(cookies)  # type: ignore[arg-type]
    dialog.get_by_role("button", name="Save").click()
    page.locator("#annotations p.own-note", has_text="typed before").wait_for()


@pytest.mark.parametrize("look", LOOKS, ids=str)
def test_a_session_is_renamed(app: Shown, opener: Opener, look: dict[str, int | bool]) -> None:
    page, watched = enter(app, opener(**look), PAGE)
    before = page.locator("#title").inner_text()
    for title, shown_title in (("Mean level <b>again</b>", "Mean level <b>again</b>"), ("", before)):
        page.get_by_role("button", name="Title, labels and note").click()
        page.get_by_role("dialog", name="Session").get_by_label("Title").fill(title)
        page.get_by_role("button", name="Save").click()
        page.locator("#title", has_text=shown_title).wait_for()
        assert page.title() == f"{shown_title} · clew" and widths(page) <= 0
        assert Annotations().get(SESSION).title == title
        page.reload()
        assert page.locator("#title").inner_text() == shown_title
    assert watched.complaints == []


def test_several_labels_are_chosen_in_the_list(app: Shown, opener: Opener) -> None:
    Annotations().change(SESSION, add_labels=["salt", "sea"])
    Annotations().change(Target("claude-code", FORKED), add_labels=["sea"])
    page, watched = enter(app, opener(width=390, height=844), "/sessions")
    page.locator("summary", has_text="Labels").click()
    page.get_by_role("checkbox", name="sea").check()
    page.locator("#found .count", has_text="2 sessions match").wait_for()
    page.get_by_role("checkbox", name="salt").check()
    page.locator("#found .count", has_text="1 session match").wait_for()
    assert "label=salt" in page.url and "label=sea" in page.url and widths(page) <= 0
    page.get_by_role("checkbox", name="Hide single-prompt sessions").check()
    page.wait_for_url("**min_prompts=2**")
    assert watched.complaints == []


def test_a_form_that_is_left_changes_nothing(app: Shown, opener: Opener) -> None:
    page, _ = enter(app, opener(), PAGE)
    for leave in ("Escape", "Cancel"):
        page.get_by_role("button", name="Title, labels and note").click()
        page.get_by_label("New label").fill("lost")
        if leave == "Escape":
            page.keyboard.press("Escape")
            page.get_by_text("Not saved yet").wait_for()
            page.keyboard.press("Escape")
        else:
            page.get_by_role("button", name="Cancel").click()
        page.get_by_role("dialog").wait_for(state="hidden")
    assert Annotations().all() == []


def test_what_the_server_refuses_is_said_in_the_form(app: Shown, opener: Opener) -> None:
    page, _ = enter(app, opener(), PAGE)
    page.get_by_role("button", name="Title, labels and note").click()
    page.get_by_label("New label").fill("odd \u202e label")
    page.get_by_role("button", name="Save").click()
    page.locator("#annotation-problem", has_text="control or invisible").wait_for()
    page.get_by_label("New label").fill("plain")
    page.get_by_role("button", name="Save").click()
    page.locator("#annotations .label", has_text="plain").wait_for()


def test_marks_come_and_go_with_the_windows_of_a_long_session(app: Shown, opener: Opener) -> None:
    target = Target("claude-code", MIDDLING, "0f6a1c52-1111-4000-8000-000000000333", 333)
    Annotations().change(target, starred=True, note="far below")
    page, _ = enter(app, opener(), f"/session/claude-code/{MIDDLING}")
    assert page.locator(".mark.placed").count() == 0
    page.locator(".marked summary").click()
    page.locator(".marked .which").click()
    mark = page.locator("#m333 .mark.placed, article:has(#m333) .mark.placed")
    mark.wait_for()
    assert "far below" in mark.inner_text()
    box = page.locator("#m333").bounding_box()
    assert box is not None and -50 < box["y"] < 900


def test_all_marks_are_on_one_page_and_are_imported_there(app: Shown, opener: Opener, tmp_path: Path) -> None:
    page, watched = enter(app, opener(), "/annotations")
    assert "Nothing is marked yet" in page.locator("main").inner_text()
    many = [{"agent": "claude-code", "session": MEAN, "note": "mine", "starred": True}]
    many += [{"agent": "codex", "session": f"s{number}", "note": "n" * 900} for number in range(200)]
    file = tmp_path / "export.json"
    file.write_text(json.dumps({"clew_annotations": 1, "annotations": many}))
    with page.expect_file_chooser() as choosing:
        page.get_by_role("button", name="Import").click()
    choosing.value.set_files(file)
    page.locator("#imported", has_text="201 added, 0 changed, 0 unchanged").wait_for()
    assert len(Annotations().all()) == 201
    with page.expect_download() as downloading:
        page.get_by_role("link", name="Export").click()
    assert len(json.loads(Path(downloading.value.path()).read_text())["annotations"]) == 201
    group = page.locator(".group", has_text="mine")
    group.get_by_role("button", name="Edit").click()
    page.get_by_role("dialog").get_by_label("Note").fill("changed")
    page.get_by_role("button", name="Save").click()
    page.locator(".group", has_text="changed").wait_for()
    file.write_text('{"clew_annotations": 2, "annotations": [{}]}')
    with page.expect_file_chooser() as choosing:
        page.get_by_role("button", name="Import").click()
    choosing.value.set_files(file)
    page.locator("#imported", has_text="not").wait_for()
    file.write_text("no JSON")
    with page.expect_file_chooser() as choosing:
        page.get_by_role("button", name="Import").click()
    choosing.value.set_files(file)
    page.locator("#imported", has_text="This is not an export").wait_for()
    assert len(Annotations().all()) == 201
    assert [text for text in watched.complaints if "400" not in text] == []


def test_an_import_that_is_cut_off_says_so_and_shows_what_was_imported(
    app: Shown, opener: Opener, tmp_path: Path
) -> None:
    page, _ = enter(app, opener(), "/annotations")
    many = [{"agent": "codex", "session": f"s{number}", "note": "n" * 900} for number in range(60)]
    file = tmp_path / "export.json"
    file.write_text(json.dumps({"clew_annotations": 1, "annotations": many}))
    answered: list[bool] = []

    def answer_once(route: Route) -> None:
        answered.append(not answered)
        if answered[-1]:
            route.continue_()
        else:
            route.abort()

    page.route("**/annotations/import", answer_once)
    for expected in ("Not all was imported", "does not answer"):
        with page.expect_file_chooser() as choosing:
            page.get_by_role("button", name="Import").click()
        choosing.value.set_files(file)
        page.locator("#imported", has_text=expected).wait_for()
        assert "not an export" not in page.locator("#imported").inner_text()
        assert page.locator("#annotated .group").count() > 0


def test_marks_are_read_without_script(app: Shown, opener: Opener) -> None:
    Annotations().change(SESSION, starred=True, add_labels=["sea"], note="mine")
    Annotations().change(SESSION._replace(message=1), note="first")
    watched = opener(scripts=False)
    name, _, value = app.cookie().partition("=")
    watched.page.context.add_cookies([{"name": name, "value": value, "url": f"http://{app.host}"}])
    watched.page.goto(f"http://{app.host}{PAGE}")
    text = watched.page.locator("#annotations").inner_text()
    assert "★" in text and "sea" in text and "mine" in text
    assert not watched.page.locator("#star").is_visible() and not watched.page.locator("#annotate").is_visible()
    watched.page.goto(f"http://{app.host}/annotations")
    assert "first" in watched.page.locator("main").inner_text()
    assert not watched.page.get_by_role("button", name="Import").is_visible()


@pytest.mark.parametrize("look", LOOKS)
def test_enter_adds_a_label_and_keeps_the_form_open(app: Shown, opener: Opener, look: dict[str, int | bool]) -> None:
    Annotations().change(SESSION._replace(message=1), add_labels=["Sea"])
    page, _ = enter(app, opener(**look), PAGE)
    page.get_by_role("button", name="Title, labels and note").click()
    field = page.get_by_role("dialog").get_by_label("New label")
    for text in ("good prompt", "second", "sea"):
        field.fill(text)
        field.press("Enter")
        assert field.input_value() == "" and page.get_by_role("dialog").get_by_label(text).is_checked()
    assert page.get_by_role("dialog").get_by_role("checkbox").count() == 4
    field.press("Enter")
    page.get_by_role("dialog").wait_for(state="hidden")
    page.locator("#annotations .label", has_text="second").wait_for()
    assert Annotations().get(SESSION).labels == ("good prompt", "Sea", "second")


def test_hostile_labels_and_notes_do_nothing(app: Shown, opener: Opener) -> None:
    for number, text in enumerate(PLAIN[:20], 1):
        target = SESSION if number == 1 else Target("claude-code", MIDDLING, None, number)
        Annotations().change(target, starred=True, note=text[:5000], add_labels=[text[:60]] if text.strip() else [])
    for path in (PAGE, f"/session/claude-code/{MIDDLING}", "/annotations", "/sessions", "/"):
        for look in LOOKS[:3:2]:
            page, watched = enter(app, opener(**look), path)
            page.wait_for_timeout(300)
            if page.locator("#annotate").count():
                page.locator("#annotate").click()
                page.get_by_role("dialog").wait_for()
            assert (watched.complaints, foreign(app, watched)) == ([], []), path
            assert widths(page) <= 0, path


@pytest.mark.parametrize("look", LOOKS, ids=str)
def test_an_accessibility_check_finds_nothing(app: Shown, opener: Opener, look: dict[str, int | bool]) -> None:
    if AXE is None:
        pytest.skip("axe-core is not here: `make axe` fetches it, or name its axe.min.js in CLEW_AXE")
    Annotations().change(SESSION, starred=True, add_labels=["sea", "salt"], note="mine")
    Annotations().change(SESSION._replace(message=1), starred=True, add_labels=["sea"], note="first")
    Annotations().change(Target("codex", "gone"), add_labels=["sea"])
    page, _ = enter(app, opener(checked=True, **look), "/")
    for path in ("/annotations", "/sessions?label=sea", PAGE, f"{PAGE}?form"):
        page.goto(f"http://{app.host}{path}")
        page.wait_for_timeout(300)
        if path.endswith("?form"):
            page.locator("#annotate").click()
            page.get_by_role("dialog").wait_for()
        page.add_script_tag(content=Path(AXE).read_text(encoding="utf-8"))
        found = page.evaluate("axe.run()")["violations"]
        assert [(one["id"], [node["html"][:120] for node in one["nodes"]][:3]) for one in found] == [], path
