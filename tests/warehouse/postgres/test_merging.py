"""Merging is a set union: whatever the order, the repetition and the company, the same rows are shown."""

from __future__ import annotations

import random
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from clew.warehouse.columns import DATA_TABLES
from clew.warehouse.ingest import Batch
from clew.warehouse.merge_sql import QUARTER_HOUR_SUMS
from clew.warehouse.postgres import schema
from clew.warehouse.postgres.connection import connect
from clew.warehouse.postgres.push import BatchWriter
from tests.catalog.worlds import append, claude_lines, claude_path, spelled, write_claude
from tests.warehouse.postgres.machines import Machine, Rows, ask, change, statistics, tables

pytest.importorskip("duckdb", reason="duckdb is not installed: pip install 'clew[dev]'")

from tests.warehouse.postgres.generated import batch_of, shown

COPIED = [f"{name}_copies" for name in DATA_TABLES]


def prepared(url: str) -> str:
    with closing(connect(url)) as db:
        schema.prepare(db, url)
    return url


def emptied(url: str) -> None:
    change(url, f"TRUNCATE {', '.join([*schema.partitioned(), 'batches', 'loaded'])}")


def put(url: str, portions: list[list[Batch]]) -> None:
    with closing(BatchWriter(url)) as putter:
        for portion in portions:
            putter.write(portion)


def portions_of(dice: random.Random, batches: list[Batch]) -> list[list[Batch]]:
    """All of them in some order, some more than once, in portions of any size."""
    given = [*batches, *dice.choices(batches, k=dice.randrange(3))]
    dice.shuffle(given)
    portions: list[list[Batch]] = []
    while given:
        size = dice.randrange(1, 4)
        portions.append(given[:size])
        given = given[size:]
    return portions


def same(url: str, batches: list[Batch]) -> None:
    """Compare with what another engine makes of all of them at once."""
    with closing(connect(url, read_only=True)) as db:
        for name, (columns, expected) in shown(batches).items():
            rows = db.execute(f"SELECT {', '.join(columns)} FROM {name}".encode()).fetchall()
            if name.endswith("_days"):
                rows = summed(name, rows)
            assert sorted(rows, key=repr) == expected, name


def summed(name: str, rows: Rows) -> Rows:
    """One row for each quarter of an hour: a session that stands in several batches has a row for each of them."""
    _, by, sums = QUARTER_HOUR_SUMS[name]
    found: dict[tuple[Any, ...], list[tuple[int | None, ...]]] = {}
    for *row, quarter_hour in rows:
        found.setdefault((*row[: len(by)], quarter_hour), []).append(tuple(row[len(by) :]))
    return [
        (*key, *map(_together, sums, zip(*cells, strict=True)), quarter_hour)
        for (*key, quarter_hour), cells in found.items()
    ]


def _together(name: str, cells: tuple[int | None, ...]) -> int | None:
    known = [cell for cell in cells if cell is not None]
    how = {"min_ts_us": min, "max_ts_us": max, "longest_us": max}.get(name, sum)
    return how(known) if known else None


@pytest.mark.parametrize("seed", range(3))
def test_any_order_and_repetition_shows_the_same(url: str, seed: int) -> None:
    dice = random.Random(seed)
    prepared(url)
    for _ in range(3):
        batches = [batch_of(dice) for _ in range(dice.randrange(2, 10))]
        for _ in range(2):
            put(url, portions_of(dice, batches))
            same(url, batches)
            emptied(url)


def test_what_is_added_later_gives_what_all_at_once_gives(url: str) -> None:
    dice = random.Random(99)
    prepared(url)
    batches: list[Batch] = []
    for _ in range(15):
        batches.append(batch_of(dice))
        put(url, [batches[-1:]])
        same(url, batches)


def test_machines_that_push_at_once_give_the_same(url: str) -> None:
    dice = random.Random(5)
    prepared(url)
    batches = [batch_of(dice, sources=9) for _ in range(30)]
    failures: list[BaseException] = []

    def one(seed: int) -> None:
        try:
            put(url, portions_of(random.Random(seed), batches))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=one, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    same(url, batches)


def test_only_current_batches_take_room(url: str) -> None:
    dice = random.Random(1)
    prepared(url)
    put(url, portions_of(dice, [batch_of(dice) for _ in range(30)]))
    current = {row[0] for row in ask(url, "SELECT DISTINCT batch FROM batches WHERE is_current")}
    assert {row[0] for row in ask(url, "SELECT batch FROM loaded")} == current
    for table in COPIED:
        assert {row[0] for row in ask(url, f"SELECT DISTINCT batch FROM {table}")} <= current


def homes(folder: Path) -> list[Machine]:
    """Machines with sessions that one resumed, another copied, and that grew at different times."""
    one, two, three = (Machine(folder / name) for name in ("one", "two", "three"))
    first, second = "aaaaaaaa-0000-4000-8000-000000000000", "bbbbbbbb-0000-4000-8000-000000000000"
    write_claude(one.home, first, 30)
    write_claude(two.home, first, 20)
    resumed = claude_lines(first, 0, 25) + claude_lines(second, 25, 20, seed=1)
    for machine in (two, three):
        path = claude_path(machine.home, second)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(spelled(resumed))
    write_claude(three.home, "cccccccc-0000-4000-8000-000000000000", 15, seed=2)
    return [one, two, three]


@pytest.mark.parametrize("level", ["metrics", "redacted", "raw"])
def test_homes_of_several_machines_in_any_order(url: str, server_url: str, tmp_path: Path, level: str) -> None:
    machines = homes(tmp_path)
    for machine in machines:
        machine.push(url, level)
    for at in (2, 0, 1, 0, 2):
        machines[at].push(server_url, level)
    assert tables(url) == tables(server_url)
    assert statistics(url)["usage in total, one by one"] == statistics(url)["usage in total"]


def test_sessions_that_grow_between_pushes_end_alike(url: str, server_url: str, tmp_path: Path) -> None:
    machines = homes(tmp_path)
    for machine in machines:
        machine.push(url)
    for machine in machines[:2]:
        for path in machine.home.rglob("*.jsonl"):
            append(path, spelled(claude_lines(path.stem, 60, 10, seed=7)))
    for machine in reversed(machines):
        machine.push(url)
        machine.push(server_url)
    assert tables(url) == tables(server_url)


def test_one_home_is_the_catalog_of_that_home(url: str, tmp_path: Path) -> None:
    """Copies within a home are chosen among as the catalog does."""
    machine = homes(tmp_path)[1]
    machine.push(url)
    assert statistics(url) == machine.statistics()


def test_what_lost_its_session_with_a_month_is_not_doubled(url: str, tmp_path: Path) -> None:
    """Sessions stand in the month they began in; their messages may be of later ones."""
    one, two, _ = homes(tmp_path)
    one.push(url)
    change(url, "DELETE FROM sessions_copies")
    two.push(url)
    for table, key in (("messages", "event_id"), ("usage", "usage_id")):
        assert ask(url, f"SELECT count(*) - count(DISTINCT {key}) FROM {table}") == [(0,)]
