"""python -m benchmarks.peers HOME:TRUTH [HOME:TRUTH]: clew against its peers, in one run.

Homes are made by a generator that also writes the truth (`--make TOOL` makes one of 200 MB and one of 1 GB); the last
one is the large one. Everything is taken in turn, the best of some rounds counts, and wrong answers score nothing.
Peers are found on the path or named; one that is missing or fails is said so, and the rest goes on. Prints a table in
Markdown.
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
from typing import Any, NamedTuple

from benchmarks.truth import NEEDLES, Truth, read_truth, tokens_of

PEERS = ("ccusage", "agentsview", "rg", "find")
CLASSES = {"rare": (1.0, 0.2), "common": (3.0, 1.0), "phrase": (10.0, 5.0), "prefix": (5.0, 2.0)}
"""Kinds of queries, with the milliseconds they may take and should take."""


_LARGE = 500_000_000
"""A home beyond this size is the large one, where the peer slows down and more is aimed at."""


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
    is_met: bool | None = None
    """Whether the must is met; None where that cannot be said."""

    def __str__(self) -> str:
        verdict = {True: "met", False: "**missed**", None: ""}[self.is_met]
        return f"| {' | '.join((*self[:-1], verdict))} |"


class Failed(Exception):
    """A process did not do what it was run for."""


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
        # An installed command finds its modules compiled.
        given.pop("PYTHONDONTWRITEBYTECODE", None)
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
            raise Failed(f"{Path(command[0]).name} failed with {process.returncode}")
        return Ran(seconds, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, text)

    def peer(self, name: str, *words: str | Path, **options: Any) -> Callable[[], Ran]:
        """A run of a peer."""
        path = self.peers[name]
        if not path:
            raise Failed(f"{name} is missing")
        return partial(self.run, path, *words, **options)

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
    with tempfile.TemporaryDirectory(prefix="clew-peers-", dir=chosen.scratch) as folder:
        bench = Bench(chosen, Path(folder))
        homes = [*chosen.homes, *(_made(chosen.make, bench.folder()) if chosen.make else ())]
        if not homes:
            raise SystemExit("name homes with their truth, or a generator with --make")
        truths = [read_truth(*given.split(":", 1)) for given in homes]
        print("\n".join(_heading(bench, truths)), flush=True)
        for row in measure(bench, truths):
            print(row, flush=True)
        print(f"\nLoad at the end: {_load()}.")


SIZES = (("200MB", 7), ("1GB", 11))
"""Of the homes that are made, with the seed of each."""


def _made(tool: str, folder: Path) -> Iterator[str]:
    for size, seed in SIZES:
        home, truth = folder / size, folder / f"{size}.json"
        command = [sys.executable, tool, "--size", size, "--seed", str(seed), "--out", str(home), "--truth", str(truth)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        yield f"{home}:{truth}"


def _load() -> str:
    return " ".join(f"{load:.1f}" for load in os.getloadavg())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    parser.add_argument("homes", nargs="*", metavar="HOME:TRUTH", help="a home and its truth; the large one last")
    parser.add_argument("--rounds", type=int, default=3, help="the best of so many counts")
    parser.add_argument("--clew", help="the clew command")
    parser.add_argument("--make", metavar="TOOL", help="make the homes with this generator")
    parser.add_argument("--scratch", metavar="DIR", help="where files may be written; some gigabytes")
    parser.add_argument(
        "--agentsview-on", choices=("none", "first", "all"), default="first", help="which homes it reads"
    )
    for name in PEERS:
        parser.add_argument(f"--{name}", help=f"the {name} command")
    return parser


def _heading(bench: Bench, truths: Sequence[Truth]) -> Iterator[str]:
    sizes = ", ".join(f"{truth.size / 1e6:,.0f} MB in {truth.files:,} files" for truth in truths)
    yield f"Measured {datetime.now(UTC):%Y-%m-%d, %H:%M} UTC, Python {platform.python_version()},"
    yield f"{os.cpu_count()} cores ({platform.machine()}), load {_load()}; homes: {sizes}; best of {bench.rounds};"
    yield "times are wall, with processor seconds of all processes in brackets; memory is of the largest process.\n"
    for name, path in bench.peers.items():
        told = bench.run(path, "--version").out.decode().split("\n")[0] if path else "missing: its rows say so"
        yield f"- {name}: {told}"
    yield "\n| measure | must | aim | peer | clew | ratio | must |\n|---|---|---|---|---|---|---|"


def measure(bench: Bench, truths: Sequence[Truth]) -> Iterator[Row]:
    """All rows. A row that cannot be taken says why, and takes none with it."""
    large = truths[-1]
    folders = {truth.home: bench.folder() for truth in truths}
    for truth in truths:
        yield from statistics_rows(bench, truth, bench.folder(), "`clew stats` with no catalog", 0.8, "0.4")
    synced = {truth.home: bench.own("sync", "--home", truth.home, folder=folders[truth.home]) for truth in truths}
    for number, truth in enumerate(truths):
        with_peer = bench.with_agentsview == "all" or (bench.with_agentsview == "first" and not number)
        yield sync_row(bench, truth, synced[truth.home], with_peer)
    for truth in truths:
        yield from statistics_rows(bench, truth, folders[truth.home], "`clew stats` from the catalog", 0.15, "0.05")
    for truth in truths:
        yield idle_row(bench, truth, folders[truth.home])
    yield appended_row(bench, truths[0])
    yield from search_rows(bench, large, folders[large.home])
    for truth in truths:
        yield size_row(truth, folders[truth.home])
    yield memory_row([ran.megabytes for ran in synced.values()])


def _at(truth: Truth) -> str:
    return f"{truth.size / 1e6:,.0f} MB"


def statistics_rows(bench: Bench, truth: Truth, folder: Path, name: str, must: float, aim: str) -> Iterator[Row]:
    """Statistics against ccusage; only if every number is right."""
    ours: Callable[[], Ran] = partial(bench.own, "stats", "--home", truth.home, "--json", folder=folder)
    name = f"{name}, {_at(truth)}"
    if tokens_of(json.loads(ours().out)["by_model"]) != truth.tokens:
        yield Row(name, f"{must}", aim, "", "", "WRONG NUMBERS", False)
        return
    try:
        peer, own = bench.in_turn(
            bench.peer("ccusage", "daily", "--offline", "--json", home=bench.linked(truth.home)), ours
        )
    except Failed as failure:
        (own,) = bench.in_turn(ours)
        yield Row(name, f"{must}", aim, str(failure), _told(own), "numbers right")
        return
    ratio = own.seconds / peer.seconds
    shown = f"{ratio:.2f}; processor {own.cpu / peer.cpu:.2f}"
    yield Row(f"{name}, against `ccusage`", f"{must}", aim, _told(peer), _told(own), shown, ratio <= must)
    memory = f"{own.megabytes:.0f} MB"
    yield Row(
        f"peak memory of it, {_at(truth)}", "80 MB", "40", f"{peer.megabytes:.0f} MB", memory, "", own.megabytes <= 80
    )


def _told(ran: Ran) -> str:
    return f"{ran.seconds:.3f} s ({ran.cpu:.2f})"


def sync_row(bench: Bench, truth: Truth, own: Ran, with_peer: bool) -> Row:
    """A full sync against agentsview's."""
    name = f"full sync, tool output searchable, {_at(truth)}, against `agentsview sync`"
    must, aim = ("", "20 times") if truth.size > _LARGE else ("8 times faster", "")
    speed = f"{truth.size / 1e6 / own.seconds:.0f} MB/s"
    try:
        if not with_peer:
            raise Failed("not run")
        peer = bench.peer("agentsview", "sync", home=bench.linked(truth.home), AGENTSVIEW_NO_DAEMON="1")()
    except Failed as failure:
        return Row(name, must, aim, str(failure), _told(own), speed)
    ratio = peer.seconds / own.seconds
    is_met = ratio >= 8 if must else None
    return Row(name, must, aim, _told(peer), _told(own), f"{ratio:.1f} times; {speed}", is_met)


def idle_row(bench: Bench, truth: Truth, folder: Path) -> Row:
    """A sync with nothing to do, against looking at every file."""
    name = f"sync with nothing changed, {_at(truth)}, against `find -printf`"
    idle = partial(bench.own, "sync", "--home", truth.home, folder=folder)
    idle()
    try:
        peer, own = bench.in_turn(bench.peer("find", truth.home, "-printf", "%p %s %T@\n"), idle)
    except Failed as failure:
        (own,) = bench.in_turn(idle)
        return Row(name, "4 times", "2 times", str(failure), _told(own), "")
    ratio = own.seconds / peer.seconds
    shown = f"{ratio:.1f} times; processor {own.cpu / peer.cpu:.1f}"
    return Row(name, "4 times", "2 times", _told(peer), _told(own), shown, ratio <= 4)


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
    beyond, worked = (more.seconds - idle.seconds) * 1000, (more.cpu - idle.cpu) * 1000
    name = f"one line appended to a file of {target.stat().st_size / 1e6:.0f} MB, beyond the no-op, {_at(truth)}"
    return Row(name, "30 ms", "10 ms", "120 ms", f"{beyond:.0f} ms ({worked:.0f})", "", beyond <= 30)


def search_rows(bench: Bench, truth: Truth, folder: Path) -> Iterator[Row]:
    """A word from the command line against ripgrep, the needles, and queries in a running process."""
    word = truth.needles[0].word
    name = f"`clew search` word, whole process, {_at(truth)}, against `rg -l -j2`"
    ours: Callable[[], Ran] = partial(bench.own, "search", "--home", truth.home, "--json", word, folder=folder)
    try:
        peer, own = bench.in_turn(bench.peer("rg", "-l", "-j2", "--hidden", "--no-ignore", word, truth.home), ours)
        ratio = own.seconds / peer.seconds
        yield Row(name, "0.2", "0.1", _told(peer), _told(own), f"{ratio:.2f}", ratio <= 0.2)
    except Failed as failure:
        (own,) = bench.in_turn(ours)
        yield Row(name, "0.2", "0.1", str(failure), _told(own), "")
    inside = json.loads(bench.run(sys.executable, "-m", NEEDLES, truth.home, folder, truth.path).out)
    found, wanted = inside["found"], len(truth.needles)
    yield Row(
        "planted words found, tool output included", "all", "all", "", f"{found} of {wanted}", "", found == wanted
    )
    for kind, (must, aim) in CLASSES.items():
        p95 = inside["p95_ms"][kind]
        name = f"search in a running process, p95: {kind}, {_at(truth)}"
        yield Row(name, f"{must:g} ms", f"{aim:g} ms", "", f"{p95:.2f} ms", "", p95 <= must)


def size_row(truth: Truth, folder: Path) -> Row:
    """The catalog against what it is made from."""
    used = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    ratio = used / truth.size
    name = f"catalog size over raw size, {_at(truth)}"
    return Row(name, "0.35", "0.2", "", f"{used / 1e6:,.0f} MB", f"{ratio:.2f}", ratio <= 0.35)


def memory_row(megabytes: Sequence[float]) -> Row:
    """What syncs took, and whether it grows with what is read."""
    grown, told = max(megabytes) / min(megabytes), ", ".join(f"{used:.0f}" for used in megabytes)
    is_met = max(megabytes) <= 400 and grown <= 1.2
    must = "400 MB, flat within 20 %"
    return Row("peak memory of these syncs", must, "150", "", f"{told} MB", f"{grown:.2f} times", is_met)


if __name__ == "__main__":
    main()
