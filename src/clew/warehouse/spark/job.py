"""A job for spark-submit that writes the sessions of an archive to a lake.

    spark-submit --master spark://HOST:7077 "$(clew lake spark-job)" ARCHIVE LAKE [--level metrics|redacted|raw]

ARCHIVE is a folder that `clew archive` writes; every worker must be able to read it, and to write to LAKE. clew with
its extras `lake` and `spark` must be installed for the Python of the driver and of the workers (PYSPARK_PYTHON).
Workers mask the data before they write it.

Every part of the archive writes its own objects, and then registers their batches. Names follow from the content, so a
part that runs twice gives the same lake. The job can be killed and repeated at any time.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from clew.agents import registry
from clew.archive.archive import open_archive
from clew.archive.records import SourceHome
from clew.archive.sessions import ArchivedFile, ArchivedSession, files, sessions
from clew.errors import ClewError
from clew.host import Origin
from clew.warehouse.columns import LEVELS
from clew.warehouse.ingest import ARROW_SOURCE_ERRORS, SourceMeta, describe_unreadable, ingest_files
from clew.warehouse.lake.layout import version_name
from clew.warehouse.lake.store import absolute_target, check_lake, open_store, retry_if_deleted
from clew.warehouse.lake.write import LakeWriter, WriteReport, is_known, known_states
from clew.warehouse.publisher import Publisher, load_publisher
from clew.warehouse.spark.engine import connect, translate_errors

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PART_BYTES = 64 << 20
"""Approximate size of the archived files of one part."""
_SOURCE_ROLES = ("main", "part", "side")
"""The files that a session is read from; the archive also has copies of files that it changed."""
_COUNTS = ("sources", "written", "unchanged", "rows", "objects", "bytes")
_REPORT_COLUMNS = ", ".join((*(f"{name} bigint" for name in _COUNTS), "unreadable string"))


class Job(NamedTuple):
    """What every worker needs to know."""

    archive: str
    lake: str
    publisher: Publisher
    parts: int


def run_job(
    spark: SparkSession, archive: Path, lake: str, publisher: Publisher, parts: int | None = None
) -> WriteReport:
    """Write the sessions of an archive that are new in a lake, or have changed."""
    # Workers run in other folders.
    archive, lake = archive.absolute(), absolute_target(lake)
    store = open_store(lake)
    check_lake(store)
    job = Job(str(archive), lake, publisher, parts or _count_parts(archive, spark.sparkContext.defaultParallelism))
    store.put(version_name(), b"\n")
    numbers = spark.range(0, job.parts, 1, job.parts)
    with translate_errors("spark"):
        rows = numbers.mapInArrow(partial(_run_parts, job), _REPORT_COLUMNS).collect()
    return add_reports(_from_row(row.asDict()) for row in rows)


def _count_parts(archive: Path, cores: int) -> int:
    """Enough parts to keep all cores busy."""
    with open_archive(archive) as opened:
        size = sum(version.size for version in opened.newest())
    return max(2 * cores, -(-size // PART_BYTES))


def _run_parts(job: Job, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """On a worker: write the parts whose numbers it gets, and return a row of counts for each."""
    for batch in batches:
        for number in batch.column(0).to_pylist():
            report = write_part(job, number)
            row = {name: [getattr(report, name)] for name in _COUNTS}
            yield pa.RecordBatch.from_pydict({**row, "unreadable": [json.dumps(report.unreadable)]})


def write_part(job: Job, number: int) -> WriteReport:
    """Write one part of an archive to the lake."""
    store = open_store(job.lake)
    known = retry_if_deleted(lambda: known_states(store, job.publisher.origin), store.display_url)
    writer = LakeWriter(store)
    sources = unchanged = 0
    with open_archive(Path(job.archive)) as archive:
        by_home = ArchivedFiles(files(archive))
        for session in sessions(archive, part=number, parts=job.parts):
            sources += 1
            meta = archived_meta(session, job.publisher)
            if is_known(meta, known):
                unchanged += 1
                continue
            try:
                writer.add(ingest_files(by_home.read(session), meta))
            except ARROW_SOURCE_ERRORS as error:
                writer.unreadable.append(describe_unreadable(session.path, error))
        writer.flush()
    return writer.report()._replace(sources=sources, unchanged=unchanged)


def add_reports(reports: Iterable[WriteReport]) -> WriteReport:
    """The sum of the reports of all parts."""
    found = list(reports)
    sums = {name: sum(getattr(report, name) for report in found) for name in _COUNTS}
    return WriteReport(**sums, unreadable=tuple(sorted(problem for report in found for problem in report.unreadable)))


def _from_row(row: dict[str, Any]) -> WriteReport:
    return WriteReport(**{**row, "unreadable": tuple(json.loads(row["unreadable"]))})


def archived_meta(session: ArchivedSession, publisher: Publisher) -> SourceMeta:
    """The metadata of an archived session; no content is read."""
    own = [file for file in session.files if file.role in _SOURCE_ROLES]
    home = session.home
    machine = None if home.kind == "local" else Origin(home.kind, home.name, session.path)  # type: ignore[arg-type]
    return SourceMeta(
        agent=session.agent,
        path=session.path,
        source_id=publisher.source_id(session.agent, f"{home.kind}\0{home.name or ''}\0{session.path}"),
        origin=publisher.origin,
        mtime_ns=max((file.mtime_ns for file in own), default=0),
        size=sum(file.size for file in own),
        policy=publisher.policy,
        redact_version=publisher.redact_version,
        price_version=publisher.price_version,
        parts=tuple(_relative_paths(session, own, "part")),
        sides=tuple(_relative_paths(session, own, "side")),
        machine=machine,
    )


class ArchivedFiles:
    """The files of an archive by home: an agent may read files besides those of the session."""

    def __init__(self, every: Iterable[ArchivedFile]) -> None:
        self._homes: dict[SourceHome, dict[str, ArchivedFile]] = {}
        for file in every:
            self._homes.setdefault(file.version.home, {})[str(_posix(file.path))] = file
        self._names = {home: list(found) for home, found in self._homes.items()}

    def read(self, session: ArchivedSession) -> Iterator[tuple[str, bytes]]:
        """Path and content of a session's files, and of others that its agent needs, one at a time."""
        main, *more = [file for file in session.files if file.role in _SOURCE_ROLES]
        content = main.read()
        others = {file.path: file for file in (*more, *session.shared, *self._companions(session, main, content))}
        yield main.path, content
        del content
        for path, file in others.items():
            if path != main.path:
                yield path, file.read()

    def _companions(self, session: ArchivedSession, main: ArchivedFile, content: bytes) -> Iterator[ArchivedFile]:
        agent, home = registry.get(session.agent), main.version.home
        for name in agent.beside(_posix(main.path), content, self._names[home]):
            yield self._homes[home][name]


def _relative_paths(session: ArchivedSession, own: list[ArchivedFile], role: str) -> Iterator[str]:
    """The paths of files relative to the folder of the main file."""
    folder = _posix(session.path).parent
    for file in own:
        if file.role == role:
            path = _posix(file.path)
            up = 0
            while not path.is_relative_to(folder.parents[up - 1] if up else folder):
                up += 1
            base = folder.parents[up - 1] if up else folder
            yield str(PurePosixPath(*[".."] * up, path.relative_to(base)))


def _posix(path: str) -> PurePosixPath:
    """A path of any operating system; only the sequence of its parts matters here."""
    return PurePosixPath(path.replace("\\", "/") if not path.startswith("/") else path)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the job; returns the exit code."""
    options = _parse_arguments(arguments)
    try:
        spark = connect(None, "clew lake")
        try:
            report = run_job(spark, Path(options.archive), options.lake, load_publisher(options.level), options.parts)
        finally:
            spark.stop()
    except ClewError as error:
        print(f"clew: {error}", file=sys.stderr)
        return error.exit_code
    for problem in report.unreadable:
        print(f"clew: {problem}", file=sys.stderr)
    print(json.dumps({**report._asdict(), "unreadable": len(report.unreadable)}))
    return 3 if report.unreadable else 0


def _parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser("clew lake job", description="Write the sessions of an archive to a lake.")
    parser.add_argument("archive", metavar="ARCHIVE", help="folder that `clew archive` writes")
    parser.add_argument("lake", metavar="LAKE", help="folder or URL of the lake")
    parser.add_argument("--level", choices=LEVELS, default=LEVELS[0], help="how much of a session is published")
    parser.add_argument("--parts", type=int, help="number of parts of the archive that are written independently")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    # Imported under its own name, so that workers can import what is sent to them.
    from clew.warehouse.spark import job

    sys.exit(job.main())
