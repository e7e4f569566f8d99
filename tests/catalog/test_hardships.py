"""What a disk full of histories may hold, and what a kill may leave behind: no sync is lost to it, and no text."""

from __future__ import annotations

import json
import os
import sqlite3
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from clew.catalog import database
from clew.catalog.queries import files, list_rows
from clew.catalog.search import Request, Searcher, unmasked
from clew.catalog.sessions import open_session
from clew.catalog.sync import forget, is_up_to_date, move_aside, rebuild_text_index, sync
from clew.catalog.text_index import TextWriter
from clew.catalog.upgrade import SessionCopier
from clew.filters import Filters
from clew.host import Host
from clew.library import Library
from tests.catalog.worlds import (
    append,
    claude_lines,
    claude_path,
    indexed,
    kill_at,
    run,
    searchable,
    spelled,
    write_claude,
)
from tests.cli.running import clew

SESSION = "aaaaaaaa-0000-4000-8000-000000000000"
OTHER = "bbbbbbbb-0000-4000-8000-000000000000"
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "catalog"


def hits(folder: Path, words: str = "shuttle0x2") -> int:
    searcher = Searcher(folder, unmasked)
    try:
        return searcher.search(Request(words)).total
    finally:
        searcher.close()


def ask(folder: Path, query: str) -> list[tuple[Any, ...]]:
    db = database.open_reader(folder)
    assert db is not None
    try:
        return db.execute(query).fetchall()
    finally:
        db.close()


class Killed(BaseException):
    pass


def test_a_new_index_that_was_not_finished_is_finished_by_the_next_sync(
    home: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(_writer: TextWriter) -> None:
        raise Killed

    write_claude(home, SESSION, 10)
    run(home, folder)
    with monkeypatch.context() as patched:
        patched.setattr(TextWriter, "commit", stopped)
        with pytest.raises(Killed):
            rebuild_text_index(folder)
    run(home, folder)
    assert hits(folder) == 1


def test_a_damaged_index_costs_no_session_whose_source_is_gone(home: Path, folder: Path) -> None:
    path, other = write_claude(home, SESSION, 10), write_claude(home, OTHER, 10, seed=1)
    run(home, folder)
    path.unlink()
    run(home, folder)
    (folder / database.TEXT / "meta.json").write_text("garbage")
    append(other, spelled(claude_lines(OTHER, 10, 50, seed=1)))
    assert run(home, folder).moved is None
    assert ask(folder, "SELECT count(*) FROM sessions WHERE state = 'gone'") == [(1,)]
    assert hits(folder) == 1 and hits(folder, "shuttle1x2") == 1


def test_numbers_that_nobody_can_have_used_stop_no_sync(home: Path, folder: Path) -> None:
    lines = claude_lines(SESSION, 0, 5)
    lines[2]["message"]["usage"]["input_tokens"] = 4 * 10**15
    path = claude_path(home, SESSION)
    path.parent.mkdir(parents=True)
    path.write_bytes(spelled(lines))
    write_claude(home, OTHER, 5, seed=1)
    run(home, folder)
    assert len(ask(folder, "SELECT session_id FROM sessions")) == 2
    assert max(count for (count,) in ask(folder, "SELECT coalesce(input_tokens, 0) FROM usage")) < 10**12


@pytest.mark.skipif(os.name != "posix", reason="names are bytes on POSIX alone")
def test_a_name_that_is_not_utf_8_is_a_session_like_others(home: Path, folder: Path) -> None:
    write_claude(home, SESSION, 5)
    odd = Path(os.fsdecode(os.fsencode(home) + b"/.claude/projects/-odd-\xff"))
    try:
        odd.mkdir()
    except OSError:
        pytest.skip("this file system wants names to be text")
    (odd / f"{OTHER}.jsonl").write_bytes(spelled(claude_lines(OTHER, 0, 5)))
    assert run(home, folder).sources == 2
    time.sleep(0.2)
    run(home, folder)
    assert run(home, folder).work.files == 0
    library = Library(Host.at(home))
    with library.catalog() as catalog:
        assert {row["id"] for row in list_rows(catalog.db)} == {SESSION, OTHER}
    assert library.get(OTHER).path == odd / f"{OTHER}.jsonl"
    assert {session.id for session in library.sessions(Filters(since=NOON))} == {SESSION, OTHER}
    shown = clew("--home", home, "list", "--json")
    assert shown.code == 0 and any(row["path"].endswith(f"-odd-\\xff/{OTHER}.jsonl") for row in shown.json)


@pytest.mark.parametrize("odd", [["assistant"], {"a": 1}, 5, True])
def test_a_type_that_is_no_word_loses_no_session(home: Path, folder: Path, odd: Any) -> None:
    path = claude_path(home, SESSION)
    path.parent.mkdir(parents=True)
    lines = [{**claude_lines(SESSION, 0, 1)[0], "type": odd}, *claude_lines(SESSION, 0, 5)]
    path.write_bytes(spelled(lines))
    run(home, folder)
    assert ask(folder, "SELECT native_id FROM sessions") == [(SESSION,)]
    assert hits(folder) == 1


def test_a_torn_tail_of_any_depth_is_one_problem(home: Path, folder: Path) -> None:
    path = write_claude(home, SESSION, 5)
    run(home, folder)
    append(path, b'{"a":' + b"[" * 200_000)
    run(home, folder)
    ((noted,),) = ask(folder, "SELECT problems FROM source")
    assert [problem["code"] for problem in json.loads(noted)] == ["too-deep"]


def test_odd_lines_of_any_agent_are_noted(home: Path, folder: Path) -> None:
    rollout = home / ".codex" / "sessions" / "2026" / "10" / "01" / f"rollout-2026-10-01T08-00-00-{SESSION}.jsonl"
    rollout.parent.mkdir(parents=True)
    head = {"timestamp": "2026-10-01T08:00:00.000Z", "type": "session_meta", "payload": {"id": SESSION, "cwd": "/w"}}
    rollout.write_bytes(spelled([head]) + b"no json\n" + b"\0" * 64 + b"\n" + b'{"timestamp":"2026')
    run(home, folder)
    ((noted,),) = ask(folder, "SELECT problems FROM source")
    assert {(problem["code"], problem["line"]) for problem in json.loads(noted)} == {
        ("malformed-json", 2),
        ("nul-run", 3),
        ("torn-tail", 4),
    }


def test_a_session_deleted_after_a_killed_sync_is_shown_as_incomplete(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_claude(home, SESSION, 40)
    folder = database.catalog_folder([home])
    run(home, folder)
    monkeypatch.setattr("clew.catalog.worker.MAX_BUFFERED_CHARS", 1)
    monkeypatch.setattr("clew.catalog.ingest.FLUSH_CHARS", 100)
    path.write_bytes(spelled(claude_lines(SESSION, 0, 40, seed=3)))
    assert not kill_at(4, lambda: run(home, folder))
    assert ask(folder, "SELECT count(*) FROM unread_messages") == [(0,)]
    assert clew("--home", home, "list").code == 0
    assert ask(folder, "SELECT count(*) FROM unread_messages") == [(1,)]
    path.unlink()
    shown = clew("--home", home, "show", SESSION)
    assert shown.code == 0 and "some of its messages were not read before" in shown.err


def test_statistics_are_whole_while_a_sync_is_interrupted(
    home: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_claude(home, SESSION, 40)
    run(home, folder)
    calls = "SELECT sum(calls) FROM usage_days"
    [(before,)] = ask(folder, calls)
    append(path, spelled(claude_lines(SESSION, 40, 5)))

    def killed(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr("clew.catalog.sync._finish_rows", killed)
        with pytest.raises(Killed):
            run(home, folder)
    assert ask(folder, calls) == [(before,)]
    run(home, folder)
    assert ask(folder, calls)[0][0] == before + 1
    path.write_bytes(b"")
    run(home, folder)
    path.unlink()
    run(home, folder)


def test_the_sums_of_a_source_go_with_its_session(home: Path, folder: Path) -> None:
    path = write_claude(home, SESSION, 40)
    run(home, folder)
    forget(folder, str(path))
    for table in ("usage_by_quarter_hour", "tools_by_quarter_hour", "changes_by_quarter_hour"):
        assert ask(folder, f"SELECT count(*) FROM {table}") == [(0,)]


def test_a_long_session_whose_file_is_gone_opens_in_time_that_grows_with_its_length(home: Path, folder: Path) -> None:
    path = write_claude(home, SESSION, 400)
    run(home, folder)
    path.unlink()
    run(home, folder)
    db = database.open_reader(folder)
    assert db is not None
    queries: list[str] = []
    db.set_trace_callback(queries.append)
    session = open_session(db, 1)
    assert session.facts.messages == 400
    assert len([query for query in queries if "FROM block" in query or "FROM call" in query]) == 2
    db.close()


def test_hosts_that_are_not_local_are_compared_with_the_recorded_ones(home: Path, folder: Path) -> None:
    write_claude(home, SESSION, 10)
    hosts = [Host.at(home)._replace(kind="wsl", name="Debian")]
    time.sleep(0.2)
    for _ in range(2):
        sync(hosts, folder, workers=1)
    assert is_up_to_date(lambda: hosts, folder)
    assert not is_up_to_date(list, folder)


def test_a_full_disk_while_old_sessions_are_copied_leaves_them_to_the_next_sync(
    home: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_claude(home, SESSION, 10)
    run(home, folder)
    path.unlink()
    run(home, folder)
    days = ask(folder, "SELECT day_utc FROM sessions")
    move_aside(folder)

    def full(*_: object) -> int:
        raise sqlite3.OperationalError("database or disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(SessionCopier, "_insert", full)
        with pytest.raises(database.CatalogNotWritable, match="disk is full"):
            run(home, folder)
    run(home, folder)
    assert ask(folder, "SELECT day_utc FROM sessions") == days and days != [(None,)]


def test_a_session_that_names_a_file_in_two_ways_is_one_session_of_the_file(home: Path, folder: Path) -> None:
    lines = claude_lines(SESSION, 0, 10)
    lines[3]["message"]["content"][0]["input"]["file_path"] = "/home/mira/loom/part.py"
    lines[8]["message"]["content"][0]["input"]["file_path"] = "part.py"
    path = claude_path(home, SESSION)
    path.parent.mkdir(parents=True)
    path.write_bytes(spelled(lines))
    run(home, folder)
    db = database.open_reader(folder)
    assert db is not None
    assert [(file.path, file.sessions, file.changes) for file in files(db)] == [("/home/mira/loom/part.py", 1, 2)]
    db.close()


def test_a_search_goes_on_while_another_process_rebuilds_the_index(home: Path, folder: Path) -> None:
    write_claude(home, SESSION, 10)
    run(home, folder)
    searcher = Searcher(folder, unmasked)
    try:
        assert searcher.search(Request("shuttle0x2")).total == 1
        rebuild_text_index(folder)
        assert searcher.search(Request("shuttle0x2")).total == 1
    finally:
        searcher.close()


def test_a_failed_update_of_the_index_lets_go_of_its_lock(
    home: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_claude(home, SESSION, 10)
    closed: list[TextWriter] = []

    def stopped(_writer: TextWriter) -> None:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(TextWriter, "commit", stopped)
        patched.setattr(TextWriter, "close", lambda writer: closed.append(writer))
        with pytest.raises(Killed):
            run(home, folder)
    assert len(closed) == 1


def test_the_title_of_a_copy_is_found_once_and_again_when_the_other_copy_is_gone(home: Path, folder: Path) -> None:
    path = write_claude(home, SESSION, 10)
    append(path, spelled([{"type": "custom-title", "customTitle": "quokka", "sessionId": SESSION}]))
    copy = home / ".claude/projects/-copy" / path.name
    copy.parent.mkdir()
    copy.write_bytes(path.read_bytes())
    run(home, folder)
    assert hits(folder, "quokka") == 1 and indexed(folder) == searchable(folder)
    append(copy, spelled(claude_lines(SESSION, 10, 5)))
    run(home, folder)
    assert hits(folder, "quokka") == 1 and indexed(folder) == searchable(folder)
    copy.unlink()
    run(home, folder)
    assert hits(folder, "quokka") == 1 and indexed(folder) == searchable(folder)
