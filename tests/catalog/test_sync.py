"""A sync costs what changed, and always ends as a first sync would."""

from __future__ import annotations

import errno
import json
import os
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from clew.catalog import change_detection, database
from clew.catalog.lock import locked
from clew.catalog.row_writer import RowWriter
from clew.catalog.schema import KEYS_PER_SOURCE
from clew.catalog.search import Request, Searcher, unmasked
from clew.catalog.sessions import open_session
from clew.catalog.sync import forget, forget_gone, is_up_to_date, move_aside, sync
from clew.catalog.sync_level import SyncLevel
from clew.catalog.text_index import TextWriter, stale_ranges, unindexed_text
from clew.catalog.text_store import TextStore, mark_unindexed
from clew.errors import Busy, SourceUnreadable
from clew.host import Host
from tests.catalog.worlds import (
    SESSION_VIEWS,
    VIEWS,
    append,
    claude_lines,
    claude_path,
    dump,
    indexed,
    kill_at,
    run,
    searchable,
    spelled,
    write_claude,
)

ONE, TWO = "0a0a0a0a-1111-4111-8111-111111111111", "0b0b0b0b-2222-4222-8222-222222222222"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    write_claude(tmp_path / "home", ONE, 40)
    write_claude(tmp_path / "home", TWO, 12, seed=1)
    return tmp_path / "home"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "catalog"


def check(home: Path, folder: Path) -> None:
    """The catalog is what a first sync makes, and the index holds what can be found."""
    fresh = folder.with_name(f"fresh-{time.monotonic_ns()}")
    run(home, fresh)
    assert dump(folder) == dump(fresh)
    assert indexed(folder) == searchable(folder)


def test_S11_a_second_sync_reads_nothing_and_writes_nothing(home: Path, folder: Path) -> None:
    first = run(home, folder)
    assert first.work.files == 2 and first.work.lines == 52 and first.work.rows > 100
    assert run(home, folder).work == (0, 0, 0, 0)
    check(home, folder)


def test_an_appended_file_is_read_alone(home: Path, folder: Path) -> None:
    run(home, folder)
    append(claude_path(home, ONE), spelled(claude_lines(ONE, 40, 3)))
    report = run(home, folder)
    assert (report.work.files, report.work.lines) == (1, 43)
    check(home, folder)


@pytest.mark.slow
def test_calls_usage_and_titles_span_the_cut(home: Path, folder: Path) -> None:
    path = claude_path(home, ONE)
    lines = claude_lines(ONE, 0, 40)
    for end in (33, 34, 36, 38, 39):
        path.write_bytes(spelled(lines[:end])) if end == 33 else append(path, spelled(lines[end - 1 : end]))
        run(home, folder)
    path.write_bytes(spelled(lines[:33]))
    run(home, folder)
    for number in range(33, 40):
        append(path, spelled(lines[number : number + 1]))
        assert run(home, folder).work.files == 1
    append(path, spelled([{"type": "custom-title", "customTitle": "Warp and weft", "sessionId": ONE}]))
    assert run(home, folder).work.files == 1
    check(home, folder)


@pytest.mark.parametrize("kind", ["title", "file"])
def test_titles_and_files_that_were_appended_are_as_new_as_their_session(home: Path, folder: Path, kind: str) -> None:
    path = claude_path(home, ONE)
    lines = claude_lines(ONE, 0, 40)
    path.write_bytes(spelled(lines[:35]))
    run(home, folder)
    lines[38]["message"]["content"][0]["input"]["file_path"] = "/home/mira/loom/warp.py"
    append(path, spelled([*lines[35:], {"type": "custom-title", "customTitle": "Warp and weft", "sessionId": ONE}]))
    run(home, folder)
    searcher = Searcher(folder, unmasked)
    # Without the look into the rows that completes a hit: the order is made of what the index knows.
    (match,) = searcher.search(Request("warp", places=(f"{kind}s",), newest=True)).matches
    searcher.close()
    assert match.when == _one(folder, "SELECT ended_us FROM sessions WHERE native_id = ?", ONE)


def test_a_summary_may_be_written_again(home: Path, folder: Path) -> None:
    lines = claude_lines(ONE, 0, 40)
    summary = {"type": "summary", "summary": "Warp and weft", "leafUuid": lines[3]["uuid"]}
    foreign = {**summary, "summary": "Of another session", "leafUuid": TWO}
    path = claude_path(home, ONE)
    path.write_bytes(spelled([summary, foreign, *lines]))
    run(home, folder)
    for again in (summary, foreign, {**summary, "summary": "Loom and shuttle"}):
        append(path, spelled([again]))
        run(home, folder)
        check(home, folder)


def test_a_summary_of_any_message_counts(home: Path, folder: Path) -> None:
    run(home, folder)
    leaf = claude_lines(ONE, 7, 1)[0]["uuid"]
    append(claude_path(home, ONE), spelled([{"type": "summary", "summary": "Warp and weft", "leafUuid": leaf}]))
    assert run(home, folder).work.lines == 41
    check(home, folder)


def test_a_large_source_is_written_whole_or_not_at_all(
    home: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("clew.catalog.worker.MAX_BUFFERED_CHARS", 1)
        patch.setattr("clew.catalog.worker.IngestWorker._write_end", fail)
        with pytest.raises(KeyboardInterrupt):
            run(home, folder)
    assert _count(folder, "message") == 0
    claude_path(home, ONE).write_bytes(spelled(claude_lines(ONE, 0, 5, seed=3)))
    run(home, folder)
    check(home, folder)


@pytest.mark.parametrize("level", [SyncLevel.SESSIONS, SyncLevel.TEXT])
def test_a_large_source_that_fails_midway_keeps_what_was_read_before(
    home: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, level: SyncLevel
) -> None:
    run(home, folder)
    tables = ("sessions", "message", "usage", "text_chunk")
    before = [_count(folder, table) for table in tables]
    append(claude_path(home, ONE), spelled(claude_lines(ONE, 40, 40)))
    monkeypatch.setattr("clew.catalog.worker.MAX_BUFFERED_CHARS", 1)
    monkeypatch.setattr("clew.catalog.ingest.FLUSH_CHARS", 100)

    def fail(*_: object) -> bytes:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patch:
        # The fingerprint is taken when all rows of a source were read.
        patch.setattr("clew.catalog.worker.fingerprint", fail)
        assert run(home, folder, level=level).unreadable == 1
    assert [_count(folder, table) for table in tables] == before
    assert {path.name.partition(".")[0] for path in folder.iterdir() if path.is_file()} == {"catalog", "lock"}
    run(home, folder)
    check(home, folder)


def test_a_full_disk_while_a_large_source_is_read_is_no_problem_of_the_source(
    home: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("clew.catalog.worker.MAX_BUFFERED_CHARS", 1)
        patch.setattr("clew.catalog.worker.tempfile.TemporaryFile", fail)
        with pytest.raises(database.CatalogNotWritable, match="No space left"):
            run(home, folder)
    assert _count(folder, "message") == 0
    assert run(home, folder).unreadable == 0
    check(home, folder)


def test_what_finds_copies_is_there_after_every_sync(home: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("clew.catalog.sync._finish_rows", stop)
        with pytest.raises(KeyboardInterrupt):
            run(home, folder)
    assert _indices(folder).isdisjoint({"message_by_event", "usage_by_id"})
    run(home, folder)
    assert _indices(folder).issuperset({"message_by_event", "usage_by_id"})
    check(home, folder)


def test_a_torn_line_waits_for_its_end(home: Path, folder: Path) -> None:
    run(home, folder)
    line = spelled(claude_lines(ONE, 40, 1))
    append(claude_path(home, ONE), line[:50])
    run(home, folder)
    assert _problems(folder) == ["torn-tail"]
    append(claude_path(home, ONE), line[50:])
    run(home, folder)
    assert _problems(folder) == []
    check(home, folder)


def test_S12_a_file_that_shrinks_is_read_again(home: Path, folder: Path) -> None:
    run(home, folder)
    claude_path(home, ONE).write_bytes(spelled(claude_lines(ONE, 0, 20)))
    assert run(home, folder).work.lines == 20
    check(home, folder)


def test_S12_a_file_that_is_rewritten_and_longer_is_read_again(home: Path, folder: Path) -> None:
    run(home, folder)
    with claude_path(home, ONE).open("r+b") as file:
        file.write(spelled(claude_lines(ONE, 0, 45, seed=3)))
    run(home, folder)
    check(home, folder)


def test_S12_content_of_the_same_size_is_noticed(home: Path, folder: Path) -> None:
    path = claude_path(home, ONE)
    run(home, folder)
    before = path.stat()
    text = path.read_bytes()
    other = text.replace(b"weave thread0x5 ", b"weave spools0x5 ")
    assert len(other) == len(text) and other != text
    with path.open("r+b") as file:
        file.write(other)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert run(home, folder).work.files == 1
    check(home, folder)


def test_S12_a_file_put_in_the_place_of_another_is_noticed(home: Path, folder: Path) -> None:
    run(home, folder)
    path = claude_path(home, ONE)
    other = path.with_suffix(".new")
    other.write_bytes(spelled(claude_lines(ONE, 0, 60, seed=2)))
    other.replace(path)
    run(home, folder)
    check(home, folder)


def test_S12_a_renamed_file_is_the_same_source(home: Path, folder: Path) -> None:
    run(home, folder)
    claude_path(home, ONE).rename(claude_path(home, "0c0c0c0c-3333-4333-8333-333333333333"))
    report = run(home, folder)
    assert report.gone == 0 and report.sources == 2
    check(home, folder)


def test_a_time_that_is_touched_costs_no_reading(home: Path, folder: Path) -> None:
    run(home, folder)
    os.utime(claude_path(home, ONE))
    assert run(home, folder).work == (0, 0, 0, 0)


def test_what_is_gone_stays_with_its_text(home: Path, folder: Path) -> None:
    run(home, folder)
    claude_path(home, ONE).unlink()
    report = run(home, folder)
    assert (report.gone, report.work.lines) == (1, 0)
    assert _one(folder, "SELECT state FROM sessions WHERE native_id = ?", ONE) == "gone"
    query = "SELECT count(*) FROM messages m JOIN sessions s USING (session_id) WHERE native_id = ?"
    assert _one(folder, query, ONE) == 40
    assert indexed(folder) == searchable(folder)
    check(home, folder)
    write_claude(home, ONE, 40)
    assert run(home, folder).gone == 0
    check(home, folder)


@pytest.mark.slow
def test_a_copy_is_shown_once_whatever_came_first(home: Path, folder: Path, tmp_path: Path) -> None:
    fork = "00000000-4444-4444-8444-444444444444"
    copied = [{**line, "sessionId": fork} for line in claude_lines(ONE, 0, 20)]
    path = claude_path(home, fork)
    run(home, folder)
    path.write_bytes(spelled(copied) + spelled(claude_lines(fork, 20, 4)))
    run(home, folder)
    assert _one(folder, "SELECT count(*) - count(DISTINCT event_id) FROM messages") == 0
    assert _one(folder, "SELECT count(*) - count(DISTINCT usage_id) FROM usage") == 0
    check(home, folder)
    claude_path(home, ONE).write_bytes(spelled(claude_lines(ONE, 0, 10)))
    run(home, folder)
    check(home, folder)


@pytest.mark.slow
def test_of_copies_of_one_session_the_longest_is_shown_whichever_grows(
    home: Path, folder: Path, tmp_path: Path
) -> None:
    """A shorter one may end between a call and its result."""
    name = "dddddddd-7777-4777-8777-777777777777"
    paths = [claude_path(home, name, f"-home-mira-loom{number}") for number in range(3)]
    for path, count in zip(paths, (4, 9, 8), strict=True):
        path.parent.mkdir(parents=True)
        path.write_bytes(spelled(claude_lines(name, 0, count)))
    run(home, folder)
    assert shown_in(folder, name) == [str(paths[1])]
    for number, count in ((0, 10), (2, 15), (0, 20)):
        first = len(paths[number].read_bytes().splitlines())
        append(paths[number], spelled(claude_lines(name, first, count - first)))
        run(home, folder)
        assert shown_in(folder, name) == [str(paths[number])]
        fresh = tmp_path / f"fresh{count}"
        run(home, fresh)
        assert dump(folder) == dump(fresh)


def shown_in(folder: Path, name: str) -> list[str]:
    """The files whose messages of a session are shown."""
    db = database.open_reader(folder)
    assert db is not None
    query = f"SELECT DISTINCT f.path FROM message m JOIN session s ON s.id = m.id / {KEYS_PER_SOURCE}"
    query += " JOIN source f"
    query += " ON f.id = s.id WHERE m.is_visible = 1 AND s.native_id = ?"
    found = [path for (path,) in db.execute(query, (name,))]
    db.close()
    return found


def test_one_bad_file_stops_nothing(home: Path, folder: Path) -> None:
    bad = claude_path(home, "0d0d0d0d-5555-4555-8555-555555555555").with_suffix(".jsonl.gz")
    bad.write_bytes(b"\x1f\x8b no gzip at all")
    report = run(home, folder)
    assert (report.sources, report.problems) == (3, 1)
    assert _count(folder, "sessions") >= 2
    assert run(home, folder).work.lines == 0


def test_a_foreign_catalog_is_moved_aside(home: Path, folder: Path) -> None:
    folder.mkdir()
    (folder / database.DATABASE).write_bytes(b"this is no database, and never was one" * 100)
    moved = run(home, folder).moved
    assert moved is not None and (Path(moved) / database.DATABASE).exists()
    check(home, folder)


def test_S11_a_catalog_of_another_version_is_made_anew(home: Path, folder: Path) -> None:
    run(home, folder)
    db = sqlite3.connect(folder / database.DATABASE)
    db.execute("PRAGMA user_version = 999")
    db.commit()
    db.close()
    assert run(home, folder).moved is not None
    check(home, folder)


def test_what_is_gone_comes_along_into_a_new_catalog(home: Path, folder: Path) -> None:
    run(home, folder)
    claude_path(home, ONE).unlink()
    run(home, folder)
    before = _told(folder)
    _make_old(folder)
    # Another one goes while nobody looks.
    claude_path(home, TWO).unlink()
    report = run(home, folder)
    assert (report.moved, report.sources, report.gone) == (None, 2, 2)
    assert not list(folder.parent.glob("*.aside-*"))
    assert _told(folder) == before
    assert indexed(folder) == searchable(folder)
    assert run(home, folder).work == (0, 0, 0, 0)


def test_an_older_catalog_is_kept_until_messages_are_read_again(home: Path, folder: Path) -> None:
    run(home, folder)
    _make_old(folder)
    assert run(home, folder, level=SyncLevel.SESSIONS).moved is None
    assert len(list(folder.parent.glob("*.aside-*"))) == 1
    assert run(home, folder).moved is None
    assert not list(folder.parent.glob("*.aside-*"))
    check(home, folder)


def test_an_older_catalog_with_a_deleted_session_that_cannot_be_copied_is_named(home: Path, folder: Path) -> None:
    run(home, folder)
    claude_path(home, ONE).unlink()
    run(home, folder)
    db = sqlite3.connect(folder / database.DATABASE)
    db.execute("DROP TABLE message")
    db.commit()
    db.close()
    _make_old(folder)
    moved = run(home, folder).moved
    assert moved is not None and (Path(moved) / database.DATABASE).exists()


def test_what_is_gone_comes_along_from_a_catalog_of_version_8(home: Path, folder: Path) -> None:
    """Its tables had other names, and the newest text lay uncompressed in one of its own."""
    run(home, folder)
    claude_path(home, ONE).unlink()
    run(home, folder)
    before = _told(folder)
    db = sqlite3.connect(folder / database.DATABASE, isolation_level=None)
    doc, text = _newest_text(db)
    names = {"token_usage": "use", "recorded_usage": "own_use", "string": "word", "text_chunk": "text"}
    for view in [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'view'")]:
        db.execute(f"DROP VIEW {view}")
    for new, old in names.items():
        db.execute(f"ALTER TABLE {new} RENAME TO {old}")
    for table in ("message", "session", "use"):
        db.execute(f"ALTER TABLE {table} RENAME COLUMN is_visible TO shown")
    db.execute("ALTER TABLE source RENAME COLUMN source_json TO found")
    db.execute("ALTER TABLE text DROP COLUMN fingerprint")
    db.execute("CREATE TABLE pending (doc INTEGER PRIMARY KEY, text TEXT NOT NULL)")
    db.execute("INSERT INTO pending VALUES (?, ?)", (doc, text))
    db.execute("DELETE FROM text WHERE first = (SELECT max(first) FROM text WHERE first <= ?)", (doc,))
    db.execute("PRAGMA user_version = 8")
    db.close()
    assert run(home, folder).gone == 1
    assert _told(folder) == before
    assert _hits(folder, "shuttle0x2") == 1
    searcher = Searcher(folder, unmasked)
    assert searcher.search(Request(text, mode="substring")).total >= 1
    searcher.close()


def _newest_text(db: sqlite3.Connection) -> tuple[int, str]:
    (doc,) = db.execute("SELECT max(last) FROM text_chunk WHERE last / ? = 1", (KEYS_PER_SOURCE,)).fetchone()
    text = TextStore(db).get(doc)
    assert text is not None
    return doc, text


def test_a_copy_that_is_gone_gives_way_in_a_new_catalog_too(home: Path, folder: Path) -> None:
    copied = claude_path(home, "0c0c0c0c-3333-4333-8333-333333333333")
    copied.write_bytes(claude_path(home, ONE).read_bytes())
    run(home, folder)
    copied.unlink()
    run(home, folder)
    before = _told(folder)
    _make_old(folder)
    assert run(home, folder).gone == 1
    assert _told(folder) == before
    assert indexed(folder) == searchable(folder)


def test_a_sync_that_was_killed_while_it_moved_finds_what_is_aside(home: Path, folder: Path) -> None:
    run(home, folder)
    claude_path(home, ONE).unlink()
    run(home, folder)
    _make_old(folder)
    move_aside(folder)
    assert (run(home, folder).gone, run(home, folder).gone) == (1, 1)
    assert _count(folder, "sessions") == 2


def _make_old(folder: Path) -> None:
    db = sqlite3.connect(folder / database.DATABASE)
    db.execute("PRAGMA user_version = 1")
    db.commit()
    db.close()


def _told(folder: Path) -> dict[str, list[tuple[Any, ...]]]:
    """What the views show, whatever became of the files."""
    db = database.open_reader(folder)
    assert db is not None
    shown = {view: db.execute(f"SELECT * FROM {view}").fetchall() for view in VIEWS}
    db.close()
    return {
        view: sorted((tuple(value for value in row if value not in ("live", "gone")) for row in rows), key=repr)
        for view, rows in shown.items()
    }


def test_a_catalog_that_is_damaged_inside_is_made_anew(home: Path, folder: Path) -> None:
    run(home, folder)
    db = sqlite3.connect(folder / database.DATABASE)
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()
    raw = bytearray((folder / database.DATABASE).read_bytes())
    raw[4096:] = os.urandom(len(raw) - 4096)
    (folder / database.DATABASE).write_bytes(raw)
    assert run(home, folder).moved is not None
    check(home, folder)


def test_two_syncs_at_once_take_turns(home: Path, folder: Path) -> None:
    with locked(folder), pytest.raises(Busy):
        run(home, folder, wait=0.05)
    run(home, folder)
    check(home, folder)


def test_S01_nobody_else_can_read_the_catalog(home: Path, folder: Path) -> None:
    before = os.umask(0)
    try:
        run(home, folder)
    finally:
        os.umask(before)
    modes = {path.name: path.stat().st_mode & 0o077 for path in (folder, folder / database.DATABASE, folder / "lock")}
    assert set(modes.values()) == {0}
    assert (folder / database.TEXT).stat().st_mode & 0o077 == 0


def test_S03_sources_are_left_alone(home: Path, folder: Path) -> None:
    before = {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in home.rglob("*.jsonl")}
    run(home, folder)
    assert {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in home.rglob("*.jsonl")} == before


def test_a_full_sync_reads_all_again(home: Path, folder: Path) -> None:
    run(home, folder)
    assert run(home, folder, full=True).work.lines == 52
    check(home, folder)


def test_a_file_that_an_agent_consults_changes_its_sessions(home: Path, folder: Path) -> None:
    thread = "019a0000-8888-7888-8888-888888888888"
    path = home / ".codex/sessions/2026/10/01" / f"rollout-2026-10-01T10-00-00-{thread}.jsonl"
    path.parent.mkdir(parents=True)
    stamp = "2026-10-01T10:00:00.000Z"
    head = {"timestamp": stamp, "type": "session_meta", "payload": {"id": thread, "timestamp": stamp, "cwd": "/loom"}}
    path.write_bytes(spelled([head]))
    run(home, folder)
    named = {"id": thread, "thread_name": "Dyed yarn", "updated_at": stamp}
    (home / ".codex" / "session_index.jsonl").write_bytes(spelled([named]))
    run(home, folder)
    assert _one(folder, "SELECT title FROM sessions WHERE agent = 'codex'") == "Dyed yarn"
    check(home, folder)


def test_S17_what_is_erased_is_in_no_file(home: Path, folder: Path) -> None:
    run(home, folder)
    claude_path(home, TWO).unlink()
    run(home, folder)
    assert forget_gone(folder) == 1
    check(home, folder)
    kept = b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
    assert TWO.encode() not in kept and b"shuttle1x2" not in kept and b"thread1x0" not in kept


BRANCH = "erased/branch-name"
ERASED = (TWO.encode(), b"shuttle1x2", b"thread1x0", BRANCH.encode())


def _contents(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def test_strings_that_only_an_erased_session_used_are_erased(home: Path, folder: Path) -> None:
    write_claude(home, TWO, 12, seed=1, branch=BRANCH)
    run(home, folder)
    claude_path(home, TWO).unlink()
    run(home, folder)
    assert BRANCH.encode() in _contents(folder)
    assert forget_gone(folder) == 1
    assert not [text for text in ERASED if text in _contents(folder)]
    check(home, folder)


@pytest.mark.parametrize("step", range(5))
@pytest.mark.parametrize("level", [SyncLevel.SESSIONS, SyncLevel.TEXT])
def test_an_erasure_that_is_killed_is_finished_by_the_next_sync(
    home: Path, folder: Path, step: int, level: SyncLevel
) -> None:
    write_claude(home, TWO, 12, seed=1, branch=BRANCH)
    run(home, folder)
    claude_path(home, TWO).unlink()
    run(home, folder)
    kill_at(step, lambda: forget_gone(folder))
    sync([Host.at(home)], folder, level)
    if step:
        assert not [text for text in ERASED if text in _contents(folder)]
        assert run(home, folder).gone == 0
        check(home, folder)
    else:
        assert BRANCH.encode() in _contents(folder), "the transaction was rolled back"


def test_a_file_of_the_index_that_cannot_be_deleted_is_reported_and_deleted_later(
    home: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_claude(home, TWO, 12, seed=1, branch=BRANCH)
    run(home, folder)
    claude_path(home, TWO).unlink()
    run(home, folder)

    def refused(path: Path, missing_ok: bool = False) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    with monkeypatch.context() as patched:
        patched.setattr(Path, "unlink", refused)
        with pytest.raises(database.CatalogNotWritable, match="Permission denied"):
            forget_gone(folder)
    run(home, folder)
    assert not [text for text in ERASED if text in _contents(folder)]
    check(home, folder)


SIDE_FILES = [".sage/sessions/s1/metadata.json", f".claude/projects/-home-mira-loom/{ONE}/subagents/agent-1.meta.json"]


def _with_side_file(home: Path, name: str) -> tuple[Path, Path]:
    """A session with a file beside it that belongs to it; a little old, so that its time counts."""
    side = home / name
    side.parent.mkdir(parents=True)
    if side.name == "metadata.json":
        main, line = (
            side.with_name("messages.jsonl"),
            {"type": "message", "uuid": "u1", "role": "user", "content": "hi"},
        )
    else:
        main, line = side.with_name("agent-1.jsonl"), claude_lines(ONE, 0, 1, seed=9)[0] | {"agentId": "1"}
    main.write_bytes(spelled([line]))
    side.write_text(json.dumps({"id": "s1", "name": "Before", "description": "Before"}))
    for path in (main, side, side.parent, side.parent.parent):
        os.utime(path, ns=(10**18, 10**18))
    return main, side


def _is_steady(home: Path, folder: Path) -> bool:
    """The catalog is up to date, and the quick sync says so too."""
    time.sleep(2 * change_detection.MTIME_GRACE_NS / 1e9)
    run(home, folder)
    return is_up_to_date([Host.at(home)], folder) and run(home, folder).work == (0, 0, 0, 0)


@pytest.mark.parametrize("name", SIDE_FILES)
@pytest.mark.parametrize("forgotten", [False, True])
def test_a_session_with_a_side_file_that_is_deleted_leaves_a_fresh_catalog(
    home: Path, folder: Path, name: str, forgotten: bool
) -> None:
    main, side = _with_side_file(home, name)
    run(home, folder)
    assert _is_steady(home, folder)
    main.unlink()
    side.unlink()
    run(home, folder)
    if forgotten:
        assert forget_gone(folder) == 1
        kept = b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
        assert side.name.encode() not in kept
    assert _is_steady(home, folder)


@pytest.mark.slow
@pytest.mark.parametrize("name", SIDE_FILES)
def test_a_session_with_a_side_file_can_be_forgotten_and_is_read_again(home: Path, folder: Path, name: str) -> None:
    main, _ = _with_side_file(home, name)
    run(home, folder)
    assert _is_steady(home, folder)
    assert forget(folder, str(main)) == 1
    assert run(home, folder).work.files == 1
    assert _is_steady(home, folder)
    check(home, folder)


def test_rows_of_side_files_without_a_source_are_removed(home: Path, folder: Path) -> None:
    """Version 0.1 left such rows behind when a session was erased."""
    run(home, folder)
    db = database.open_writer(folder)
    db.execute("INSERT INTO side_file VALUES ('/nowhere/metadata.json', 77, 1, 1)")
    db.close()
    assert _is_steady(home, folder)
    assert _one(folder, "SELECT count(*) FROM side_file WHERE owner = 77") == 0


@pytest.mark.parametrize("in_place", [False, True])
def test_a_side_file_that_changes_is_read_again(home: Path, folder: Path, in_place: bool) -> None:
    _, side = _with_side_file(home, SIDE_FILES[0])
    run(home, folder)
    assert _is_steady(home, folder)
    target = side if in_place else side.with_name("new")
    target.write_text(json.dumps({"id": "s1", "name": "Afterwards"}))
    target.replace(side)
    assert run(home, folder).work.files == 1
    assert _is_steady(home, folder)
    check(home, folder)


@pytest.mark.slow
def test_a_full_disk_leaves_the_old_catalog_usable(home: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(home, folder)
    before = dump(folder)
    write_claude(home, "0e0e0e0e-6666-4666-8666-666666666666", 200)

    def full(*_: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(RowWriter, "write_session", full)
    with pytest.raises(SourceUnreadable, match="disk is full"):
        run(home, folder)
    after = dump(folder)
    assert {view: after[view] for view in after if view != "sources"} == {
        view: before[view] for view in before if view != "sources"
    }
    monkeypatch.undo()
    run(home, folder)
    check(home, folder)


@pytest.mark.slow
@pytest.mark.parametrize("step", range(9))
def test_a_killed_sync_is_gone_on_with(home: Path, folder: Path, step: int) -> None:
    kill_at(step, lambda: run(home, folder))
    run(home, folder)
    check(home, folder)
    append(claude_path(home, ONE), spelled(claude_lines(ONE, 40, 3)))
    claude_path(home, TWO).write_bytes(spelled(claude_lines(TWO, 0, 9)))
    kill_at(step, lambda: run(home, folder))
    run(home, folder)
    check(home, folder)


@pytest.mark.slow
@pytest.mark.parametrize("step", range(7))
def test_a_killed_sync_of_sessions_is_gone_on_with(home: Path, folder: Path, step: int) -> None:
    for level in (SyncLevel.SESSIONS, SyncLevel.TEXT):
        kill_at(step, lambda level=level: run(home, folder, level=level))
        run(home, folder, level=SyncLevel.SESSIONS)
        assert _count(folder, "sessions") == 2
        append(claude_path(home, ONE), spelled(claude_lines(ONE, 40 + 3 * level, 3)))
    run(home, folder)
    check(home, folder)


def test_a_full_sync_killed_in_a_long_session_is_gone_on_with(
    home: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("clew.catalog.worker.MAX_BUFFERED_CHARS", 1)
    monkeypatch.setattr("clew.catalog.ingest.FLUSH_CHARS", 100)
    time.sleep(2 * change_detection.MTIME_GRACE_NS / 1e9)
    run(home, folder)
    # Every file is as it was read last, so that nothing but the catalog itself can tell.
    assert not kill_at(4, lambda: run(home, folder, full=True))
    run(home, folder, level=SyncLevel.SESSIONS)
    assert _count(folder, "sessions") == 2
    run(home, folder)
    check(home, folder)


@pytest.mark.slow
def test_several_workers_give_the_same(home: Path, folder: Path, tmp_path: Path) -> None:
    for number in range(12):
        write_claude(home, f"{number:08x}-6666-4666-8666-666666666666", 30, seed=number)
    sync([Host.at(home)], folder, workers=3)
    check(home, folder)
    append(claude_path(home, ONE), spelled(claude_lines(ONE, 40, 3)))
    sync([Host.at(home)], folder, workers=3)
    check(home, folder)


def test_workers_read_all_batches_however_many(home: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clew.catalog.worker.TRANSACTION_BYTES", 1)
    for number in range(12):
        write_claude(home, f"{number:08x}-6666-4666-8666-666666666666", 5, seed=number)
    assert sync([Host.at(home)], folder, workers=2).work.files == 14
    check(home, folder)


def test_a_killed_worker_loses_nothing(home: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clew.catalog.worker.TRANSACTION_BYTES", 1)
    parent, write = os.getpid(), RowWriter.write_session

    def killed(writer: RowWriter, *row: Any) -> None:
        if os.getpid() != parent:
            os._exit(9)
        write(writer, *row)

    monkeypatch.setattr(RowWriter, "write_session", killed)
    assert sync([Host.at(home)], folder, workers=2).sources == 2
    check(home, folder)


def test_sessions_come_before_text(home: Path, folder: Path) -> None:
    stages: list[str] = []
    report = run(home, folder, level=SyncLevel.MESSAGES, on_progress=lambda stage, _done, _total: stages.append(stage))
    assert report.work.files == 2 and _count(folder, "sessions") == 2
    assert set(stages) == {"sessions"}
    db = database.open_reader(folder)
    assert db is not None
    assert unindexed_text(db).blocks == searchable(folder)
    db.close()
    # Until then, the files may change again without another time.
    time.sleep(2 * change_detection.MTIME_GRACE_NS / 1e9)
    assert run(home, folder, level=SyncLevel.MESSAGES).work == (0, 0, 0, 0)
    hosts = [Host.at(home)]
    assert not is_up_to_date(hosts, folder) and is_up_to_date(hosts, folder, level=SyncLevel.MESSAGES)
    report = run(home, folder, on_progress=lambda stage, _done, _total: stages.append(stage))
    assert report.work == (0, 0, 0, 0)
    assert set(stages) == {"sessions", "text"}
    check(home, folder)


def test_sessions_and_usage_come_before_messages(home: Path, folder: Path) -> None:
    run(home, folder.with_name("other"))
    expected = dump(folder.with_name("other"))
    assert run(home, folder, level=SyncLevel.SESSIONS).work.files == 2
    found = dump(folder)
    assert {view: found[view] for view in SESSION_VIEWS} == {view: expected[view] for view in SESSION_VIEWS}
    assert found["messages"] == found["texts"] == []
    hosts, level = [Host.at(home)], SyncLevel.SESSIONS
    assert is_up_to_date(hosts, folder, level) or run(home, folder, level=level).work.files == 0
    assert not is_up_to_date(hosts, folder, SyncLevel.MESSAGES)
    assert run(home, folder, level=SyncLevel.MESSAGES).work.files == 2
    assert run(home, folder, level=SyncLevel.TEXT).work.files == 0
    check(home, folder)


def test_a_changed_session_keeps_its_messages_until_they_are_read_again(home: Path, folder: Path) -> None:
    run(home, folder)
    append(claude_path(home, ONE), spelled(claude_lines(ONE, 40, 5)))
    assert run(home, folder, level=SyncLevel.SESSIONS).work.files == 1
    assert _one(folder, "SELECT message_count FROM sessions WHERE native_id = ?", ONE) == 45
    assert _one(folder, "SELECT count(*) FROM messages JOIN sessions USING (session_id) WHERE native_id = ?", ONE) == 40
    assert _hits(folder, "shuttle0x2") == 1 and _hits(folder, "shuttle0x42") == 0
    assert run(home, folder).work.files == 1
    assert _hits(folder, "shuttle0x42") == 1
    check(home, folder)


def test_a_session_that_is_deleted_before_its_messages_are_read_keeps_its_usage(home: Path, folder: Path) -> None:
    run(home, folder, level=SyncLevel.SESSIONS)
    expected = _one(folder, "SELECT sum(output_tokens) FROM usage_days")
    text = claude_path(home, ONE).read_bytes()
    claude_path(home, ONE).unlink()
    run(home, folder)
    assert is_up_to_date([Host.at(home)], folder) or run(home, folder).work.files == 0
    assert _one(folder, "SELECT sum(output_tokens) FROM usage_days") == expected
    db = database.open_reader(folder)
    assert db is not None
    with pytest.raises(SourceUnreadable, match="is gone, and its messages were not read before"):
        open_session(db, int(str(_one(folder, "SELECT id FROM session WHERE native_id = ?", ONE))))
    # A new version of the catalog takes it along as it is.
    db.close()
    with closing(sqlite3.connect(folder / database.DATABASE)) as old:
        old.execute("PRAGMA user_version = 1")
    run(home, folder)
    assert _one(folder, "SELECT sum(output_tokens) FROM usage_days") == expected
    assert _count(folder, "unread_messages") == 1
    claude_path(home, ONE).write_bytes(text)
    run(home, folder)
    assert _count(folder, "unread_messages") == 0
    check(home, folder)


def test_the_text_of_a_deleted_session_stays_where_it_was_read_before(home: Path, folder: Path) -> None:
    run(home, folder)
    append(claude_path(home, ONE), spelled(claude_lines(ONE, 40, 5)))
    run(home, folder, level=SyncLevel.SESSIONS)
    claude_path(home, ONE).unlink()
    run(home, folder)
    db = database.open_reader(folder)
    assert db is not None and _hits(folder, "shuttle0x2") == 1
    session = open_session(db, int(str(_one(folder, "SELECT id FROM session WHERE native_id = ?", ONE))))
    assert session.facts.messages == 40
    db.close()


def test_text_of_changed_sources_is_not_found_before_it_is_indexed_again(home: Path, folder: Path) -> None:
    run(home, folder)
    claude_path(home, ONE).write_bytes(spelled(claude_lines(ONE, 0, 40, seed=7)))
    run(home, folder, level=SyncLevel.MESSAGES)
    for words, total in (("shuttle0x2", 0), ("shuttle1x2", 1), ("shuttle7x2", 0)):
        assert _hits(folder, words) == total
    run(home, folder)
    assert (_hits(folder, "shuttle0x2"), _hits(folder, "shuttle7x2")) == (0, 1)
    check(home, folder)


def test_appended_lines_leave_the_index_of_other_text_alone(
    home: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("clew.catalog.text_store.CHUNK_BYTES", 200)
    run(home, folder)
    added: list[int] = []
    add = TextWriter.add

    def counted(writer: TextWriter, doc: int, kind: str, time_us: int, text: str) -> None:
        added.append(doc)
        add(writer, doc, kind, time_us, text)

    monkeypatch.setattr(TextWriter, "add", counted)
    append(claude_path(home, ONE), spelled(claude_lines(ONE, 40, 3)))
    run(home, folder)
    assert 3 <= len(added) < 20
    monkeypatch.undo()
    assert _hits(folder, "shuttle0x42") == 1
    assert indexed(folder) == searchable(folder)


def test_a_deleted_or_damaged_index_is_made_again(home: Path, folder: Path) -> None:
    run(home, folder)
    shutil.rmtree(folder / database.TEXT)
    run(home, folder)
    assert _hits(folder, "shuttle0x2") == 1
    (folder / database.TEXT / "meta.json").write_text("garbage")
    append(claude_path(home, ONE), spelled(claude_lines(ONE, 40, 3)))
    run(home, folder)
    check(home, folder)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no FIFOs")
def test_a_fifo_in_the_place_of_a_session_is_a_problem_and_no_sync_waits_for_it(home: Path, folder: Path) -> None:
    run(home, folder)
    claude_path(home, ONE).unlink()
    os.mkfifo(claude_path(home, ONE))
    for _ in range(3):
        assert run(home, folder).unreadable == 1
        os.utime(claude_path(home, ONE))
    assert _problems(folder) == ["unreadable"]


def test_another_home_is_noticed(home: Path, folder: Path, tmp_path: Path) -> None:
    run(home, folder)
    write_claude(tmp_path / "other", "0f0f0f0f-7777-4777-8777-777777777777", 5)
    assert sync([Host.at(home), Host.at(tmp_path / "other")], folder, workers=1).sources == 3


def test_other_prices_change_the_costs_of_a_catalog(
    home: Path, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(home, folder)
    before = _one(folder, "SELECT sum(cost_nano) FROM usage_days")
    own = tmp_path / "prices.json"
    own.write_text(json.dumps({"claude-sonnet-4-5": {"input": 1000, "output": 1000}}))
    monkeypatch.setenv("CLEW_PRICES", str(own))
    run(home, folder)
    assert int(str(_one(folder, "SELECT sum(cost_nano) FROM usage_days"))) > int(str(before))


def _hits(folder: Path, words: str) -> int:
    searcher = Searcher(folder, unmasked)
    try:
        return searcher.search(Request(words)).total
    finally:
        searcher.close()


def _indices(folder: Path) -> set[str]:
    db = database.open_reader(folder)
    assert db is not None
    names = {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'index'")}
    db.close()
    return names


def _count(folder: Path, table: str) -> int:
    return int(str(_one(folder, f"SELECT count(*) FROM {table}")))


def _one(folder: Path, query: str, *values: str) -> object:
    db = database.open_reader(folder)
    assert db is not None
    (found,) = db.execute(query, values).fetchone()
    db.close()
    return found


def _problems(folder: Path) -> list[str]:
    return [str(problem["code"]) for problem in json.loads(str(_one(folder, "SELECT max(problems) FROM sources")))]


@contextmanager
def _counted_steps(db: sqlite3.Connection) -> Iterator[Callable[[], int]]:
    """Count the steps of SQLite inside this block."""
    steps = 0

    def count() -> int:
        nonlocal steps
        steps += 1
        return 0

    db.set_progress_handler(count, 1)
    yield lambda: steps
    db.set_progress_handler(None, 1)


def _add_chunks(db: sqlite3.Connection, count: int) -> None:
    db.executemany("INSERT INTO text_chunk VALUES (?, ?, x'', x'')", ((first, first) for first in range(count)))


def test_text_of_hidden_copies_is_found_without_reading_all_text(tmp_path: Path) -> None:
    """The steps of SQLite for one message must not grow with the number of stored texts."""
    with closing(database.open_writer(tmp_path)) as db:
        doc, chunks = KEYS_PER_SOURCE, 20_000
        _add_chunks(db, chunks)
        columns = [name for (name,) in db.execute("SELECT name FROM pragma_table_info('block')")]
        values = {"id": doc, "message": doc, "chars": 1}
        row = [values.get(name, 0) for name in columns]
        db.execute(f"INSERT INTO block VALUES ({', '.join('?' * len(columns))})", row)
        with _counted_steps(db) as steps:
            mark_unindexed(db, [doc])
        assert db.execute("SELECT first FROM unindexed_text").fetchall() == [(chunks - 1,)]
        assert steps() < 1_000


def test_text_that_is_not_indexed_yet_is_listed_without_reading_all_text(tmp_path: Path) -> None:
    """Every search asks for it, and every page of the web app."""
    with closing(database.open_writer(tmp_path)) as db:
        _add_chunks(db, 20_000)
        db.execute("INSERT INTO unindexed_text VALUES (7)")
        with _counted_steps(db) as steps:
            assert stale_ranges(db) == [(7, 7)]
            assert unindexed_text(db).blocks == 0
        assert steps() < 1_000
