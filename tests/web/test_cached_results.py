"""Results that pages keep: when they are computed again, and which are dropped."""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from collections.abc import Iterator
from datetime import datetime
from functools import partial
from pathlib import Path

import pytest

from clew.catalog import queries
from clew.filters import Filters
from clew.host import Host, config_dir
from clew.redact.settings import RULES_FILE
from clew.web import user_settings
from clew.web.context import MAX_CACHED_RESULTS, AppContext
from clew.web.date_range import DateRange
from clew.web.pages import usage
from clew.web.request import PageRequest
from tests.counting.homes import SESSION, claude, prompt, reply
from tests.web.many_sessions import write_sessions
from tests.web.shown import Shown, shown


@pytest.fixture
def app(tmp_path: Path) -> Iterator[Shown]:
    write_sessions(tmp_path / "home", 3)
    with shown(tmp_path / "home", tmp_path / "catalog") as running:
        yield running


def test_only_the_result_used_least_recently_is_dropped(tmp_path: Path) -> None:
    context = AppContext([Host.at(tmp_path)], tmp_path)
    try:
        for number in range(MAX_CACHED_RESULTS):
            context.cached(str(number), lambda: "old")
        context.cached("0", lambda: "new")
        context.cached("one more", lambda: "old")
        kept = [context.cached(str(number), lambda: "new") for number in (0, 2, 3)]
        assert kept == ["old"] * 3
        assert context.cached("1", lambda: "new") == "new"
    finally:
        context.close()


def test_usage_since_a_relative_time_is_computed_once_a_minute(app: Shown, monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = iter((10, 20, 30, 40))
    minute = app.context.now().replace(second=0, microsecond=7)
    load, computed = usage._load, list[Filters]()

    def counting(request: PageRequest, filters: Filters, dates: DateRange, by: str | None) -> usage.Usage:
        computed.append(filters)
        return load(request, filters, dates, by)

    app.page("/usage")  # opens the catalog, which changes its files
    monkeypatch.setattr(usage, "_load", counting)
    for path in ("/usage?since=3d", "/usage?since=3d", "/usage?since=3d", "/usage?since=4d"):
        now = minute.replace(second=next(seconds))
        monkeypatch.setattr(app.context, "now", partial(datetime.astimezone, now))
        app.page(path)
    assert len(computed) == 2


def test_the_palette_reads_the_changed_files_once_if_a_zone_is_set(app: Shown, monkeypatch: pytest.MonkeyPatch) -> None:
    user_settings.save({"timezone": "Asia/Tokyo"})
    files, reads = queries.files, list[int]()

    def counting(db: sqlite3.Connection) -> list[queries.TouchedFile]:
        reads.append(1)
        return files(db)

    monkeypatch.setattr(queries, "files", counting)
    for path in ("/palette", "/palette?q=a", "/palette", "/palette?q=b"):
        app.part(path)
        time.sleep(0.1)
    assert len(reads) == 1


def test_a_failure_in_the_background_is_logged(app: Shown, caplog: pytest.LogCaptureFixture) -> None:
    def fail(_context: AppContext) -> None:
        raise RuntimeError("no files today")

    with caplog.at_level(logging.ERROR, "clew.web.context"):
        app.context.run_in_background(fail)
        deadline = time.monotonic() + 5
        while "no files today" not in caplog.text and time.monotonic() < deadline:
            time.sleep(0.01)
    assert "no files today" in caplog.text


def test_the_end_of_the_app_is_no_failure_in_the_background(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    claude(tmp_path / "home", prompt("hello"))
    begun, closed, ended = threading.Event(), threading.Event(), threading.Event()

    def read(context: AppContext) -> None:
        db = context.db
        begun.set()
        closed.wait(10)
        try:
            db.execute("SELECT 1")
        finally:
            ended.set()

    with caplog.at_level(logging.ERROR, "clew.web.context"):
        with shown(tmp_path / "home", tmp_path / "catalog") as app:
            app.context.run_in_background(read)
            assert begun.wait(10)
        closed.set()
        assert ended.wait(10)
        time.sleep(0.1)
    assert caplog.text == ""


def test_rules_that_change_while_the_app_runs_hold_on_every_page(tmp_path: Path) -> None:
    name = "bluebird-project"
    claude(
        tmp_path / "home", prompt(f"Rename {name}", cwd=f"/home/ada/{name}"), reply("m1", 1, 2, cwd=f"/home/ada/{name}")
    )
    with shown(tmp_path / "home", tmp_path / "catalog", profile="secrets") as app:
        paths = ("/", "/usage", "/usage?by=project", f"/session/claude-code/{SESSION}")
        assert name in "".join(app.get(path).body.decode() for path in paths)
        config_dir().mkdir(parents=True, exist_ok=True)
        (config_dir() / RULES_FILE).write_text(f'[[rule]]\nid = "bird"\npattern = "{name}"\n')
        for path in paths:
            assert name not in app.get(path).body.decode(), path
