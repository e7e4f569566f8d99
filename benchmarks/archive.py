"""Size and speed of the archive: capture, capture without changes, verify, restore.

The floor is `zstd -3` over the same files in the same order, as `tar | zstd -3` would give. Rates are computed from
processor time, because wall time depends on what else the machine does.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measure import Cost, Options, timed
from clew import Host
from clew.archive import restore
from clew.archive.archive import open_archive
from clew.archive.capture import FileToCapture, Outcome, capture, files_of
from clew.archive.prune import Policy, plan, prune
from clew.archive.records import Damage
from clew.archive.verify import verify
from clew.archive.writer import LEVEL, open_writer
from clew.sources.local import in_homes

_BASELINE_LEVEL = 3
_REPACK_LEVEL = int(os.environ.get("CLEW_BENCH_REPACK_LEVEL", "0"))
"""If set, also measure `prune --repack` at this level."""


def report(options: Options) -> Iterator[str]:
    """The lines of the report."""
    host = Host.at(options.home)
    folder = Path(tempfile.mkdtemp(prefix="clew-archive-"))
    try:
        files = _files(host)
        paths = sorted({one.path for one in files})
        raw = sum(path.stat().st_size for path in paths)
        yield f"archive: {len(paths):,} files, {raw / 1e6:,.1f} MB, level {LEVEL}"
        yield from _baseline(paths, raw)
        yield from _captures(folder / "archive", host, files, raw)
        yield from _outward(folder, raw)
        if _REPACK_LEVEL:
            yield from _repacked(folder / "archive", raw)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _files(host: Host) -> list[FileToCapture]:
    return [one for found in in_homes([host]) for one in files_of(host, found.agent, found.source)]


def _rate(cost: Cost, raw: int) -> str:
    return f"{cost}, {raw / cost.cpu / 1e6:6.1f} MB per second of processor time"


def _baseline(paths: list[Path], raw: int) -> Iterator[str]:
    import zstandard

    stored = 0

    def pack() -> None:
        nonlocal stored
        packer = zstandard.ZstdCompressor(level=_BASELINE_LEVEL).compressobj()
        for path in paths:
            stored += len(packer.compress(path.read_bytes()))
        stored += len(packer.flush())

    cost = timed(pack)
    yield f"  floor, zstd -{_BASELINE_LEVEL}         {stored / raw:.4f} of the raw size; {_rate(cost, raw)}"


def _captures(archive: Path, host: Host, files: list[FileToCapture], raw: int) -> Iterator[str]:
    outcome = Outcome()

    def take() -> None:
        nonlocal outcome
        with open_writer(archive) as writer:
            outcome = capture(writer, files, host.now)

    cost = timed(take)
    assert not outcome.problems, outcome.problems
    share = f"{_size(archive) / raw:.4f} of the raw size"
    yield f"  clew, first capture    {share}; {_rate(cost, raw)}, {raw / cost.wall / 1e6:.1f} MB/s by wall time"
    cost = timed(take)
    assert not outcome.read
    yield f"  clew, nothing new      {cost}, {outcome.unchanged:,} files looked at"


def _size(archive: Path) -> int:
    return sum(path.stat().st_size for path in archive.rglob("*") if path.is_file())


def _outward(folder: Path, raw: int) -> Iterator[str]:
    problems: list[Damage] = []
    cost = timed(lambda: problems.extend(verify(folder / "archive").problems))
    assert not problems, problems
    yield f"  clew, verify           {cost}, {raw / cost.cpu / 1e6:6.1f} MB/s"
    with open_archive(folder / "archive") as archive:
        steps = restore.plan(list(archive.newest()))
        cost = timed(lambda: restore.restore(archive, {folder / "out": steps}))
    differing = sum(_digest(folder / "out" / step.path) != step.version.digest for step in steps)
    rate = f"{raw / cost.cpu / 1e6:6.1f} MB/s"
    yield f"  clew, restore          {cost}, {rate}; {differing} of {len(steps):,} files differ"


def _digest(path: Path) -> bytes:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").digest()


def _repacked(archive: Path, raw: int) -> Iterator[str]:
    def pack() -> None:
        with open_writer(archive, level=_REPACK_LEVEL) as writer:
            prune(writer, plan(writer, Policy(), 0), repack=True)

    cost = timed(pack)
    yield f"  clew, repack at {_REPACK_LEVEL:2}     {_size(archive) / raw:.4f} of the raw size; {_rate(cost, raw)}"
