"""Background work of the web server: the sync and the scan run in processes of their own."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from clew.catalog import database
from clew.catalog.change_detection import has_unfinished_work
from clew.catalog.lock import locked
from clew.catalog.sync_level import SyncLevel
from clew.catalog.sync_process import Outcome, Progress, SyncUpdate
from clew.errors import UsageError
from clew.host import Host, data_dir
from clew.library import every_host
from clew.sources.config import FILE
from clew.web import background
from clew.web.background import CatalogUpdater, SecretScan
from clew.web.context import AppContext
from tests.catalog.worlds import append
from tests.cli.running import clew
from tests.demo_home import write_small_demo
from tests.web.live_session import SESSION, line, session_file
from tests.web.shown import shown_context


@pytest.mark.slow
def test_a_sync_fills_the_catalog(tmp_path: Path) -> None:
    session_file(tmp_path / "home")
    update = SyncUpdate([Host.at(tmp_path / "home")], tmp_path / "catalog")
    assert update.run() == "fresh"
    db = database.open_reader(tmp_path / "catalog")
    assert db is not None and db.execute("SELECT native_id FROM sessions").fetchall() == [(SESSION,)]
    assert not has_unfinished_work(db, tmp_path / "catalog", SyncLevel.TEXT)
    db.close()


@pytest.mark.slow
def test_a_sync_of_another_process_is_waited_for(tmp_path: Path) -> None:
    session_file(tmp_path / "home")
    with locked(tmp_path / "catalog"):
        assert SyncUpdate([Host.at(tmp_path / "home")], tmp_path / "catalog").run() == "busy"


@pytest.mark.slow
def test_a_sync_that_fails_is_reported(tmp_path: Path) -> None:
    (tmp_path / "catalog").write_text("a file where the folder should be")
    updater = CatalogUpdater(SyncUpdate([Host.at(tmp_path)], tmp_path / "catalog"))
    states = {updater.state}
    updater.start()
    until = time.monotonic() + 30
    while "failed" not in states and time.monotonic() < until:
        states.add(updater.state)
        time.sleep(0.05)
    updater.stop()
    assert {"off", "failed"} <= states <= {"off", "working", "failed"}


@pytest.mark.slow
def test_modules_of_the_current_folder_are_never_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`clew web` may be started inside a repository of anyone's making."""
    repository, mark = tmp_path / "repository", tmp_path / "mark"
    repository.mkdir()
    for name in ("pickle", "clew", "msgspec", "sqlite3"):
        (repository / f"{name}.py").write_text(f"open({str(mark)!r}, 'w')")
    write_small_demo(tmp_path / "home")
    monkeypatch.chdir(repository)
    hosts = [Host.at(tmp_path / "home")]
    assert SyncUpdate(hosts, tmp_path / "catalog").run() == "fresh"
    scan = SecretScan(hosts)
    scan.start(plain=False, rules=None, again=False)
    until = time.monotonic() + 60
    while scan.is_running and time.monotonic() < until:
        time.sleep(0.05)
    assert scan.findings is not None and not scan.has_failed
    assert not mark.exists()


@pytest.mark.slow
def test_a_source_that_is_added_while_the_app_runs_is_shown(tmp_path: Path, home: Path) -> None:
    (home / ".claude/projects").mkdir(parents=True)
    folder = tmp_path / "catalog"

    def watched() -> list[Path]:
        return [host.home / ".claude" for host in every_host()]

    updater = CatalogUpdater(SyncUpdate(every_host, folder), watched, [data_dir() / FILE])
    with shown_context(AppContext(every_host, folder, updater=updater)) as app:
        updater.start()
        wait_for(lambda: updater.state == "fresh")
        assert SESSION not in app.get("/sessions").body.decode()
        path = session_file(tmp_path / "other")
        assert clew("sources", "add", tmp_path / "other").code == 0
        wait_for(lambda: SESSION in app.get("/sessions").body.decode())
        assert str(tmp_path / "other") in app.get("/sources").body.decode()
        # What changes there is seen at once, without waiting for the update of every minute.
        append(path, line(2, "Second.").encode())
        wait_for(lambda: app.catalog_row("SELECT message_count FROM sessions") == (2,))
    updater.stop()


def wait_for(condition: Callable[[], bool]) -> None:
    """Wait until a condition holds, for at most 30 seconds."""
    until = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.05)


def test_an_update_follows_the_first_at_once_however_short_the_machine_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "POLL_MS", 10)
    monkeypatch.setattr(background, "MAX_SECONDS_BETWEEN_UPDATES", time.monotonic() + 3600)
    ran, second = [], threading.Event()

    class Counted:
        progress: Progress | None = None

        def run(self) -> Outcome:
            ran.append(True)
            if len(ran) == 2:
                second.set()
            return "fresh"

        def cancel(self) -> None:
            pass

    updater = CatalogUpdater(Counted())
    updater.start()
    assert second.wait(10)
    updater.stop()
    assert len(ran) == 2


def test_an_update_is_run_again_soon_while_another_process_updates_the_catalog(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(background, "POLL_MS", 10)
    monkeypatch.setattr(background, "BUSY_RETRY_SECONDS", 0.1)
    outcomes: list[Outcome] = ["busy", "busy", "busy", "fresh"]
    states: list[tuple[str, bool]] = []

    class Another:
        progress: Progress | None = None

        def run(self) -> Outcome:
            states.append((updater.state, updater.has_finished))
            return outcomes.pop(0)

        def cancel(self) -> None:
            pass

    updater = CatalogUpdater(Another())
    updater.start()
    wait_for(lambda: updater.state == "fresh")
    updater.stop()
    assert states == [("working", False)] * 4 and updater.has_finished


def test_while_another_process_updates_the_catalog_tries_are_seconds_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "POLL_MS", 10)
    monkeypatch.setattr(background, "BUSY_RETRY_SECONDS", 3600.0)
    outcomes: list[Outcome] = ["fresh", "busy", "fresh"]

    class Another:
        progress: Progress | None = None

        def run(self) -> Outcome:
            return outcomes.pop(0)

        def cancel(self) -> None:
            pass

    updater = CatalogUpdater(Another())
    updater.start()
    wait_for(lambda: len(outcomes) == 1 and updater.state == "fresh")
    time.sleep(0.2)
    updater.stop()
    assert outcomes == ["fresh"] and updater.state == "fresh"


def test_an_unexpected_error_is_a_failed_update(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(background, "POLL_MS", 10)
    ran: list[bool] = []

    class Broken:
        progress: Progress | None = None

        def run(self) -> Outcome:
            ran.append(True)
            if len(ran) == 1:
                raise RuntimeError("the disk is gone")
            return "fresh"

        def cancel(self) -> None:
            pass

    updater = CatalogUpdater(Broken())
    updater.start()
    wait_for(lambda: updater.state == "fresh")
    updater.stop()
    assert "the disk is gone" in caplog.text


@pytest.mark.slow
def test_a_sync_says_how_far_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_small_demo(tmp_path / "home")
    update = SyncUpdate([Host.at(tmp_path / "home")], tmp_path / "catalog")
    seen: list[Progress] = []
    monkeypatch.setattr(update, "_set_progress", seen.append)
    assert update.run() == "fresh" and update.progress is None
    assert list(dict.fromkeys(step.task for step in seen))[:2] == ["sessions", "messages"]
    assert all(0 <= step.percent <= 100 for step in seen)


def test_a_sync_that_a_user_asks_for_runs_soon_and_after_one_that_is_running(tmp_path: Path) -> None:
    may_finish, ran = threading.Semaphore(0), list[int]()

    class Held:
        progress: Progress | None = None

        def run(self) -> Outcome:
            ran.append(len(ran))
            assert may_finish.acquire(timeout=20)
            return "fresh"

        def cancel(self) -> None:
            may_finish.release(9)

    updater = CatalogUpdater(Held())
    with pytest.raises(UsageError, match="not updated while this app runs"):
        updater.request()
    updater.start()
    try:
        may_finish.release(2)
        wait_for(lambda: len(ran) == 2 and updater.state == "fresh")
        assert updater.succeeded_at is not None
        updater.request()
        wait_for(lambda: len(ran) == 3)
        assert updater.is_requested
        updater.request()
        may_finish.release(2)
        wait_for(lambda: not updater.is_requested)
        assert (len(ran), updater.state) == (4, "fresh")
    finally:
        updater.stop()
