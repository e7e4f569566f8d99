"""A push of a home's rows to a server of its own, against the sync of the same home into the catalog.

Both are taken in one run. The processor time of a push is that of clew and of the server together; the server keeps its
usual settings but for more memory, and writes to disk as it would anywhere.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.measure import Cost, Options, best
from benchmarks.postgres_server import Server, missing, running
from clew.catalog import statements
from clew.warehouse.postgres.engine import open_engine

GOAL = 3.0
_TICKS = os.sysconf("SC_CLK_TCK")


def report(options: Options) -> Iterator[str]:
    """The lines of the report."""
    why = missing()
    if why is not None:
        yield f"push: neither floor nor figure: {why}"
        return
    folder = Path(tempfile.mkdtemp(prefix="clew-push-"))
    try:
        with running("shared_buffers=256MB", "max_wal_size=4GB") as server:
            yield from _report(options, folder, server)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _report(options: Options, folder: Path, server: Server) -> Iterator[str]:
    size = sum(path.stat().st_size for path in options.home.rglob("*") if path.is_file())
    yield f"push: {size / 1e6:,.1f} MB, best of {options.rounds}"
    syncs, pushes, idle = [], [], []
    for number in range(options.rounds):
        env = {"HOME": str(folder), "CLEW_DATA_DIR": str(folder / str(number))}
        syncs.append(_cost(["sync"], options, env, server))
        database = _database(server, f"round{number}")
        pushes.append(_cost(["push", database], options, env, server))
        idle.append(_cost(["push", database], options, env, server))
    sync, push = best(syncs), best(pushes)
    yield f"  floor, clew sync       {sync}"
    ratio = push.over(sync)
    told = f"{ratio.cpu:.2f} of the cpu of the sync, {ratio.wall:.2f} of its wall (goal {GOAL})"
    yield f"  clew push, metrics     {push}, {told}"
    yield f"  clew push, nothing new {best(idle)}"
    yield from _asked(database)


def _database(server: Server, name: str) -> str:
    import psycopg

    with psycopg.connect(server.url(), autocommit=True) as db:
        db.execute(f"CREATE DATABASE {name}".encode())
    return server.url(name)


def _cost(words: Sequence[str], options: Options, env: dict[str, str], server: Server) -> Cost:
    """The cost of a command, what the server does for it included."""
    command = [str(Path(sys.executable).with_name("clew")), *words, "--home", str(options.home)]
    before, wall = _used(server), time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env={**os.environ, **env})
    wall = time.perf_counter() - wall
    # The server counts what its processes used when they are gone.
    time.sleep(0.5)
    return Cost(wall, _used(server) - before)


def _used(server: Server) -> float:
    """Processor seconds of all commands so far, and of the server with all its processes."""
    ours = resource.getrusage(resource.RUSAGE_CHILDREN)
    number = int((server.folder / "base" / "postmaster.pid").read_text().split()[0])
    theirs = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[11:15]
    return ours.ru_utime + ours.ru_stime + sum(map(int, theirs)) / _TICKS


def _asked(url: str) -> Iterator[str]:
    """How long every statistic takes."""
    engine = open_engine(url)
    times = {}
    for name, statement in statements.catalogue():
        begun = time.perf_counter()
        engine.ask(statement)
        times[name] = time.perf_counter() - begun
    engine.close()
    slowest = max(times, key=lambda name: times[name])
    total = f"{len(times)} statements in {sum(times.values()):.2f} s"
    yield f"  all statistics there   {total}, the slowest in {times[slowest]:.3f} s ({slowest})"
