"""Measures wall time and processor time. On a busy machine, only processor time can be compared."""

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
    """Options of the command line. Published figures use the defaults."""

    home: Path
    rounds: int = 3
    session_bytes: int = 30_000_000
    agent: str = "claude-code"
    peers: Path | None = None
    """The Python interpreter of an environment with the tools to compare with."""


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
    """Measure a function, with the garbage collector switched off."""
    gc.collect()
    gc.disable()
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    cost = Cost(time.perf_counter() - wall, time.process_time() - cpu)
    gc.enable()
    return cost


def measure_process(command: Sequence[str], text: bytes = b"", home: Path | None = None) -> Cost:
    """Measure a command, from before its process starts until after it ends."""
    env = {**os.environ, **_bytecode_cache()} | ({"HOME": str(home)} if home is not None else {})
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    wall = time.perf_counter()
    subprocess.run(command, check=True, input=text, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=env)
    wall = time.perf_counter() - wall
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Cost(wall, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)


@lru_cache
def _bytecode_cache() -> dict[str, str]:
    """An environment in which Python keeps bytecode, as an installed program has it."""
    folder = tempfile.mkdtemp(prefix="clew-bench-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": folder}


def alternate(rounds: int, *measurements: Callable[[], Cost]) -> list[list[Cost]]:
    """Run measurements in turn, so that a busy moment affects all of them. Returns the costs of each."""
    costs = [[measure() for measure in measurements] for _ in range(rounds)]
    return [list(column) for column in zip(*costs, strict=True)]


def best(costs: Iterable[Cost]) -> Cost:
    """The smallest wall time and the smallest processor time."""
    walls, cpus = zip(*costs, strict=True)
    return Cost(min(walls), min(cpus))


def agent_files(home: Path, agent: str) -> list[Path]:
    """The main files of an agent's sessions below a home, sorted."""
    return sorted({session.source.path for session in Library(Host.at(home), agents=[agent]).sources()})


def total_bytes(files: Iterable[Path]) -> int:
    """The size of files together."""
    return sum(path.stat().st_size for path in files)
