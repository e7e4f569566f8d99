"""An archive into a lake, one part at a time: what a worker of a cluster does, and what its driver adds up.

Every part writes its own objects and then the batches that make them count. Names follow from the content, so a part
that is done twice, because a worker was lost or thought to be, leaves the lake as once.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from clew.archive.archive import open_archive
from clew.archive.sessions import files, sessions
from clew.warehouse.ingest import BAD, ingest, unreadable
from clew.warehouse.lake.layout import MARKS, check_marks, mark_name
from clew.warehouse.lake.store import absolute, open_store, patiently
from clew.warehouse.lake.write import Packer, Report, is_known, known_states
from clew.warehouse.publisher import Writer
from clew.warehouse.spark.archived import Files, meta_of
from clew.warehouse.spark.session import told

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PART = 64 << 20
"""Bytes of an archive's files that make one part, about."""
_COUNTED = ("sources", "written", "unchanged", "rows", "objects", "bytes")
COLUMNS = ", ".join((*(f"{name} bigint" for name in _COUNTED), "unreadable string"))


class Task(NamedTuple):
    """What every worker is told."""

    archive: str
    target: str
    who: Writer
    parts: int


def run(spark: SparkSession, archive: Path, target: str, who: Writer, parts: int | None = None) -> Report:
    """Bring a lake up to date with an archive that all workers can read."""
    # Workers are started in folders of their own.
    archive, target = archive.absolute(), absolute(target)
    store = open_store(target)
    check_marks((one.name for one in store.list(f"{MARKS}/")), store.shown)
    task = Task(str(archive), target, who, parts or _parts(archive, spark.sparkContext.defaultParallelism))
    store.put(mark_name(), b"\n")
    numbers = spark.range(0, task.parts, 1, task.parts)
    with told("spark"):
        done = numbers.mapInArrow(partial(_worked, task), COLUMNS).collect()
    return total(_report(row.asDict()) for row in done)


def _parts(archive: Path, cores: int) -> int:
    """As many parts as keep all cores busy, and none too large."""
    with open_archive(archive) as opened:
        size = sum(version.size for version in opened.newest())
    return max(2 * cores, -(-size // PART))


def _worked(task: Task, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for number in batch.column(0).to_pylist():
            report = take_part(task, number)
            row = {name: [getattr(report, name)] for name in _COUNTED}
            yield pa.RecordBatch.from_pydict({**row, "unreadable": [json.dumps(report.unreadable)]})


def take_part(task: Task, number: int) -> Report:
    """One part of an archive into the lake."""
    store = open_store(task.target)
    known = patiently(lambda: known_states(store, task.who.origin), store.shown)
    packer = Packer(store)
    sources = unchanged = 0
    with open_archive(Path(task.archive)) as archive:
        every = Files(files(archive))
        for session in sessions(archive, part=number, parts=task.parts):
            sources += 1
            meta = meta_of(session, task.who)
            if is_known(meta, known):
                unchanged += 1
                continue
            try:
                packer.add(ingest(every.of(session), meta))
            except BAD as error:
                packer.unreadable.append(unreadable(session.path, error))
        packer.flush()
    return packer.report()._replace(sources=sources, unchanged=unchanged)


def total(reports: Iterable[Report]) -> Report:
    """What all parts did together."""
    found = list(reports)
    sums = {name: sum(getattr(report, name) for report in found) for name in _COUNTED}
    return Report(**sums, unreadable=tuple(sorted(problem for report in found for problem in report.unreadable)))


def _report(row: dict[str, Any]) -> Report:
    return Report(**{**row, "unreadable": tuple(json.loads(row["unreadable"]))})
