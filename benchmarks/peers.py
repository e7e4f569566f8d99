"""Measure everyday commands on two generated homes, beside the tools that clew is compared with.

    python -m benchmarks.peers SMALL:TRUTH LARGE:TRUTH

A home and its truth come from one run of a generator (`--make TOOL` makes homes of 200 MB and 1 GB). Each command runs
a few times, and the fastest run counts. Token totals and planted words are compared with the truth: a wrong answer ends
the benchmark. A peer that is not installed is reported as such. The table is printed in Markdown.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from benchmarks import agentsview
from benchmarks.truth import Truth, count_found_needles, read_truth, tokens_of

PEERS = ("ccusage", "agentsview", "rg")
GENERATED_HOMES = (("200MB", 7), ("1GB", 11))
"""Size and seed of the homes that `--make` generates."""


class Run(NamedTuple):
    """What a process used and printed."""

    seconds: float
    cpu_seconds: float
    peak_mb: float
    output: bytes


class Row(NamedTuple):
    """A row of the table."""

    measure: str
    goal: str
    reference: str
    clew: str
    is_met: bool | None

    def __str__(self) -> str:
        verdict = {True: "met", False: "**missed**", None: ""}[self.is_met]
        return f"| {self.measure} | {self.goal} | {self.reference} | {self.clew} | {verdict} |"


class Bench:
    """Runs clew and its peers with data folders of their own."""

    def __init__(self, options: argparse.Namespace, scratch: Path) -> None:
        self.rounds: int = options.rounds
        self._clew = options.clew or str(Path(sys.executable).with_name("clew"))
        self._peers = {name: getattr(options, name) or shutil.which(name) for name in PEERS}
        self._scratch = scratch
        self._folders = 0

    def new_folder(self) -> Path:
        """Create an empty folder."""
        self._folders += 1
        folder = self._scratch / str(self._folders)
        folder.mkdir()
        return folder

    def clew(self, data: Path, home: Path, *arguments: str) -> Run:
        """Run clew once, with its data in a folder."""
        command = [self._clew, "--home", str(home), *arguments]
        return self._run(command, CLEW_DATA_DIR=str(data), HOME=str(self._scratch))

    def best(self, run: Callable[[], Run]) -> Run:
        """Repeat a run and return the fastest."""
        return min((run() for _ in range(self.rounds)), key=lambda run: run.seconds)

    def best_clew(self, data: Path, home: Path, *arguments: str) -> Run:
        """Run clew some times and return the fastest run."""
        return self.best(partial(self.clew, data, home, *arguments))

    def best_first_clew(self, home: Path, *arguments: str) -> Run:
        """Run clew some times, each time without a catalog, and return the fastest run."""
        return self.best(lambda: self.clew(self.new_folder(), home, *arguments))

    def peer(self, name: str, home: Path, *arguments: str) -> Run | None:
        """Run a peer some times, each time with an empty data folder; None if it is not installed."""
        path = self._peers[name]
        if not path:
            return None

        def run() -> Run:
            folder = self.new_folder()
            linked = agentsview.link_home(home, folder / "home")
            env = agentsview.environment(linked, folder / "agentsview")
            return self._run([path, *arguments], **env)

        return self.best(run)

    def _run(self, command: Sequence[str], **environment: str) -> Run:
        # An installed command has its modules compiled.
        inherited = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        with tempfile.TemporaryFile() as output:
            start = time.perf_counter()
            process = subprocess.Popen(
                command, stdout=output, stderr=subprocess.DEVNULL, env={**inherited, **environment}
            )
            _, status, usage = os.wait4(process.pid, 0)
            seconds = time.perf_counter() - start
            process.returncode = os.waitstatus_to_exitcode(status)
            if process.returncode not in (0, 1):
                raise SystemExit(f"{' '.join(command)} failed with exit code {process.returncode}")
            output.seek(0)
            return Run(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, output.read())


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    options = _parser().parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="clew-peers-", dir=options.scratch) as folder:
        bench = Bench(options, Path(folder))
        homes = options.homes or _generate_homes(options.make, bench.new_folder())
        small, large = (read_truth(*home.split(":", 1)) for home in homes)
        load = os.getloadavg()[0]
        print(f"Python {platform.python_version()}, {os.cpu_count()} cores ({platform.machine()}), load {load:.1f};")
        print(f"homes of {_size(small)} and {_size(large)}; best of {bench.rounds}, wall seconds (CPU seconds)\n")
        print("| measure | goal | reference | clew | |\n|---|---|---|---|---|")
        for row in measure(bench, small, large):
            print(row, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__.partition("\n")[0])
    parser.add_argument("homes", nargs="*", metavar="HOME:TRUTH", help="the small home, then the large one")
    parser.add_argument("--make", metavar="TOOL", help="generate the homes with this program")
    parser.add_argument("--rounds", type=int, default=3, help="the best of this many runs counts; default: 3")
    parser.add_argument("--scratch", metavar="DIR", help="folder for temporary files; several gigabytes")
    for name in ("clew", *PEERS):
        parser.add_argument(f"--{name}", metavar="PATH", help=f"the {name} command")
    return parser


def _generate_homes(tool: str | None, folder: Path) -> list[str]:
    if tool is None:
        raise SystemExit("give two homes with their truth, or a generator with --make")
    homes = []
    for size, seed in GENERATED_HOMES:
        home, truth = folder / size, folder / f"{size}.json"
        command = [sys.executable, tool, "--size", size, "--seed", str(seed), "--out", str(home), "--truth", str(truth)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        homes.append(f"{home}:{truth}")
    return homes


def measure(bench: Bench, small: Truth, large: Truth) -> Iterator[Row]:
    """Measure everything, one row at a time."""
    for truth in (small, large):
        yield from first_command_rows(bench, truth)
    yield full_sync_row(bench, small)
    yield from lake_rows(bench, small)
    for truth in (small, large):
        data = bench.new_folder()
        bench.clew(data, truth.home, "sync")
        check_answers(bench, truth, data)
        yield idle_sync_row(bench, truth, data)
        yield size_row(truth, data)
        yield search_row(bench, truth, data)
        yield from everyday_rows(bench, truth, data)


def first_command_rows(bench: Bench, truth: Truth) -> Iterator[Row]:
    """Measure the first command on a home that clew has never seen, against ccusage."""
    peer = bench.peer("ccusage", truth.home, "daily", "--offline", "--json")
    for arguments in (("list", "-n", "20"), ("stats",)):
        own = bench.best_first_clew(truth.home, *arguments)
        is_met = None if peer is None else own.seconds <= 1.5 * peer.seconds
        name = f"first `clew {' '.join(arguments)}`, {_size(truth)}"
        yield Row(name, "1.5 × `ccusage daily`", _times(peer), _times(own), is_met)


def full_sync_row(bench: Bench, truth: Truth) -> Row:
    """Measure a first sync with text against agentsview."""
    peer = bench.peer("agentsview", truth.home, "sync")
    own = bench.best_first_clew(truth.home, "sync")
    is_met = None if peer is None else peer.seconds >= 4 * own.seconds
    clew = f"{_times(own)}, {own.peak_mb:.0f} MB in the largest process"
    return Row(f"full sync with text, {_size(truth)}", "¼ × `agentsview sync`", _times(peer), clew, is_met)


def idle_sync_row(bench: Bench, truth: Truth, data: Path) -> Row:
    """Measure a sync with nothing to do."""
    own = bench.best_clew(data, truth.home, "sync")
    return Row(f"sync with nothing changed, {_size(truth)}", "0.12 s", "", _times(own), own.seconds <= 0.12)


def size_row(truth: Truth, data: Path) -> Row:
    """Compare the size of the catalog with the size of the home."""
    ratio = sum(path.stat().st_size for path in data.rglob("*") if path.is_file()) / truth.size
    return Row(f"catalog size, {_size(truth)}", "0.5 × raw", "", f"{ratio:.2f}", ratio <= 0.5)


def lake_rows(bench: Bench, truth: Truth) -> Iterator[Row]:
    """Measure writing a lake against a full sync, and statistics from it."""
    lake = bench.new_folder()
    bench.clew(bench.new_folder(), truth.home, "lake", "write", str(lake))
    objects = sum(path.is_file() for path in lake.rglob("*"))
    sync = bench.best_first_clew(truth.home, "sync")
    own = bench.best(lambda: bench.clew(bench.new_folder(), truth.home, "lake", "write", str(bench.new_folder())))
    is_met = own.seconds <= 1.5 * sync.seconds
    clew = f"{_times(own)}, {objects} objects"
    yield Row(f"`clew lake write`, {_size(truth)}", "1.5 × full sync", _times(sync), clew, is_met)
    stats = bench.best_clew(bench.new_folder(), truth.home, "stats", "--engine", f"duckdb:{lake}")
    yield Row(f"`clew stats --engine duckdb:`, {_size(truth)}", "0.5 s", "", _times(stats), stats.seconds <= 0.5)


def check_answers(bench: Bench, truth: Truth, data: Path) -> None:
    """Compare token totals and planted words with the truth."""
    by_model = json.loads(bench.clew(data, truth.home, "stats", "--json").output)["by_model"]
    if tokens_of(by_model) != truth.tokens:
        raise SystemExit("token totals differ from the truth")
    found = count_found_needles(truth, data)
    if found != len(truth.needles):
        raise SystemExit(f"{found} of {len(truth.needles)} planted words were found")


def everyday_rows(bench: Bench, truth: Truth, data: Path) -> Iterator[Row]:
    """Measure everyday commands with a current catalog against the time that `clew --version` takes."""
    version = bench.best_clew(data, truth.home, "--version")
    limit = 3 * version.seconds + 0.15
    for arguments in ((), ("list", "-n", "20"), ("show", "@last"), ("files", "@last")):
        own = bench.best_clew(data, truth.home, *arguments)
        name = f"`{' '.join(('clew', *arguments))}`, {_size(truth)}"
        goal = "3 × `clew --version` + 0.15 s"
        yield Row(name, goal, _times(version), _times(own), own.seconds <= limit)


def search_row(bench: Bench, truth: Truth, data: Path) -> Row:
    """Measure a search for one rare word against ripgrep over the same files."""
    word = truth.needles[0]
    peer = bench.peer("rg", truth.home, "-uu", "-l", "-j2", word, str(truth.home))
    own = bench.best_clew(data, truth.home, "search", word)
    is_met = None if peer is None else own.seconds <= 0.8 * peer.seconds
    return Row(f"`clew search {word}`, {_size(truth)}", "0.8 × `rg -uu -l -j2`", _times(peer), _times(own), is_met)


def _size(truth: Truth) -> str:
    return f"{truth.size / 1e6:,.0f} MB"


def _times(run: Run | None) -> str:
    return "not installed" if run is None else f"{run.seconds:.2f} s ({run.cpu_seconds:.2f})"


if __name__ == "__main__":
    main()
