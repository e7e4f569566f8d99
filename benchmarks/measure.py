"""Time, taken as wall and processor seconds: on a busy machine only the second can be trusted."""

from __future__ import annotations

import atexit
import gc
import os
import resource
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from clew import Host, Library


class Options(NamedTuple):
    """What a person may choose; the defaults are what published figures use."""

    home: Path
    rounds: int = 3
    session: int = 30_000_000
    agent: str = "claude-code"
    peers: Path | None = None


class Cost(NamedTuple):
    """Seconds."""

    wall: float
    cpu: float

    def over(self, floor: Cost) -> Cost:
        """This cost as a multiple of another."""
        return Cost(self.wall / floor.wall, self.cpu / floor.cpu)

    def __str__(self) -> str:
        return f"{self.wall:7.3f} s wall {self.cpu:7.3f} s cpu"


def timed(work: Callable[[], object]) -> Cost:
    """The cost of a function, without the garbage collector."""
    gc.collect()
    gc.disable()
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    cost = Cost(time.perf_counter() - wall, time.process_time() - cpu)
    gc.enable()
    return cost


def process(command: Sequence[str], text: bytes = b"", home: Path | None = None) -> Cost:
    """The cost of a process, from before its start until after its end."""
    env = {**os.environ, **_compiled()} | ({"HOME": str(home)} if home is not None else {})
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    wall = time.perf_counter()
    subprocess.run(command, check=True, input=text, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=env)
    wall = time.perf_counter() - wall
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Cost(wall, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)


@lru_cache
def _compiled() -> dict[str, str]:
    """An installed program is compiled once and for all, whatever this environment says."""
    folder = tempfile.mkdtemp(prefix="clew-bench-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": folder}


def in_turn(rounds: int, *measured: Callable[[], Cost]) -> list[list[Cost]]:
    """The costs of each, taken in turn, so that a busy moment meets all of them."""
    costs = [[take() for take in measured] for _ in range(rounds)]
    return [list(column) for column in zip(*costs, strict=True)]


def best(costs: Iterable[Cost]) -> Cost:
    """The least of each kind."""
    walls, cpus = zip(*costs, strict=True)
    return Cost(min(walls), min(cpus))


def agent_files(home: Path, agent: str) -> list[Path]:
    """The main files of an agent's sessions below a home, in their order."""
    return sorted({session.source.path for session in Library(Host.at(home), agents=[agent]).sources()})


def total(files: Iterable[Path]) -> int:
    """Their size in bytes."""
    return sum(path.stat().st_size for path in files)
