"""Lossless unified NDJSON of every session of an agent, against nothing but `orjson.loads` of the same bytes.

Both read from files in this process; the export writes to the null device. Lines are decoded one by one; a file that
is no JSON lines is decoded whole.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import orjson

from benchmarks.measure import Cost, Options, agent_files, best, in_turn, timed, total
from clew import Host, Library
from clew.export.document import ONE_LINE, write_document

_TIME = "2026-01-01T00:00:00Z"


def report(options: Options) -> Iterator[str]:
    """The lines of the report."""
    files = agent_files(options.home, options.agent)
    megabytes = total(files) / 10**6
    floors, exports = in_turn(
        options.rounds, lambda: timed(lambda: load(files)), lambda: timed(lambda: export(options.home, options.agent))
    )
    floor, ours = best(floors), best(exports)
    ratio = Cost(floor.wall / ours.wall, floor.cpu / ours.cpu)
    what = f"{len(files)} files of {options.agent}, {megabytes:.1f} MB"
    yield f"export: {what}, best of {options.rounds}, no garbage collector"
    yield f"  floor, orjson.loads of each line  {floor}  {megabytes / floor.cpu:6.1f} MB/s"
    yield f"  clew, unified NDJSON              {ours}  {megabytes / ours.cpu:6.1f} MB/s"
    yield f"  speed as a share of the floor: {ratio.wall:.2f} wall, {ratio.cpu:.2f} cpu"


def load(files: list[Path]) -> None:
    """Decode every line and let it go."""
    for path in files:
        with path.open("rb", buffering=1 << 20) as stream:
            for line in stream if path.suffix == ".jsonl" else (stream.read(),):
                try:
                    orjson.loads(line)
                except orjson.JSONDecodeError:
                    continue


def export(home: Path, agent: str) -> None:
    """Write every session, one document a line."""
    with open(os.devnull, "wb") as out:
        for session in Library(Host.at(home), agents=[agent]).sources():
            write_document(session.agent, session.source, out, timestamp=_TIME, layout=ONE_LINE)
