"""What snapshots cost: scans of a whole workspace compared with `git status`, and many versions of one file on disk."""

from __future__ import annotations

import os
import random
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.measure import Options
from clew.store import Session, Store

FILES, SIZE, FOLDERS = 10_000, 50_000, 400
VERSIONS, LARGE = 100, 1_000_000


def report(options: Options) -> Iterator[str]:
    """The lines of the report."""
    scale = 1.0 if options.session >= 1_000_000 else 0.02
    with tempfile.TemporaryDirectory(prefix="clew-snapshots-") as folder:
        yield "snapshots: best of the rounds"
        yield from _scans(Path(folder), int(FILES * scale), options.rounds)
        yield from _versions(Path(folder), int(LARGE * scale))


def _scans(folder: Path, count: int, rounds: int) -> Iterator[str]:
    """Watch a tool that changes nothing, after one file of many has changed: a scan before it, and one after it."""
    root = folder / "work"
    paths = list(_fill(root, count))
    _git(root, "init", "-q")
    _git(root, "add", "-A")
    session = Store(folder, durability="system").session("scans")
    message = session.assistant("I watch everything.").uuid
    first = _timed(lambda: _watch(session, message, root))
    floors, ours = [], []
    _git(root, "status", "--porcelain")
    for number in range(max(3, rounds)):
        time.sleep(0.1)
        paths[number].write_bytes(os.urandom(SIZE))
        time.sleep(0.1)
        floors.append(_timed(lambda: _git(root, "status", "--porcelain")))
        ours.append(_timed(lambda: _watch(session, message, root)) / 2)
    floor, best = min(floors), min(ours)
    megabytes = count * SIZE / 1e6
    yield f"  {count:,} files, {megabytes:.0f} MB, all copied for the first time in {first:.1f} s"
    yield f"  floor, git status, one file changed    {floor * 1e3:9.1f} ms"
    yield f"  clew, one scan, its copy and record    {best * 1e3:9.1f} ms, {best / floor:.2f} times (goal at most 3)"


def _watch(session: Session, message: str, root: Path) -> None:
    with session.watch(message, root=root):
        pass


def _fill(root: Path, count: int) -> Iterator[Path]:
    chance = random.Random(7)
    for number in range(count):
        path = root / f"part-{number % FOLDERS:03}" / f"file-{number:05}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(chance.randbytes(SIZE // 2).hex()[: SIZE - 8].encode() + b"%07d\n" % number)
        yield path


def _git(root: Path, *words: str) -> None:
    subprocess.run(["git", "-C", root, *words], check=True, capture_output=True)


def _timed(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def _versions(folder: Path, size: int) -> Iterator[str]:
    """Many versions of one file that nothing compresses, with small edits."""
    chance = random.Random(11)
    body = bytearray(chance.randbytes(size))
    root = folder / "one"
    root.mkdir()
    session = Store(folder, durability="system").session("versions")
    begun = time.perf_counter()
    for _ in range(VERSIONS):
        (root / "file.bin").write_bytes(body)
        with session.watch(session.assistant("I edit."), ["file.bin"], root=root):
            at = chance.randrange(size - 40)
            body[at : at + 20] = chance.randbytes(30)
            (root / "file.bin").write_bytes(body)
    spent = time.perf_counter() - begun
    taken = sum(path.stat().st_size for path in session.backups.iterdir())
    records = (session.folder / "snapshots.jsonl").stat().st_size
    yield f"  {VERSIONS + 1} versions of one file of {size / 1e6:.2f} MB: {taken / 1e6:.2f} MB of copies"
    yield f"  ... and {records / 1e6:.2f} MB of records; {(taken + records) / 1e6:.2f} MB in all"
    yield f"  {spent / VERSIONS * 1e3:.1f} ms a version, before and behind"
