"""What is damaged or missing in a lake is found, and comes back with the next write."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from clew.errors import UnknownReference
from clew.warehouse.columns import TABLES
from clew.warehouse.lake.compact import compact
from clew.warehouse.lake.store import FolderStore, RemoteStore
from clew.warehouse.lake.verify import repair, verify
from tests.catalog.worlds import append, claude_lines, spelled
from tests.cli.running import clew
from tests.demo_home import write_self_contained_demo
from tests.warehouse.lake.worlds import NAMES, Machine, age, files, rows, say, write

LATER = datetime(2027, 1, 1, tzinfo=UTC)


def _lake(tmp_path: Path) -> tuple[Machine, FolderStore]:
    machine, store = Machine(tmp_path, "one"), FolderStore(tmp_path / "lake")
    for day, name in enumerate(NAMES, 1):
        say(machine, name, 25, day)
        write(machine, store)
    return machine, store


def _object(lake: Path, table: str) -> Path:
    return sorted((lake / f"table={table}").rglob("*.parquet"))[0]


@pytest.mark.slow
def test_a_sound_lake_is_proved_before_and_after_it_is_merged(tmp_path: Path) -> None:
    machine, store = Machine(tmp_path, "one"), FolderStore(tmp_path / "lake")
    write_self_contained_demo(machine.home)
    for level in ("metrics", "redacted", "raw"):
        write(machine, store, level)
        proof = verify(store)
        assert (proof.damaged, proof.incomplete, proof.batches) == ((), (), len(machine.sources()))
    age(tmp_path / "lake")
    assert compact(store, LATER).batches_dropped
    proof = verify(store)
    assert (proof.damaged, proof.incomplete) == ((), ())
    assert proof.objects == len(list((tmp_path / "lake").rglob("*.parquet")))


def _damage(path: Path, how: str) -> None:
    content = bytearray(path.read_bytes())
    path.unlink()
    if how == "half":
        path.write_bytes(content[: len(content) // 2])
    elif how == "bit":
        content[len(content) // 2] ^= 1
        path.write_bytes(content)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("table", "how", "is_merged"),
    [
        *((table, "gone", False) for table in TABLES),
        *((table, "half", False) for table in ("batches", "usage", "blocks")),
        *((table, how, True) for table in ("batches", "messages") for how in ("gone", "bit")),
    ],
)
def test_what_is_damaged_or_missing_comes_back(tmp_path: Path, table: str, how: str, is_merged: bool) -> None:
    machine, store = Machine(tmp_path, "one"), FolderStore(tmp_path / "lake")
    write_self_contained_demo(machine.home)
    write(machine, store)
    before = rows(store)
    if is_merged:
        age(tmp_path / "lake")
        compact(store, LATER)
    path = _object(tmp_path / "lake", table)
    _damage(path, how)
    proof = verify(store)
    assert proof.damaged == (() if how == "gone" else (path.relative_to(tmp_path / "lake").as_posix(),))
    assert bool(proof.incomplete) == (table != "batches")
    repair(store, proof)
    write(machine, store)
    assert rows(store) == before
    assert verify(store)[3:] == ((), ())
    assert write(machine, store).written == 0


@pytest.mark.slow
def test_a_damaged_object_is_kept_aside_and_what_is_left_still_counts(tmp_path: Path) -> None:
    machine, store = _lake(tmp_path)
    before = rows(store)
    path = _object(tmp_path / "lake", "usage")
    path.write_bytes(path.read_bytes()[:100])
    repair(store, verify(store))
    assert (tmp_path / "lake/_damaged" / path.relative_to(tmp_path / "lake")).stat().st_size == 100
    after = rows(store)
    assert after["messages"] == before["messages"]
    assert len(after["usage"]) < len(before["usage"])
    age(tmp_path / "lake")
    compact(store, LATER)
    assert rows(store) == after
    write(machine, store)
    assert rows(store) == before
    age(tmp_path / "lake")
    compact(store, LATER)
    assert (rows(store), write(machine, store).written) == (before, 0)


@pytest.mark.slow
def test_a_session_that_is_on_no_machine_keeps_what_is_left_and_stays_named(tmp_path: Path) -> None:
    machine, store = _lake(tmp_path)
    path = _object(tmp_path / "lake", "blocks")
    path.unlink()
    found = verify(store).incomplete
    assert {(one.agent, one.origin) for one in found} == {("claude-code", machine.publisher("raw").origin)}
    repair(store, verify(store))
    for source in machine.sources():
        os.remove(source.path)  # noqa: PTH107 - a path of any kind
    assert write(machine, store).written == 0
    assert verify(store).incomplete == found
    before = files(tmp_path / "lake")
    repair(store, verify(store))
    assert files(tmp_path / "lake") == before


def test_what_no_longer_counts_may_lack_rows(tmp_path: Path) -> None:
    machine, store = Machine(tmp_path, "one"), FolderStore(tmp_path / "lake")
    path = say(machine, NAMES[0], 10)
    write(machine, store)
    old = [name for name in files(tmp_path / "lake") if name.startswith("table=messages")]
    append(path, spelled(claude_lines(NAMES[0], 10, 5)))
    write(machine, store)
    for name in old:
        (tmp_path / "lake" / name).unlink()
    assert verify(store).incomplete == ()


def test_a_store_of_another_kind_is_verified_too(tmp_path: Path) -> None:
    machine, store = Machine(tmp_path, "one"), RemoteStore(f"local://{tmp_path}/lake")
    say(machine, NAMES[0], 10)
    write(machine, store)
    path = _object(tmp_path / "lake", "messages")
    path.write_bytes(b"")
    assert len(verify(store).damaged) == 1
    repair(store, verify(store))
    assert write(machine, store).written == 1
    assert verify(store)[3:] == ((), ())


def test_an_object_that_was_only_read_wrong_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, store = _lake(tmp_path)
    real, left = FolderStore.read, [1]

    def flaky(one: FolderStore, name: str) -> bytes:
        content = real(one, name)
        if "table=usage" in name and left[0]:
            left[0] -= 1
            return content[:-1]
        return content

    monkeypatch.setattr(FolderStore, "read", flaky)
    proof = verify(store)
    before = {name for name in files(tmp_path / "lake") if "table=batches" not in name}
    repair(store, proof)
    assert len(proof.damaged) == 1
    assert {name for name in files(tmp_path / "lake") if "table=batches" not in name} == before


@pytest.mark.slow
def test_the_command_names_what_is_wrong_and_how_to_go_on(tmp_path: Path) -> None:
    home, lake = tmp_path / "home", tmp_path / "lake"
    write_self_contained_demo(home)
    assert clew("lake", "write", lake, "--home", home).code == 0
    done = clew("lake", "verify", lake)
    assert (done.code, "no errors" in done.err) == (0, True)
    path = _object(lake, "usage")
    days = pq.read_table(path)["batch"].unique()
    path.write_bytes(b"")
    done = clew("lake", "verify", lake)
    assert done.code == 5
    assert f"{path.relative_to(lake).as_posix()} is damaged" in done.err
    assert "--fix" in done.err
    told = json.loads(clew("lake", "verify", lake, "--json").out)
    assert (len(told["damaged"]), len(told["incomplete"]), told["fixed"]) == (1, len(days), False)
    done = clew("lake", "verify", lake, "--fix")
    assert done.code == 0
    assert clew("lake", "verify", lake).code == 5
    assert clew("lake", "write", lake, "--home", home).code == 0
    assert clew("lake", "verify", lake).code == 0


def test_there_must_be_a_lake(tmp_path: Path) -> None:
    with pytest.raises(UnknownReference):
        verify(FolderStore(tmp_path))
