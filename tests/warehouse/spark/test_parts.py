"""An archive into a lake, part by part, without a cluster: what every worker does."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from clew.archive.archive import open_archive
from clew.archive.sessions import files, sessions
from clew.errors import UsageError
from clew.host import Host
from clew.sources.local import in_homes
from clew.warehouse.ingest import ingest_files, read_source
from clew.warehouse.lake.engine import DuckEngine
from clew.warehouse.lake.store import open_store
from clew.warehouse.lake.write import write
from clew.warehouse.publisher import Publisher, load_publisher
from clew.warehouse.spark.engine import parse_engine_url
from clew.warehouse.spark.job import ArchivedFiles, Job, add_reports, archived_meta, write_part
from tests.cli.running import clew
from tests.demo_home import write_self_contained_demo
from tests.every_statement import every_statement


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("home")
    write_self_contained_demo(folder)
    return folder


@pytest.fixture(scope="module")
def archive(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("archive")
    assert clew("--home", home, "archive", "--archive", folder).code == 0
    return folder


@pytest.fixture
def who(tmp_path: Path) -> Publisher:
    return load_publisher("raw", folder=tmp_path / "data")


@pytest.mark.slow
def test_an_archived_session_gives_the_batch_that_its_files_give(home: Path, archive: Path, who: Publisher) -> None:
    live = {
        str(found.source.path): read_source(found.source, who.meta(found.source)).name
        for found in in_homes([Host(home)])
    }
    with open_archive(archive) as opened:
        every = ArchivedFiles(files(opened))
        kept = {one.path: ingest_files(every.read(one), archived_meta(one, who)).name for one in sessions(opened)}
    assert kept == live


@pytest.mark.slow
def test_parts_give_the_rows_that_a_write_from_the_home_gives(
    home: Path, archive: Path, who: Publisher, tmp_path: Path
) -> None:
    task = Job(str(archive), str(tmp_path / "parts"), who, 3)
    report = add_reports(write_part(task, number) for number in range(3))
    write(open_store(str(tmp_path / "whole")), [found.source for found in in_homes([Host(home)])], who)
    assert report.written == report.sources > 20
    assert report.unreadable == ()
    stores = (open_store(str(tmp_path / name)) for name in ("parts", "whole"))
    with closing(DuckEngine(next(stores))) as parts, closing(DuckEngine(next(stores))) as whole:
        assert [name for name, statement in every_statement() if parts.ask(statement) != whole.ask(statement)] == []


@pytest.mark.slow
def test_a_part_that_is_done_twice_leaves_the_lake_as_once(archive: Path, who: Publisher, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    # Of two that do the same part at once, neither knows of the other.
    first, second = (Job(str(archive), str(lake), who, 2) for _ in range(2))
    write_part(first, 0)
    before = {path: path.read_bytes() for path in lake.rglob("*") if path.is_file()}
    again = write_part(second, 0)
    assert (again.written, again.objects) == (0, 0)
    assert {path: path.read_bytes() for path in lake.rglob("*") if path.is_file()} == before


def test_a_damaged_session_is_told_and_the_others_are_written(archive: Path, who: Publisher, tmp_path: Path) -> None:
    import shutil

    damaged = tmp_path / "damaged"
    shutil.copytree(archive, damaged)
    (pack,) = damaged.glob("packs/*.pack")
    content = bytearray(pack.read_bytes())
    content[len(content) // 2] ^= 1
    pack.write_bytes(content)
    report = write_part(Job(str(damaged), str(tmp_path / "lake"), who, 1), 0)
    assert report.unreadable
    assert report.written == report.sources - len(report.unreadable)


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("spark://host:7077/srv/lake", ("spark://host:7077", "/srv/lake")),
        ("spark://a:1,b:2/srv/lake", ("spark://a:1,b:2", "/srv/lake")),
        ("spark://host:7077?lake=s3a://bucket/lake", ("spark://host:7077", "s3a://bucket/lake")),
    ],
)
def test_the_name_of_an_engine_tells_cluster_and_lake(url: str, found: tuple[str, str]) -> None:
    assert parse_engine_url(url) == found


@pytest.mark.parametrize("url", ["spark://host:7077", "spark:///srv/lake", "spark://host:7077/"])
def test_a_name_without_cluster_or_lake_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match="name the lake too"):
        parse_engine_url(url)
