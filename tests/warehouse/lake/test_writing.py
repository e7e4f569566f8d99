"""Sources into a lake: once, whole, in any order, and nothing half."""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from clew.agents.base import SourceFile
from clew.errors import RemoteFailed, TargetRefused
from clew.warehouse import ingest
from clew.warehouse.columns import DATA_TABLES
from clew.warehouse.ingest import read_sources
from clew.warehouse.lake import write as writing
from clew.warehouse.lake.engine import DuckEngine
from clew.warehouse.lake.layout import month_of, object_name
from clew.warehouse.lake.store import FolderStore, open_store
from clew.warehouse.urls import mask_urls
from tests.catalog.worlds import append, claude_lines, spelled
from tests.demo_home import write_self_contained_demo
from tests.every_statement import every_statement
from tests.warehouse.lake.worlds import NAMES, Machine, files, killed, rows, say, write
from tests.warehouse.machines import catalogued
from tests.warehouse.test_merging import untitled


def _lake(tmp_path: Path) -> FolderStore:
    return FolderStore(tmp_path / "lake")


@pytest.mark.slow
def test_a_lake_says_what_the_catalog_says(tmp_path: Path) -> None:
    machine, store = Machine(tmp_path, "one"), _lake(tmp_path)
    write_self_contained_demo(machine.home)
    report = write(machine, store)
    assert report.written == report.sources == len(machine.sources())
    assert not report.unreadable
    found, wanted = rows(store), catalogued([machine.home], tmp_path / "catalog")
    for table in ("sessions", "messages", "blocks", "tool_calls", "usage", "file_changes", "todos"):
        assert found[table] == wanted[table]


@pytest.mark.slow
@pytest.mark.parametrize("level", ["raw", "metrics"])
def test_every_statement_has_the_same_answer(tmp_path: Path, level: str) -> None:
    from clew.catalog import database
    from clew.catalog.sync import sync
    from clew.host import Host

    machine, store = Machine(tmp_path, "one"), _lake(tmp_path)
    write_self_contained_demo(machine.home)
    write(machine, store, level)
    sync([Host.at(machine.home)], tmp_path / "catalog", workers=1)
    db = database.open_reader(tmp_path / "catalog")
    assert db is not None
    engine = DuckEngine(store)
    differ = [name for name, one in every_statement() if engine.ask(one) != db.execute(one.text, one.values).fetchall()]
    engine.close()
    db.close()
    # Titles and paths do not leave at metrics.
    assert all(
        re.search(r"\bpath\b|^(names of )?sessions(, filtered)?$|\bfile\b|\bfolders$", name) for name in differ
    ), differ
    assert level == "metrics" or not differ


@pytest.mark.slow
def test_a_second_write_writes_nothing(tmp_path: Path) -> None:
    machine, store = Machine(tmp_path, "one"), _lake(tmp_path)
    write_self_contained_demo(machine.home)
    write(machine, store)
    before = files(tmp_path / "lake")
    report = write(machine, store)
    assert (report.written, report.unchanged, report.objects) == (0, len(machine.sources()), 0)
    assert files(tmp_path / "lake") == before


@pytest.mark.slow
def test_only_what_changed_is_written_again(tmp_path: Path) -> None:
    machine, store = Machine(tmp_path, "one"), _lake(tmp_path)
    for name in NAMES:
        say(machine, name, 10)
    write(machine, store)
    append(say(machine, NAMES[0], 10), spelled(claude_lines(NAMES[0], 10, 5)))
    report = write(machine, store)
    assert (report.written, report.unchanged) == (1, 3)
    assert rows(store)["messages"] == catalogued([machine.home], tmp_path / "catalog")["messages"]


def test_a_level_above_is_written_and_one_below_is_not(tmp_path: Path) -> None:
    machine, store = Machine(tmp_path, "one"), _lake(tmp_path)
    say(machine, NAMES[0], 10)
    assert [write(machine, store, level).written for level in ("metrics", "raw", "metrics", "redacted")] == [1, 1, 0, 0]


@pytest.mark.slow
def test_names_follow_from_content_and_rows_from_their_month(tmp_path: Path) -> None:
    machine, store = Machine(tmp_path, "one"), _lake(tmp_path)
    write_self_contained_demo(machine.home)
    write(machine, store)
    for name, content in files(tmp_path / "lake").items():
        if not name.startswith("_clew/"):
            table = name.split("/")[0].removeprefix("table=")
            shard = name.rpartition("/")[2].partition("-")[0] if table == "batches" else ""
            assert object_name(table, month_of(name) or "", content, shard) == name
            days = pq.read_table(tmp_path / "lake" / name)["day_utc"].to_pylist()
            assert {day[:7] or "unknown" for day in days} == {month_of(name)}


@pytest.mark.slow
def test_two_machines_with_the_same_sources_share_the_objects(tmp_path: Path) -> None:
    store = _lake(tmp_path)
    counts = []
    for name in ("one", "two"):
        machine = Machine(tmp_path, name)
        for number, session in enumerate(NAMES):
            os.utime(say(machine, session, 10), (1_790_000_000 + number,) * 2)
        write(machine, store)
        counts.append(len(files(tmp_path / "lake")))
    assert counts[1] == counts[0] + 1  # its own `batches`
    assert rows(store)["messages"] == catalogued([machine.home], tmp_path / "catalog")["messages"]


@pytest.mark.slow
def test_rows_without_their_batch_do_not_count(tmp_path: Path) -> None:
    machine, store = Machine(tmp_path, "one"), _lake(tmp_path)
    say(machine, NAMES[0], 10)
    write(machine, store)
    before = rows(store)
    say(machine, NAMES[1], 10)
    write(machine, store)
    batches = sorted((tmp_path / "lake" / "table=batches").rglob("*.parquet"), key=lambda path: path.stat().st_mtime_ns)
    batches[-1].unlink()
    assert rows(store) == before


@pytest.mark.slow
def test_several_processes_write_what_one_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "TASK_BYTES", 1)
    machine = Machine(tmp_path, "one")
    write_self_contained_demo(machine.home)
    reports = [
        writing.write(FolderStore(tmp_path / f"lake{workers}"), machine.sources(), machine.publisher(), workers=workers)
        for workers in (1, 3)
    ]
    assert reports[0] == reports[1]
    assert files(tmp_path / "lake1") == files(tmp_path / "lake3")


@pytest.mark.slow
def test_small_packs_show_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(tmp_path, "one")
    write_self_contained_demo(machine.home)
    write(machine, FolderStore(tmp_path / "lake1"))
    monkeypatch.setattr(writing, "BUFFER_BYTES", 100)
    write(machine, FolderStore(tmp_path / "lake2"))
    assert rows(FolderStore(tmp_path / "lake2")) == rows(FolderStore(tmp_path / "lake1"))
    assert len(files(tmp_path / "lake2")) > len(files(tmp_path / "lake1"))


def test_a_source_that_cannot_be_read_does_not_stop_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine, store = Machine(tmp_path, "one"), _lake(tmp_path)
    for name in NAMES:
        say(machine, name, 10)
    real = ingest.read_source

    def broken(source: object, meta: ingest.SourceMeta) -> object:
        if NAMES[2] in meta.path:
            raise OSError("broken disk")
        return real(source, meta)  # type: ignore[arg-type]

    monkeypatch.setattr(ingest, "read_source", broken)
    report = write(machine, store)
    assert (report.written, len(report.unreadable)) == (3, 1)
    assert NAMES[2] in report.unreadable[0]


def test_a_source_that_cannot_be_read_is_named_once_and_in_words(tmp_path: Path) -> None:
    machine = Machine(tmp_path, "one")
    path = say(machine, NAMES[0], 10)
    path.unlink()
    path.mkdir()
    jobs = machine.publisher("raw").tasks([SourceFile("claude-code", path)])
    (line,) = read_sources(jobs).unreadable
    assert line.startswith(f"{path}: ")
    assert line.count(str(path)) == 1
    assert "SourceUnreadable" not in line


@pytest.mark.slow
def test_a_full_disk_leaves_nothing_half(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine, store = Machine(tmp_path, "one"), _lake(tmp_path)
    say(machine, NAMES[0], 10)
    write(machine, store)
    before = rows(store)
    say(machine, NAMES[1], 10, day=2)
    real, left = Path.write_bytes, [3]

    def full(path: Path, content: bytes) -> int:
        left[0] -= 1
        if left[0] < 0:
            real(path, content[:100])
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(path, content)

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(TargetRefused, match="no space left") as refused:
        write(machine, store)
    assert refused.value.exit_code == 5
    monkeypatch.undo()
    assert rows(store) == before
    assert not list((tmp_path / "lake").rglob(".*"))
    write(machine, store)
    assert rows(store)["messages"] == catalogued([machine.home], tmp_path / "catalog")["messages"]


def test_a_newer_lake_is_refused(tmp_path: Path) -> None:
    machine, store = Machine(tmp_path, "one"), _lake(tmp_path)
    say(machine, NAMES[0], 10)
    write(machine, store)
    store.put("_clew/schema=99", b"\n")
    before = files(tmp_path / "lake")
    say(machine, NAMES[1], 10)
    for work in (lambda: write(machine, store), lambda: DuckEngine(store)):
        with pytest.raises(TargetRefused, match="newer clew") as refused:
            work()
        assert refused.value.exit_code == 5
    assert files(tmp_path / "lake") == before


def test_a_place_that_cannot_be_a_lake_is_told(tmp_path: Path) -> None:
    machine = Machine(tmp_path, "one")
    say(machine, NAMES[0], 10)
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(RemoteFailed) as failed:
        write(machine, open_store(str(tmp_path / "file")))
    assert failed.value.exit_code == 7
    assert "\n" not in str(failed.value)


def test_a_password_in_a_target_is_not_shown() -> None:
    word = "hunter2"
    assert mask_urls(f"sftp://mira:{word}@loom/lake?token=abc") == "sftp://loom/lake"


@pytest.mark.slow
@pytest.mark.parametrize("table", DATA_TABLES)
def test_what_was_there_and_went_away_is_written_again(
    tmp_path: Path, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody may remove an object between our look at it and the moment from which on it counts."""
    machine, store = Machine(tmp_path, "one"), _lake(tmp_path)
    write_self_contained_demo(machine.home)
    write(machine, store)
    before = rows(store)
    for path in (tmp_path / "lake" / "table=batches").rglob("*.parquet"):
        path.unlink()
    victims = list((tmp_path / "lake" / f"table={table}").rglob("*.parquet"))
    settle = store.fsync

    def meanwhile() -> None:
        settle()
        for path in victims:
            path.unlink(missing_ok=True)
        victims.clear()

    monkeypatch.setattr(store, "fsync", meanwhile)
    write(machine, store)
    assert rows(store) == before


@pytest.mark.slow
def test_a_write_that_is_killed_at_any_point_is_completed_by_the_next(tmp_path: Path) -> None:
    machine = Machine(tmp_path, "one")
    for number, name in enumerate(NAMES[:3]):
        say(machine, name, 10, month=9 + number % 2)
    who = machine.publisher()
    wanted = untitled(catalogued([machine.home], tmp_path / "catalog"))
    step, is_done = 0, False
    while not is_done:
        store = FolderStore(tmp_path / f"lake{step}")
        is_done = killed(lambda store=store: writing.write(store, machine.sources(), who, workers=1), step)  # type: ignore[misc]
        if store.list("table=batches/"):
            seen = {row[0] for row in rows(store)["sessions"]}
            counts = {row[0]: row[-5] for row in rows(store)["sessions"]}
            assert all(counts[name] == 10 for name in seen)
        write(machine, store)
        assert untitled(rows(store))["messages"] == wanted["messages"]
        assert rows(store)["tool_calls"] == wanted["tool_calls"]
        step += 1
    assert step > 20
