"""Lakes of older layouts are read, written to, and upgraded by compaction.

Layout version 1 had a folder per day, and until version 2 `sessions` had no column `starts_subagents`.
"""

from __future__ import annotations

from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from clew.demo import write_demo
from clew.errors import TargetRefused
from clew.warehouse.columns import TABLES
from clew.warehouse.lake.compact import compact
from clew.warehouse.lake.engine import DuckEngine
from clew.warehouse.lake.layout import LAYOUT_VERSION, is_by_day, version_name
from clew.warehouse.lake.objects import to_parquet
from clew.warehouse.lake.store import FolderStore
from clew.warehouse.lake.verify import verify
from tests.cli.running import clew
from tests.warehouse.lake.worlds import Machine, Rows, age, rows, write

LATER = datetime(2027, 1, 1, tzinfo=UTC)
STARTS_SUBAGENTS = TABLES["sessions"].names.index("starts_subagents") - 1
"""Position in a row without the name of its batch."""


def _without_names_of_batches(found: Rows) -> Rows:
    return {**found, "sessions": sorted((row[1:] for row in found["sessions"]), key=repr)}


def _as_version_1(table: pa.Table) -> pa.Table:
    """The rows as schema version 1 wrote them: the name of a batch was another one, as it had one column less."""
    table = table.set_column(0, table.schema.field(0), pc.utf8_reverse(table["batch"]))
    if "starts_subagents" in table.column_names:
        return table.drop_columns(["starts_subagents"])
    if "schema_version" in table.column_names:
        at = table.schema.get_field_index("schema_version")
        return table.set_column(at, table.schema.field(at), pa.array([1] * table.num_rows, pa.int64()))
    return table


def _lake_of_version_1(tmp_path: Path) -> tuple[Machine, FolderStore, Rows]:
    """A lake of the demo home as version 1 wrote it, and the rows that this version writes."""
    machine, lake = Machine(tmp_path, "one"), tmp_path / "lake"
    write_demo(machine.home)
    write(machine, FolderStore(lake))
    expected = rows(FolderStore(lake))
    for path in list(lake.glob("table=*/month=*/*.parquet")):
        table = _as_version_1(pq.ParquetFile(path).read())
        shard = path.name.partition("-")[0] + "-" if "-" in path.name else ""
        for day in table["day_utc"].unique().to_pylist():
            content = to_parquet(table.filter(pc.equal(table["day_utc"], day)))
            name = f"{shard}{blake2b(content, digest_size=16).hexdigest()}.parquet"
            folder = path.parent.parent / f"day={day or 'unknown'}"
            folder.mkdir(exist_ok=True)
            (folder / name).write_bytes(content)
        path.unlink()
    (lake / version_name()).unlink()
    (lake / "_clew/schema=1").write_bytes(b"\n")
    return machine, FolderStore(lake), expected


def _with_subagents(tmp_path: Path) -> int:
    ran = clew("stats", "--engine", f"duckdb:{tmp_path / 'lake'}", "--has", "subagent", "--json")
    return int(ran.json["totals"]["sessions"] + ran.json["totals"]["subagents"])


def test_an_old_lake_is_read_and_what_it_lacks_is_unknown(tmp_path: Path) -> None:
    _, store, expected = _lake_of_version_1(tmp_path)
    found = _without_names_of_batches(rows(store))
    expected = _without_names_of_batches(expected)
    assert {row[STARTS_SUBAGENTS] for row in found["sessions"]} == {None}
    assert {row[STARTS_SUBAGENTS] for row in expected["sessions"]} == {0, 1}
    unknown = [(*row[:STARTS_SUBAGENTS], None, *row[STARTS_SUBAGENTS + 1 :]) for row in expected["sessions"]]
    assert found == {**expected, "sessions": unknown}
    assert verify(store).incomplete == ()


def test_the_next_write_adds_what_an_old_lake_lacks(tmp_path: Path) -> None:
    machine, store, expected = _lake_of_version_1(tmp_path)
    before = _with_subagents(tmp_path)
    report = write(machine, store)
    assert report.written == report.sources
    assert _without_names_of_batches(rows(store)) == _without_names_of_batches(expected)
    assert _with_subagents(tmp_path) > before > 0
    assert write(machine, store).written == 0


def test_compaction_upgrades_an_old_lake(tmp_path: Path) -> None:
    machine, store, _ = _lake_of_version_1(tmp_path)
    next(path for path in machine.home.rglob("*.jsonl") if "codex" in str(path)).unlink()
    write(machine, store)
    expected = rows(store)
    assert {row[STARTS_SUBAGENTS + 1] for row in expected["sessions"]} == {None, 0, 1}
    age(tmp_path / "lake")
    report = compact(store, LATER)
    assert report.after < report.before
    objects = [one.name for one in store.list("") if one.name.startswith("table=")]
    assert objects
    assert not any(map(is_by_day, objects))
    assert rows(store) == expected
    found = verify(store)
    assert (found.damaged, found.incomplete) == ((), ())
    assert write(machine, store).written == 0
    assert (tmp_path / "lake" / version_name()).exists()


def test_a_lake_of_a_newer_layout_is_refused(tmp_path: Path) -> None:
    store = FolderStore(tmp_path / "lake")
    store.put(f"_clew/schema={LAYOUT_VERSION + 1}", b"\n")
    with pytest.raises(TargetRefused, match="newer clew"):
        DuckEngine(store)
