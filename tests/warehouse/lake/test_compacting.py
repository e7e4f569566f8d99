"""Small objects made into few: readers see the same rows before, after and meanwhile, whoever is killed."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest

from clew.errors import TargetRefused
from clew.warehouse.columns import DATA_TABLES
from clew.warehouse.lake import write as writing
from clew.warehouse.lake.compact import compact
from clew.warehouse.lake.layout import VERSION_DIR, month_of
from clew.warehouse.lake.store import FolderStore
from tests import children
from tests.catalog.worlds import append, claude_lines, spelled
from tests.demo_home import write_self_contained_demo
from tests.warehouse.lake.worlds import NAMES, Machine, age, copies, files, killed, rows, say, write

LATER = datetime(2027, 1, 1, tzinfo=UTC)


def _many(tmp_path: Path, lake: str = "lake") -> FolderStore:
    """A lake that two machines wrote to, in many small steps."""
    store = FolderStore(tmp_path / lake)
    for which in ("one", "two"):
        machine = Machine(tmp_path / lake / ".machines", which)
        for number, name in enumerate(NAMES[:3]):
            path = say(machine, name, 5 + 5 * number, month=9 + number % 2)
            write(machine, store)
        append(path, spelled(claude_lines(name, 15, 10)))
        write(machine, store)
    age(tmp_path / lake)
    return store


def _count(store: FolderStore) -> int:
    return sum(len(store.list(f"table={table}/")) for table in (*DATA_TABLES, "batches"))


@pytest.mark.slow
def test_a_month_becomes_one_object_for_each_table(tmp_path: Path) -> None:
    store = _many(tmp_path)
    before, held, size = rows(store), copies(store), _count(store)
    report = compact(store, LATER)
    assert rows(store) == before
    assert copies(store) < held
    assert report.before > report.after
    assert _count(store) < size
    for table in DATA_TABLES:
        days = [month_of(one.name) for one in store.list(f"table={table}/")]
        assert len(days) == len(set(days))


@pytest.mark.slow
def test_what_no_longer_counts_goes(tmp_path: Path) -> None:
    store = _many(tmp_path)
    report = compact(store, LATER)
    assert report.batches_dropped == 1  # both machines wrote the same
    assert copies(store) == 5 + 10 + 25


@pytest.mark.slow
def test_a_second_run_does_nothing(tmp_path: Path) -> None:
    store = _many(tmp_path)
    compact(store, LATER)
    age(tmp_path / "lake")
    before = files(tmp_path / "lake")
    report = compact(store, LATER)
    assert (report.before, report.after) == (0, 0)
    assert files(tmp_path / "lake") == before


@pytest.mark.slow
def test_what_comes_out_follows_from_what_went_in(tmp_path: Path) -> None:
    one, two = _many(tmp_path, "lake1"), _many(tmp_path, "lake2")
    for store in (one, two):
        compact(store, LATER)
    found = [
        {name for table in DATA_TABLES for name in (one.name for one in store.list(f"table={table}/"))}
        for store in (one, two)
    ]
    assert found[0] == found[1]


@pytest.mark.slow
def test_a_machine_whose_batches_were_merged_writes_nothing_again(tmp_path: Path) -> None:
    machine, store = Machine(tmp_path, "one"), FolderStore(tmp_path / "lake")
    write_self_contained_demo(machine.home)
    write(machine, store)
    age(tmp_path / "lake")
    compact(store, LATER)
    assert write(machine, store).written == 0


@pytest.mark.slow
def test_young_objects_are_left_alone(tmp_path: Path) -> None:
    store = _many(tmp_path)
    age(tmp_path / "lake", -3600)
    before = files(tmp_path / "lake")
    assert compact(store, datetime.now(UTC) + timedelta(minutes=1)).before == 0
    assert files(tmp_path / "lake") == before


@pytest.mark.slow
def test_rows_that_somebody_is_about_to_commit_are_kept(tmp_path: Path) -> None:
    """A writer has put its rows, and comes to say that they count after the merge."""
    machine, store = Machine(tmp_path, "one"), FolderStore(tmp_path / "lake")
    say(machine, NAMES[0], 10)
    write(machine, store)
    say(machine, NAMES[1], 10)
    write(machine, store)
    after = rows(store)
    batches = sorted(path for path in (tmp_path / "lake/table=batches").rglob("*.parquet"))
    kept = {path: path.read_bytes() for path in batches}
    newest = max(batches, key=lambda path: path.stat().st_mtime_ns)
    newest.unlink()
    age(tmp_path / "lake", 7200)
    compact(store, datetime.now(UTC))
    newest.parent.mkdir(parents=True, exist_ok=True)
    newest.write_bytes(kept[newest])
    assert rows(store) == after


@pytest.mark.slow
def test_rows_that_nobody_committed_go_after_a_day(tmp_path: Path) -> None:
    store = _many(tmp_path)
    before = rows(store)
    orphan = Machine(tmp_path, "orphan")
    say(orphan, NAMES[3], 40)
    old = {one.name for one in store.list("table=batches/")}
    write(orphan, store)
    for one in store.list("table=batches/"):
        if one.name not in old:
            store.remove(one.name)
    held = copies(store)
    age(tmp_path / "lake")
    compact(store, LATER)
    assert copies(store) <= held - 40
    assert rows(store) == before


@pytest.mark.slow
def test_a_newer_lake_is_refused(tmp_path: Path) -> None:
    store = _many(tmp_path)
    store.put("_clew/schema=99", b"\n")
    with pytest.raises(TargetRefused):
        compact(store, LATER)


@pytest.mark.slow
def test_a_reader_meanwhile_sees_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = _many(tmp_path)
    before = rows(store)
    remove = FolderStore.remove
    seen: list[bool] = []

    def look(one: FolderStore, name: str) -> None:
        if len(seen) < 8:
            seen.append(rows(FolderStore(tmp_path / "lake")) == before)
        remove(one, name)

    monkeypatch.setattr(FolderStore, "remove", look)
    compact(store, LATER)
    assert len(seen) == 8
    assert all(seen)


@pytest.mark.slow
def test_a_merge_that_is_killed_at_any_point_is_completed_by_the_next(tmp_path: Path) -> None:
    reference = _many(tmp_path, "reference")
    wanted = rows(reference)
    compact(reference, LATER)
    step, is_done = 0, False
    while not is_done:
        store = _many(tmp_path, f"lake{step}")
        is_done = killed(lambda store=store: compact(store, LATER), step)  # type: ignore[misc]
        assert rows(store) == wanted
        age(tmp_path / f"lake{step}")
        compact(store, LATER)
        assert rows(store) == wanted
        assert copies(store) == copies(reference)
        assert not list((tmp_path / f"lake{step}").rglob("table=*/*=*/.*"))
        step += 7
    assert step > 40


@pytest.mark.slow
def test_writers_and_a_merge_at_the_same_time_lose_nothing(tmp_path: Path) -> None:
    store = FolderStore(tmp_path / "lake")
    machines = [Machine(tmp_path, f"m{number}") for number in range(3)]
    for number, machine in enumerate(machines):
        say(machine, NAMES[number], 10, day=1)
        say(machine, NAMES[3], 5 + 5 * number, day=2)
    at_work = []
    for machine in machines:
        lake, who = FolderStore(tmp_path / "lake"), machine.publisher()
        at_work.append(children.begun(partial(writing.write, lake, machine.sources(), who, workers=1)))
    while not any(True for _ in store.list(f"{VERSION_DIR}/")):
        time.sleep(0.001)  # until there is a lake, there is nothing to merge
    compact(FolderStore(tmp_path / "lake"), datetime.now(UTC))
    assert [children.ended(one) for one in at_work] == [0, 0, 0]
    found = rows(store)
    assert len(found["sessions"]) == 4
    assert len(found["messages"]) == 30 + 15


@pytest.mark.slow
def test_compacting_removes_nothing_behind_a_link(tmp_path: Path) -> None:
    """Whoever may write to a shared lake may put a link there; only half-written objects of the lake are removed."""
    lake, home = tmp_path / "lake", tmp_path / "home"
    store = _many(tmp_path)
    home.mkdir()
    theirs = [home / ".bashrc", home / ".0123.parquet.89abcdef"]
    (lake / "table=other").mkdir()
    (lake / "table=other/day=2026-10-01").symlink_to(home)
    (home / "day=2026-10-01").mkdir()
    theirs.append(home / "day=2026-10-01" / ".0123.parquet.89abcdef")
    (lake / "table=away").symlink_to(home)
    day = next(lake.glob("table=messages/month=*"))
    theirs.append(day / ".somebody-else")
    half = day / f".{'0' * 32}.parquet.89abcdef"
    for path in (*theirs, half):
        path.write_text("x")
        os.utime(path, (1, 1))
    compact(store, LATER)
    assert all(path.exists() for path in theirs)
    assert not half.exists()


@pytest.mark.slow
def test_a_table_that_is_a_link_is_refused(tmp_path: Path) -> None:
    """Compacting would remove the objects of another lake, as nobody counts on them in this one."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "shared").mkdir()
    mine, shared = _many(tmp_path / "mine"), _many(tmp_path / "shared")
    before = _count(mine)
    table = tmp_path / "shared/lake/table=messages"
    table.rename(tmp_path / "kept")
    table.symlink_to(tmp_path / "mine/lake/table=messages")
    with pytest.raises(TargetRefused, match="is a link"):
        compact(shared, LATER)
    assert _count(mine) == before
