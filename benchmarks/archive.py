"""The archive against plain tools: how small, how fast in, how fast out, and what a second look costs.

The floor is `tar | zstd -3`, the usual way to keep a folder; its figures are those of the same bytes in the same order.
Rates are given for two cores from processor seconds, those of all processes, because a busy machine makes wall time a
matter of luck. They take for granted that both cores are busy throughout; how far that holds is told, too, and says
something where the machine is idle.
"""

from __future__ import annotations

import hashlib
import os
import resource
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measure import Cost, Options, timed
from clew import Host
from clew.archive import restoring
from clew.archive.blocks import LEVEL
from clew.archive.capture import Outcome, capture
from clew.archive.checking import verify
from clew.archive.copying import Wanted, files_of
from clew.archive.layout import Damage
from clew.archive.pruning import Policy, plan, prune
from clew.archive.reading import Reader
from clew.archive.writing import writer
from clew.sources.local import in_homes

_CORES = 2
_FLOOR_LEVEL = 3
_TIGHT = int(os.environ.get("CLEW_BENCH_TIGHT", "0"))
"""Also pack anew at this level."""


def report(options: Options) -> Iterator[str]:
    """The lines of the report."""
    host = Host.at(options.home)
    folder = Path(tempfile.mkdtemp(prefix="clew-archive-"))
    try:
        files = _files(host)
        paths = sorted({one.path for one in files})
        raw = sum(path.stat().st_size for path in paths)
        yield f"archive: {len(paths):,} files, {raw / 1e6:,.1f} MB, level {LEVEL}"
        yield from _floor(paths, raw)
        yield from _captures(folder / "archive", host, files, raw)
        yield from _outward(folder, raw)
        if _TIGHT:
            yield from _repacked(folder / "archive", raw)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _files(host: Host) -> list[Wanted]:
    return [one for found in in_homes([host]) for one in files_of(host, found.agent, found.source)]


def _rate(cost: Cost, raw: int) -> str:
    return f"{cost}, {_CORES * raw / cost.cpu / 1e6:6.1f} MB/s on {_CORES} cores"


def _floor(paths: list[Path], raw: int) -> Iterator[str]:
    import zstandard

    stored = 0

    def pack() -> None:
        nonlocal stored
        packer = zstandard.ZstdCompressor(level=_FLOOR_LEVEL).compressobj()
        for path in paths:
            stored += len(packer.compress(path.read_bytes()))
        stored += len(packer.flush())

    cost = timed(pack)
    yield f"  floor, zstd -{_FLOOR_LEVEL}         {stored / raw:.4f} of the raw size; {_rate(cost, raw)}"


def _captures(archive: Path, host: Host, files: list[Wanted], raw: int) -> Iterator[str]:
    outcome = Outcome()

    def take() -> None:
        nonlocal outcome
        with writer(archive) as open_writer:
            outcome = capture(open_writer, files, host.now)

    before = _children()
    cost = timed(take)
    cost = cost._replace(cpu=cost.cpu + _children() - before)
    assert not outcome.problems, outcome.problems
    share = f"{_size(archive) / raw:.4f} of the raw size (goal 0.25)"
    by_wall = f"{raw / cost.wall / 1e6:.1f} by wall, {cost.cpu / cost.wall / _CORES:.0%} of both cores used"
    yield f"  clew, first capture    {share}; {_rate(cost, raw)} (goal 60), {by_wall}"
    cost = timed(take)
    assert not outcome.read
    yield f"  clew, nothing new      {cost}, {outcome.unchanged:,} files looked at"


def _children() -> float:
    """Processor seconds of the processes that packed blocks and have left."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _size(archive: Path) -> int:
    return sum(path.stat().st_size for path in archive.rglob("*") if path.is_file())


def _outward(folder: Path, raw: int) -> Iterator[str]:
    problems: list[Damage] = []
    cost = timed(lambda: problems.extend(verify(folder / "archive").problems))
    assert not problems, problems
    yield f"  clew, verify           {cost}, {raw / cost.cpu / 1e6:6.1f} MB/s"
    reader = Reader(folder / "archive")
    steps = restoring.plan(reader.state, list(reader.state.newest()))
    cost = timed(lambda: restoring.restore(reader, steps, folder / "out"))
    reader.close()
    differing = sum(_digest(folder / "out" / step.path) != step.version.digest for step in steps)
    rate = f"{raw / cost.cpu / 1e6:6.1f} MB/s"
    yield f"  clew, restore          {cost}, {rate}; {differing} of {len(steps):,} files differ"


def _digest(path: Path) -> bytes:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").digest()


def _repacked(archive: Path, raw: int) -> Iterator[str]:
    def pack() -> None:
        with writer(archive, level=_TIGHT) as open_writer:
            prune(open_writer, plan(open_writer.state, Policy(), 0), repack=True)

    cost = timed(pack)
    yield f"  clew, packed at {_TIGHT:2}     {_size(archive) / raw:.4f} of the raw size; {_rate(cost, raw)}"
