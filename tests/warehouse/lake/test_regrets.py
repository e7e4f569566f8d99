"""A merge and others at the same time: whatever comes between, no batch is named whose rows are gone."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from clew.errors import RemoteFailed
from clew.warehouse.columns import DATA_TABLES
from clew.warehouse.lake import compact as compacting
from clew.warehouse.lake import objects
from clew.warehouse.lake.compact import compact
from clew.warehouse.lake.layout import month_of
from clew.warehouse.lake.store import FolderStore
from tests.catalog.worlds import append, claude_lines, spelled
from tests.warehouse.lake.worlds import NAMES, Machine, age, copies, rows, say, write

LATER = datetime(2027, 1, 1, tzinfo=UTC)


def _batches(lake: Path, table: str) -> set[str]:
    found: set[str] = set()
    for path in (lake / f"table={table}").rglob("*.parquet"):
        found.update(pq.read_table(path)["batch"].to_pylist())
    return found


def _superseded(tmp_path: Path) -> tuple[FolderStore, Machine]:
    """A lake with a batch that no longer counts, and a machine that has its source as it was."""
    store, one, two = FolderStore(tmp_path / "lake"), Machine(tmp_path, "one"), Machine(tmp_path, "two")
    path = say(one, NAMES[0], 10)
    write(one, store)
    append(path, spelled(claude_lines(NAMES[0], 10, 5)))
    write(one, store)
    age(tmp_path / "lake")
    say(two, NAMES[0], 10)
    return store, two


@pytest.mark.parametrize("held", [0, 1 << 30])
@pytest.mark.parametrize("step", range(7))
def test_a_batch_that_counts_again_while_it_is_dropped_keeps_its_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int, held: int
) -> None:
    """Another machine says so in full before one of the objects is removed, whichever."""
    monkeypatch.setattr(compacting, "MAX_GUARDED_BYTES", held)
    store, two = _superseded(tmp_path)
    remove, left = FolderStore.remove, [step]

    def meanwhile(one: FolderStore, name: str) -> None:
        left[0] -= 1
        if left[0] == -1:
            write(two, FolderStore(tmp_path / "lake"))
        remove(one, name)

    monkeypatch.setattr(FolderStore, "remove", meanwhile)
    compact(store, LATER)
    assert left[0] < 0
    named = _batches(tmp_path / "lake", "batches")
    assert len(named) == 2
    for table in ("sessions", "messages", "blocks", "usage"):
        assert named <= _batches(tmp_path / "lake", table), table


def test_a_merge_that_fails_on_the_way_also_puts_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, two = _superseded(tmp_path)
    remove, count = FolderStore.remove, [0]

    def failing(one: FolderStore, name: str) -> None:
        count[0] += 1
        if count[0] == 1:
            write(two, FolderStore(tmp_path / "lake"))
        if count[0] == 4:
            raise RemoteFailed("the line was cut")
        remove(one, name)

    monkeypatch.setattr(FolderStore, "remove", failing)
    with pytest.raises(RemoteFailed):
        compact(store, LATER)
    named = _batches(tmp_path / "lake", "batches")
    for table in DATA_TABLES[:3]:
        assert named <= _batches(tmp_path / "lake", table), table


def _failing(folder: str) -> Callable[..., object]:
    real = os.scandir

    def scan(path: str | Path = ".") -> object:
        if str(path).endswith(folder):
            raise OSError(5, "Input/output error", str(path))
        return real(path)

    return scan


@pytest.mark.slow
def test_a_folder_that_cannot_be_read_does_not_look_empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What names the rows of a day cannot be seen for a moment; the rows are not taken for somebody's leftovers."""
    store, machine = FolderStore(tmp_path / "lake"), Machine(tmp_path, "one")
    for name in NAMES[:3]:
        say(machine, name, 10)
        write(machine, store)
    age(tmp_path / "lake")
    before = rows(store)
    with monkeypatch.context() as patched:
        patched.setattr(os, "scandir", _failing("table=batches/month=2026-10"))
        with pytest.raises(RemoteFailed):
            compact(store, LATER)
    assert rows(store) == before


@pytest.mark.slow
def test_a_large_day_is_merged_in_several_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many objects together as memory should hold; what is large enough stays as it is."""
    store, machine = FolderStore(tmp_path / "lake"), Machine(tmp_path, "one")
    for number in range(12):
        say(machine, f"{number:08}-7777-4777-8777-777777777777", 10 + 5 * (number % 3))
        write(machine, store)
    age(tmp_path / "lake")
    before = rows(store)
    for module in (compacting, objects):
        monkeypatch.setattr(module, "MAX_OBJECT_BYTES", 20_000)
    for _ in range(3):
        report = compact(store, LATER)
        age(tmp_path / "lake")
        assert rows(store) == before
    assert (report.before, report.after) == (0, 0), "it comes to an end"
    days = [month_of(one.name) for one in store.list("table=blocks/")]
    assert 1 < len(days) < 12
    assert copies(store) == len(before["messages"])


def test_texts_of_more_than_two_gibibytes_are_sorted(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a smaller limit: the wide way gives the bytes of the narrow one."""
    from tests.warehouse.lake.worlds import mixed_blocks

    narrow = dict(objects.to_objects("blocks", mixed_blocks()))
    monkeypatch.setattr(objects, "MAX_NARROW_SORT_BYTES", 1)
    assert dict(objects.to_objects("blocks", mixed_blocks())) == narrow
    assert objects.drop_duplicates("blocks", mixed_blocks()).num_rows == 6
