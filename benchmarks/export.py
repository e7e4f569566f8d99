"""Compares the lossless NDJSON export of an agent's sessions with `orjson.loads` of the same bytes.

Both read files. The export writes to the null device, once in one process and once on all cores, as `clew export` does;
the lower bound runs in one process. It decodes JSONL files line by line, and other files as a whole.
"""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import orjson

from benchmarks.measure import Cost, Options, agent_files, alternate, best, timed, total_bytes
from clew import Host, Library
from clew.export.document import ONE_LINE, write_document
from clew.export.parallel import write_in_workers
from clew.library import StoredSession

_TIME = "2026-01-01T00:00:00Z"


def report(options: Options) -> Iterator[str]:
    """The lines of the report."""
    home, agent = options.home, options.agent
    files = agent_files(home, agent)
    megabytes = total_bytes(files) / 10**6
    floors, alone, spread = alternate(
        options.rounds,
        lambda: timed(lambda: decode_lines(files)),
        lambda: timed(lambda: export(home, agent)),
        lambda: _timed_with_children(home, agent),
    )
    floor, one, whole = best(floors), best(alone), best(spread)
    yield f"export: {len(files)} files of {agent}, {megabytes:.1f} MB, best of {options.rounds}, no garbage collector"
    yield f"  floor, orjson.loads of each line  {floor}  {megabytes / floor.cpu:6.1f} MB/s of cpu"
    yield f"  clew, one process                 {one}  {megabytes / one.cpu:6.1f} MB/s of cpu"
    yield f"  clew, all {os.cpu_count()} cores                 {whole}  {megabytes / whole.wall:6.1f} MB/s of wall"
    yield f"  one process, by cpu: {floor.cpu / one.cpu:.2f} of the floor's speed ({floor.wall / one.wall:.2f} by wall)"
    yield f"  whole machine, by wall: {floor.wall / whole.wall:.2f} of the floor's speed"
    idle = _ratio_if_idle(floor, whole)
    yield f"  workers take {whole.cpu / one.cpu:.2f} times the cpu; {idle:.2f} by wall if all cores were free"


def _ratio_if_idle(floor: Cost, spread: Cost) -> float:
    """The ratio by wall time, if every process had a core of its own all the time."""
    return floor.cpu / (spread.cpu / (os.cpu_count() or 1))


def _timed_with_children(home: Path, agent: str) -> Cost:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    cost = timed(lambda: export_on_all_cores(home, agent))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    more = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return cost._replace(cpu=cost.cpu + more)


def decode_lines(files: list[Path]) -> None:
    """Decode every line, and drop the result."""
    for path in files:
        with path.open("rb", buffering=1 << 20) as stream:
            for line in stream if path.suffix == ".jsonl" else (stream.read(),):
                try:
                    orjson.loads(line)
                except orjson.JSONDecodeError:
                    continue


def export(home: Path, agent: str) -> None:
    """Export every session in this process, one document per line."""
    with open(os.devnull, "wb") as out:
        for session in Library(Host.at(home), agents=[agent]).sources():
            _write(session, out)


def export_on_all_cores(home: Path, agent: str) -> None:
    """Export every session with the worker processes of `clew export`."""
    sessions = list(Library(Host.at(home), agents=[agent]).sources())

    def write(number: int) -> bool:
        with open(os.devnull, "wb") as out:
            _write(sessions[number], out)
        return True

    results = write_in_workers(write, [session.source.size for session in sessions])
    for number, is_written in enumerate(results):
        if not is_written:
            write(number)


def _write(session: StoredSession, out: IO[bytes]) -> None:
    write_document(session.agent, session.source, out, timestamp=_TIME, layout=ONE_LINE)
