"""Lakes of layout version 1, which had a folder per day: they are read, written to, and upgraded by compaction."""

from __future__ import annotations

from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from clew.demo import write_demo
from clew.errors import TargetRefused
from clew.warehouse.lake.compact import compact
from clew.warehouse.lake.engine import DuckEngine
from clew.warehouse.lake.layout import is_by_day, version_name
from clew.warehouse.lake.objects import to_parquet
from clew.warehouse.lake.store import FolderStore
from clew.warehouse.lake.verify import verify
from tests.warehouse.lake.worlds import Machine, Rows, age, rows, write

LATER = datetime(2027, 1, 1, tzinfo=UTC)


def _lake_by_day(tmp_path: Path) -> tuple[Machine, FolderStore, Rows]:
    """A lake of the demo home as version 1 wrote it, and its rows."""
    machine, lake = Machine(tmp_path, "one"), tmp_path / "lake"
    write_demo(machine.home)
    write(machine, FolderStore(lake))
    expected = rows(FolderStore(lake))
    for path in list(lake.glob("table=*/month=*/*.parquet")):
        table = pq.ParquetFile(path).read()
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


def test_a_lake_by_day_is_read_and_only_changes_are_written(tmp_path: Path) -> None:
    machine, store, expected = _lake_by_day(tmp_path)
    assert rows(store) == expected
    assert verify(store).incomplete == ()
    assert write(machine, store).written == 0


def test_compaction_replaces_objects_by_day(tmp_path: Path) -> None:
    machine, store, expected = _lake_by_day(tmp_path)
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
    _, store, _ = _lake_by_day(tmp_path)
    store.put("_clew/schema=3", b"\n")
    with pytest.raises(TargetRefused, match="newer clew"):
        DuckEngine(store)
