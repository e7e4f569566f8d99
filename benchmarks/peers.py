"""python -m benchmarks.peers HOME:TRUTH [HOME:TRUTH]: clew against its peers, in one run.

Homes are made by a generator that also writes the truth; the last one is the large one. Everything is taken in turn,
the best of some rounds counts, and wrong answers score nothing. Peers are found on the path or named; one that is
missing is said so. Prints rows of Markdown.
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
import uuid
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import NamedTuple

from benchmarks.truth import NEEDLES, Truth, read_truth, tokens_of

PEERS = ("ccusage", "agentsview", "rg", "find")
CLASSES = {"rare": (1.0, 0.2), "common": (3.0, 1.0), "phrase": (10.0, 5.0), "prefix": (5.0, 2.0)}
"""Kinds of queries, with the milliseconds they may take and should take."""


class Ran(NamedTuple):
    """What a process cost, and gave."""

    seconds: float
    cpu: float
    megabytes: float
    out: bytes


class Row(NamedTuple):
    """A line of the table."""

    measure: str
    must: str
    aim: str
    peer: str
    ours: str
    ratio: str


class Bench:
    """The homes, the peers, and how things are run."""

    def __init__(self, chosen: argparse.Namespace, scratch: Path) -> None:
        self.rounds: int = chosen.rounds
        self.scratch = scratch
        self.peers = {name: getattr(chosen, name) or shutil.which(name) for name in PEERS}
        self.clew = chosen.clew or str(Path(sys.executable).with_name("clew"))
        self.with_agentsview: str = chosen.agentsview_on
        self._number = 0

    def run(self, *command: str | Path, home: Path | None = None, check: bool = True, **env: str) -> Ran:
        """Run a process to its end."""
        given = {**os.environ, "CLEW_CONFIG_DIR": str(self.scratch / "config"), **env}
        if home is not None:
            given["HOME"] = str(home)
        with tempfile.TemporaryFile() as out:
            began = time.perf_counter()
            process = subprocess.Popen(list(map(str, command)), stdout=out, stderr=subprocess.DEVNULL, env=given)
            _, status, used = os.wait4(process.pid, 0)
            seconds = time.perf_counter() - began
            process.returncode = os.waitstatus_to_exitcode(status)
            out.seek(0)
            text = out.read()
        if check and process.returncode not in (0, 1):
            raise SystemExit(f"{command[0]} failed with {process.returncode}")
        return Ran(seconds, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, text)

    def own(self, *words: str | Path, folder: Path) -> Ran:
        """Run clew with its files in a folder."""
        return self.run(self.clew, *words, CLEW_DATA_DIR=str(folder))

    def folder(self) -> Path:
        """A new folder."""
        self._number += 1
        folder = self.scratch / str(self._number)
        folder.mkdir()
        return folder

    def in_turn(self, *measured: Callable[[], Ran]) -> list[Ran]:
        """The best of some rounds of each, taken in turn."""
        rounds = [[take() for take in measured] for _ in range(self.rounds)]
        return [min(column, key=lambda ran: ran.seconds) for column in zip(*rounds, strict=True)]

    def linked(self, home: Path) -> Path:
        """A home that leads to the same sessions, in which a peer may keep files of its own."""
        folder = self.folder()
        for entry in home.iterdir():
            (folder / entry.name).symlink_to(entry)
        return folder


def main(arguments: Sequence[str] | None = None) -> None:
    """Fill the table."""
    chosen = _parser().parse_args(arguments)
    truths = [read_truth(*given.split(":", 1)) for given in chosen.homes]
    with tempfile.TemporaryDirectory(prefix="clew-peers-") as folder:
        bench = Bench(chosen, Path(folder))
        print("\n".join(_heading(bench, truths)), flush=True)
        for row in measure(bench, truths):
            print("| " + " | ".join(row) + " |", flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    parser.add_argument("homes", nargs="+", metavar="HOME:TRUTH", help="a home and its truth; the large one last")
    parser.add_argument("--rounds", type=int, default=3, help="the best of so many counts")
    parser.add_argument("--clew", help="the clew command")
    parser.add_argument(
        "--agentsview-on", choices=("none", "first", "all"), default="first", help="which homes it reads"
    )
    for name in PEERS:
        parser.add_argument(f"--{name}", help=f"the {name} command")
    return parser


def _heading(bench: Bench, truths: Sequence[Truth]) -> Iterator[str]:
    load = " ".join(f"{load:.1f}" for load in os.getloadavg())
    sizes = ", ".join(f"{truth.size / 1e6:.0f} MB in {truth.files} files" for truth in truths)
    yield f"{datetime.now(UTC):%Y-%m-%d}, Python {platform.python_version()}, {os.cpu_count()} cores"
    yield f"({platform.machine()}), load {load}; homes: {sizes}; best of {bench.rounds}."
    for name, path in bench.peers.items():
        told = bench.run(path, "--version").out.decode().split("\n")[0] if path else "missing: its rows are left out"
        yield f"- {name}: {told}"
    yield "\n| measure | must | aim | peer | clew | ratio or verdict |\n|---|---|---|---|---|---|"


def measure(bench: Bench, truths: Sequence[Truth]) -> Iterator[Row]:
    """All rows."""
    large = truths[-1]
    folders = {truth.home: bench.folder() for truth in truths}
    yield from statistics_rows(bench, large, bench.folder(), "`clew stats` with no catalog", "0.8", "0.4")
    memory = {}
    for number, truth in enumerate(truths):
        synced = bench.own("sync", "--home", truth.home, folder=folders[truth.home])
        memory[truth.home] = synced.megabytes
        wanted = bench.with_agentsview
        if bench.peers["agentsview"] and (wanted == "all" or (wanted == "first" and number == 0)):
            yield agentsview_row(bench, truth, synced)
        else:
            name = f"full sync at {truth.size / 1e6:.0f} MB"
            speed = f"{truth.size / 1e6 / synced.seconds:.0f} MB/s"
            yield Row(name, "8 times faster", "20 times", "not run", f"{synced.seconds:.1f} s", speed)
    yield from statistics_rows(bench, large, folders[large.home], "`clew stats` from the catalog", "0.15", "0.05")
    yield from sync_rows(bench, large, folders[large.home])
    yield appended_row(bench, truths[0])
    yield from search_rows(bench, large, folders[large.home])
    yield size_row(large, folders[large.home])
    flat = max(memory.values()) / min(memory.values())
    told = ", ".join(f"{used:.0f} MB" for used in memory.values())
    yield Row(
        "peak memory of a sync, largest process", "400 MB, flat within 20 %", "150", "", told, f"{flat:.2f} times"
    )


def statistics_rows(bench: Bench, truth: Truth, folder: Path, name: str, must: str, aim: str) -> Iterator[Row]:
    """Statistics against ccusage; only if every number is right."""
    ours: Callable[[], Ran] = partial(bench.own, "stats", "--home", truth.home, "--json", folder=folder)
    right = tokens_of(json.loads(ours().out)["by_model"]) == truth.tokens
    if not bench.peers["ccusage"]:
        (own,) = bench.in_turn(ours)
        yield Row(name, must, aim, "missing", _told(own), "right" if right else "WRONG NUMBERS")
        return
    home = bench.linked(truth.home)
    peer, own = bench.in_turn(
        partial(bench.run, bench.peers["ccusage"], "daily", "--offline", "--json", home=home), ours
    )
    verdict = f"{own.seconds / peer.seconds:.2f}; cpu {own.cpu / peer.cpu:.2f}" if right else "WRONG NUMBERS"
    yield Row(name, must, aim, _told(peer), _told(own), verdict)
    yield Row(f"peak memory: {name}", "80 MB", "40 MB", f"{peer.megabytes:.0f} MB", f"{own.megabytes:.0f} MB", "")


def _told(ran: Ran) -> str:
    return f"{ran.seconds:.3f} s ({ran.cpu:.2f} s cpu)"


def agentsview_row(bench: Bench, truth: Truth, own: Ran) -> Row:
    """A full sync against agentsview's."""
    home = bench.linked(truth.home)
    peer = bench.run(bench.peers["agentsview"] or "", "sync", home=home, AGENTSVIEW_NO_DAEMON="1")
    name = f"full sync at {truth.size / 1e6:.0f} MB, tool output searchable"
    return Row(name, "8 times faster", "20 times", _told(peer), _told(own), f"{peer.seconds / own.seconds:.1f} times")


def sync_rows(bench: Bench, truth: Truth, folder: Path) -> Iterator[Row]:
    """A sync with nothing to do, against looking at every file."""
    idle = partial(bench.own, "sync", "--home", truth.home, folder=folder)
    idle()
    if not bench.peers["find"]:
        (own,) = bench.in_turn(idle)
        yield Row("sync with nothing changed", "4 times", "2 times", "missing", _told(own), "")
        return
    peer, own = bench.in_turn(partial(bench.run, bench.peers["find"], truth.home, "-printf", "%p %s %T@\n"), idle)
    ratio = f"{own.seconds / peer.seconds:.1f} times"
    yield Row("sync with nothing changed, against `find -printf`", "4 times", "2 times", _told(peer), _told(own), ratio)


def appended_row(bench: Bench, truth: Truth) -> Row:
    """One line more in one file, beyond a sync with nothing to do; on a copy of the small home."""
    home, folder = bench.folder() / "home", bench.folder()
    shutil.copytree(truth.home, home, symlinks=True)
    target = max((home / ".claude").rglob("*.jsonl"), key=lambda path: path.stat().st_size)
    record = json.loads(target.read_bytes().partition(b"\n")[0])
    bench.own("sync", "--home", home, folder=folder)
    time.sleep(0.2)

    def grown() -> Ran:
        line = {**record, "uuid": str(uuid.uuid4()), "timestamp": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.000Z}"}
        with target.open("ab") as out:
            out.write(json.dumps(line, separators=(",", ":")).encode() + b"\n")
        time.sleep(0.2)
        return bench.own("sync", "--home", home, folder=folder)

    idle, more = bench.in_turn(partial(bench.own, "sync", "--home", home, folder=folder), grown)
    beyond = (more.seconds - idle.seconds) * 1000
    return Row("one line appended, beyond the no-op", "30 ms", "10 ms", "120 ms", f"{beyond:.0f} ms", "")


def search_rows(bench: Bench, truth: Truth, folder: Path) -> Iterator[Row]:
    """A word from the command line against ripgrep, the needles, and queries in a running process."""
    word = truth.needles[0].word
    own_search = partial(bench.own, "search", "--home", truth.home, "--json", word, folder=folder)
    if bench.peers["rg"]:
        command = (bench.peers["rg"], "-l", "-j2", "--hidden", "--no-ignore", word, truth.home)
        peer, own = bench.in_turn(partial(bench.run, *command), own_search)
        ratio = f"{own.seconds / peer.seconds:.2f}"
        yield Row("`clew search` word, whole process", "0.2", "0.1", _told(peer), _told(own), ratio)
    inside = json.loads(bench.run(sys.executable, "-m", NEEDLES, truth.home, folder, truth.path).out)
    found, wanted = inside["found"], len(truth.needles)
    yield Row(
        "needles found, tool output included",
        "all",
        "all",
        "",
        f"{found} of {wanted}",
        "right" if found == wanted else "MISSING",
    )
    for name, (must, aim) in CLASSES.items():
        p95 = inside["p95_ms"][name]
        yield Row(f"search in a running process, p95: {name}", f"{must} ms", f"{aim} ms", "", f"{p95:.2f} ms", "")


def size_row(truth: Truth, folder: Path) -> Row:
    """The catalog against what it is made from."""
    used = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    return Row("catalog size over raw size", "0.35", "0.2", "", f"{used / 1e6:.0f} MB", f"{used / truth.size:.2f}")


if __name__ == "__main__":
    main()
