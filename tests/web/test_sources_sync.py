"""The button on the Sources page that starts a sync."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from clew.catalog.sync import sync
from clew.catalog.sync_process import Outcome, Progress
from clew.host import Host
from clew.web.background import CatalogUpdater
from clew.web.context import AppContext
from tests.counting.homes import claude, prompt
from tests.web.shown import Shown, named, shown_context, words


class HeldUpdate:
    """Updates that end when the test says so."""

    def __init__(self) -> None:
        self.progress: Progress | None = None
        self.may_finish = threading.Event()

    def run(self) -> Outcome:
        assert self.may_finish.wait(60)
        return "fresh"

    def cancel(self) -> None:
        self.may_finish.set()


def test_a_sync_is_asked_for_and_the_page_shows_how_far_it_is(tmp_path: Path) -> None:
    host, folder = Host.at(tmp_path / "home"), tmp_path / "catalog"
    claude(host.home, prompt("Sail"))
    sync([host], folder)
    held = HeldUpdate()
    held.may_finish.set()
    updater = CatalogUpdater(held)
    updater.start()
    with shown_context(AppContext([host], folder, updater=updater)) as app:
        try:
            wait_until_fresh(app)
            assert "The catalog is up to date as of " in words(app.page("/sources"))
            held.may_finish.clear()
            assert app.post("/sources/sync", {}).status == 200
            page = app.page("/sources")
            (strip,) = [element for element in named(page, "div") if element.get("id") == "sync"]
            assert strip.get("data-refresh") == "1"
            assert "Looking for changes" in words(strip)
            held.progress = Progress("messages", 77)
            wait_for_words(app, "Reading messages 77 %")
            held.progress = None
            held.may_finish.set()
            wait_until_fresh(app)
        finally:
            updater.stop()


def wait_until_fresh(app: Shown) -> None:
    updater = app.context.updater
    pause = threading.Event()
    for _ in range(600):
        if updater.state == "fresh" and not updater.is_requested and updater.succeeded_at is not None:
            return
        pause.wait(0.05)
    pytest.fail("the update did not end")


def wait_for_words(app: Shown, text: str) -> None:
    pause = threading.Event()
    for _ in range(100):
        if text in words(app.page("/sources")):
            return
        pause.wait(0.05)
    pytest.fail(f"the page did not show {text!r}")


def test_without_updates_there_is_no_button_and_a_request_is_refused(demo: Shown) -> None:
    assert [each for each in named(demo.page("/sources"), "button") if each.get("id") == "sync-now"] == []
    answer = demo.post("/sources/sync", {})
    assert answer.status == 400
    assert "`clew sync` updates it" in json.loads(answer.body)["error"]


def test_another_site_cannot_ask_for_a_sync(demo: Shown) -> None:
    assert demo.post("/sources/sync", {}, Origin="http://evil.example").status == 403
