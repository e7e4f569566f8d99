"""Lakes of older layouts are read, written to, and upgraded by compaction.

Layout version 1 had a folder per day, and until version 2 `sessions` had no column `has_subagent_records`.
"""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from clew.errors import TargetRefused
from clew.warehouse.columns import TABLES
from clew.warehouse.lake.compact import compact
from clew.warehouse.lake.engine import DuckEngine
from clew.warehouse.lake.layout import LAYOUT_VERSION, is_by_day, version_name
from clew.warehouse.lake.objects import to_parquet
from clew.warehouse.lake.store import FolderStore
from clew.warehouse.lake.verify import verify
from tests.cli.running import clew
from tests.demo_home import write_self_contained_demo
from tests.warehouse.lake.worlds import Machine, Rows, age, rows, write

LATER = datetime(2027, 1, 1, tzinfo=UTC)
SUBAGENT_RECORDS = TABLES["sessions"].names.index("has_subagent_records") - 1
"""Position in a row without the name of its batch."""


def _as_version_1(table: pa.Table) -> pa.Table:
    """The rows as schema version 1 wrote them: the name of a batch was another one, as it had one column less."""
    table = table.set_column(0, table.schema.field(0), pc.utf8_reverse(table["batch"]))
    if "has_subagent_records" in table.column_names:
        return table.drop_columns(["has_subagent_records"])
    if "schema_version" in table.column_names:
        at = table.schema.get_field_index("schema_version")
        return table.set_column(at, table.schema.field(at), pa.array([1] * table.num_rows, pa.int64()))
    return table


class OldLake(NamedTuple):
    """The machine that wrote a lake, the lake, and the rows that this version writes."""

    machine: Machine
    folder: Path
    expected: Rows

    @property
    def store(self) -> FolderStore:
        return FolderStore(self.folder)


@pytest.fixture(scope="module")
def version_1(tmp_path_factory: pytest.TempPathFactory) -> OldLake:
    """A lake of the demo home as version 1 wrote it."""
    folder = tmp_path_factory.mktemp("lake")
    machine, lake = Machine(folder, "one"), folder / "lake"
    write_self_contained_demo(machine.home)
    write(machine, FolderStore(lake))
    expected = rows(FolderStore(lake))
    for path in list(lake.glob("table=*/month=*/*.parquet")):
        table = _as_version_1(pq.ParquetFile(path).read())
        shard = path.name.partition("-")[0] + "-" if "-" in path.name else ""
        for day in table["day_utc"].unique().to_pylist():
            content = to_parquet(table.filter(pc.equal(table["day_utc"], day)))
            name = f"{shard}{blake2b(content, digest_size=16).hexdigest()}.parquet"
            of_day = path.parent.parent / f"day={day or 'unknown'}"
            of_day.mkdir(exist_ok=True)
            (of_day / name).write_bytes(content)
        path.unlink()
    (lake / version_name()).unlink()
    (lake / "_clew/schema=1").write_bytes(b"\n")
    return OldLake(machine, lake, expected)


@pytest.fixture
def old_lake(version_1: OldLake, tmp_path: Path) -> OldLake:
    """A copy of it."""
    shutil.copytree(version_1.folder, tmp_path / "lake")
    return version_1._replace(folder=tmp_path / "lake")


def _with_subagents(lake: Path) -> int:
    ran = clew("stats", "--engine", f"duckdb:{lake}", "--has", "subagent", "--json")
    return int(ran.json["totals"]["sessions"] + ran.json["totals"]["subagents"])


def test_an_old_lake_is_read_and_what_it_lacks_is_unknown(old_lake: OldLake) -> None:
    found = rows(old_lake.store)
    expected = old_lake.expected
    assert {row[SUBAGENT_RECORDS] for row in found["sessions"]} == {None}
    assert {row[SUBAGENT_RECORDS] for row in expected["sessions"]} == {0, 1}
    unknown = [(*row[:SUBAGENT_RECORDS], None, *row[SUBAGENT_RECORDS + 1 :]) for row in expected["sessions"]]
    assert found == {**expected, "sessions": unknown}
    assert verify(old_lake.store).incomplete == ()


def test_the_next_write_adds_what_an_old_lake_lacks(old_lake: OldLake) -> None:
    machine, store = old_lake.machine, old_lake.store
    before = _with_subagents(old_lake.folder)
    report = write(machine, store)
    assert report.written == report.sources
    assert rows(store) == old_lake.expected
    assert _with_subagents(old_lake.folder) > before > 0
    assert write(machine, store).written == 0


def test_compaction_upgrades_an_old_lake(old_lake: OldLake, monkeypatch: pytest.MonkeyPatch) -> None:
    machine, store = old_lake.machine, old_lake.store
    left = [source for source in machine.sources() if source.agent != "sage-agent"]
    monkeypatch.setattr(machine, "sources", lambda: left)
    write(machine, store)
    expected = rows(store)
    assert {row[SUBAGENT_RECORDS] for row in expected["sessions"]} == {None, 0, 1}
    age(old_lake.folder)
    report = compact(store, LATER)
    assert report.after < report.before
    objects = [one.name for one in store.list("") if one.name.startswith("table=")]
    assert objects
    assert not any(map(is_by_day, objects))
    assert rows(store) == expected
    found = verify(store)
    assert (found.damaged, found.incomplete) == ((), ())
    assert write(machine, store).written == 0
    assert (old_lake.folder / version_name()).exists()


def test_a_lake_of_a_newer_layout_is_refused(tmp_path: Path) -> None:
    store = FolderStore(tmp_path / "lake")
    store.put(f"_clew/schema={LAYOUT_VERSION + 1}", b"\n")
    with pytest.raises(TargetRefused, match="newer clew"):
        DuckEngine(store)
